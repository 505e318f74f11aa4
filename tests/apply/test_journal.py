"""The journal: what its lines add up to, whatever of the last one is missing."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from command_line import ROOT
from hypothesis import given
from hypothesis import strategies as st
from model_runner import ModelRunner, plan_for, run
from pretend_ganeti import PretendGaneti, fails

from gpolicy.apply.journal import Direction, EventName, Fate, event_line, read_history
from gpolicy.apply.journal_file import create_journal, journal_path, reopen_journal, set_aside
from gpolicy.errors import GpolicyError, InputError, UsageError

BEGIN: dict[str, Any] = {
    "kind": "gpolicy-journal", "format_version": "1.0", "direction": "apply", "plan_digest": "sha256:1", "cluster": "c",
}  # fmt: skip


def lines(*events: tuple[EventName, dict[str, Any]]) -> bytes:
    return b"".join(event_line(name, fields) for name, fields in ((EventName.BEGIN, BEGIN), *events))


STARTED = (EventName.STARTED, {"step": "1", "mark": "m1", "title": "t"})
JOB = (EventName.JOB, {"step": "1", "job": 7})
DONE = (EventName.DONE, {"step": "1", "serials": {"cluster": 3}})
FAILED = (EventName.FAILED, {"step": "1", "reason": "no"})
END = (EventName.END, {"outcome": "failed"})


def test_events_add_up() -> None:
    history = read_history(lines(STARTED, JOB), "j")
    assert (history.attempts["1"].mark, history.attempts["1"].job, history.attempts["1"].fate) == ("m1", 7, Fate.BEGUN)
    history = read_history(lines(STARTED, JOB, DONE), "j")
    assert (history.keys(Fate.DONE), history.serials, history.ended) == (["1"], {"cluster": 3}, None)
    again = (EventName.STARTED, {"step": "1", "mark": "m2"})
    history = read_history(lines(STARTED, JOB, FAILED, again, END), "j")
    assert (history.attempts["1"].mark, history.attempts["1"].job, history.ended) == ("m2", None, "failed")
    back = (EventName.BEGIN, {**BEGIN, "direction": "rollback"})
    history = read_history(lines(STARTED, DONE, END, back), "j")
    assert (history.direction, history.ended) == (Direction.ROLLBACK, None)


@given(cut=st.integers(0, 400))
def test_a_journal_that_is_cut_anywhere_knows_all_whole_lines(cut: int) -> None:
    whole = lines(STARTED, JOB, DONE, END)
    data = whole[: len(whole) - cut]
    complete = data[: data.rfind(b"\n") + 1]
    if not complete:
        with pytest.raises(InputError):
            read_history(data, "j")
        return
    history, known = read_history(data, "j"), read_history(complete, "j")
    assert history.torn == (data != complete)
    assert (history.attempts, history.ended) == (known.attempts, known.ended)
    resumed = data + (b"\n" if history.torn else b"") + lines(STARTED)
    assert read_history(resumed, "j").attempts["1"].fate is Fate.BEGUN


@given(st.binary(max_size=300))
def test_anything_else_is_one_error(data: bytes) -> None:
    for content in (data, lines() + data):
        with suppress(GpolicyError):
            read_history(content, "j")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\n",
        event_line(*STARTED),
        event_line(EventName.BEGIN, {**BEGIN, "format_version": "2.0"}),
        event_line(EventName.BEGIN, {**BEGIN, "direction": "sideways"}),
        lines(JOB),
        lines((EventName.BEGIN, {**BEGIN, "plan_digest": "sha256:2"})),
        lines() + b"half a line\n" + event_line(*STARTED),
    ],
)
def test_what_is_no_journal_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        read_history(data, "j")


def test_it_is_as_its_schema_says(tmp_path: Path) -> None:
    schema = json.loads((ROOT / "schemas" / "output" / "journal.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    ganeti = PretendGaneti.recorded()
    plan = plan_for(ganeti)
    ganeti.mishaps = [None, fails("since locks were acquired")]
    run(plan, ModelRunner(ganeti), tmp_path / "journal")
    run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=Direction.ROLLBACK)
    events = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    for event in events:
        validator.validate(event)
    assert {event["event"] for event in events} == set(EventName) - {EventName.MESSAGE}
    assert not validator.is_valid({"event": "step-started"})
    assert not validator.is_valid({"event": "begin", "time": "x"})


def test_files_are_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = create_journal(path)
    journal.write(EventName.BEGIN, **BEGIN)
    journal.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError):
        create_journal(path)
    again = reopen_journal(path)
    again.write(EventName.END, outcome="done")
    again.close()
    assert read_history(path.read_bytes(), "j").ended == "done"
    path.chmod(0o644)
    with pytest.raises(InputError, match="others can read it"):
        reopen_journal(path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "journal").symlink_to(target)
    with pytest.raises(GpolicyError):
        create_journal(tmp_path / "journal")
    with pytest.raises(GpolicyError):
        reopen_journal(tmp_path / "journal")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GpolicyError):
        reopen_journal(tmp_path / "pipe")


def test_where_it_is_unless_told(tmp_path: Path) -> None:
    assert journal_path(Path("a/plan.json")) == Path("a/plan.journal.jsonl")
    assert journal_path(Path("plan")) == Path("plan.journal.jsonl")
    (tmp_path / "plan.journal.jsonl").write_text("x")
    kept = [set_aside(tmp_path / "plan.journal.jsonl", "sha256:../../0123456789abcdef")]
    (tmp_path / "plan.journal.jsonl").write_text("y")
    kept.append(set_aside(tmp_path / "plan.journal.jsonl", "sha256:../../0123456789abcdef"))
    assert [path.parent for path in kept] == [tmp_path, tmp_path]
    assert sorted(path.read_text() for path in kept) == ["x", "y"]
