"""A remedy as an answer: what is wrong before and after, the moves in their sets, what is left, and legal sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.printable import count, listed
from gpolicy.remedy.commands import command_line
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.legal_sizes import SizeCure
from gpolicy.remedy.remedy import RemedyReport, RemedyStep
from gpolicy.report.answer import (
    NOTHING,
    Answer,
    Cell,
    Entries,
    Entry,
    Figure,
    Line,
    Name,
    Section,
    Style,
    Table,
    names,
    size,
    supposing,
    with_content,
    with_rows,
)
from gpolicy.report.violations_section import breach_words, pair_words

KINDS: Final = {
    FaultKind.NODE: "instances on nodes that may hold none",
    FaultKind.TWO_GROUPS: "mirrored instances with nodes in two groups",
    FaultKind.STORAGE: "disks that exclusive storage forbids",
    FaultKind.DOMAIN: "mirrored instances in one failure domain",
    FaultKind.MIGRATION: "instances stranded by migration tags",
    FaultKind.EXCLUSION: "exclusion conflicts on one node",
    FaultKind.EXCLUSION_DOMAIN: "exclusion conflicts in one failure domain",
    FaultKind.RESERVE: "nodes that keep too little memory for N+1",
    FaultKind.LOSS: "losses of one node that cannot be absorbed",
}
"""What a number of faults of each kind counts, in words."""
_RIGHT: Final = frozenset({"set", "to copy", "time", "before", "after the remedy"})


def remedy_answer(report: RemedyReport) -> Answer:
    """Return what is wrong, what cures it, and what is left."""
    return Answer(
        verb="remedy",
        title="What cures cluster",
        name=report.cluster_name or report.source,
        verdict=f"{supposing(report.what_if)}{_verdict(report)}",
        basis=(
            *report.what_if,
            report.basis.sentence,
            f"time: {size(report.rate)} of disk a second for each job (--rate)",
        ),
        figures=(
            Figure("faults", f"{len(report.faults):,}", about="faults"),
            Figure("cured", f"{report.cured:,}", about="moves"),
            Figure("moves", f"{len(report.steps):,}", about="moves"),
            Figure("to copy", size(report.copied), about="moves"),
            Figure("time", duration(report.seconds), about="moves"),
        ),
        sections=tuple(
            with_content((_faults(report), _moves(report), *_commands(report), _left(report), _sizes(report)))
        ),
        notes=(*report.notes, *_stopped(report)),
        source=report.source,
        snapshot=report.snapshot,
    )


def _verdict(report: RemedyReport) -> str:
    words = f"{remedy_words(report)} of {count(len(report.faults), 'fault')}"
    said = [f"{words[0].upper()}{words[1:]}" if report.faults else "No instance has to move"]
    if report.sizes:
        said.append(_sizes_words(report))
    if report.left_out:
        said.append(f"not looked at: {'group' if len(report.left_out) == 1 else 'groups'} {listed(report.left_out)}")
    return "; ".join(said)


def remedy_words(report: RemedyReport) -> str:
    """Return what the moves do, in a few words: `3 moves, 120G to copy, cure 3`."""
    if not report.steps:
        return "no move cures any"
    verb = "cures" if len(report.steps) == 1 else "cure"
    return f"{count(len(report.steps), 'move')}, {size(report.copied)} to copy, {verb} {report.cured:,}"


def _sizes_words(report: RemedyReport) -> str:
    legal = sum(bool(item.commands) for item in report.sizes)
    verb = "violates" if len(report.sizes) == 1 else "violate"
    return f"{count(len(report.sizes), 'instance')} {verb} the policy, {legal:,} can get a legal size"


def duration(seconds: float) -> str:
    """Return a time in words: 40 s, 12 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _stopped(report: RemedyReport) -> Iterator[str]:
    if not report.exhaustive:
        yield "the search ended early, by its limits, --seconds or Ctrl-C: more moves may cure more"
    if any(step.no_way_back for step in report.steps):
        yield "some moves cannot be undone: nothing moves to a node that may hold no instance"


