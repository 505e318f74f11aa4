"""Moves as commands of Ganeti: sets of jobs that may run side by side, what leads back, and what they cost.

As a POSIX shell script, they also lead back: each looks first where its instance is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Final

from gpolicy import __version__
from gpolicy.allocator.balancing import Balanced
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, InstanceStatus
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.cluster.state import ClusterState, describe_source
from gpolicy.ganeti.commands import Command, shell_line
from gpolicy.htools.hbal_commands import arguments, job_sets, touched_nodes
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Effect, effect_words
from gpolicy.printable import count
from gpolicy.remedy.faults import Layout
from gpolicy.remedy.moving import Movers, Trial
from gpolicy.remedy.saved_remedy import Move, SavedRemedy, Words, command_of
from gpolicy.render.script import name_for_script, script_environment

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
    """Whether each job of the set is possible and safe after any others of it."""
    reached = {frozenset[int](): layout}
    for number in range(len(jobs)):
        for done in map(frozenset, combinations(range(len(jobs)), number)):
            for place in {*range(len(jobs))} - done:
                here, move = reached[done], jobs[place].move
                item = here.instances[move.instance.index]
                trial = movers.try_move(here, InstanceMove(move.kind, item, move.target))
                if not isinstance(trial, Trial) or not movers.is_safe(here, trial):
                    return False
                reached[done | {place}] = here.after(trial.moved)
    return True


def commands_of(step: Balanced) -> list[Command]:
    """Return the commands of a move, in their order."""
    target = step.nodes[step.move.target].facts.name if step.move.target != NO_NODE else ""
    name = step.instance.name
    if step.move.instance.template is DiskTemplate.PLAIN:
        return [command_of(("gnt-instance", "move", "-f", "-n", target, name))]
    return [command_of(words) for words in arguments(step, name, target)]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Nodes that are away for a while: moves `out` and commands `first` come before, `last` and moves `back` after."""

    nodes: Words
    out: Sequence[Move]
    back: Sequence[Move]
    first: tuple[Words, ...]
    last: tuple[Words, ...]


def moves_script(remedy: SavedRemedy, again: str = "", absences: Sequence[Absence] = ()) -> str:
    """Return the script that carries moves on the cluster in `state` out in job sets, and undoes them with `--back`.

    It looks first whether what they suppose holds, as far as commands of Ganeti show it in a line. `again` is the
    command that works out other moves. With `absences` it makes their moves, and waits for a person in each.
    """
    moves, supposed = remedy.moves, remedy.supposed
    effects = () if supposed is None else supposed.effects
    checks = [(effect, _check(effect)) for effect in effects]
    template = script_environment().get_template("remedy.sh.j2")
    by_set = [list(jobs) for _, jobs in groupby(enumerate(moves), key=lambda item: item[1].job_set)]
    sets = _forward_sets(moves)
    back = [[_way_back(moves[: number + 1]) for number, _ in jobs] for jobs in reversed(by_set)]
    parts = count(len(absences), "wave") if absences else count(len(sets), "set")
    heading = f"Move instances of cluster {remedy.cluster}: {count(len(moves), 'move')}, {parts}"
    waves = [
        {
            "nodes": item.nodes,
            **{way: _forward_sets(moves) for way, moves in (("out", item.out), ("back", item.back))},
            **{when: [*map(shell_line, lines)] for when, lines in (("first", item.first), ("last", item.last))},
        }
        for item in absences
    ]
    return template.render(
        heading=heading,
        version=__version__,
        cluster=name_for_script(remedy.cluster),
        cluster_uuid=remedy.cluster_uuid,
        read_from=describe_source(remedy.source, remedy.snapshot),
        sets=sets,
        back=back,
        waves=waves,
        supposed=supposed,
        checks=[check for _, check in checks if check is not None],
        unchecked=[f"{effect.object} {'.'.join(effect.path)}" for effect, check in checks if check is None],
        lost=[f"{move.instance}: {move.no_way_back}" for move in moves if move.no_way_back and not waves],
        again=again,
    )


def _forward_sets(moves: Sequence[Move]) -> list[list[dict[str, object]]]:
    by_set = groupby(enumerate(moves), key=lambda item: item[1].job_set)
    return [[_forward(moves[number:]) for number, _ in jobs] for _, jobs in by_set]


def _check(effect: Effect) -> dict[str, str] | None:
    """Return how a shell sees that a change (`words`) was made: of tags, groups and their nodes; None for any other.

    The output of the command then has the line (`wanted` is `yes`), or lacks it (`no`).
    """
    level, _, name = effect.object.partition("/")
    there = "yes" if effect.after is not None else "no"
    match effect.path:
        case path if path[:1] == TAGS:
            wanted, line, argv = there, path[1], [f"gnt-{level}", "list-tags", *([name] if name else [])]
        case path if path == NAME:
            wanted, line, argv = there, name, ["gnt-group", "list", "--no-headers", "-o", "name"]
        case path if path == MEMBERSHIP or (level, path) == ("group", ("alloc_policy",)):
            wanted, line, argv = "yes", str(effect.after), [f"gnt-{level}", "list", "--no-headers", "-o", path[0], name]
        case _:
            return None
    return {"words": effect_words(effect), "wanted": wanted, "line": line, "command": shell_line(argv)}


def _forward(moves: Sequence[Move]) -> dict[str, object]:
    """Return the job of the first of `moves`, the others of which come later."""
    first = moves[0]
    own = [move for move in moves if move.instance == first.instance]
    return _job(f"{', '.join(first.nodes_before)} to {', '.join(first.nodes_after)}", own)


def _way_back(moves: Sequence[Move]) -> dict[str, object]:
    """Return the job that undoes the last of `moves`, the others of which came before."""
    last = moves[-1]
    own = [move.undoing for move in reversed(moves) if move.instance == last.instance]
    return _job(f"back to {', '.join(last.nodes_before)}", own, last.no_way_back)


def _job(words: str, moves: Sequence[Move], impossible: str = "") -> dict[str, object]:
    """Return the first of `moves` of an instance as the script has it.

    It says where the instance begins, its commands, each with where the instance is before it (as `gnt-instance list -o
    pnode,snodes` shows it), and where it is when this move is done, or a later one begun.
    """
    first, *others = ([f"{primary}/{','.join(mirror)}" for primary, *mirror in move.places] for move in moves)
    return {
        "title": f"{moves[0].instance}: {words}",
        "instance": moves[0].instance,
        "begins": first[0],
        "ends": dict.fromkeys((first[-1], *(place for places in others for place in places))),
        "lines": [
            (place, shell_line(one.argv or ())) for place, one in zip(first[:-1], moves[0].commands, strict=True)
        ],
        "impossible": impossible,
    }
