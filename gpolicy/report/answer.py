"""The answer of a verb, independent of its form: a verdict and sections of tables and entries.

Text, Markdown and HTML render the same answer, so every form shows the same figures in the same order. Nothing is
escaped yet; `Name` tells names from outside from our own words.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpolicy.cluster.sources import provenance_words
from gpolicy.cluster.state import Snapshot, describe_source
from gpolicy.findings import Finding
from gpolicy.ganeti import amounts
from gpolicy.ganeti.commands import Command, shell_line
from gpolicy.policy.source_file import Files
from gpolicy.printable import Tone, clipped, count
from gpolicy.provenance import UNKNOWN, Provenance

if TYPE_CHECKING:
    from gpolicy.analysis.basis import StateReport

NOTHING: Final = "-"
_SHORT: Final = 48


class Name(str):
    """A name from outside: of a node, an instance, a tag."""

    __slots__ = ()


class Page(Name):
    """A name that has a page of its own beside this one: `NAME.html`."""

    __slots__ = ()


class Number(str):
    """The heading of a column of numbers, which stand at its right side."""

    __slots__ = ()


Cell = str | tuple[Name, ...]
"""Words of ours (which may hold names), a name, or several names."""


class Weight(IntEnum):
    """The importance of a part for a reader in a hurry."""

    SAME = 0  # as it was, and nothing wrong with it; or wrong as before: text has one line about it
    DETAIL = 1  # details: Markdown and HTML fold them
    CHANGED = 2
    WORSE = 3


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. `of` names what the rows are ("instances"); a heading that is a `Number` has numbers below it.

    `most` is how many rows a text shows; with `last_apart` it gives the last cell of each a line of its own, and leaves
    the headings out. `brief` is how many rows a short answer has (0: none), without the columns `aside`. `bars`, one
    for each row, are lengths from 0 to 1, now and then (None: missing), `tones` the colours of the column "verdict":
    HTML draws them. Rows in the first `grouped` columns repeat the cells above them, and are shown once.
    """

    title: str
    of: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    _: KW_ONLY
    weight: Weight = Weight.CHANGED
    most: int = 20
    bars: tuple[tuple[float | None, ...], ...] = ()
    tones: tuple[Tone, ...] = ()
    grouped: int = 0
    last_apart: bool = False
    brief: int = 0
    aside: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @property
    def right(self) -> frozenset[str]:
        """The headings of columns of numbers."""
        return frozenset(heading for heading in self.headings if isinstance(heading, Number))

    @property
    def amount(self) -> str:
        """How many rows of what it has: 3 instances."""
        return count(len(self), self.of.removesuffix("s"), self.of)

    @property
    def short(self) -> Table:
        """The table as a short answer has it: its first rows, without the columns `aside`."""
        kept = [place for place, heading in enumerate(self.headings) if heading not in self.aside]
        shown = itertools.islice(self.shown_rows, self.brief)
        rows = [tuple(row[place] for place in kept) for row in shown]
        return replace(self, headings=tuple(self.headings[place] for place in kept), rows=rows, grouped=0, aside=())

    @property
    def shown_rows(self) -> Iterator[tuple[Cell, ...]]:
        """The rows, without the cells that repeat those above them."""
        above: tuple[Cell, ...] = ()
        for row in self.rows:
            same = self.grouped if row[: self.grouped] == above else 0
            yield (*[""] * same, *row[same:])
            above = row[: self.grouped]


