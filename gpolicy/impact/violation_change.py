"""Who newly violates the instance policy after a change, still does, or no longer.

Ganeti warns about an instance only when it has begun to violate the policy, says nothing when nodes change their
group, and judges with the node parameters as they were. Here all of it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpolicy.analysis.pair_names import PairNames
from gpolicy.analysis.violations import PolicyJudge, PolicyViolation, Verdict, allowed_sizes
from gpolicy.cluster.state import Instance
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
    """An instance of which it is not known whether it violates the policy before or after; `parameters` say why."""

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
    then = PolicyJudge(after, {name: names.groups.get(name, ()) for name in after.groups})
    now = PolicyJudge(
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


def _names_of_equal_pairs(values: Mapping[Path, Value], then: PolicyJudge, group: str) -> list[str | None]:
    """Return the names that the pairs of a group have now: that of an equal pair after the changes."""
    later = then.policies.get(group)
    named = list(zip(later.pairs, later.names, strict=True)) if later else []
    pairs = allowed_sizes(values, group, ()).pairs
    return [next((name for other, name in named if other == pair), None) for pair in pairs]


def _same_measure(old: PolicyJudge, new: PolicyJudge, instance: Instance) -> bool:
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
