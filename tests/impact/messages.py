"""Ganeti's messages about instances and policies, as breaches."""

from __future__ import annotations

import re
from dataclasses import replace

from gpolicy.analysis.violations import (
    AllowedSizes,
    ParameterBreach,
    PolicyJudge,
    PolicyViolation,
    distance,
    verdict_on,
)
from gpolicy.cluster.state import ClusterState

RANGE = re.compile(r"([a-z-]+)(?:/(\d+))? value (\d+) is not in range \[(\d+), (\d+)\]")
TEMPLATE = re.compile(r"Disk template ([a-z, ]+) is not allowed \(allowed templates:? ([a-z, ]*)\)")


def breaches_told(messages: list[str]) -> list[ParameterBreach]:
    """Return what Ganeti's messages say."""
    found: list[ParameterBreach] = []
    for message in messages:
        in_range, template = RANGE.fullmatch(message), TEMPLATE.fullmatch(message)
        if in_range:
            name, disk, value, low, high = in_range.groups()
            number = None if disk is None else int(disk)
            found.append(
                ParameterBreach(parameter=name, value=int(value), minimum=int(low), maximum=int(high), disk=number)
            )
        elif template:
            allowed = tuple(sorted(filter(None, template[2].split(", "))))
            names = sorted(template[1].split(", "))
            found += [ParameterBreach(parameter="disk-templates", value=name, allowed=allowed) for name in names]
        else:
            assert message.startswith("Number of spindles not configured"), message
            found.append(ParameterBreach(parameter="spindles"))
    return found


def named_by_ganeti(state: ClusterState, name: str, *, minmem: bool = False) -> list[ParameterBreach]:
    """Return the breaches of the pair that Ganeti names: the first with the fewest values outside, not the nearest."""
    instance = state.instances[name]
    policy = PolicyJudge(state, {}).policy(instance)

    def breaches(allowed: AllowedSizes) -> list[ParameterBreach]:
        exclusive, memory = state.on_exclusive_storage(instance), instance.minmem if minmem else instance.maxmem
        return violated(verdict_on(instance, allowed, exclusive=exclusive, memory=memory).violation)

    of_pairs = [breaches(replace(policy, pairs=(pair,), names=(None,))) for pair in policy.pairs]
    nearest = breaches(policy)
    assert nearest == min(of_pairs, key=distance)
    assert bool(nearest) == all(of_pairs)
    return min(of_pairs, key=len)


def violated(violation: PolicyViolation | None) -> list[ParameterBreach]:
    return [*violation.breaches] if violation else []
