"""A run of the allocator on a group alone, or on the whole cluster, as `gpolicy capacity` counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity_run import Run
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed, wanted_template
from gpolicy.analysis.group_data import group_data

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


def counted_run(state: ClusterState, group: str | None, template: str | None) -> Run:
    """Return a run on `group` (None: the whole cluster) with `template` (None: the first enabled and allowed one)."""
    data = cluster_data(state)
    if group is not None:
        data, _ = group_data(data, next(item.index for item in data.groups if item.name == group))
    enabled = enabled_templates(state)
    return Run(data, wanted_template(template, enabled) if template else first_allowed(enabled, data.policy))
