"""Moves as commands of Ganeti: sets of jobs that may run side by side, what leads back, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.ganeti.commands import Command, shell_line
from gpolicy.htools.hbal_commands import arguments, job_sets, touched_nodes
from gpolicy.remedy.faults import Layout
from gpolicy.remedy.moving import Movers, Trial
from gpolicy.remedy.saved_remedy import command_of

if TYPE_CHECKING:
    from gpolicy.allocator.balancing import Balanced
    from gpolicy.cluster.state import ClusterState

MOST_AT_ONCE: Final = 4
"""How many jobs a set has at most."""


def sets_of(start: Layout, steps: Sequence[Balanced], movers: Movers) -> list[list[Balanced]]:
    """Return the moves in hbal's job sets, of at most `MOST_AT_ONCE`.

    A set is kept only if N+1 is no worse whichever of its jobs have run: otherwise each of its jobs is a set.
    """
    found: list[list[Balanced]] = []
    layout = start
    for jobs in job_sets(steps, touched_nodes):
        for first in range(0, len(jobs), MOST_AT_ONCE):
            part = jobs[first : first + MOST_AT_ONCE]
            found += [part] if _in_any_order(layout, part, movers) else [[job] for job in part]
            layout = layout.reached(part[-1].nodes, part[-1].instances)
    return found


def _in_any_order(layout: Layout, jobs: Sequence[Balanced], movers: Movers) -> bool:
    """Whether each job of the set is possible and safe after any others of it.

    Jobs that touch no common node do so if each alone makes no loss worse, where all instances are mirrored: what a
    mirrored instance needs when its node is lost is on its other node alone.
    """
    if all(_alone(layout, job, movers) for job in jobs):
        return True
    reached = {frozenset[int](): layout}
    for number in range(len(jobs)):
        for done in map(frozenset, combinations(range(len(jobs)), number)):
            for place in {*range(len(jobs))} - done:
                after = _after(reached[done], jobs[place], movers)
                if after is None:
                    return False
                reached[done | {place}] = after
    return True


def _alone(layout: Layout, job: Balanced, movers: Movers) -> bool:
    """Whether a job is possible, safe and makes no loss worse, in a group where all instances are mirrored."""
    groups = {layout.nodes[index].facts.group for index in touched_nodes(job)}
    if groups & layout.unmirrored:
        return False
    trial = _tried(layout, job, movers)
    return isinstance(trial, Trial) and movers.is_safe(layout, trial, alone=True)


def _after(layout: Layout, job: Balanced, movers: Movers) -> Layout | None:
    """Return the layout after a job; None if it is not possible or not safe."""
    trial = _tried(layout, job, movers)
    return layout.after(trial.moved) if isinstance(trial, Trial) and movers.is_safe(layout, trial) else None


def _tried(layout: Layout, job: Balanced, movers: Movers) -> Trial | FailReason:
    item = layout.instances[job.move.instance.index]
    return movers.try_move(layout, InstanceMove(job.move.kind, item, job.move.target))


def commands_of(step: Balanced) -> list[Command]:
    """Return the commands of a move, in their order."""
    target = step.nodes[step.move.target].facts.name if step.move.target != NO_NODE else ""
    name = step.instance.name
    if step.move.instance.template is DiskTemplate.PLAIN:
        return [command_of(("gnt-instance", "move", "-f", "-n", target, name))]
    return [command_of(words) for words in arguments(step, name, target)]


def command_line(command: Command) -> str:
    """Return a command for a shell."""
    return shell_line(command.argv or ())


def commands_back(step: Balanced, state: ClusterState) -> tuple[list[Command], str]:
    """Return the commands that undo a move, or why none does."""
    old, new = step.move.instance, step.instance
    left = {old.primary, old.secondary} - {new.primary, new.secondary, NO_NODE}
    names = [step.nodes[index].facts.name for index in (left or {new.secondary})]
    if unusable := [name for name in names if not state.nodes[name].is_usable]:
        return [], f"nothing moves to {unusable[0]}, which may hold no instance"
    found = []
    for command in reversed(commands_of(step)):
        words = command.argv or ()
        if "-n" in words:
            place = words.index("-n") + 1
            words = (*words[:place], names[0], *words[place + 1 :])
        found.append(command_of(words))
    return found, ""


def downtime(step: Balanced, state: ClusterState) -> str:
    """Return what a move means for an instance that should run; empty if it keeps running, or does not run."""
    item = step.move.instance
    observed = state.instances[item.name]
    if not item.status.running:
        return ""
    if item.template is DiskTemplate.PLAIN:
        return "is down while its disks are copied"
    if step.move.kind is MoveKind.REPLACE_SECONDARY:
        return ""
    if item.status not in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}:
        if observed.admin_state != "up":
            return ""
        there = step.nodes[step.instance.primary].facts.name
        if step.move.kind is MoveKind.REPLACE_PRIMARY:
            return f"is down now; starts on {step.nodes[item.secondary].facts.name}, then stops and starts on {there}"
        return f"is down now, and starts on {there}"
    return "stops and starts again (always_failover)" if observed.always_failover else ""
