"""The commands of an evacuation, and what is said where nothing moves."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.evacuate.evacuating import find_evacuation
from gpolicy.progress import after
from gpolicy.report.answer import Entries, Section
from gpolicy.report.evacuate_answer import EVACUATE_DOCUMENT, evacuate_answer
from tests.evacuate.test_evacuation_ends import REQUEST, two_groups


def _commands(seconds: float) -> Section:
    report = find_evacuation(two_groups(), REQUEST, stop=after(seconds))
    (section,) = (item for item in evacuate_answer(report).sections if item.key == "commands")
    return section


def test_each_job_is_an_entry_with_its_commands() -> None:
    section = _commands(600)
    (entries,) = section.parts
    assert isinstance(entries, Entries)
    assert len(entries)
    assert all(line.is_code for entry in entries.entries for line in entry.below)
    assert any("asks hail the same" in note for note in section.notes)


def test_where_nothing_moves_there_is_no_command_and_no_word_on_any() -> None:
    section = _commands(0)
    assert (section.parts, section.notes) == ((), ())


def test_json_has_the_candidates_where_they_are_listed() -> None:
    report = find_evacuation(two_groups(), REQUEST)
    data = EVACUATE_DOCUMENT.data(report)
    listed = [item["candidates"] for item in data["moved"]]
    assert [item and len(item) for item in listed] == [
        item.candidates and len(item.candidates) for item in report.moved
    ]
    hidden = replace(report, moved=tuple(replace(item, candidates=None) for item in report.moved))
    assert all(item["candidates"] is None for item in EVACUATE_DOCUMENT.data(hidden)["moved"])
