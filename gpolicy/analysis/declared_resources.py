"""The declarations of hv_state and disk_state for a node, and the configured resources that follow.

Ganeti stores both at cluster, group and node and inherits neither; here a node's value is its own, else its group's,
else the cluster's. Of several hypervisors only the cluster's first one counts (design document "Resource model"), and
of the volume groups the cluster's own.

A value counts also where it is Ganeti's default. But a total of 0 is none, and Ganeti fills the cluster's records with
defaults: unless the policy itself declares them, a record of nothing but defaults declares nothing, and neither does a
cpu_total of 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.merge import Cluster
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.terms import HYPERVISORS, VOLUME_GROUP
from gpolicy.cluster.volume_pools import separate_metavg
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE, Level, Path, Values

_CPUS: Final = ("cpu_total", "cpu_node")
_TOTALS: Final = frozenset({"mem_total", "cpu_total", "disk_total"})


@dataclass(frozen=True, slots=True)
class DeclaredNumber:
    """One declared number and the reported one, in MiB or CPUs."""

    name: str
    """Ganeti's name of it."""
    declared: int
    """What is declared."""
    level: str
    """Where: node, group or cluster."""
    reported: int | None
    """What the node reports; None where nodes report no such thing."""

    @property
    def differs(self) -> bool:
        """Whether the node reports another number."""
        return self.reported is not None and self.reported != self.declared

    def amount(self, number: int | None) -> str:
        """Return the declared or reported number as people write it: 2 CPUs as 2, memory and disk with their unit."""
        if number is None:
            return "not known"
        return f"{number:,}" if self.name in _CPUS else exact_size(number)


Declared = dict[str, tuple[int, Level]]
"""The declared numbers of a node (MiB or cores), by Ganeti's names: mem_total, …, disk_overhead; with their levels."""


def known_states(state: ClusterState) -> bool:
    """Return whether the source shows hv_state and disk_state at all."""
    return all(state.readable(level, (family,)) for level in Level for family in ("hv_state", "disk_state"))


def prefixes(state: ClusterState) -> tuple[Path | None, Path | None]:
    """Return the paths of the values that count: of the first hypervisor, and of the cluster's volume group.

    Where the source does not show which these are, the policy says it, or declares something of only one.
    """
    said = only_named(path for values in state.declared.values() for path in values) | state.declared.get("cluster", {})
    hypervisors, volume_group = (
        state.cluster.own.get(path, None if state.readable(Level.CLUSTER, path) else said.get(path))
        for path in (HYPERVISORS, VOLUME_GROUP)
    )
    first = str(hypervisors[0]) if isinstance(hypervisors, list) and hypervisors else None
    return (
        ("hv_state", first) if first else None,
        ("disk_state", "plain", volume_group) if isinstance(volume_group, str) and volume_group else None,
    )


def only_named(paths: Iterable[Path]) -> Values:
    """Return the cluster's hypervisor and volume group, where `paths` of hv_state and disk_state name just one."""
    known = set(paths)
    hypervisors = {path[1] for path in known if path[0] == "hv_state"}
    groups = {path[2] for path in known if path[0] == "disk_state" and len(path) > 2}
    values: Values = {}
    if len(hypervisors) == 1:
        values[HYPERVISORS] = [*hypervisors]
    if len(groups) == 1:
        values[VOLUME_GROUP] = groups.pop()
    return values


def declared(state: ClusterState, node: LiveNode) -> Declared:
    """Return the declared numbers of `node`, with their levels."""
    hypervisor, volume_group = prefixes(state)
    found: Declared = {}
    for prefix, table in ((hypervisor, HV_STATE), (volume_group, DISK_STATE)):
        if prefix is not None:
            found |= _declared_at(state, node, prefix, table)
    return found


def declared_disk(state: ClusterState, node: LiveNode, volume_group: str) -> dict[str, int]:
    """Return what disk_state declares for one volume group of `node`, by Ganeti's names (MiB)."""
    found = _declared_at(state, node, ("disk_state", "plain", volume_group), DISK_STATE)
    return {name: value for name, (value, _) in found.items()}


