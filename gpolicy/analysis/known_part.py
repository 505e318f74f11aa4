"""What of a cluster can be counted where a source does not tell everything: the groups whose nodes are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpolicy.analysis.allocator_input import cluster_data, gaps
from gpolicy.errors import GpolicyError, about

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import ClusterData
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True)
class KnownPart:
    """The allocator's input without the groups in `gaps`, which say what is not known of them."""

    state: ClusterState
    data: ClusterData
    gaps: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def known_part(state: ClusterState) -> KnownPart:
    """Return what can be counted of `state`.

    An instance with its primary in a group that is left out is left out as well, one that has only its secondary there
    is counted without it. Raise GpolicyError where no group with nodes is left.
    """
    lacking = gaps(state)
    if not lacking:
        return KnownPart(state, cluster_data(state))
    missing: dict[str, dict[str, None]] = {}
    for name, what in lacking.items():
        missing.setdefault(state.nodes[name].group, {}).update(dict.fromkeys(what))
    reasons = {group: f"not known: {', '.join(what)} of its nodes" for group, what in missing.items()}
    nodes = {name: node for name, node in state.nodes.items() if node.group not in reasons}
    if not nodes:
        cluster_data(state)  # says all of it
        raise GpolicyError(about(state.address, next(iter(reasons.values()))))
    instances, split = {}, []
    for name, instance in state.instances.items():
        if instance.primary_node not in nodes:
            continue
        if all(other in nodes for other in instance.secondary_nodes):
            instances[name] = instance
        else:
            template = "plain" if instance.disk_template == "drbd" else instance.disk_template
            instances[name] = replace(instance, secondary_nodes=(), disk_template=template)
            split.append(name)
    groups = {name: group for name, group in state.groups.items() if name not in reasons}
    part = replace(state, groups=groups, nodes=nodes, instances=instances)
    notes = tuple(f"instance {name}: its nodes are in two groups; counted on its primary only" for name in split)
    return KnownPart(part, cluster_data(part), reasons, notes)
