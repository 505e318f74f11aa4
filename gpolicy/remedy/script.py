"""A remedy as a POSIX shell script that also leads back: each move looks first where its instance is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from gpolicy import __version__
from gpolicy.ganeti.commands import Command
from gpolicy.printable import count
from gpolicy.remedy.commands import command_line
from gpolicy.remedy.remedy import RemedyReport, RemedyStep
from gpolicy.render.script import script_environment


@dataclass(frozen=True, slots=True)
class ScriptJob:
    """One move, or its way back: where its instance must be, where it is when this or a later move is done."""

    number: int
    title: str
    instance: str
    begins: str
    ends: tuple[str, ...]
    lines: tuple[str, ...]
    impossible: str = ""


def remedy_script(report: RemedyReport) -> str:
    """Return the script that carries out the moves of a remedy in their job sets, and undoes them with `--back`."""
    template = script_environment().get_template("remedy.sh.j2")
    steps = report.steps
    sets = [list(jobs) for _, jobs in groupby((_job(step, steps) for step in steps), key=lambda job: _set(job, steps))]
    back = [
        [_way_back(step, steps) for step in jobs]
        for jobs in reversed([list(jobs) for _, jobs in groupby(steps, key=attrgetter("job_set"))])
    ]
    heading = f"Move instances of cluster {report.cluster_name}: {count(len(steps), 'move')}, {count(len(sets), 'set')}"
    return template.render(
        heading=heading,
        version=__version__,
        cluster=report.cluster_name,
        cluster_uuid=report.cluster_uuid,
        read_from=report.source,
        sets=sets,
        back=back,
        lost=[f"{step.instance}: {step.no_way_back}" for step in steps if step.no_way_back],
    )


def _set(job: ScriptJob, steps: Sequence[RemedyStep]) -> int:
    return steps[job.number - 1].job_set


def _job(step: RemedyStep, steps: Iterable[RemedyStep]) -> ScriptJob:
    later = _of_instance(step, (other for other in steps if other.number >= step.number))
    ends = tuple(_place(other.nodes_after) for other in later)
    title = f"{step.instance}: {_words(step.nodes_before)} to {_words(step.nodes_after)}"
    return ScriptJob(step.number, title, step.instance, _place(step.nodes_before), ends, _lines(step.commands))


def _way_back(step: RemedyStep, steps: Iterable[RemedyStep]) -> ScriptJob:
    earlier = _of_instance(step, (other for other in steps if other.number <= step.number))
    ends = tuple(_place(other.nodes_before) for other in earlier)
    title = f"{step.instance}: back to {_words(step.nodes_before)}"
    begins = _place(step.nodes_after)
    return ScriptJob(step.number, title, step.instance, begins, ends, _lines(step.back), step.no_way_back)


def _of_instance(step: RemedyStep, steps: Iterable[RemedyStep]) -> Iterator[RemedyStep]:
    return (other for other in steps if other.instance == step.instance)


def _lines(commands: Iterable[Command]) -> tuple[str, ...]:
    return tuple(map(command_line, commands))


def _place(nodes: Sequence[str]) -> str:
    """Return nodes as `gnt-instance list --separator=/ -o pnode,snodes` shows them."""
    return f"{nodes[0]}/{','.join(nodes[1:])}"


def _words(nodes: Sequence[str]) -> str:
    return ", ".join(nodes)
