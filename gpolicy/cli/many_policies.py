"""Many policies of one run examined side by side, one process for each processor."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from gpolicy.cli.terminal import StatusLine, working
from gpolicy.printable import count

if TYPE_CHECKING:
    from gpolicy.checking.checking import Checked, Examination
    from gpolicy.findings import Accepted, Finding

MANY_OBJECTS: Final = 2000
"""Of fewer groups and node sets, what the processes cost is more than what they save."""


def run_examinations(examinations: Sequence[Examination]) -> list[Checked]:
    """Return what is found in each policy, in the same order; show progress when that takes long."""
    objects = sum(len(item.policy.groups) + len(item.policy.node_sets) for item in examinations)
    processes = min(os.cpu_count() or 1, len(examinations))
    if processes > 1 and objects >= MANY_OBJECTS:
        return _side_by_side(examinations, processes)
    with working("checking"):
        return [item.run() for item in examinations]


def _side_by_side(examinations: Sequence[Examination], processes: int) -> list[Checked]:
    """Return the same, found by copies of this process: they have all policies already, and send back findings only."""
    from gpolicy.checking.checking import Checked  # noqa: PLC0415 (other verbs need no rules)
    from gpolicy.fleet.workers import Failed, Watcher, work_side_by_side  # noqa: PLC0415 (most checks are small)

    line = StatusLine()
    shown = f"checking {count(len(examinations), 'policy', 'policies')}"
    watcher = Watcher(lambda _: None, lambda _, __: None, lambda: line.show(shown))
    jobs = [partial(_findings, examinations[first::processes]) for first in range(processes)]
    answers = work_side_by_side(jobs, most=processes, seconds=math.inf, watcher=watcher)
    line.show("")
    found: list[Checked | None] = [None] * len(examinations)
    for first, answer in enumerate(answers):
        part = examinations[first::processes]
        told = _findings(part) if isinstance(answer, Failed) else answer  # what ended a process may not end this one
        found[first::processes] = [
            Checked(item.policy, item.settings, findings, accepted)
            for item, (findings, accepted) in zip(part, told, strict=True)
        ]
    return [item for item in found if item is not None]


def _findings(examinations: Sequence[Examination]) -> list[tuple[list[Finding], list[Accepted]]]:
    return [(checked.findings, checked.accepted) for checked in (item.run() for item in examinations)]
