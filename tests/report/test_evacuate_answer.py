"""The commands of an evacuation, and what is said where nothing moves."""

from __future__ import annotations

from gpolicy.evacuate.evacuating import find_evacuation
from gpolicy.report.answer import Entries, Section
from gpolicy.report.evacuate_answer import evacuate_answer
from tests.evacuate.test_evacuation_ends import REQUEST, two_groups


def _commands(seconds: float) -> Section:
    report = find_evacuation(two_groups(), REQUEST, lambda _: None, seconds=seconds)
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
