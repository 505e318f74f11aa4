"""A cluster before and after a change, made into pairs once; and who newly violates the instance policy.

Pairs are of states, of groups, of clusters to count on. Ganeti warns about an instance only when it has begun to
violate the policy, says nothing when nodes change their group, and judges with the node parameters as they were. Here
all of it counts: who violates it newly, still, or no longer. Nodes violate it, too: by its ratios.

What the fields mean, with their units, `scripts/reference/output_texts.toml` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TypeVar

from gpolicy.analysis import violations
from gpolicy.analysis.basis import Settled
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import LoadedState, load_state
from gpolicy.analysis.side_by_side import Result, each_cluster
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.vocabulary import Path, Value
from gpolicy.plan.sides import GroupMatch, Sides
from gpolicy.printable import count, listed


@dataclass(frozen=True, slots=True)
class CountedSides:
    """One group, or the whole cluster, before and after, ready to count. Sides that count the same are one object."""

    match: GroupMatch
    before: CountedCluster | None
    after: CountedCluster | None


@dataclass(frozen=True, slots=True)
class LoadedSides:
    """What can be counted of both `sides`. `unavailable` says by name why a group cannot be compared.

    `whole` is None where some group is not known.
    """

    sides: Sides
    before: LoadedState
    after: LoadedState
    groups: tuple[CountedSides, ...]
    whole: CountedSides | None
    unavailable: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the states, once where it is true of both."""
        return tuple(dict.fromkeys((*self.before.notes, *self.after.notes)))

    @property
    def declares(self) -> bool:
        """Whether hv_state or disk_state declares anything of a node."""
        return any(side.settled.stated for side in (self.before, self.after))

    @property
    def declared(self) -> LoadedSides:
        """The same states, counted by what is declared."""
        known = (*self.before.clusters, *self.after.clusters)
        return _load_sides(self.sides, like=known, resource_model=True) if self.declares else self


@lru_cache(maxsize=1)  # impact, guards and pictures of a plan ask for the same sides
def load_sides(sides: Sides) -> LoadedSides:
    """Return what can be counted of both sides. Raise GpolicyError where no group of one of them is known."""
    return _load_sides(sides)


def _load_sides(sides: Sides, *, like: Sequence[CountedCluster] = (), resource_model: bool = False) -> LoadedSides:
    """Load both states; `like` and `resource_model` are those of `load_state`."""
    old = load_state(sides.before, like=like, resource_model=resource_model)
    new = load_state(sides.after, like=(*like, *old.clusters), resource_model=resource_model)
    groups, unavailable = [], {}
    for match in sides.groups:
        why = old.settled.unknown.get(match.before or "") or new.settled.unknown.get(match.after or "")
        if why is not None:
            unavailable[match.name] = why.reason
        else:
            pair = CountedSides(match, old.groups.get(match.before or ""), new.groups.get(match.after or ""))
            groups.append(pair)
    uncounted = any(side.settled.unknown or side.limits_differ for side in (old, new))
    whole = None if uncounted else CountedSides(GroupMatch(None, None), old.whole, new.whole)
    return LoadedSides(sides, old, new, tuple(groups), whole, unavailable)


