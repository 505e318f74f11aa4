"""Who newly violates the instance policy after a change, still does, or no longer.

Ganeti warns about an instance only when it has begun to violate the policy, says nothing when nodes change their
group, and judges with the node parameters as they were. Here all of it counts. Nodes violate it, too: by its ratios.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from gpolicy.analysis import violations
from gpolicy.analysis.basis import Settled
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.vocabulary import Path, Value
from gpolicy.impact.comparison import Sides
from gpolicy.printable import count, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceViolation:
    """One instance that violates the policy before or after."""

    instance: str
    primary_node: str
    before: violations.PolicyViolation | None
    """What it violates now; None if it conforms."""
    after: violations.PolicyViolation | None
    """What it violates then; None if it conforms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownViolation:
    """An instance of which it is not known whether it violates the policy before or after."""

    instance: str
    primary_node: str
    parameters: tuple[str, ...]
    """What the source does not show."""
    before: violations.Verdict
    after: violations.Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeViolation:
    """A node that exceeds a ratio before or after."""

    node: str
    group: str
    """Its group after the changes."""
    before: tuple[violations.RatioBreach, ...]
    """The ratios that it exceeds now."""
    after: tuple[violations.RatioBreach, ...]
    """The ratios that it exceeds then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownNodeViolation:
    """A node for which the changes make a ratio stricter, and that may exceed it now."""

    node: str
    group: str
    """Its group after the changes."""
    parameters: tuple[str, ...]
    """The ratios that are stricter."""
    reason: str
    """What is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationChange:
    """All instances and nodes whose verdict matters, by name.

    What Ganeti calls violating is what `gnt-cluster verify` and the warning of a modify do, for nodes what hbal does.
    """

    newly: tuple[InstanceViolation, ...] = ()
    """Begin to violate the policy."""
    still: tuple[InstanceViolation, ...] = ()
    """Violate it now and then."""
    no_longer: tuple[InstanceViolation, ...] = ()
    """Conform after the changes."""
    unknown: tuple[UnknownViolation, ...] = ()
    """Nobody can say: the source does not show what decides."""
    minmem_newly: tuple[InstanceViolation, ...] = ()
    """Only minmem lies outside, newly: gnt-instance modify refuses without --ignore-ipolicy."""
    minmem_still: tuple[InstanceViolation, ...] = ()
    """Only minmem lies outside, now and then."""
    minmem_no_longer: tuple[InstanceViolation, ...] = ()
    """Only minmem lay outside, and does no longer."""
    nodes_newly: tuple[NodeViolation, ...] = ()
    """Nodes that begin to exceed a ratio (from 1.7 on)."""
    nodes_still: tuple[NodeViolation, ...] = ()
    """Nodes that exceed a ratio now and then (from 1.7 on)."""
    nodes_no_longer: tuple[NodeViolation, ...] = ()
    """Nodes that exceed none after the changes (from 1.7 on)."""
    nodes_unknown: tuple[UnknownNodeViolation, ...] = ()
    """Nodes that may begin to exceed a ratio, which the changes make stricter: what they use or have is not known (from
    1.7 on).
    """

    def uncertain(self, group: str | None = None) -> dict[str, str]:
        """Return the instances, and the nodes of `group` or of all, that may newly violate, each with the reason."""
        instances = [item for item in self.unknown if item.before.violation is None]
        found = {item.instance: f"without {', '.join(item.parameters)}" for item in instances}
        return found | {item.node: item.reason for item in self.nodes_unknown if group in (None, item.group)}


def violators(instances: int, nodes: int) -> str:
    """Return so many instances and nodes in words; nothing for none."""
    known = ((instances, "instance"), (nodes, "node"))
    return listed([count(number, word) for number, word in known if number])


def violation_change(compared: Sides, settled: tuple[Settled | None, Settled | None] = (None, None)) -> ViolationChange:
    """Return whose verdict the changes between two states of a cluster change, and who violates the policy anyway.

    `settled` are those of both states for `node_verdicts`. Raise GpolicyError where a group has no instance policy.
    """
    before, after, names = compared.before, compared.after, compared.names
    then = violations.PolicyJudge(after, {name: names.groups.get(name, ()) for name in after.groups})
    now = violations.PolicyJudge(
        before, {name: _names_of_equal_pairs(group.effective, then, name) for name, group in before.groups.items()}
    )
    found: dict[str, list[InstanceViolation]] = {}
    unknown = []
    for instance in after.instances.values():
        old, new = now.verdict(instance), then.verdict(instance)
        if None in (old.conforms, new.conforms):
            if not _same_measure(now, then, instance):
                unknown.append(
                    UnknownViolation(
                        instance=instance.name,
                        primary_node=instance.primary_node,
                        parameters=tuple(dict.fromkeys((*old.unknown, *new.unknown))),
                        before=old,
                        after=new,
                    )
                )
            continue
        verdicts = {"": (old, new)}
        if instance.minmem != instance.maxmem:
            verdicts["minmem_"] = now.minmem_verdict(instance), then.minmem_verdict(instance)
        for prefix, (was, will) in verdicts.items():
            if was.violation or will.violation:
                kind = "no_longer" if not will.violation else "still" if was.violation else "newly"
                item = InstanceViolation(
                    instance=instance.name,
                    primary_node=instance.primary_node,
                    before=was.violation,
                    after=will.violation,
                )
                found.setdefault(f"{prefix}{kind}", []).append(item)
    earlier, later = violations.node_verdicts(before, settled[0]), violations.node_verdicts(after, settled[1])
    nodes = [
        NodeViolation(node=name, group=verdict.group, before=earlier[name].breaches, after=verdict.breaches)
        for name, verdict in sorted(later.items())
    ]
    return ViolationChange(
        unknown=tuple(unknown),
        nodes_newly=tuple(item for item in nodes if item.after and not item.before),
        nodes_still=tuple(item for item in nodes if item.after and item.before),
        nodes_no_longer=tuple(item for item in nodes if item.before and not item.after),
        nodes_unknown=tuple(_unknown_nodes(compared, later)),
        **{kind: tuple(items) for kind, items in found.items()},
    )


def _unknown_nodes(compared: Sides, verdicts: Mapping[str, violations.NodeVerdict]) -> Iterator[UnknownNodeViolation]:
    for name, verdict in sorted(verdicts.items()):
        if verdict.unknown and not verdict.breaches:
            before, after = _allowed(compared.before, name), _allowed(compared.after, name)
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


def _same_measure(old: violations.PolicyJudge, new: violations.PolicyJudge, instance: LiveInstance) -> bool:
    """Return whether an instance is held against the same before and after, so that nothing changes for it."""
    one, other = old.policy(instance), new.policy(instance)
    same = (one.pairs, set(one.templates)) == (other.pairs, set(other.templates))
    return same and old.state.on_exclusive_storage(instance) == new.state.on_exclusive_storage(instance)
