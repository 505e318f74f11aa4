"""Who newly violates the instance policy after a change, still does, or no longer.

Ganeti warns about an instance only when it has begun to violate the policy, says nothing when nodes change their
group, and judges with the node parameters as they were. Here all of it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpolicy.analysis.pair_names import PairNames
from gpolicy.analysis.violations import AllowedSizes, PolicyViolation, Verdict, allowed_sizes, verdict_on
from gpolicy.cluster.state import ClusterState, Instance
from gpolicy.ganeti.parameter import Path, Value
from gpolicy.impact.comparison import StateComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceViolation:
    """One instance with what it violates before and after; None where it conforms (or where it is not known)."""

    instance: str
    primary_node: str
    before: PolicyViolation | None
    after: PolicyViolation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownViolation:
    """An instance of which nobody can say whether it violates the policy before or after; `parameters` say why."""

    instance: str
    primary_node: str
    parameters: tuple[str, ...]
    before: Verdict
    after: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationChange:
    """All instances whose verdict matters, by name.

    `newly`, `still` and `no_longer` are what Ganeti calls violating (`gnt-cluster verify`, the warning of a modify).
    The three of `minmem` are instances that Ganeti does not call so, but whose minmem lies outside of the policy: it
    refuses every `gnt-instance modify` of them that is made without `--ignore-ipolicy`.
    """

    newly: tuple[InstanceViolation, ...] = ()
    still: tuple[InstanceViolation, ...] = ()
    no_longer: tuple[InstanceViolation, ...] = ()
    unknown: tuple[UnknownViolation, ...] = ()
    minmem_newly: tuple[InstanceViolation, ...] = ()
    minmem_still: tuple[InstanceViolation, ...] = ()
    minmem_no_longer: tuple[InstanceViolation, ...] = ()


def violation_change(compared: StateComparison, names: PairNames) -> ViolationChange:
    """Return whose verdict the changes between two states of a cluster change, and who violates the policy anyway.

    `names` are those of the spec pairs after the changes. Raise GpolicyError where a group has no instance policy.
    """
    before, after = compared.before, compared.after
    then = _Judge(after, {name: names.groups.get(name, ()) for name in after.groups})
    now = _Judge(
        before, {name: _names_of_equal_pairs(group.effective, then, name) for name, group in before.groups.items()}
    )
    found: dict[str, list[InstanceViolation]] = {}
    unknown = []
    for instance in after.instances.values():
        old, new = now.verdict(instance), then.verdict(instance)
        if None in (old.conforms, new.conforms):
            if not _same_measure(now, then, instance):
                unknown.append(_unknown(instance, old, new))
            continue
        verdicts = {"": (old, new)}
        if instance.minmem != instance.maxmem:
            verdicts["minmem_"] = now.minmem_verdict(instance), then.minmem_verdict(instance)
        for prefix, (was, will) in verdicts.items():
            kind = _kind(was, will)
            if kind is not None:
                item = InstanceViolation(
                    instance=instance.name,
                    primary_node=instance.primary_node,
                    before=was.violation,
                    after=will.violation,
                )
                found.setdefault(f"{prefix}{kind}", []).append(item)
    return ViolationChange(unknown=tuple(unknown), **{kind: tuple(items) for kind, items in found.items()})


class _Judge:
    """The verdicts in one state of the cluster."""

    def __init__(self, state: ClusterState, names: Mapping[str, Sequence[str | None]]) -> None:
        self.state = state
        self.policies = {
            name: allowed_sizes(group.effective, name, names[name]) for name, group in state.groups.items()
        }

    def policy(self, instance: Instance) -> AllowedSizes:
        return self.policies[self.state.nodes[instance.primary_node].group]

    def verdict(self, instance: Instance) -> Verdict:
        return self._with_memory(instance, instance.maxmem)

    def minmem_verdict(self, instance: Instance) -> Verdict:
        """Return the verdict with minmem as memory; one that maxmem violates already is not told twice."""
        return Verdict() if self.verdict(instance).violation else self._with_memory(instance, instance.minmem)

    def _with_memory(self, instance: Instance, memory: int) -> Verdict:
        return verdict_on(
            instance, self.policy(instance), exclusive=self.state.on_exclusive_storage(instance), memory=memory
        )


def _names_of_equal_pairs(values: Mapping[Path, Value], then: _Judge, group: str) -> list[str | None]:
    """Return the names that the pairs of a group have now: that of an equal pair after the changes."""
    later = then.policies.get(group)
    named = list(zip(later.pairs, later.names, strict=True)) if later else []
    pairs = allowed_sizes(values, group, ()).pairs
    return [next((name for other, name in named if other == pair), None) for pair in pairs]


def _same_measure(old: _Judge, new: _Judge, instance: Instance) -> bool:
    """Return whether an instance is held against the same before and after, so that nothing changes for it."""
    one, other = old.policy(instance), new.policy(instance)
    same = (one.pairs, set(one.templates)) == (other.pairs, set(other.templates))
    return same and old.state.on_exclusive_storage(instance) == new.state.on_exclusive_storage(instance)


def _kind(old: Verdict, new: Verdict) -> str | None:
    """Return the field of `ViolationChange` that an instance belongs to; None where it conforms on both sides."""
    if new.violation:
        return "still" if old.violation else "newly"
    return "no_longer" if old.violation else None


def _unknown(instance: Instance, old: Verdict, new: Verdict) -> UnknownViolation:
    parameters = dict.fromkeys((*old.unknown, *new.unknown))
    return UnknownViolation(
        instance=instance.name,
        primary_node=instance.primary_node,
        parameters=tuple(parameters),
        before=old,
        after=new,
    )