def _declared_at(state: ClusterState, node: LiveNode, prefix: Path, table: Mapping[str, tuple[int, str]]) -> Declared:
    own = (node.own, state.groups[node.group].own, _of_cluster(state, prefix, table))
    return _first_of(own, prefix, table)


def declared_by_policy(state: ClusterState, node: LiveNode) -> dict[str, int]:
    """Return the numbers that the policy of this run declares for `node`, whether they are in force yet or not."""
    own = [state.declared.get(label, {}) for label in (f"node/{node.name}", f"group/{node.group}", "cluster")]
    found: Declared = {}
    for prefix, table in zip(prefixes(state), (HV_STATE, DISK_STATE), strict=True):
        if prefix is not None:
            found |= _first_of(own, prefix, table)
    return {name: value for name, (value, _) in found.items()}


def _first_of(own: Sequence[Values], prefix: Path, table: Iterable[str]) -> Declared:
    """Return the numbers of the `table` from the values of a node, its group and the cluster."""
    levels = tuple(zip((Level.NODE, Level.GROUP, Level.CLUSTER), own, strict=True))
    found: Declared = {}
    for name in table:
        for level, values in levels:
            value = values.get((*prefix, name))
            if isinstance(value, int) and not isinstance(value, bool) and (value != 0 or name not in _TOTALS):
                found[name] = value, level
                break
    return found


def _of_cluster(state: ClusterState, prefix: Path, table: Mapping[str, tuple[int, str]]) -> Values:
    """Return the values of the cluster that somebody has declared, without Ganeti's own defaults."""
    record = {name: state.cluster.own.get((*prefix, name)) for name in table}
    meant = any(value not in (None, table[name][0]) for name, value in record.items())
    found: Values = {}
    by_policies = state.declared.get("cluster", {})
    for name, value in record.items():
        path = (*prefix, name)
        filled_in = name == "cpu_total" and value == 1
        by_policy = path in by_policies and by_policies[path] == value
        if by_policy or (meant and not filled_in):
            found[path] = value
    return found


def declared_numbers(state: ClusterState, node: LiveNode) -> dict[str, int]:
    """Return the declared numbers of `node`."""
    return {name: value for name, (value, _) in declared(state, node).items()}


def compared(state: ClusterState, node: LiveNode, shown: Mapping[str, int]) -> tuple[DeclaredNumber, ...]:
    """Return the declared numbers of `node` beside those that it reports (`shown`, by Ganeti's names)."""
    found = declared(state, node).items()
    return tuple(DeclaredNumber(name, value, level.value, shown.get(name)) for name, (value, level) in found)


def declaration_notes(state: ClusterState) -> list[str]:
    """Return notes on declarations: what the source hides, and what does not count."""
    hidden = f"{state.address} does not show hv_state and disk_state: only what a policy declares counts"
    return [*([] if known_states(state) else [hidden]), *uncounted(state)]


def uncounted(state: ClusterState) -> list[str]:
    """Return notes on declarations that do not count: other hypervisors, other volume groups."""
    counted = set(prefixes(state))
    own = [state.cluster.own, *(group.own for group in state.groups.values()), *(n.own for n in state.nodes.values())]
    paths = {path for values in own for path in values if path[0] in ("hv_state", "disk_state")}
    others = {path[:2] if path[0] == "hv_state" else path[:3] for path in paths} - counted
    metadata = {("disk_state", "plain", separate_metavg(state, group)) for group in state.groups.values()}
    return [
        f"{'.'.join(path)} counts only as room for the metadata of DRBD disks (metavg), beside capacity"
        if path in metadata
        else f"{'.'.join(path)} is ignored: capacity counts only the cluster's first hypervisor and its own volume"
        " group"
        for path in sorted(others)
    ]


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
