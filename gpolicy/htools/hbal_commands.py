"""The commands that carry hbal's moves out, in sets of jobs that may run side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from shlex import join

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, InstanceStatus, Node
from gpolicy.allocator.instance_moves import MoveKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from gpolicy.allocator.balancing import Balanced

    _Job = TypeVar("_Job")
    _Node = TypeVar("_Node")


def job_sets(moves: Sequence[_Job], touches: Callable[[_Job], AbstractSet[_Node]]) -> list[list[_Job]]:
    """Return the moves in sets that touch no node twice, collected from the last move backwards."""
    sets: list[list[_Job]] = []
    busy: set[_Node] = set()
    for done in reversed(moves):
        touched = touches(done)
        if sets and not busy & touched:
            sets[0].insert(0, done)
            busy |= {*touched}
        else:
            sets.insert(0, [done])
            busy = {*touched}
    return sets


def touched_nodes(done: Balanced) -> set[int]:
    """Return the nodes that a move touches."""
    old, new = done.move.instance, done.instance
    touched = {new.primary, new.secondary, old.primary}
    if old.template is DiskTemplate.DRBD:
        touched.add(old.secondary)
    return touched - {NO_NODE}


def arguments(done: Balanced, instance: str, target: str) -> list[tuple[str, ...]]:
    """Return the words of the commands of one move, under these names of the instance and of its new node."""
    running = done.instance.status in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}
    verb = "migrate" if running else "failover"
    move = ("gnt-instance", verb, "-f", instance)
    replace_disks = ("gnt-instance", "replace-disks", "-n", target, instance)
    lines: Mapping[MoveKind, list[tuple[str, ...]]] = {
        MoveKind.FAILOVER: [move],
        MoveKind.FAILOVER_TO: [("gnt-instance", verb, "-f", "-n", target, instance)],
        MoveKind.REPLACE_SECONDARY: [replace_disks],
        MoveKind.REPLACE_AND_FAILOVER: [replace_disks, move],
        MoveKind.REPLACE_PRIMARY: [move, replace_disks, move],
        MoveKind.FAILOVER_AND_REPLACE: [move, replace_disks],
    }
    return lines[done.move.kind]


def command_lines(
    sets: Sequence[Sequence[Balanced]], aliases: Mapping[int, str], nodes: Mapping[int, Node], *, script: bool = False
) -> list[str]:
    """Return the lines of all jobs; those of a `script` behind `templates/hbal.sh`, with a check before each job."""
    indent = "" if script else "  "
    lines: list[str] = []
    if script:
        from gpolicy.data import data_directory  # noqa: PLC0415 - only what is needed

        body = (data_directory("templates") / "hbal.sh").read_text(encoding="utf-8")
        lines += ["#!/bin/sh", *body.splitlines(), ""]
    for number, jobs in enumerate(sets, 1):
        lines += [indent, f"{indent}echo jobset {number}, {len(jobs)} jobs"]
        for place, job in enumerate(jobs, 1):
            inner = f"{indent}  "
            lines.append(f"{inner}echo job {number}/{place}")
            if script:
                lines.append(f"{inner}check")
            target = nodes[job.move.target].facts.alias if job.move.target != NO_NODE else ""
            lines += [f"{inner}{join(words)}" for words in arguments(job, aliases[job.instance.index], target)]
    return lines
