"""Both resource models, the measured and the declared one, before a change and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.analysis.clusters import Clusters
from gpolicy.analysis.resource_models import Observer, ResourceModel, models

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both models before and after."""

    before: ResourceModel
    after: ResourceModel


def resource_model_change(
    before: ClusterState, after: ClusterState, *, observer: Observer | None = None, clusters: Clusters | None = None
) -> ResourceModelChange:
    """Compare both models before and after; what is the same is counted once. Arguments as for `resource_model`."""
    return ResourceModelChange(*models([before, after], observer, clusters or Clusters()))
