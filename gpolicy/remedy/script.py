"""A remedy as a POSIX shell script that also leads back: each move looks first where its instance is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from gpolicy import __version__
from gpolicy.ganeti.commands import Command, shell_line
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Effect, effect_words
from gpolicy.printable import count
from gpolicy.remedy.commands import command_line
from gpolicy.remedy.remedy import RemedyReport, RemedyStep
from gpolicy.remedy.saved_remedy import Supposed, places_of
from gpolicy.render.script import name_for_script, script_environment


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """A line that the output of a command has (`wanted` is `yes`) or lacks (`no`) once a change (`words`) was made."""

    words: str
    wanted: str
    line: str
    command: str


@dataclass(frozen=True, slots=True)
class ScriptJob:
    """One move, or its way back: where its instance begins, and where it is when this or a later move is done or begun.

    `ends` begins with the end of this one. `lines` are its commands, each with where the instance is before it.
    """

    number: int
    title: str
    instance: str
    begins: str
    ends: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    impossible: str = ""


def remedy_script(report: RemedyReport, supposed: Supposed | None = None) -> str:
    """Return the script that carries out the moves of a remedy in their job sets, and undoes them with `--back`.

    It looks first whether what the remedy supposes holds, as far as commands of Ganeti show it in a line.
    """
    effects = () if supposed is None else supposed.effects
    checks = [(effect, _check(effect)) for effect in effects]
    template = script_environment().get_template("remedy.sh.j2")
    steps = report.steps
    by_set = [list(jobs) for _, jobs in groupby(steps, key=attrgetter("job_set"))]
    sets = [[_job(step, steps) for step in jobs] for jobs in by_set]
    back = [[_way_back(step, steps) for step in jobs] for jobs in reversed(by_set)]
    heading = f"Move instances of cluster {report.cluster_name}: {count(len(steps), 'move')}, {count(len(sets), 'set')}"
    return template.render(
        heading=heading,
        version=__version__,
        cluster=name_for_script(report.cluster_name),
        cluster_uuid=report.cluster_uuid,
        read_from=report.source,
        sets=sets,
        back=back,
        supposed=supposed,
        checks=[check for _, check in checks if check is not None],
        unchecked=[f"{effect.object} {'.'.join(effect.path)}" for effect, check in checks if check is None],
        lost=[f"{step.instance}: {step.no_way_back}" for step in steps if step.no_way_back],
    )


def _check(effect: Effect) -> ScriptCheck | None:
    """Return how a shell sees that a change was made: of tags, groups and their nodes; None for any other."""
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
    return ScriptCheck(effect_words(effect), wanted, line, shell_line(argv))


def _job(step: RemedyStep, steps: Sequence[RemedyStep]) -> ScriptJob:
    later = [(one.nodes_before, one.commands) for one in steps[step.number :] if one.instance == step.instance]
    title = f"{step.instance}: {', '.join(step.nodes_before)} to {', '.join(step.nodes_after)}"
    return _made(step, title, [(step.nodes_before, step.commands), *later])


def _way_back(step: RemedyStep, steps: Sequence[RemedyStep]) -> ScriptJob:
    earlier = [one for one in reversed(steps[: step.number - 1]) if one.instance == step.instance]
    title = f"{step.instance}: back to {', '.join(step.nodes_before)}"
    return _made(step, title, [(one.nodes_after, one.back) for one in (step, *earlier)], step.no_way_back)


def _made(
    step: RemedyStep, title: str, moves: Sequence[tuple[Sequence[str], Sequence[Command]]], impossible: str = ""
) -> ScriptJob:
    """Return the job of the first of `moves` of an instance, each from its nodes by its commands."""
    first, *others = (_places(nodes, commands) for nodes, commands in moves)
    lines = tuple(zip(first, map(command_line, moves[0][1]), strict=False))
    ends = tuple(dict.fromkeys((first[-1], *(place for places in others for place in places))))
    return ScriptJob(step.number, title, step.instance, first[0], ends, lines, impossible)


def _places(nodes: Sequence[str], commands: Iterable[Command]) -> list[str]:
    """Return where an instance is before and after each command, as `gnt-instance list -o pnode,snodes` shows it."""
    places = places_of(nodes, [command.argv or () for command in commands])
    return [f"{primary}/{','.join(secondary)}" for primary, *secondary in places]
