"""The commands that carry hbal's steps out, in sets of jobs that may run side by side."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from gpolicy.allocator.balancing import StepKind
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, InstanceStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.balancing import Balanced
    from gpolicy.allocator.node import Node

STOP_FILE = "/tmp/stop-htools"  # noqa: S108 - the name is hbal's; whoever creates the file can only stop the script
_HEAD = f"""#!/bin/sh
# Commands that balance the cluster, written by gpolicy htools hbal.
# Create the file {STOP_FILE} to stop before the next job.

set -e

check() {{
  if [ -f {STOP_FILE} ]; then
    echo 'Stop requested, exiting'
    exit 0
  fi
}}

"""


def job_sets(steps: Sequence[Balanced]) -> list[list[Balanced]]:
    """Return the steps in sets that touch no node twice, collected from the last step backwards."""
    sets: list[list[Balanced]] = []
    busy: set[int] = set()
    for step in reversed(steps):
        touched = _touched(step)
        if sets and not busy & touched:
            sets[0].insert(0, step)
            busy |= touched
        else:
            sets.insert(0, [step])
            busy = touched
    return sets


def _touched(step: Balanced) -> set[int]:
    old, new = step.step.instance, step.instance
    touched = {new.primary, new.secondary, old.primary}
    if old.template is DiskTemplate.DRBD:
        touched.add(old.secondary)
    return touched - {NO_NODE}


def commands(step: Balanced, alias: str, nodes: Mapping[int, Node]) -> list[str]:
    """Return the commands of one step; `alias` is the instance's short name."""
    instance = quote(alias)
    running = step.instance.status in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}
    verb = "migrate" if running else "failover"
    target = quote(nodes[step.step.target].facts.alias) if step.step.target != NO_NODE else ""
    move = f"gnt-instance {verb} -f {instance}"
    replace_disks = f"gnt-instance replace-disks -n {target} {instance}"
    lines: Mapping[StepKind, list[str]] = {
        StepKind.FAILOVER: [move],
        StepKind.FAILOVER_TO: [f"gnt-instance {verb} -f -n {target} {instance}"],
        StepKind.REPLACE_SECONDARY: [replace_disks],
        StepKind.REPLACE_AND_FAILOVER: [replace_disks, move],
        StepKind.REPLACE_PRIMARY: [move, replace_disks, move],
        StepKind.FAILOVER_AND_REPLACE: [move, replace_disks],
    }
    return lines[step.step.kind]


def command_lines(
    sets: Sequence[Sequence[Balanced]], aliases: Mapping[int, str], nodes: Mapping[int, Node], *, script: bool = False
) -> list[str]:
    """Return the lines of all jobs; for a `script` with a check before each job."""
    indent = "" if script else "  "
    lines = []
    for number, jobs in enumerate(sets, 1):
        lines += [indent, f"{indent}echo jobset {number}, {len(jobs)} jobs"]
        for place, job in enumerate(jobs, 1):
            inner = f"{indent}  "
            lines.append(f"{inner}echo job {number}/{place}")
            if script:
                lines.append(f"{inner}check")
            lines += [f"{inner}{line}" for line in commands(job, aliases[job.instance.index], nodes)]
    return lines


def script_text(lines: Sequence[str]) -> str:
    """Return the shell script with these lines."""
    return _HEAD + "".join(f"{line}\n" for line in lines)
