"""`check_instance`: does the policy let this instance be?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.analysis.pair_names import MINMAX, pair_names
from gpolicy.analysis.violations import violations_of
from gpolicy.ganeti.parameter import Path, Values
from gpolicy.testing.instances import instance_of
from gpolicy.testing.outcome import CannotRunError, Check, checked, known_name

if TYPE_CHECKING:
    from gpolicy.analysis.violations import PolicyViolation
    from gpolicy.cluster.state import ClusterState, Instance
    from gpolicy.policy.model import Policy
    from gpolicy.policy.scenario import Expectation, Scenario

_EXCLUSIVE: Path = ("ndparams", "exclusive_storage")


def check_conformity(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return what came out of holding the instance of a test against the policy of its group.

    It is refused if its most or its least memory lies outside, as Ganeti refuses to create or modify it.
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
    violation = _violation(instance, values, group, names, exclusive=exclusive)
    if violation is None and instance.minmem != instance.maxmem:
        least = replace(instance, maxmem=instance.minmem)
        violation = _violation(least, values, group, names, exclusive=exclusive)
    found = _Found(violation, _taking(instance, values, group, names, exclusive=exclusive))
    return [found.check(expectation) for expectation in scenario.expectations]


def _group(state: ClusterState, scenario: Scenario) -> str:
    """Return the group that is asked about: the one that is named, the one with nodes, or the only one."""
    if scenario.group is not None:
        return known_name(scenario.group, state.groups, "group")
    simulated = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    candidates = simulated if len(simulated) == 1 else set(state.groups)
    if len(candidates) != 1:
        hint = f"say `group:`, one of {', '.join(sorted(candidates))}"
        raise CannotRunError("which group is meant?", scenario.span, hint=hint)
    return next(iter(candidates))


def _violation(
    instance: Instance, values: Values, group: str, names: Sequence[str | None], *, exclusive: bool
) -> PolicyViolation | None:
    return violations_of(instance, values, group=group, exclusive_storage=exclusive, names=names).violation


def _taking(instance: Instance, values: Values, group: str, names: Sequence[str], *, exclusive: bool) -> str | None:
    """Return the name of the first pair that takes the instance, None if none does."""
    pairs = values.get(MINMAX)
    for name, pair in zip(names, pairs if isinstance(pairs, list) else [], strict=True):
        if _violation(instance, values | {MINMAX: [pair]}, group, [name], exclusive=exclusive) is None:
            return name
    return None


class _Found:
    def __init__(self, violation: PolicyViolation | None, taking: str | None) -> None:
        self.violation = violation
        self.taking = taking

    def check(self, expectation: Expectation) -> Check:
        violation = self.violation
        match expectation.path[0]:
            case "refused":
                return checked(expectation, violation is not None, detail=self._reason())
            case "because":
                found = tuple(dict.fromkeys(item.parameter for item in violation.breaches)) if violation else ()
                wanted = expectation.wanted
                if isinstance(wanted, str):
                    shown: object = wanted if wanted in found else found or None
                else:
                    shown = wanted if isinstance(wanted, tuple) and set(wanted) == set(found) else found
                return checked(expectation, shown, detail=self._reason())
            case _:
                nearest = (violation.pair_name or str(violation.pair)) if violation else self.taking
                return checked(expectation, nearest, detail=self._reason())

    def _reason(self) -> str:
        """Return what is outside of the nearest pair, in words."""
        if self.violation is None:
            return f"spec {self.taking} takes it" if self.taking else ""
        parts = []
        for item in self.violation.breaches:
            if item.minimum is None:
                parts.append(f"{item.parameter} {item.value if item.value is not None else 'is not known'}")
            else:
                parts.append(f"{item.parameter} {item.value}, not {item.minimum} to {item.maximum}")
        return f"nearest is spec {self.violation.pair_name or self.violation.pair}: {'; '.join(parts)}"
