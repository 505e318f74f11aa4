"""What a file holds that gpolicy wrote, as an answer: a plan or a remedy with its report, a snapshot, a journal."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpolicy.apply import journals
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import Record, shown
from gpolicy.cluster.state_files import SNAPSHOT_FILE, parse_snapshot
from gpolicy.errors import InputError
from gpolicy.json_values import json_text
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_json import ANSWER
from gpolicy.plan.step import Procedure
from gpolicy.printable import Tone, count
from gpolicy.remedy.saved_remedy import procedure_in
from gpolicy.report.answer import NOTHING, Answer, Number, Section, Table
from gpolicy.report.answer_file import read_answer
from gpolicy.report.plan_answer import plan_answer
from gpolicy.report.show_answer import show_answer
from gpolicy.rollout.rollout_run import ROLLOUT_FILE
from gpolicy.show.effective_policy import effective_state

_HEADINGS: Final = ("time (UTC)", Number("job"), "what", "how")


def read_record(path: Path) -> tuple[bytes, Record]:
    """Return the content of a file, and the mapping of JSON in it. Raise InputError if it holds none."""
    data = read_bytes(path)
    return data, Record.of(parse_json(data, str(path)), str(path))


def file_answer(path: Path, data: bytes, written: Record) -> tuple[Answer, Callable[[], str]]:
    """Return what a file of ours, other than a journal, holds as an answer, and as JSON text; `read_record` reads it.

    Raise InputError for a file that gpolicy did not write, or that was changed.
    """
    if SNAPSHOT_FILE.is_kind_of(written.fields):
        state = parse_snapshot(data, str(path))
        amounts = {"group": len(state.groups), "node": len(state.nodes), "instance": len(state.instances)}
        verdict = ", ".join(count(amount, word) for word, amount in amounts.items())
        release = f"; Ganeti {state.software_version}" if state.software_version else ""
        values = show_answer(effective_state(state, str(path)))
        values = replace(values, title="Cluster", name=state.name, verdict=f"{verdict}{release}", basis=state.notes)
        answer = replace(values, source=state.source, snapshot=state.snapshot)
        return answer, data.decode
    procedure = procedure_in(written)
    content = {key: value for key, value in written.fields.items() if key != ANSWER}
    if written.fields.get(ANSWER) is not None:
        return _checked(read_answer(written.record(ANSWER)), procedure, path), lambda: json_text(content)
    if isinstance(procedure, Plan):
        unknown = ("its cost is not in the file, which an earlier gpolicy made",)
        return replace(plan_answer(procedure), unknown=unknown), lambda: json_text(content)
    raise InputError(f"{path}: holds no report, as an earlier gpolicy made it", hint="make the remedy again")


def _checked(answer: Answer, procedure: Procedure, path: Path) -> Answer:
    """Return the report of a file with what follows from its content made anew; the rest is as the file says."""
    basis = ("commands and guards were checked; the other figures are as the file says",)
    if not isinstance(procedure, Plan):
        return replace(answer, basis=(*answer.basis, *basis))
    made = plan_answer(procedure)
    if not answer.verdict.startswith(made.verdict.partition(":")[0]):
        raise InputError(f"{path}: its report says {shown(answer.verdict)!r}, but the plan is: {made.verdict}")
    own = {section.key: section for section in made.sections if section.key in ("guards", "steps", "left-out")}
    sections = tuple(own.get(section.key, section) for section in answer.sections)
    return replace(answer, sections=sections, basis=(*answer.basis, *basis))


def journal_answer(path: Path) -> tuple[Answer, Callable[[], str]]:
    """Return what a journal holds as an answer, and as JSON text. Raise InputError if it is none, or was changed."""
    data = journals.read_journal(path)
    if data is None:
        raise InputError(f"{path}: no journal of a run that has begun")
    events, _ = journals.read_chain(data, str(path), _right_format)
    begun = [event for event in events if event.fields["event"] == journals.BEGIN]
    outcome = events[-1].text_or_none("outcome") if events[-1].fields["event"] == journals.END.name else None
    direction = begun[-1].choice("direction", journals.Direction)
    rows = [tuple(row) for row in _rows(events)]
    table = Table("Events", "events", _HEADINGS, rows, most=len(rows), brief=18)
    answer = Answer(
        verb="show",
        title="Journal of a roll-out" if ROLLOUT_FILE.is_kind_of(begun[0].fields) else "Journal of cluster",
        name=begun[0].text_or_none("cluster") or "",
        verdict=f"{count(len(begun), 'run')}; {journals.how_ended(direction, outcome)}",
        tone=Tone.GOOD if outcome == "done" else Tone.CAREFUL,
        sections=(Section("events", "", [table], never_cut=True),),
    )
    return answer, lambda: json_text({"events": [event.fields for event in events]})


def _right_format(event: Record) -> None:
    file = ROLLOUT_FILE if ROLLOUT_FILE.is_kind_of(event.fields) else journals.JOURNAL_FILE
    journals.right_format(event, replace(file, noun="a journal of gpolicy"))


def _rows(events: Iterable[Record]) -> list[list[str]]:
    """Return a row for each run, each attempt at a step, and each other event."""
    rows: list[list[str]] = []
    attempts: dict[str, list[str]] = {}
    for event in events:
        name, step = event.text("event"), event.text_or_none("step") or ""
        row = [(event.text_or_none("time") or "")[:19].replace("T", " "), NOTHING, "", name.removeprefix("cluster-")]
        match name:
            case journals.BEGIN:
                row[2] = f"to {event.text_or_none('destination') or 'all clusters'}"
                row[3] = event.choice("direction", journals.Direction).value
            case journals.STARTED.name:
                row[2:] = event.text("title"), "begun"
                attempts[step] = row
            case journals.SUBMITTED.name if step in attempts:
                attempts[step][1] = str(event.whole("job"))
                continue
            case journals.DONE.name | journals.FAILED.name if step in attempts:
                failed = f"failed: {event.text_or_none('reason') or ''}"
                attempts[step][3] = "done" if name == journals.DONE.name else failed
                continue
            case journals.MESSAGE.name:
                continue
            case journals.END.name:
                row[3] = f"ended: {event.text('outcome')}"
            case _:
                row[2] = event.text_or_none("cluster") or step
        rows.append(row)
    return rows
