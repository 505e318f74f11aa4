"""A run of the allocator on a group alone, or on the whole cluster, as `gpolicy capacity` counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.impact.allocator_input import cluster_data
from gpolicy.impact.capacity_run import Run, loaded
from gpolicy.impact.declared_resources import configured
from gpolicy.impact.disk_templates import enabled_templates, first_allowed, wanted_template
from gpolicy.impact.group_data import group_data

if TYPE_CHECKING:
    from gpolicy.allocator.model import ClusterData
    from gpolicy.cluster.state import ClusterState


def counted_run(
    state: ClusterState,
    group: str | None,
    template: str | None,
    *,
    resource_model: bool = False,
    least_memory: bool = False,
) -> Run:
    """Return a run on `group` (None: the whole cluster) with `template` (None: the first enabled and allowed one).

    `resource_model`: what is free follows from hv_state and disk_state. `least_memory`: existing instances have their
    minmem, as under over-subscription.
    """
    data = cluster_data(state)
    if group is not None:
        data, _ = group_data(data, next(item.index for item in data.groups if item.name == group))
    if least_memory:
        data = _guaranteed(state, data)
    enabled = enabled_templates(state)
    chosen = wanted_template(template, enabled) if template else first_allowed(enabled, data.policy)
    resources = configured(state, data, loaded(data)) if resource_model else None
    return Run(data, chosen, resources=resources)


def _guaranteed(state: ClusterState, data: ClusterData) -> ClusterData:
    instances = (replace(item, memory=state.instances[item.name].minmem) for item in data.instances)
    return replace(data, instances=tuple(instances))