def _faults(report: RemedyReport) -> Section:
    before, after = (Counter(fault.kind for fault in faults) for faults in (report.faults, report.faults_after))
    rows = tuple(
        (words, f"{before[kind]:,}", f"{after[kind]:,}") for kind, words in KINDS.items() if before[kind] or after[kind]
    )
    new = tuple(Entry(mark="!", text=fault.sentence) for fault in report.new)
    return Section(
        key="faults",
        title="What is wrong",
        parts=(
            *with_rows(
                Table(
                    title="What is wrong",
                    of="kinds",
                    headings=("fault", "before", "after the remedy"),
                    rows=rows,
                    right=_RIGHT,
                )
            ),
            *((Entries(of="fault", entries=new),) if new else ()),
        ),
        notes=("what is marked ! is new: the moves end more than they bring",) if new else (),
        never_cut=True,
    )


def _moves(report: RemedyReport) -> Section:
    rows = tuple(_row(step) for step in report.steps)
    headings = ("set", "instance", "from", "to", "to copy", "time", "downtime", "cures")
    notes = ("jobs of one set may run side by side; the sets run one after the other",) if report.steps else ()
    return Section(
        key="moves",
        title="Moves",
        parts=with_rows(Table(title="Moves", of="moves", headings=headings, rows=rows, right=_RIGHT, most=40)),
        notes=notes,
        never_cut=True,
    )


def _row(step: RemedyStep) -> tuple[Cell, ...]:
    return (
        f"{step.job_set}",
        Name(step.instance),
        names(step.nodes_before),
        names(step.nodes_after),
        size(step.copied) if step.copied else NOTHING,
        duration(step.seconds) if step.copied else NOTHING,
        step.downtime or "none",
        _cures(step.cures),
    )


def _cures(cures: Iterable[Fault]) -> str:
    kinds = Counter(fault.kind.value for fault in cures)
    words = [kind if number == 1 else f"{number}x {kind}" for kind, number in kinds.items()]
    return ", ".join(words) or "prepares a later move"


def _commands(report: RemedyReport) -> Iterator[Section]:
    entries = tuple(
        Entry(
            mark=f"{step.job_set:>2}.",
            text=f"{step.instance}: {' and '.join(step.nodes_after)}",
            below=tuple(Line(text=command_line(command), is_code=True) for command in step.commands),
        )
        for step in report.steps
    )
    yield Section(
        key="commands",
        title="Commands, by set",
        parts=(Entries(of="move", entries=entries, style=Style.COMMANDS),) if entries else (),
    )


def _left(report: RemedyReport) -> Section:
    rows = tuple((item.fault.kind.value, item.fault.sentence, item.reason) for item in report.left)
    return Section(
        key="left",
        title="What is left",
        parts=with_rows(
            Table(
                title="What nothing cures, and why",
                of="faults",
                headings=("kind", "fault", "why"),
                rows=rows,
                last_apart=True,
            )
        ),
    )


def _sizes(report: RemedyReport) -> Section:
    return Section(
        key="sizes",
        title="Sizes that violate the policy, and the nearest legal ones",
        parts=(Entries(of="instance", entries=tuple(map(_size, report.sizes)), style=Style.COMMANDS),)
        if report.sizes
        else (),
        notes=(
            "the spec pair is the one that asks for the smallest change; a plan names the one with the fewest breaches",
            "memory and CPUs change at the next start of an instance; no script runs these commands",
        )
        if any(item.commands for item in report.sizes)
        else (),
    )


def _size(item: SizeCure) -> Entry:
    breaches = "; ".join(map(breach_words, item.violation.breaches))
    below = [Line(text=command_line(command), is_code=True) for command in item.commands]
    return Entry(
        mark="-" if item.commands else "?",
        text=f"{item.instance}: {breaches} ({pair_words(item.violation)})",
        below=tuple(below) or (Line(text=f"no command cures it: {item.reason}"),),
    )
