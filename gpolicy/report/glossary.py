"""Plain definitions of the terms that an answer uses."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.data import read_data
from gpolicy.report.answer import Answer, Entries, Picture, Section, Table, each_section, with_content

_GLOSSARY: Final = read_data("words.toml")
_CELLS: Final[dict[str, str]] = _GLOSSARY["cells"]
"""Terms that are meant where they are a whole cell or heading."""

CAUSES: Final[dict[str, str]] = _GLOSSARY["causes"]
"""Terms in a column "bound by": `memory (was disk)`."""

FAILURES: Final[dict[str, str]] = _GLOSSARY["failures"]
"""What the reasons of htools stand for, and what to do."""
REFUSALS: Final[dict[str, str]] = read_data("known_words.toml")["refusals"]
"""What refuses a candidate, by hail's word for it."""

_BASES: Final[dict[str, str]] = _GLOSSARY["bases"]
_PHRASES: Final[dict[str, str]] = _GLOSSARY["phrases"]
"""Terms that are meant wherever they stand in our own words."""

WORDS: Final = {
    **_GLOSSARY["tags"],
    **_GLOSSARY["components"],
    **_CELLS,
    **CAUSES,
    **FAILURES,
    **_BASES,
    **_PHRASES,
    **{word: meaning for words, meaning in _GLOSSARY["headings"].items() for word in words.split(" | ")},
    **{f"htools:{word}*": meaning for word, meaning in _GLOSSARY["tags"].items()},
}
"""All words of reports and tags that have a meaning of their own; * stands for any text."""

_PATTERNS: Final = {term: re.compile(rf"\b{re.escape(term.rstrip('s'))}s?\b", re.IGNORECASE) for term in _PHRASES}
_CAUSE: Final = re.compile(r"[\w.-]+")
_FAILURE: Final = re.compile(r"\bFail[A-Z]\w*")


def terms_of(answer: Answer, page: str | None = None) -> dict[str, str]:
    """Return the terms that `answer` uses and their definitions, by name. Those of the answer itself come first.

    `page` is what a form shows of the answer, if that is less than all: then terms that are not there are left out.
    """
    sections = list(each_section(with_content(answer.sections)))
    tables = [table for section in sections for table in section.tables]
    figures = (text for figure in answer.figures for text in (figure.name, figure.detail))
    text = "\n".join((answer.first_line, *figures, *_of_sections(sections)))
    cells = {
        cell.removeprefix("· ") for table in tables for row in (table.headings, *table.rows) for cell in map(str, row)
    }
    causes = {word for table in tables for cell in _bound_by(table) for word in _CAUSE.findall(cell)}
    found = ((_CELLS, cells), (CAUSES, causes), (FAILURES, set(_FAILURE.findall(text))))
    used = {term: known[term] for known, words in found for term in known.keys() & words}
    used |= {basis: meaning for basis, meaning in _BASES.items() if f"({basis})" in text}
    used |= {term: meaning for term, meaning in _PHRASES.items() if _PATTERNS[term].search(text)}
    if page is not None:
        shown = {term: _PATTERNS.get(term, re.compile(re.escape(term))) for term in used}
        used = {term: meaning for term, meaning in used.items() if shown[term].search(page)}
    own = dict(answer.terms)
    return own | {term: used[term] for term in sorted(used.keys() - own.keys(), key=lambda term: term.strip("("))}


def _bound_by(table: Table) -> Iterator[str]:
    places = [place for place, heading in enumerate(table.headings) if heading == "bound by"]
    return (str(row[place]) for row in table.rows for place in places)


def _of_sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        is_drawn = all(isinstance(part, Picture) for part in section.parts) and section.parts
        yield from ("" if is_drawn else section.title, section.summary, *section.notes)
        for part in section.parts:
            if isinstance(part, Table):
                yield from (part.title, *part.headings)
            elif isinstance(part, Entries):
                yield part.of
