"""Which words of an answer are looked through for terms."""

from __future__ import annotations

from gpolicy.report.answer import Entries, Entry, Picture, Section, Table
from gpolicy.report.glossary import _of_sections

TABLE = Table(title="table", of="rows", headings=("a", "b"), rows=(("1", "2"),))
PICTURE = Picture(macro="m", draw=dict)


def _words(*parts: Table | Picture | Entries) -> list[str]:
    return [text for text in _of_sections([Section(key="k", title="title", parts=parts)]) if text]


def test_a_section_that_is_drawn_has_no_title_in_a_text() -> None:
    assert _words(PICTURE) == []
    assert _words(PICTURE, TABLE) == ["title", "table", "a", "b"]
    assert _words(TABLE) == ["title", "table", "a", "b"]
    assert _words(Entries(of="guard", entries=(Entry(text="x"),))) == ["title", "guard"]
    assert _words() == ["title"]
