"""A remedy as an answer and as JSON (`schemas/output/remedy.json`): what is wrong, the moves and sizes that cure it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from gpolicy.analysis.size_words import with_bound
from gpolicy.analysis.violations import PolicyViolation
from gpolicy.json_values import COUNT, FROM_ONE, LENGTH, NUMBER, Document, Key, Shape, fields_of
from gpolicy.printable import count
from gpolicy.remedy.commands import SizeCure
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.remedy import Left, RemedyReport, RemedyStep
from gpolicy.remedy.room import MadeRoom
from gpolicy.remedy.saved_remedy import COMMAND, MOVE, REMEDY_FILE, SAVED, SavedRemedy
from gpolicy.report import answer
from gpolicy.report.capacity_json import head
from gpolicy.report.pictures import memory_section
from gpolicy.report.violations_section import breach_words, pair_words


def remedy_answer(report: RemedyReport) -> answer.Answer:
    """Return what is wrong, what cures it, and what is left."""
    return answer.Answer(
        verb="remedy",
        title="What cures cluster" if report.room is None else "What makes room on cluster",
        **answer.about(report, f"time: {answer.size(report.rate)} of disk a second for each job (--rate)"),
        verdict=f"{answer.supposing(report.what_if)}{_verdict(report)}",
        figures=(
            answer.Figure("faults", f"{len(report.faults):,}", about="faults"),
            answer.Figure("cured", f"{report.cured:,}", about="moves"),
            answer.Figure("moves", f"{len(report.steps):,}", about="moves"),
            answer.Figure("to copy", answer.size(report.copied), about="moves"),
            answer.Figure("time", duration(report.seconds), about="moves"),
        ),
        sections=tuple(part(report) for part in (_faults, _moves, memory_section, _commands, _left, _sizes)),
        notes=(*report.notes, *_stopped(report)),
    )


def room_verdict(report: RemedyReport, room: MadeRoom) -> str:
    """Return which moves make room, or why none do."""
    wanted = f"{room.count:,} {with_bound(room.wanted)}"
    if room.now >= room.count:
        return f"{wanted} fit as it is: no move is needed"
    if report.steps:
        return f"{moves_make_room(report)} for {wanted}"
    if not room.most:
        return f"no moves make room for {wanted}: no node could take one (`gpolicy place` says why)"
    if room.most < room.count:
        return (
            f"no moves make room for {wanted}: {room.now:,} fit now, and no moves can make it more than {room.most:,}"
        )
    return f"no moves were found that make room for {wanted}: {room.now:,} fit now; at most {room.most:,} could"


def moves_make_room(report: RemedyReport) -> str:
    """Return how many moves make room, and what they copy, in words."""
    verb = "makes" if len(report.steps) == 1 else "make"
    return f"{count(len(report.steps), 'move')}, {answer.size(report.copied)} to copy, {verb} room"


def _verdict(report: RemedyReport) -> str:
    if report.room is not None:
        return room_verdict(report, report.room)
    words = "No move cures any"
    if report.steps:
        verb = "cures" if len(report.steps) == 1 else "cure"
        words = f"{count(len(report.steps), 'move')}, {answer.size(report.copied)} to copy, {verb} {report.cured:,}"
    said = f"{words} of {count(len(report.faults), 'fault')}" if report.faults else "No instance has to move"
    if report.sizes:
        legal = sum(bool(item.commands) for item in report.sizes)
        verb = "violates" if len(report.sizes) == 1 else "violate"
        said += f"; {count(len(report.sizes), 'instance')} {verb} the policy, {legal:,} can get a legal size"
    return said


def duration(seconds: float) -> str:
    """Return a time in words: 40 s, 12 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _stopped(report: RemedyReport) -> Iterator[str]:
    if not report.exhaustive:
        may = "more moves may cure more" if report.room is None else "other moves may be cheaper, or make room"
        yield f"the search ended early, by its limits, --seconds or Ctrl-C: {may}"
    if any(step.no_way_back for step in report.steps):
        yield "some moves cannot be undone: nothing moves to a node that may hold no instance"


def _faults(report: RemedyReport) -> answer.Section:
    before, after = (Counter(fault.kind for fault in faults) for faults in (report.faults, report.faults_after))
    counted = ((kind.words, before[kind], after[kind]) for kind in FaultKind)
    rows = [(words, answer.digits(now), answer.digits(then)) for words, now, then in counted if now or then]
    headings = ("fault", answer.Number("before"), answer.Number("after the remedy"))
    new = tuple(answer.Entry(fault.sentence, mark="!") for fault in report.new)
    return answer.Section(
        "faults",
        "What is wrong",
        [answer.Table("What is wrong", "kinds", headings, rows, brief=5), answer.Entries("fault", new)],
        ("what is marked ! is new: the moves end more than they bring, or what is worse",) if new else (),
        never_cut=True,
    )


