"""`check_instance`: does the policy allow this instance?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpolicy.analysis.binding import Cause
from gpolicy.analysis.pair_names import MINMAX, pair_names, pair_title
from gpolicy.analysis.unmade import Unmade, unmade
from gpolicy.analysis.violations import AllowedSizes, PolicyViolation, allowed_sizes, verdict_on
from gpolicy.analysis.volume_sizes import promised_volume, smallest_volume
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Expectation, Scenario
from gpolicy.testing.instances import instance_of
from gpolicy.testing.outcome import CannotRunError, Check, checked, known_name

_EXCLUSIVE: Path = ("ndparams", "exclusive_storage")


def check_conformity(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of an instance of a test against the policy of its group.

    It is refused if its maximum or its minimum memory is outside, as Ganeti refuses to create or modify it, and if
    Ganeti would not make its disks with their spindles.
    """
    assert scenario.sizes is not None  # noqa: S101 (the schema asks for it)
    sizes = scenario.sizes
    group = _group(state, scenario)
    values = state.groups[group].effective
    exclusive = values.get(_EXCLUSIVE) is True
    pairs = values.get(MINMAX)
    names = pair_names(policy, state).of(group, len(pairs) if isinstance(pairs, list) else 0)
    instance = instance_of(policy, state, sizes, group, exclusive=exclusive)
    if instance.minmem > instance.maxmem:
        raise CannotRunError(f"minmem {instance.minmem} is above memory-size {instance.maxmem}", sizes.span)
    allowed = allowed_sizes(values, group, names)

    def violation_of(memory: int, allowed: AllowedSizes) -> PolicyViolation | None:
        return verdict_on(instance, allowed, exclusive=exclusive, memory=memory).violation

    taking = (
        name
        for name, pair in zip(names, allowed.pairs, strict=True)
        if violation_of(instance.maxmem, replace(allowed, pairs=(pair,), names=(name,))) is None
    )
    violation = violation_of(instance.maxmem, allowed) or violation_of(instance.minmem, allowed)
    found = _Found(violation, next(taking, None), _refused_disk(state, group, instance, exclusive=exclusive))
    return [found.check(expectation) for expectation in scenario.expectations]


def _refused_disk(state: ClusterState, group: str, instance: LiveInstance, *, exclusive: bool) -> Unmade | None:
    """Return why Ganeti makes the disks of an instance on no node of the group, None if it may make them."""
    known = [smallest_volume(state, node) for node in state.nodes_of(group)]
    known = known or [promised_volume(state, group)]
    sizes = [size for size in known if size is not None]
    volume = max(sizes, key=lambda size: size.usable) if len(sizes) == len(known) else None
    return unmade(instance, exclusive=exclusive, volume=volume)


def _group(state: ClusterState, scenario: Scenario) -> str:
    """Return the group of the question: the named one, the one with nodes, or the only one that hail would choose."""
    if scenario.group is not None:
        return known_name(scenario.group, state.groups, "group")
    simulated = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    open_groups = {name for name, group in state.groups.items() if group.own.get(("alloc_policy",)) != "unallocable"}
    candidates = simulated if len(simulated) == 1 else open_groups or set(state.groups)
    if len(candidates) != 1:
        hint = f"say `group:`, one of {', '.join(sorted(candidates))}"
        raise CannotRunError("which group is meant?", scenario.span, hint=hint)
    return next(iter(candidates))


class _Found:
    def __init__(self, violation: PolicyViolation | None, taking: str | None, disk: Unmade | None) -> None:
        self.violation = violation
        self.taking = taking
        self.disk = disk

    def check(self, expectation: Expectation) -> Check:
        violation = self.violation
        match expectation.path[0]:
            case "refused":
                return checked(expectation, violation is not None or self.disk is not None, detail=self._reason())
            case "because":
                broken = [item.parameter for item in violation.breaches] if violation else []
                found = tuple(dict.fromkeys([*broken, *(self._of_disk())]))
                wanted = expectation.wanted
                if isinstance(wanted, str):
                    shown: object = wanted if wanted in found else found or None
                else:
                    shown = wanted if isinstance(wanted, tuple) and set(wanted) == set(found) else found
                return checked(expectation, shown, detail=self._reason())
            case _:
                nearest = (violation.pair_name or str(violation.pair)) if violation else self.taking
                return checked(expectation, nearest, detail=self._reason())

    def _of_disk(self) -> Iterator[str]:
        if self.disk is not None:
            yield "disk-templates" if self.disk.cause is Cause.ONLY_PLAIN else "spindles"

    def _reason(self) -> str:
        """Return the breaches of the nearest pair, in words."""
        if self.disk is not None:
            return f"Ganeti refuses to make it: {self.disk.sentence}"
        if self.violation is None:
            return f"spec {pair_title(self.taking)} takes it" if self.taking else ""
        parts = []
        for item in self.violation.breaches:
            if item.minimum is None:
                parts.append(f"{item.parameter} {item.value if item.value is not None else 'is not known'}")
            else:
                parts.append(f"{item.parameter} {item.value}, not {item.minimum} to {item.maximum}")
        return f"nearest is spec {pair_title(self.violation.pair_name or str(self.violation.pair))}: {'; '.join(parts)}"
