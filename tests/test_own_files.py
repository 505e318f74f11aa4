"""The files that gpolicy writes and reads again: which kinds and versions each reader takes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from gpolicy.apply.journals import BEGIN, JOURNAL_FILE, Direction, event_line, read_history, right_format
from gpolicy.apply.plan_run import JOURNAL_DOCUMENT
from gpolicy.cluster.record import Record
from gpolicy.cluster.state_files import SNAPSHOT_FILE, parse_snapshot
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Value
from gpolicy.json_values import OwnFile, Shape
from gpolicy.plan.plan_file import plan_in
from gpolicy.plan.plan_json import PLAN_FILE
from gpolicy.remedy.saved_remedy import REMEDY_FILE, procedure_in
from gpolicy.report.file_answer import journal_answer
from gpolicy.rollout.rollout_run import ROLLOUT_DOCUMENT, ROLLOUT_FILE, read_rollout
from tests.cli.command_line import ROOT

RECORDS = ROOT / "tests/data/journals"
READ = {
    SNAPSHOT_FILE: ("1", "1.", "1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
    PLAN_FILE: ("1.7",),
    REMEDY_FILE: ("1.1",),
    JOURNAL_FILE: ("1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
    ROLLOUT_FILE: ("1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
}
VERSIONS = ("", "0.9", "1", "1.", "1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99", "2.0", "10.1")


@pytest.mark.parametrize("file", READ, ids=lambda file: str(file.kind))
def test_a_file_is_read_in_these_versions(file: OwnFile) -> None:
    assert tuple(version for version in VERSIONS if file.reads(version)) == READ[file]
    assert file.reads(file.version)
    assert Shape(dict).with_keys(**file.head)({}) == {"format_version": file.version, "kind": file.kind}


def read_head(file: OwnFile, fields: dict[str, Value]) -> None:
    """Have a head alone read by the reader of a file."""
    if file is SNAPSHOT_FILE:
        parse_snapshot(json.dumps(fields).encode(), "FILE")
    elif file is PLAN_FILE:
        plan_in(Record.of(fields, "FILE"))
    elif file is REMEDY_FILE:
        procedure_in(Record.of(fields, "FILE"))
    else:
        right_format(Record.of(fields, "FILE"), file)


def refusal(file: OwnFile, kind: str, version: str) -> str:
    """Return why a file with this head alone is refused."""
    with pytest.raises(InputError) as caught:
        read_head(file, {"kind": kind, "format_version": version, "gpolicy": "1.0"})
    return caught.value.message.partition(" (gpolicy")[0]


def test_messages_name_what_a_file_is_not() -> None:
    assert refusal(SNAPSHOT_FILE, "other", "1.0") == "FILE: not a snapshot of gpolicy, but other"
    assert refusal(SNAPSHOT_FILE, "gpolicy-snapshot", "2.0") == "FILE: is of format '2.0', this gpolicy reads 1.3"
    assert refusal(PLAN_FILE, "other", "1.7") == "FILE: this is not a plan: its kind is other"
    assert refusal(PLAN_FILE, "gpolicy-plan", "1.6") == "FILE: its format is '1.6'"
    assert refusal(REMEDY_FILE, "gpolicy-remedy", "1.0") == "FILE: its format is '1.0'"
    for kind, version in (("other", "1.1"), ("gpolicy-journal", "1.0"), ("gpolicy-journal", "2.1")):
        assert refusal(JOURNAL_FILE, kind, version) == "FILE: is not a journal of format 1.1"
    for kind, version in (("gpolicy-journal", "1.1"), ("gpolicy-rollout-journal", "2.0")):
        assert refusal(ROLLOUT_FILE, kind, version) == "FILE: is not a roll-out's journal of format 1.0"


RECORDED = {
    "plan.journal.jsonl": (JOURNAL_DOCUMENT, "journal"),
    "_rollout.journal.jsonl": (ROLLOUT_DOCUMENT, "rollout-journal"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_each_line_of_a_recorded_journal_is_what_its_event_makes_of_it(name: str) -> None:
    document, schema = RECORDED[name]
    validator = jsonschema.Draft7Validator(json.loads((ROOT / f"schemas/output/{schema}.json").read_text()))
    shapes = {event.name: event for event in document.parts[1]}
    before, seen = "", set()
    for line in (RECORDS / name).read_bytes().splitlines(keepends=True):
        fields = json.loads(line)
        validator.validate(fields)
        event, time = fields.pop("event"), fields.pop("time")
        chain = fields.pop("chain")
        made = fields if event == BEGIN else shapes[event](fields)
        assert list(made) == list(shapes[event].keys)
        assert event_line(event, {"time": time, **made}, before) == (line, chain)
        before = chain
        seen.add(event)
    assert seen == shapes.keys()


def test_recorded_journals_are_read() -> None:
    history = read_history((RECORDS / "plan.journal.jsonl").read_bytes(), "j")
    assert (history.id, history.direction, history.ended) == ("00000001", Direction.ROLLBACK, "done")
    assert len(history.jobs) == 11
    rollout = read_rollout((RECORDS / "_rollout.journal.jsonl").read_bytes(), "j")
    assert (rollout.direction, rollout.ended, {*rollout.begun}) == (Direction.ROLLBACK, "done", {"ham", "ber", "cam"})
    for name in RECORDED:
        answer, as_json = journal_answer(RECORDS / name)
        assert answer.verdict == "2 runs; its rollback ended: done"
        lines = [json.loads(line) for line in (RECORDS / name).read_text().splitlines()]
        assert json.loads(as_json()) == {"events": lines}


def test_a_journal_without_checksums_is_told_by_its_version(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text('{"event": "begin", "kind": "gpolicy-journal", "format_version": "1.0"}\n')
    with pytest.raises(InputError, match=r":1: is not a journal of gpolicy of format 1\.1"):
        journal_answer(file)