def measure_sides(
    pairs: Sequence[CountedSides], measure: Callable[[CountedCluster, str], Result]
) -> list[tuple[Result | None, Result | None]]:
    """Return what `measure` says of both sides; it is given a title. What is the same is measured once."""
    titles: dict[CountedCluster, str] = {}
    for item in pairs:
        for cluster, name, when in ((item.before, item.match.before, "today"), (item.after, item.match.after, "after")):
            if cluster is not None:
                titles.setdefault(cluster, f"{f'group {name}' if name else 'the whole cluster'}, {when}: ")
    found = each_cluster(titles, measure)

    def of(cluster: CountedCluster | None) -> Result | None:
        return None if cluster is None else found[cluster]

    return [(of(item.before), of(item.after)) for item in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceViolation:
    """One instance that violates the policy before or after."""

    instance: str
    primary_node: str
    before: violations.PolicyViolation | None
    after: violations.PolicyViolation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownViolation:
    """An instance of which it is not known whether it violates the policy before or after."""

    instance: str
    primary_node: str
    parameters: tuple[str, ...]
    before: violations.Verdict
    after: violations.Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeViolation:
    """A node that exceeds a ratio before or after."""

    node: str
    group: str
    before: tuple[violations.RatioBreach, ...]
    after: tuple[violations.RatioBreach, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownNodeViolation:
    """A node for which the changes make a ratio stricter, and that may exceed it now."""

    node: str
    group: str
    parameters: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationChange:
    """All instances and nodes whose verdict matters, by name.

    What Ganeti calls violating is what `gnt-cluster verify` and the warning of a modify do, for nodes what hbal does.
    """

    newly: tuple[InstanceViolation, ...] = ()
    still: tuple[InstanceViolation, ...] = ()
    no_longer: tuple[InstanceViolation, ...] = ()
    unknown: tuple[UnknownViolation, ...] = ()
    minmem_newly: tuple[InstanceViolation, ...] = ()
    minmem_still: tuple[InstanceViolation, ...] = ()
    minmem_no_longer: tuple[InstanceViolation, ...] = ()
    nodes_newly: tuple[NodeViolation, ...] = ()
    nodes_still: tuple[NodeViolation, ...] = ()
    nodes_no_longer: tuple[NodeViolation, ...] = ()
    nodes_unknown: tuple[UnknownNodeViolation, ...] = ()

    def uncertain(self, group: str | None = None) -> dict[str, str]:
        """Return the instances, and the nodes of `group` or of all, that may newly violate, each with the reason."""
        instances = [item for item in self.unknown if item.before.violation is None]
        found = {item.instance: f"without {', '.join(item.parameters)}" for item in instances}
        return found | {item.node: item.reason for item in self.nodes_unknown if group in (None, item.group)}


def violators(instances: int, nodes: int) -> str:
    """Return so many instances and nodes in words; nothing for none."""
    known = ((instances, "instance"), (nodes, "node"))
    return listed([count(number, word) for number, word in known if number])


def violation_change(sides: Sides, settled: tuple[Settled | None, Settled | None] = (None, None)) -> ViolationChange:
    """Return whose verdict the changes between two states of a cluster change, and who violates the policy anyway.

    `settled` is what is known of the nodes of both states, where that is worked out already. Raise GpolicyError where a
    group has no instance policy.
    """
    old, new = _judges(sides)
    found: list[InstanceViolation] = []
    by_minmem: list[InstanceViolation] = []
    unknown: list[UnknownViolation] = []
    for instance in sides.after.instances.values():
        was, will = old.verdict(instance), new.verdict(instance)
        if will.conforms is not None:
            found += _violation(instance, was, will)
            if instance.minmem != instance.maxmem:
                by_minmem += _violation(instance, old.minmem_verdict(instance), new.minmem_verdict(instance))
        elif was.violation or not _allows_as_much(old, new, instance):  # else nothing that is shown violates newly
            unknown.append(
                UnknownViolation(
                    instance=instance.name,
                    primary_node=instance.primary_node,
                    parameters=tuple(dict.fromkeys((*was.unknown, *will.unknown))),
                    before=was,
                    after=will,
                )
            )
    before, after = map(violations.node_verdicts, (sides.before, sides.after), settled)
    nodes = [
        NodeViolation(node=name, group=verdict.group, before=before[name].breaches, after=verdict.breaches)
        for name, verdict in sorted(after.items())
    ]
    newly, still, no_longer = _by_time(found)
    minmem_newly, minmem_still, minmem_no_longer = _by_time(by_minmem)
    nodes_newly, nodes_still, nodes_no_longer = _by_time(nodes)
    return ViolationChange(
        newly=newly,
        still=still,
        no_longer=no_longer,
        unknown=tuple(unknown),
        minmem_newly=minmem_newly,
        minmem_still=minmem_still,
        minmem_no_longer=minmem_no_longer,
        nodes_newly=nodes_newly,
        nodes_still=nodes_still,
        nodes_no_longer=nodes_no_longer,
        nodes_unknown=tuple(_unknown_nodes(sides, after)),
    )


def _judges(sides: Sides) -> tuple[violations.PolicyJudge, violations.PolicyJudge]:
    names = {name: sides.names.groups.get(name, ()) for name in sides.after.groups}
    new = violations.PolicyJudge(sides.after, names)
    old_names = {name: _names_of_equal_pairs(group.effective, new, name) for name, group in sides.before.groups.items()}
    return violations.PolicyJudge(sides.before, old_names), new


def _violation(
    instance: LiveInstance, was: violations.Verdict, will: violations.Verdict
) -> Iterator[InstanceViolation]:
    if was.violation or will.violation:
        name, node = instance.name, instance.primary_node
        yield InstanceViolation(instance=name, primary_node=node, before=was.violation, after=will.violation)


_Violation = TypeVar("_Violation", InstanceViolation, NodeViolation)


def _by_time(found: Sequence[_Violation]) -> tuple[tuple[_Violation, ...], ...]:
    """Return those that violate the policy newly, those that still do, and those that do no longer."""
    return (
        tuple(item for item in found if item.after and not item.before),
        tuple(item for item in found if item.after and item.before),
        tuple(item for item in found if item.before and not item.after),
    )


def _unknown_nodes(sides: Sides, verdicts: Mapping[str, violations.NodeVerdict]) -> Iterator[UnknownNodeViolation]:
    for name, verdict in sorted(verdicts.items()):
        if verdict.unknown and not verdict.breaches:
            before, after = _allowed(sides.before, name), _allowed(sides.after, name)
            stricter = tuple(key for key in verdict.unknown if after[key] < before[key])
            if stricter:
                yield UnknownNodeViolation(node=name, group=verdict.group, parameters=stricter, reason=verdict.reason)


def _allowed(state: ClusterState, name: str) -> dict[str, float]:
    """Return how much each ratio allows on a node: on each CPU, and of spindles in all (no limit: none counts)."""
    node = state.nodes[name]
    values = {**state.groups[node.group].effective, **state.effective_of_node(node)}
    cpus, spindles, count = (
        value if isinstance(value := values.get(path), int | float) else 1
        for path in (
            ("ipolicy", violations.VCPU_RATIO),
            ("ipolicy", violations.SPINDLE_RATIO),
            ("ndparams", "spindle_count"),
        )
    )
    return {
        violations.VCPU_RATIO: cpus,
        violations.SPINDLE_RATIO: inf if state.has_exclusive_storage(node) else spindles * count,
    }


def _names_of_equal_pairs(values: Mapping[Path, Value], then: violations.PolicyJudge, group: str) -> list[str | None]:
    """Return the names that the pairs of a group have now: that of an equal pair after the changes."""
    later = then.policies.get(group)
    named = list(zip(later.pairs, later.names, strict=True)) if later else []
    pairs = violations.allowed_sizes(values, group, ()).pairs
    return [next((name for other, name in named if other == pair), None) for pair in pairs]


def _allows_as_much(old: violations.PolicyJudge, new: violations.PolicyJudge, instance: LiveInstance) -> bool:
    """Return whether an instance that the state shows in part conforms after the changes, if it does before them."""
    exclusive = [judge.state.on_exclusive_storage(instance) for judge in (old, new)]
    return exclusive[0] == exclusive[1] and violations.allows_as_much(
        old.policy(instance), new.policy(instance), instance, exclusive=exclusive[0]
    )
