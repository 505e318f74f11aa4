"""The declarations of hv_state and disk_state for a node, and the configured resources that follow.

Ganeti stores both at cluster, group and node and inherits neither; here a node's value is its own, else its group's,
else the cluster's. Of several hypervisors only the cluster's first one counts (design document "Resource model"), and
of the volume groups the cluster's own.

Ganeti completes the cluster's record with defaults (mem_total, mem_node, mem_hv 0, cpu_total, cpu_node 1, disk values
0) as soon as one value is set. There these numbers are the same as "not set", so they count as not declared.
A total of 0 is not declared anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.configured_resources import NodeResources
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.errors import GpolicyError, about
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE

if TYPE_CHECKING:
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.analysis.counted_cluster import CountedCluster
    from gpolicy.analysis.loaded_state import LoadedState
    from gpolicy.cluster.state import ClusterState
    from gpolicy.cluster.state import Node as ObservedNode
    from gpolicy.ganeti.parameter import Path, Values

_TOTALS: Final = frozenset({"mem_total", "cpu_total", "disk_total"})


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """One declared number (MiB or cores) and the level that declares it."""

    value: int
    level: Level


Declared = Mapping[str, DeclaredValue]
"""The declared numbers of a node, by Ganeti's names: mem_total, …, disk_overhead."""


def known_states(state: ClusterState) -> bool:
    """Return whether the source shows hv_state and disk_state at all."""
    return all(state.readable(level, (family,)) for level in Level for family in ("hv_state", "disk_state"))


def prefixes(state: ClusterState) -> tuple[Path | None, Path | None]:
    """Return the paths of the values that count: of the first hypervisor, and of the cluster's volume group."""
    hypervisors = state.cluster.own.get(("enabled_hypervisors",))
    first = str(hypervisors[0]) if isinstance(hypervisors, list) and hypervisors else None
    volume_group = state.cluster.own.get(("volume_group_name",))
    return (
        ("hv_state", first) if first else None,
        ("disk_state", "plain", volume_group) if isinstance(volume_group, str) and volume_group else None,
    )


def declared(state: ClusterState, node: ObservedNode) -> Declared:
    """Return the declared numbers of `node`, with their levels."""
    levels = ((Level.NODE, node.own), (Level.GROUP, state.groups[node.group].own), (Level.CLUSTER, state.cluster.own))
    hypervisor, volume_group = prefixes(state)
    found: dict[str, DeclaredValue] = {}
    for prefix, table in ((hypervisor, HV_STATE), (volume_group, DISK_STATE)):
        if prefix is None:
            continue
        for name, (default, _, _) in table.items():
            for level, own in levels:
                value = _stated((*prefix, name), own, default if level is Level.CLUSTER else None)
                if value is not None:
                    found[name] = DeclaredValue(value, level)
                    break
    return found


def declared_numbers(state: ClusterState, node: ObservedNode) -> dict[str, int]:
    """Return the declared numbers of `node`."""
    return {name: item.value for name, item in declared(state, node).items()}


def uncounted(state: ClusterState) -> list[str]:
    """Return notes on declarations that do not count: other hypervisors, other volume groups."""
    counted = set(prefixes(state))
    own = [state.cluster.own, *(group.own for group in state.groups.values()), *(n.own for n in state.nodes.values())]
    paths = {path for values in own for path in values if path[0] in ("hv_state", "disk_state")}
    others = {path[:2] if path[0] == "hv_state" else path[:3] for path in paths} - counted
    return [
        f"{'.'.join(path)} is ignored: capacity counts only the cluster's first hypervisor and its own volume group"
        for path in sorted(others)
    ]


def _stated(path: Path, own: Values, default: int | None) -> int | None:
    value = own.get(path)
    if not isinstance(value, int) or isinstance(value, bool) or value == default:
        return None
    return None if path[-1] in _TOTALS and value == 0 else value


def reported(node: Node, cluster: Cluster) -> dict[str, int]:
    """Return the figures that `node` of a loaded cluster reports, or that follow, by Ganeti's names (MiB, CPUs).

    `mem_hv` is total memory less node, running instances and free memory; `disk_overhead` is total disk less instances
    and free disk, as htools computes them. `mem_node` is htools' value: 4096 MiB under KVM.
    """
    facts = node.facts
    used = sum(
        cluster.instances[index].disk
        for index in (*node.primaries, *node.secondaries)
        if cluster.instances[index].template.local
    )
    disk = truncate(facts.total_disk)
    return {
        "mem_total": truncate(facts.total_memory),
        "mem_node": facts.node_memory,
        "mem_hv": max(0, facts.unaccounted_memory),
        "cpu_total": truncate(facts.total_cpus),
        "cpu_node": facts.node_cpus,
        "disk_total": disk,
        "disk_overhead": max(0, disk - node.free_disk - used),
    }


def required_resources(loaded: LoadedState) -> dict[str, NodeResources]:
    """Return the declared resources of nodes, by name. Raise GpolicyError if the source does not show them."""
    if not known_states(loaded.state):
        raise GpolicyError(
            about(loaded.state.address, "not known: hv_state and disk_state"),
            hint="they are in config.data only: read the cluster on its master (local:, ssh://), or from a snapshot",
        )
    return node_resources(loaded.state, loaded.whole)


def node_resources(state: ClusterState, counted: CountedCluster) -> dict[str, NodeResources]:
    """Return the resources of the nodes of `counted` for which something is declared, by name.

    Values that are not declared are those that nodes report.
    """
    found = {}
    for item in counted.data.nodes:
        stated = declared_numbers(state, state.nodes[item.name])
        if stated and not item.offline:
            values = reported(counted.cluster.nodes[item.index], counted.cluster)
            found[item.name] = NodeResources(**values | stated)
    return found
