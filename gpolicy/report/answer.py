"""What a verb answers, before it has a form: a verdict, sections and documents, for Markdown and HTML alike."""

from __future__ import annotations

from dataclasses import dataclass

from gpolicy.report.section import Section, Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A whole file to be copied, folded away. `language` is that of its syntax: yaml."""

    title: str
    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of `verb` about `name` (a cluster; empty where there is none), which the title ends in.

    `verdict` is one sentence, good (True), bad (False) or neither (None). Tables of weight SAME are folded away.
    `source` is where the state was read from, empty where none was.
    """

    verb: str
    title: str
    name: str
    verdict: str
    good: bool | None
    sections: tuple[Section, ...]
    listings: tuple[Listing, ...] = ()
    source: str = ""

    @property
    def order(self) -> tuple[Section, ...]:
        """The sections that have something to say, those that matter most first."""
        said = [section for section in self.sections if section.summary or section.tables or section.notes]
        return tuple(sorted(said, key=lambda section: section.weight is Weight.SAME))
