"""A remedy as a POSIX shell script that also leads back: each move looks first where its instance is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from gpolicy import __version__
from gpolicy.ganeti.grammar import shell_line
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Effect, effect_words
from gpolicy.printable import count
from gpolicy.remedy.remedy import RemedyReport, RemedyStep
from gpolicy.remedy.saved_remedy import Move, Supposed
from gpolicy.render.script import name_for_script, script_environment


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """A line that the output of a command has (`wanted` is `yes`) or lacks (`no`) once a change (`words`) was made."""

    words: str
    wanted: str
    line: str
    command: str


def remedy_script(report: RemedyReport, supposed: Supposed | None = None) -> str:
    """Return the script that carries out the moves of a remedy in their job sets, and undoes them with `--back`.

    It looks first whether what the remedy supposes holds, as far as commands of Ganeti show it in a line.
    """
    effects = () if supposed is None else supposed.effects
    checks = [(effect, _check(effect)) for effect in effects]
    template = script_environment().get_template("remedy.sh.j2")
    steps = report.steps
    by_set = [list(jobs) for _, jobs in groupby(steps, key=attrgetter("job_set"))]
    sets = [[_forward(step, steps) for step in jobs] for jobs in by_set]
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


def _forward(step: RemedyStep, steps: Sequence[RemedyStep]) -> dict[str, object]:
    later = [one for one in steps[step.number :] if one.instance == step.instance]
    return _job(f"{', '.join(step.nodes_before)} to {', '.join(step.nodes_after)}", [step, *later])


def _way_back(step: RemedyStep, steps: Sequence[RemedyStep]) -> dict[str, object]:
    undone = [one.undoing for one in reversed(steps[: step.number]) if one.instance == step.instance]
    return _job(f"back to {', '.join(step.nodes_before)}", undone, step.no_way_back)


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
