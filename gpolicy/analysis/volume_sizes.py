"""How large the physical volumes of nodes are: measured, else promised by the policy, else not known."""

from __future__ import annotations

from collections.abc import Mapping

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.volume_pools import pools_of
from gpolicy.ganeti.volume_arithmetic import VolumeSize


def smallest_volume(state: ClusterState, node: LiveNode) -> VolumeSize | None:
    """Return the size of the smallest physical volume of a node, which Ganeti computes with; None: not known."""
    pools = pools_of(state, node)
    return promised_volume(state, node.group) if pools is None else pools.own.volume_size


def promised_volume(state: ClusterState, group: str) -> VolumeSize | None:
    """Return the size of the smallest physical volume that the policy promises for a group; None: not known."""
    terms = state.terms_of(group)
    return terms.volumes.volume_size(min(terms.promise.volumes)) if terms.promise.volumes else None


def smallest_volumes(state: ClusterState) -> dict[str, VolumeSize]:
    """Return the size of the smallest physical volume of each node where it is known, by name."""
    found = {name: smallest_volume(state, node) for name, node in state.nodes.items()}
    return {name: size for name, size in found.items() if size is not None}


def unknown_volumes(state: ClusterState, volumes: Mapping[str, VolumeSize], group: str | None = None) -> list[str]:
    """Return a note on each group (or on `group`) with exclusive storage where the size of volumes is not known."""
    groups = dict.fromkeys(
        node.group
        for node in state.nodes.values()
        if node.name not in volumes
        and node.physical_volumes is None
        and not node.offline
        and group in (None, node.group)
        and state.has_exclusive_storage(node)
    )
    return [
        f"group {name}: the size of its physical volumes is not known, so the spindles of disks are not checked; read"
        " them (gpolicy snapshot --physical-volumes), or write pv_size and pv_count in the group's hardware"
        for name in groups
    ]


def what_if_shares(state: ClusterState, group: str | None = None) -> list[str]:
    """Return a note on each group (or on `group`) with exclusive storage whose margin or reserve is not Ganeti's."""
    groups = dict.fromkeys(node.group for node in state.nodes.values() if state.has_exclusive_storage(node))
    said = {name: state.terms_of(name).volumes.what_if for name in groups if group in (None, name)}
    return [f"group {name}: {text}" for name, text in said.items() if text]