@dataclass(frozen=True, slots=True)
class Line:
    """A line below an entry. `mark` is - or + for removed and added things; `is_code` for a command to copy."""

    text: str
    _: KW_ONLY
    mark: str = ""
    tone: Tone = Tone.QUIET
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One sentence: a change, a step, a guard, a test. `tone` is that of its `mark`.

    `name` is the subject of the sentence; `under` the heading that it shares with its neighbours, with a remark.
    """

    text: str
    _: KW_ONLY
    mark: str = ""
    tone: Tone = Tone.PLAIN
    name: str = ""
    below: tuple[Line, ...] = ()
    under: tuple[str, str] = ("", "")


class Style(Enum):
    """How Markdown and HTML show entries."""

    LIST = "list"
    CHANGES = "changes"  # as a diff
    COMMANDS = "commands"
    REFUSED = "refused"  # commands that must not be run


@dataclass(frozen=True, slots=True)
class Entries:
    """A list of entries; `of` is the word for one of them. A list shows those of tone GOOD last, folded away.

    A short answer has lists, changes, and commands only where `brief` says so.
    """

    of: str
    entries: Sequence[Entry]
    style: Style = Style.LIST
    brief: bool = False

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings, with the text of the files that they are about. `locate` names a file for readers of a review."""

    findings: Sequence[Finding]
    sources: Files
    locate: Callable[[str], str] = str

    def __len__(self) -> int:
        """Return the number of findings."""
        return len(self.findings)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, for HTML only: `macro` of the templates draws the result of `draw`, unless it is empty."""

    macro: str
    draw: Callable[[], Any]

    def __len__(self) -> int:
        """Return 1: a picture is never empty."""
        return 1


SectionPart = Table | Entries | Findings | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an answer. `summary` is one sentence without a full stop; `notes` are small print.

    Parts and notes that are empty are left out.

    `never_cut` marks what a reader looks for first: its first table is never folded and never cut. Only a short answer
    has what is `brief_only`. `worse` says in a few words what gets worst, `unknown` what could not be looked at.
    """

    key: str
    title: str
    parts: Sequence[SectionPart] = ()
    notes: tuple[str, ...] = ()
    _: KW_ONLY
    weight: Weight = Weight.CHANGED
    summary: str = ""
    sections: tuple[Section, ...] = ()
    never_cut: bool = False
    brief_only: bool = False
    worse: str = ""
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(filter(None, self.parts)))
        object.__setattr__(self, "notes", tuple(filter(None, self.notes)))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The parts that are tables."""
        return tuple(part for part in self.parts if isinstance(part, Table))


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole file to be copied. `language` is that of its syntax: yaml."""

    title: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the first figures that a reader looks for. `about` is the key of the section with the details."""

    name: str
    value: str
    detail: str = ""
    tone: Tone = Tone.PLAIN
    about: str = ""

    @property
    def short(self) -> str:
        """The first clause of the detail that is short, else the beginning of the first one."""
        clauses = self.detail.split("; ")
        return next((clause for clause in clauses if len(clause) <= _SHORT), clipped(clauses[0], _SHORT))

    def first_clauses(self, room: int) -> str:
        """Return as many clauses of the detail as fit into `room` characters, at least the first, clipped."""
        first, *more = self.detail.split("; ")
        for clause in more:
            if len(first) + len(clause) + 2 > room:
                break
            first = f"{first}; {clause}"
        return clipped(first, max(room, 10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of `verb`. Its title is `title`, `name` (a cluster; empty where there is none) and `title_end`.

    `verdict` is one sentence on what was looked at, `unknown` says what could not be, `amount` how much there is of it.
    `figures` come next; text and Markdown show those with a detail. `basis` are sentences on what all figures rest on.
    `facts` are what else identifies the answer, by name, `provenance` when and from what it was made; `rows_with` says
    how to see the rows that a text leaves out. `next` are commands that a reader may want then.
    `terms` define words that have a meaning of their own here. `looked_at` are sentences
    on the policy and the cluster. Of `unknown`, `looked_at`, `basis`, `notes` and `next`, empty ones are left out.
    """

    verb: str
    title: str
    name: str
    title_end: str = ""
    verdict: str
    tone: Tone = Tone.PLAIN
    unknown: tuple[str, ...] = ()
    amount: str = ""
    figures: tuple[Figure, ...] = ()
    looked_at: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()
    source: str = ""
    snapshot: Snapshot | None = None
    facts: tuple[tuple[str, str], ...] = ()
    provenance: Provenance = UNKNOWN
    rows_with: str = "in --format json"

    def __post_init__(self) -> None:
        for name in ("unknown", "looked_at", "basis", "notes", "next"):
            object.__setattr__(self, name, tuple(filter(None, getattr(self, name))))

    @property
    def first_line(self) -> str:
        """The verdict, and what is not known."""
        return "; ".join((self.verdict, *self.unknown))

    @property
    def colour(self) -> Tone:
        """The tone of the first line: never good where something was not looked at."""
        return Tone.CAREFUL if self.unknown and self.tone is not Tone.BAD else self.tone

    @property
    def heading(self) -> str:
        """The whole title."""
        return " ".join(filter(None, (self.title, self.name, self.title_end)))

    @property
    def read_from(self) -> str:
        """The source of the state, in words; empty if there is none."""
        return describe_source(self.source, self.snapshot) if self.source else ""

    @property
    def made(self) -> str:
        """When the answer was made, from which policy, and how old the state is, as far as that is known."""
        return ", ".join(provenance_words(self.provenance, self.source, self.snapshot))


