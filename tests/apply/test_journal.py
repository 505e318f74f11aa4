"""The journal: the history of its lines, even if the last one is incomplete."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from gpolicy.apply import journals
from gpolicy.apply.carrying import CarryingError
from gpolicy.apply.journals import (
    ChainEnd,
    Direction,
    Fate,
    JournalError,
    begin_run,
    event_line,
    journal_path,
    read_history,
    read_journal,
    set_aside,
)
from gpolicy.apply.plan_run import JOURNAL_DOCUMENT
from gpolicy.errors import GpolicyError, InputError, RequestError
from gpolicy.ganeti.commands import Route
from gpolicy.json_values import Document, Shape
from tests.apply.model_runner import ModelRunner, plan_for, run
from tests.apply.pretend_ganeti import PretendGaneti, fails, then
from tests.cli.command_line import ROOT

BEGIN: dict[str, Any] = {
    "kind": "gpolicy-journal", "format_version": "1.1", "journal": "j1", "direction": "apply",
    "plan_digest": "sha256:1", "cluster": "c",
}  # fmt: skip
RUN = Shape(dict, "begin").with_keys(" ".join(BEGIN))
LINE_KEYS = journals.LINE.keys.keys()


def chained(*events: tuple[str, dict[str, Any]], before: str = "") -> bytes:
    """Return events as they are written one behind the other."""
    written = []
    for name, fields in events:
        line, before = event_line(name, fields, before)
        written.append(line)
    return b"".join(written)


def lines(*events: tuple[str, dict[str, Any]]) -> bytes:
    return chained(("begin", BEGIN), *events)


STARTED = ("step-started", {"step": "1", "mark": "m1", "title": "t"})
JOB = ("step-job-submitted", {"step": "1", "job": 7})
DONE = ("step-done", {"step": "1", "serials": {"cluster": 3}})
FAILED = ("step-failed", {"step": "1", "reason": "no", "done": ["cluster a.b"]})
END = ("end", {"outcome": "failed"})


def test_events_make_a_history() -> None:
    history = read_history(lines(STARTED, JOB), "j")
    assert (history.attempts["1"].mark, history.attempts["1"].job, history.attempts["1"].fate) == ("m1", 7, Fate.BEGUN)
    history = read_history(lines(STARTED, JOB, DONE), "j")
    assert (history.attempts["1"].fate, history.serials, history.ended) == (Fate.DONE, {"cluster": 3}, None)
    again = ("step-started", {"step": "1", "mark": "m2"})
    history = read_history(lines(STARTED, JOB, FAILED, again, END), "j")
    assert (history.attempts["1"].mark, history.attempts["1"].job, history.ended) == ("m2", None, "failed")
    assert history.marks == {"m1", "m2"}
    assert read_history(lines(STARTED, JOB, FAILED), "j").attempts["1"].did == ("cluster a.b",)
    back = ("begin", {**BEGIN, "direction": "rollback"})
    history = read_history(lines(STARTED, DONE, END, back), "j")
    assert (history.direction, history.ended) == (Direction.ROLLBACK, None)


def test_a_journal_cut_at_any_byte_keeps_its_complete_lines_and_continues() -> None:
    whole = lines(STARTED, JOB, DONE, END)
    events = whole.split(b"\n")
    for cut in range(len(events[0]), len(whole)):
        data = whole[:cut]
        complete = [event for number, event in enumerate(events[:-1]) if b"\n".join(events[: number + 1]) in data]
        history, known = read_history(data, "j"), read_history(b"\n".join(complete) + b"\n", "j")
        assert (history.end.ending == b"") == data.endswith(b"\n")
        assert replace(history, end=ChainEnd()) == replace(known, end=ChainEnd())
        assert history.end.checksum == known.end.checksum
        resumed = data + history.end.ending + chained(("begin", BEGIN), STARTED, before=history.end.checksum)
        assert read_history(resumed, "j").attempts["1"].fate is Fate.BEGUN


EVENTS = [("begin", BEGIN)]
for step in ("1", "2"):
    EVENTS += [(name, {**fields, "step": step}) for name, fields in (STARTED, JOB, FAILED, STARTED, JOB, DONE)]
EVENTS += [END, ("begin", {**BEGIN, "direction": "rollback"}), END]
JOURNAL = chained(*EVENTS).splitlines(keepends=True)


@given(st.sets(st.integers(0, len(JOURNAL) - 1), min_size=1))
def test_lines_that_are_lost_are_noticed(lost: set[int]) -> None:
    """Only Ganeti shows that the last lines are missing: it has jobs that the journal does not know."""
    left = [line for number, line in enumerate(JOURNAL) if number not in lost]
    if left == JOURNAL[: len(left)] and left:
        assert read_history(b"".join(left), "j").end.ending == b""
        return
    with pytest.raises(InputError):
        read_history(b"".join(left), "j")


@given(st.permutations(range(len(JOURNAL))))
def test_lines_out_of_order_are_noticed(order: list[int]) -> None:
    if order != sorted(order):
        with pytest.raises(InputError):
            read_history(b"".join(JOURNAL[number] for number in order), "j")


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80])
def test_each_byte_that_is_changed_is_noticed(flip: int) -> None:
    whole = b"".join(JOURNAL)
    for place in range(len(whole)):
        with pytest.raises(InputError):
            read_history(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :], "j")


def test_a_job_unknown_to_the_journal_shows_that_its_end_is_lost(tmp_path: Path) -> None:
    ganeti = PretendGaneti.recorded()
    plan = plan_for(ganeti)
    ganeti.mishaps = [None, None, fails("no")]
    with pytest.raises(CarryingError):
        run(plan, ModelRunner(ganeti), tmp_path / "journal")
    whole = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    started = [number for number, line in enumerate(whole) if b"step-started" in line]
    for direction in Direction:
        (tmp_path / "journal").write_bytes(b"".join(whole[: started[-1]]))
        jobs = len(ganeti.jobs)
        with pytest.raises(CarryingError, match="job 3 belongs to this journal, which does not know it"):
            run(plan, ModelRunner(ganeti), tmp_path / "journal", direction=direction)
        assert len(ganeti.jobs) == jobs


@given(st.binary(max_size=300))
def test_any_other_content_is_one_error(data: bytes) -> None:
    for content in (data, lines() + data):
        with suppress(GpolicyError):
            read_history(content, "j")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}\n",
        chained(STARTED),
        chained(("begin", {**BEGIN, "format_version": "2.0"})),
        chained(("begin", {**BEGIN, "direction": "sideways"})),
        b'{"event": "begin", "kind": "gpolicy-journal", "format_version": "1.0"}\n',
        lines(JOB),
        lines(("begin", {**BEGIN, "plan_digest": "sha256:2"})),
        lines(("begin", {**BEGIN, "journal": "j2"})),
        lines() + b"half a line\n",
        lines() + b"\n",
        lines() + b"half a line (cut short)\n" + chained(STARTED, before=read_history(lines(), "j").end.checksum),
    ],
)
def test_an_invalid_journal_is_refused(data: bytes) -> None:
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
    names = {"begin", "end", *(event.name for event in journals.STEP_EVENTS)}
    for event in events:
        validator.validate(event)
    assert {event["event"] for event in events} == names - {"step-message"}
    assert not validator.is_valid({"event": "step-started"})
    assert not validator.is_valid({"event": "begin", "time": "x"})


def expect_as_described(text: str, document: Document, name: str) -> dict[str, dict[str, Any]]:
    """Expect that the schema accepts each line of a journal, and no changed one; return the last of each event.

    Every event is among them, with the keys of its shape in their order.
    """
    validator = jsonschema.Draft7Validator(json.loads((ROOT / f"schemas/output/{name}.json").read_text()))
    shapes = {event.name: event for event in document.parts[1]}
    events = {event["event"]: event for event in map(json.loads, text.splitlines())}
    assert events.keys() == shapes.keys()
    for line in map(json.loads, text.splitlines()):
        validator.validate({**line, "later": 1})
        assert list(line) == ["event", "time", *shapes[line["event"]].keys, "chain"]
        assert not validator.is_valid({**line, "event": "other"})
        for key in line:
            assert not validator.is_valid({**line, key: [[]]}), key
            without = {other: value for other, value in line.items() if other != key}
            assert validator.is_valid(without) == (key in ("gpolicy", "signer")), key
    return events


def test_each_line_is_as_its_event_says(tmp_path: Path) -> None:
    ganeti = PretendGaneti.recorded()
    plan = plan_for(ganeti)
    warned = then(lambda there: there.jobs[-1].log.append("a warning"))
    ganeti.mishaps = [warned, fails("since locks were acquired")]
    run(plan, ModelRunner(ganeti), tmp_path / "journal")
    events = expect_as_described((tmp_path / "journal").read_text(), JOURNAL_DOCUMENT, "journal")
    run_keys = "journal direction resumed plan_digest signer cluster destination steps"
    assert {name: " ".join(list(fields)[2:-1]) for name, fields in events.items()} == {
        "begin": f"kind format_version gpolicy {run_keys} pid host",
        "step-started": "step title mark attempt route",
        "step-job-submitted": "step job",
        "step-message": "step text",
        "step-done": "step found serials",
        "step-failed": "step reason done missing serials",
        "end": "outcome",
    }
    assert (events["begin"]["steps"], events["begin"]["signer"]) == (len(plan.steps), None)


VALUES: dict[Shape, dict[str, Any]] = {
    journals.STARTED: {"step": "1", "title": "ü", "mark": "m1", "attempt": 1, "route": Route.ARGV},
    journals.SUBMITTED: {"step": "1", "job": 7},
    journals.MESSAGE: {"step": "1", "text": "a\nb"},
    journals.FAILED: {"step": "1", "reason": "no", "done": ["cluster a.b"], "missing": [], "serials": {}},
    journals.DONE: {"step": "1", "found": True, "serials": {"cluster": 3}},
    journals.END: {"outcome": "stopped"},
}


def test_each_event_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = begin_run(tmp_path / "journal", None, RUN, BEGIN)
    for event, value in VALUES.items():
        file.write(event, value)
    file.close()
    data = (tmp_path / "journal").read_bytes()
    events, _ = journals.read_chain(data, "j", journals.right_format)
    read = [{key: value for key, value in event.fields.items() if key not in LINE_KEYS} for event in events]
    assert read == [BEGIN, *VALUES.values()]
    history = read_history(data, "j")
    assert history.attempts == {"1": journals.StepAttempt("m1", Fate.DONE, 7)}
    assert (history.id, history.plan_digest, history.direction) == ("j1", "sha256:1", Direction.APPLY)
    assert (history.serials, history.ended) == ({"cluster": 3}, "stopped")


def test_an_event_has_all_its_keys_and_no_other(tmp_path: Path) -> None:
    file = begin_run(tmp_path / "journal", None, RUN, BEGIN)
    with pytest.raises(KeyError, match="job"):
        file.write(journals.SUBMITTED, {"step": "1"})
    with pytest.raises(TypeError, match="step-job-submitted has no title"):
        file.write(journals.SUBMITTED, {"step": "1", "job": 7, "title": "t"})
    file.close()
    assert (tmp_path / "journal").read_bytes().count(b"\n") == 1


def test_files_are_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    begin_run(path, None, RUN, BEGIN).close()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(RequestError):
        begin_run(path, None, RUN, BEGIN)
    again = begin_run(path, read_history(path.read_bytes(), "j").end, RUN, BEGIN)
    again.write(journals.END, {"outcome": "done"})
    again.close()
    whole = path.read_bytes()
    assert read_history(whole, "j").ended == "done"
    path.chmod(0o644)
    with pytest.raises(InputError, match="others can read it"):
        begin_run(path, read_history(whole, "j").end, RUN, BEGIN)
    assert [entry.name for entry in tmp_path.iterdir()] == ["journal"]
    assert path.read_bytes() == whole


def test_a_journal_that_ends_within_its_first_event_never_began(tmp_path: Path) -> None:
    """It is replaced and kept; anything else in its place is not touched."""
    first, path = lines(), tmp_path / "journal"
    for cut in range(len(first) - 1):
        path.write_bytes(first[:cut])
        assert read_journal(path) is None
        begin_run(path, None, RUN, BEGIN).close()
        kept = tmp_path / "journal.earlier.jsonl"
        assert kept.read_bytes() == first[:cut]
        kept.unlink()
        read_history(path.read_bytes(), "j")
    for other in (first[:-1], first, first + b'{"event"', first[:-1] + b"x", b"a text", b'{"event": "end", ', b"\n"):
        path.write_bytes(other)
        assert read_journal(path) == other
        with pytest.raises(RequestError, match="exists already"):
            begin_run(path, None, RUN, BEGIN)
        assert path.read_bytes() == other


def test_a_journal_that_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("write", "fsync", "link"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(JournalError, match="No space left"):
                begin_run(tmp_path / "journal", None, RUN, BEGIN)
        assert list(tmp_path.iterdir()) == []


def test_no_link_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "journal").symlink_to(target)
    with pytest.raises(GpolicyError):
        begin_run(tmp_path / "journal", None, RUN, BEGIN)
    with pytest.raises(GpolicyError):
        begin_run(tmp_path / "journal", read_history(lines(), "j").end, RUN, BEGIN)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GpolicyError):
        begin_run(tmp_path / "pipe", read_history(lines(), "j").end, RUN, BEGIN)
    for name in ("journal", "pipe"):
        with pytest.raises(InputError, match="cannot be read"):
            read_journal(tmp_path / name)


def test_the_default_place_of_the_journal(tmp_path: Path) -> None:
    assert journal_path(Path("a/plan.json")) == Path("a/plan.journal.jsonl")
    assert journal_path(Path("plan")) == Path("plan.journal.jsonl")
    (tmp_path / "plan.journal.jsonl").write_text("x")
    kept = [set_aside(tmp_path / "plan.journal.jsonl", "sha256:../../0123456789abcdef")]
    (tmp_path / "plan.journal.jsonl").write_text("y")
    kept.append(set_aside(tmp_path / "plan.journal.jsonl", "sha256:../../0123456789abcdef"))
    assert [path.parent for path in kept] == [tmp_path, tmp_path]
    assert sorted(path.read_text() for path in kept) == ["x", "y"]
