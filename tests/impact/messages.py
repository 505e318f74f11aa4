"""Ganeti's messages about instances and policies, as breaches."""

from __future__ import annotations

import re

from gpolicy.analysis.violations import ParameterBreach, PolicyViolation

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


def violated(violation: PolicyViolation | None) -> list[ParameterBreach]:
    return [*violation.breaches] if violation else []