def _moves(report: RemedyReport) -> answer.Section:
    costs = map(answer.Number, ("to copy", "time"))
    headings = (answer.Number("set"), "instance", "from", "to", *costs, "downtime", "cures")
    prepares = "prepares a later move" if report.room is None else "makes room"
    rows = [_step_row(step, prepares) for step in report.steps]
    table = answer.Table("Moves", "moves", headings, rows, most=40, brief=10)
    notes = ("jobs of one set may run side by side; the sets run one after the other",) if report.steps else ()
    return answer.Section("moves", "Moves", [table], notes, never_cut=True)


def _step_row(step: RemedyStep, prepares: str) -> tuple[answer.Cell, ...]:
    cures = Counter(fault.kind.value for fault in step.cures)
    return (
        f"{step.job_set}",
        answer.Name(step.instance),
        answer.names(step.nodes_before),
        answer.names(step.nodes_after),
        answer.size(step.copied) if step.copied else answer.NOTHING,
        duration(step.seconds) if step.copied else answer.NOTHING,
        step.downtime or "none",
        ", ".join(kind if times == 1 else f"{times}x {kind}" for kind, times in cures.items()) or prepares,
    )


def _commands(report: RemedyReport) -> answer.Section:
    entries = []
    for step in report.steps:
        below = tuple(map(answer.command_line, step.commands))
        text = f"{step.instance}: {' and '.join(step.nodes_after)}"
        entries.append(answer.Entry(text, mark=f"{step.job_set:>2}.", below=below))
    return answer.Section("commands", "Commands, by set", [answer.Entries("move", entries, answer.Style.COMMANDS)])


def _left(report: RemedyReport) -> answer.Section:
    rows = [(item.fault.kind.value, item.fault.sentence, item.reason) for item in report.left]
    headings = ("kind", "fault", "why")
    table = answer.Table("What nothing cures, and why", "faults", headings, rows, last_apart=True, brief=3)
    return answer.Section("left", "What is left", [table])


def _sizes(report: RemedyReport) -> answer.Section:
    return answer.Section(
        "sizes",
        "Sizes that violate the policy, and the nearest legal ones",
        [answer.Entries("instance", tuple(map(_size_entry, report.sizes)), answer.Style.COMMANDS, brief=True)],
        (
            "the size is the one that asks for the smallest change; a plan names the one with the fewest breaches",
            "memory and CPUs change at the next start of an instance; no script runs these commands",
        )
        if any(item.commands for item in report.sizes)
        else (),
    )


def _size_entry(item: SizeCure) -> answer.Entry:
    breaches = "; ".join(map(breach_words, item.violation.breaches))
    return answer.Entry(
        mark="-" if item.commands else "?",
        text=f"{item.instance}: {breaches} ({pair_words(item.violation)})",
        below=tuple(map(answer.command_line, item.commands)) or (answer.Line(f"no command cures it: {item.reason}"),),
    )


_NOT_NEGATIVE: Final = {"type": "number", "minimum": 0}
_FAULT: Final = fields_of(Fault)
_STEP: Final = Shape(RemedyStep).with_keys(
    "number job_set instance nodes_before nodes_after commands copied seconds downtime cures back no_way_back score",
    **{key: item for key, item in MOVE.keys.items() if item.form},
    number=FROM_ONE,
    copied=COUNT,
    seconds=_NOT_NEGATIVE,
    downtime=Key(str | None, lambda step: step.downtime or None),
    cures=_FAULT,
    score=NUMBER,
)
_SIZE_SHAPE: Final = Shape(SizeCure).with_keys(
    "instance violation commands back reason",
    violation=Shape(PolicyViolation).with_keys(
        "group pair pair_name breaches exclusive_storage", breaches={"type": "object"}
    ),
    commands=COMMAND,
    back=COMMAND,
    reason=Key(str | None, lambda item: item.reason or None),
)
REMEDY_DOCUMENT: Final = Document(
    "gpolicy remedy --format json",
    head(REMEDY_FILE.version),
    SAVED,
    Shape(RemedyReport).with_keys(
        "basis what_if unknown room faults steps left new sizes score rate exhaustive notes summary",
        unknown="reasons",
        room=Shape(MadeRoom).with_keys("wanted count now after most"),
        faults=_FAULT,
        steps=_STEP,
        left=Shape(Left).with_keys("fault reason", fault=Key(_FAULT, inline=True)),
        new=_FAULT,
        sizes=_SIZE_SHAPE,
        score=Shape(RemedyReport).with_keys(
            before=Key(NUMBER, "score_before.total"), after=Key(NUMBER, "score_after.total")
        ),
        rate=FROM_ONE,
        summary=Shape(RemedyReport).with_keys(
            "faults moves cured job_sets copied seconds", faults=LENGTH, moves=Key(LENGTH, "steps")
        ),
    ),
)


def remedy_data(report: RemedyReport, saved: SavedRemedy) -> dict[str, Any]:
    """Return the report as JSON's own types, with what apply needs of it. Disk is MiB, time seconds."""
    return REMEDY_DOCUMENT.data(report, saved, report)