def with_content(sections: Iterable[Section], *, brief: bool = False) -> list[Section]:
    """Return the sections that are not empty, with those of theirs that are not; `brief`: for a short answer."""
    found = (
        replace(item, sections=tuple(with_content(item.sections))) for item in sections if brief or not item.brief_only
    )
    return [item for item in found if item.summary or item.notes or item.parts or item.sections]


def each_section(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield the sections, each with those in it behind it."""
    for section in sections:
        yield section
        yield from each_section(section.sections)


def from_to(values: Collection[int], words: Callable[[int], str] = str) -> str:
    """Return the least and the greatest value in words; one that is both is said once, and nothing of no values."""
    ends = dict.fromkeys((words(min(values)), words(max(values)))) if values else (NOTHING,)
    return " to ".join(ends)


def about(report: StateReport, *basis: str) -> dict[str, Any]:
    """Return the fields of an answer that say which state a report is about, and what its figures rest on.

    `basis` are more sentences on that.
    """
    return {
        "name": report.cluster_name or report.source,
        "unknown": report.not_known,
        "basis": (*report.grounds, *basis),
        "source": report.source,
        "snapshot": report.snapshot,
    }


def under(answer: Answer, policy: Path | None) -> Answer:
    """Return an answer about a cluster as this policy, or plan, would make it: its title says so."""
    end = f"{answer.title_end} (as {policy} would make it)".lstrip()
    return replace(answer, title_end=end) if policy else answer


def command_line(command: Command) -> Line:
    """Return the line of a command for a shell, or of the request that stands for it."""
    if command.argv is not None:
        return Line(shell_line(command.argv), is_code=True)
    return Line(f"RAPI only: {command.rapi.method} {command.rapi.path}" if command.rapi else "no command")


def supposing(what_if: Iterable[str]) -> str:
    """Return the beginning of a verdict that says what is supposed; nothing where nothing is."""
    said = ", ".join(text.partition(": ")[0] for text in what_if)
    return f"With {said}: " if said else ""


def names(items: Iterable[str]) -> tuple[Name, ...]:
    """Return names from outside as one cell."""
    return tuple(Name(item) for item in items)


def section_of_tables(
    key: str, title: str, tables: Iterable[Table], notes: tuple[str, ...] = (), **more: Any
) -> Section:
    """Return a section as heavy as the heaviest of the tables that have rows. `more` are further fields of it."""
    shown = tuple(filter(None, tables))
    return Section(key, title, shown, notes, weight=max((item.weight for item in shown), default=Weight.SAME), **more)


def digits(value: int | None) -> str:
    """Return a number in digits: 12,345."""
    return NOTHING if value is None else f"{value:,}"


def signed(number: int | None) -> str:
    """Return a difference: +3, -3, 0."""
    return NOTHING if number is None else f"{number:+,}" if number else "0"


def percent(number: float | None) -> str:
    """Return a share: one decimal below 10 %, none above."""
    if number is None:
        return NOTHING
    shown = round(number, 1) if abs(round(number, 1)) < 10 else round(number)
    return f"{shown:+,.1f}".removesuffix(".0") + " %" if shown else "0 %"


def share(part: float) -> str:
    """Return a part of 1 in per cent, with one decimal: `62.5 %`."""
    return f"{100 * part:.1f} %"


size: Final = amounts.exact_size
rough_size: Final = amounts.rough_size


def known_rough_size(mebibytes: int | None) -> str:
    """Return a rounded size, where it is known."""
    return NOTHING if mebibytes is None else rough_size(mebibytes)


def plain_text(cell: Cell, most: int = 0) -> str:
    """Return a cell as text, of several names the first `most` (0: all). Not escaped."""
    if isinstance(cell, str):
        return cell
    shown = ", ".join(cell[:most] if most else cell)
    return f"{shown} and {len(cell) - most:,} more" if most and len(cell) > most else shown or NOTHING
