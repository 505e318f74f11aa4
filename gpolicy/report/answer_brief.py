"""An answer on one screen: the verdict, the figures, what changes or what comes first, and the next command.

`answer_text` shows all that there is, with `--details`.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.findings import Severity
from gpolicy.printable import Painter, Tone, as_text, clipped, count, hanging, printable
from gpolicy.report import answer
from gpolicy.report.answer_text import table_blocks
from gpolicy.report.findings_text import findings_concise
from gpolicy.report.forms import Display

LINES: Final = 22
"""The greatest number of lines of a short answer; a verb adds up to three on files and what to do next."""
COLUMNS: Final = 100
"""The greatest width of a short answer."""
_MOST_NAMES: Final = 2
_LONGEST_WORD: Final = 32
_MOST_VERDICT: Final = 3
_MOST_TEXT: Final = 2
_MOST_BASIS: Final = 3
_LEAST_CHANGES: Final = 8
_MORE: Final = "Add --details to see all of it."


@dataclass(slots=True)
class _BriefBlock:
    """A heading, and rows of lines; `of` is the word for several of them, `in_all` how many there are.

    With fewer than `least` rows it is not worth its lines; then `instead` is one line that stands for it.
    """

    heading: Sequence[str]
    rows: list[list[str]]
    of: str
    in_all: int
    least: int = 3
    instead: str = ""

    @property
    def left(self) -> int:
        """How many rows are not shown."""
        return self.in_all - len(self.rows)

    def height(self, rows: int) -> int:
        """Return how many lines it takes with its first rows."""
        return 1 + len(self.heading) + sum(map(len, self.rows[:rows])) + (rows < self.in_all)

    def lines(self) -> Iterator[str]:
        """Yield the block, with an empty line before it."""
        yield ""
        yield from self.heading
        yield from itertools.chain.from_iterable(self.rows)
        if self.left:
            one = self.of.removesuffix("s")
            yield f"  and {count(self.left, f'more {one}', f'more {self.of}')}"


def render(full: answer.Answer, display: Display) -> str:
    """Return the answer as text of at most `LINES` lines of `COLUMNS` columns; `display.quiet`: the verdict only."""
    writer = _BriefWriter(full, display)
    return as_text(writer.verdict() if display.quiet else writer.lines())


class _BriefWriter:
    def __init__(self, full: answer.Answer, display: Display) -> None:
        self.answer, self.paint = full, Painter(display.colour)
        self.width = min(display.width or COLUMNS, COLUMNS)
        _, dot, domain = full.name.partition(".")
        self.domain = f"{dot}{domain}" if "." in domain else ""

    def lines(self) -> Iterator[str]:
        """Yield the whole answer."""
        full = self.answer
        sections = list(answer.each_section(answer.with_content(full.sections, brief=True)))
        read_at = full.snapshot.taken_at if full.snapshot else None
        title = f"{full.heading}, state of {read_at}" if read_at else full.heading
        head = [self.paint(Tone.STRONG, clipped(title, self.width)), *self.verdict(), *self.figures()]
        basis = [self.short(text) for text in full.basis if text.partition(": ")[0] not in full.verdict]
        head += [self.paint(Tone.QUIET, clipped(printable(text), self.width)) for text in basis[:_MOST_BASIS]]
        tail = [line for text in full.next for line in self.wrapped(text)]
        room = LINES - len(head) - len(tail) - 2  # an empty line, and the one on details
        blocks = _fitted([block for section in sections for block in self.blocks(section, room)], room)
        yield from head
        yield from itertools.chain.from_iterable(block.lines() for block in blocks)
        is_all = all(_is_shown(section) for section in sections) and not any(block.left for block in blocks)
        tail += [] if is_all and not full.notes else [self.paint(Tone.QUIET, _MORE)]
        yield from ["", *tail] if tail and blocks else tail

    def verdict(self) -> Iterator[str]:
        """Yield the first line, broken where it is long; where it is cut, what is not known stands below it."""
        full = self.answer
        amount = f" · {full.amount}" if full.amount else ""
        lines = self.wrapped(f"{self.short(full.first_line)}{amount}")
        if len(lines) > _MOST_VERDICT:
            told = self.wrapped(self.short(full.verdict))
            unknown = self.wrapped(self.short("; ".join(full.unknown))) if full.unknown else []
            lines = [*self.cut(told, _MOST_VERDICT), *self.cut(unknown, _MOST_VERDICT - 1)]
        yield from (self.paint(full.colour, line) for line in lines)

    def cut(self, lines: list[str], most: int) -> list[str]:
        """Return the first lines, and a sign where there are more."""
        return lines if len(lines) <= most else [*lines[: most - 1], clipped(f"{lines[most - 1]} …", self.width)]

    def figures(self) -> Iterator[str]:
        """Yield the figures that say more than a number, each on one line."""
        shown = [replace(item, detail=self.short(item.detail)) for item in self.answer.figures if item.detail]
        names = max((len(item.name) for item in shown), default=0)
        values = max((len(item.value) for item in shown), default=0)
        for figure in shown:
            head = f"  {figure.name:<{names}}  "
            room = self.width - len(head) - values - 2
            value = self.paint(figure.tone, f"{printable(figure.value):<{values}}")
            yield f"{head}{value}  {printable(figure.first_clauses(room))}".rstrip()

    def blocks(self, section: answer.Section, room: int) -> Iterator[_BriefBlock]:
        """Yield what the short answer has of a section: what a reader looks for first."""
        for number, part in enumerate(section.parts):
            match part:
                case answer.Table(brief=most) if most:
                    yield self.table("" if number else section.title, part)
                case answer.Entries(style=answer.Style.CHANGES):
                    yield self.changes(section, part, room)
                case answer.Entries(style=answer.Style.LIST):
                    yield self.entries(part)
                case answer.Entries(brief=True):
                    yield self.commands(section.title, part)
                case answer.Findings() if not number:
                    yield self.findings(part)

    def table(self, title: str, table: answer.Table) -> _BriefBlock:
        """Return the first rows of a table, without its columns `aside`."""
        shown = table.short
        rows = [[self.cell(cell) for cell in row] for row in shown.rows]
        apart = [self.wrapped(row.pop(), "    ") for row in rows] if table.last_apart else [[] for _ in rows]
        headings = shown.headings[:-1] if table.last_apart else shown.headings
        tone = self.paint

        def paint(row: int, _: int, text: str) -> str:
            return text if row else tone(Tone.STRONG, text)

        head, *body = table_blocks(headings, rows, table.right, paint, self.width - 2)
        above = [self.paint(Tone.STRONG, line) for line in self.wrapped(title)] if title else []
        above += [] if table.last_apart else _indented(head)
        lines = [[*_indented(row), *below] for row, below in zip(body, apart, strict=True)]
        instead = f"{self.paint(Tone.STRONG, title)}: {table.amount}" if title else ""
        return _BriefBlock(above, lines, table.of, len(table), instead=instead)

    def cell(self, cell: answer.Cell) -> str:
        """Return a cell as text; names of the cluster's own domain without it."""
        if isinstance(cell, tuple):
            cell = tuple(answer.Name(self.short(name)) for name in cell)
        text = self.short(answer.plain_text(cell, _MOST_NAMES))
        return text if " " in text else clipped(text, _LONGEST_WORD)

    def changes(self, section: answer.Section, part: answer.Entries, room: int) -> _BriefBlock:
        """Return changes: with the lines below them, else one line each, else one line an object, as there is room."""
        entries = part.entries
        rows = [[self.leaf(entry), *self.items(entry)] for entry in entries]
        if sum(map(len, rows)) + 2 > room:
            rows = [[self.leaf(entry, counted=True)] for entry in entries]
        if len(rows) + 2 > room:
            groups = itertools.groupby(entries, key=lambda entry: entry.under[0])
            rows = [[self.summed(name, list(group))] for name, group in groups]
        title = self.paint(Tone.STRONG, section.title)
        line = f"{title}: {clipped(self.short(section.summary), self.width - len(section.title) - 2)}"
        return _BriefBlock([title], rows, "objects", len(rows), _LEAST_CHANGES, line if section.summary else "")

    def leaf(self, entry: answer.Entry, *, counted: bool = False) -> str:
        """Return a change on one line; `counted` says how many lines below it come and go."""
        marks = [line.mark for line in entry.below if line.mark in ("+", "-")]
        told = [f"{marks.count(mark)} {word}" for mark, word in (("-", "out"), ("+", "in")) if mark in marks]
        text = ": ".join(filter(None, (entry.under[0], entry.text, ", ".join(told) if counted else "")))
        return self.marked(entry, text)

    def items(self, entry: answer.Entry) -> Iterator[str]:
        for line in entry.below:
            if line.mark in ("+", "-"):
                yield f"      {self.paint(line.tone, clipped(f'{line.mark} {printable(line.text)}', self.width - 6))}"

    def summed(self, name: str, entries: Sequence[answer.Entry]) -> str:
        """Return the changes of an object on one line."""
        texts = [entry.text.partition(": ")[0] for entry in entries]
        head = f"{name}: {count(len(texts), 'change')}: " if len(texts) > 1 else f"{name}: "
        return self.marked(entries[0], f"{head}{', '.join(texts)}")

    def entries(self, part: answer.Entries) -> _BriefBlock:
        """Return the entries that are not fine, with what stands below them."""
        rows = []
        for entry in part.entries:
            if entry.tone is not Tone.GOOD:
                name = f"{entry.name}: " if entry.name else ""
                mark = f"{entry.mark} " if entry.mark else ""
                first, *more = self.wrapped(self.short(f"{mark}{name}{entry.text}"), "  ")
                first = first.replace(entry.mark, self.paint(entry.tone, entry.mark), 1) if mark else first
                more = self.cut(more, _MOST_TEXT)
                below = [line for item in entry.below for line in self.wrapped(self.short(item.text), "      ")]
                rows.append([first, *more, *below])
        return _BriefBlock([], rows, f"{part.of}s", len(rows))

    def commands(self, title: str, part: answer.Entries) -> _BriefBlock:
        """Return entries with their commands, which are not cut: a reader copies them."""
        rows = [
            [self.marked(entry, entry.text), *(f"      {line.text}" for line in entry.below)] for entry in part.entries
        ]
        return _BriefBlock(
            [self.paint(Tone.STRONG, line) for line in self.wrapped(title)], rows, f"{part.of}s", len(rows), 1
        )

    def marked(self, entry: answer.Entry, text: str) -> str:
        mark = f"{self.paint(entry.tone, entry.mark)} " if entry.mark else ""
        room = self.width - 2 - (len(entry.mark) + 1 if entry.mark else 0)
        return f"  {mark}{clipped(printable(self.short(text)), room)}"

    def findings(self, part: answer.Findings) -> _BriefBlock:
        """Return the errors, each on one line; the others are counted in a figure."""
        errors = [finding for finding in part.findings if finding.severity is Severity.ERROR]
        rows = [[clipped(f"  {line}", self.width)] for line in findings_concise(errors).splitlines()]
        return _BriefBlock([], rows, "errors", len(rows))

    def short(self, text: str) -> str:
        """Return a text without the cluster's own domain behind names."""
        if not self.domain or self.domain not in text:
            return text
        return " ".join(_without(word, self.domain) for word in text.replace(f"{self.domain},", ",").split(" "))

    def wrapped(self, text: str, indent: str = "") -> list[str]:
        return hanging(text, self.width, indent)


def _is_shown(section: answer.Section) -> bool:
    """Return whether a short answer shows the whole of a section."""
    parts = [part for part in section.parts if not isinstance(part, answer.Picture)]  # which no text shows
    match parts:
        case [answer.Table() as table]:
            return table.brief >= len(table)
        case [answer.Entries(style=answer.Style.LIST)]:
            return not section.notes
    return not parts and not section.notes


def _without(word: str, domain: str) -> str:
    bare = word.rstrip(",;:.)")
    return f"{bare.removesuffix(domain)}{word[len(bare) :]}" if bare.endswith(domain) else word


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _fitted(blocks: Sequence[_BriefBlock], room: int) -> list[_BriefBlock]:
    """Return as many of the blocks as fit into `room` lines, the first ones, with as many rows as fit."""
    fitted = [block for block in blocks if block.rows]
    for block in fitted:
        del block.rows[LINES:]  # which never fit; thousands would be measured again and again
    lines = list[_BriefBlock]()
    while len(fitted) > 1 and sum(block.height(block.least) for block in (*fitted, *lines)) > room:
        last = fitted.pop()
        lines = [_BriefBlock([last.instead], [], "", 0), *lines] if last.instead else lines
    room -= 2 * len(lines)
    for block in reversed(fitted):
        while len(block.rows) > 1 and sum(each.height(len(each.rows)) for each in fitted) > room:
            del block.rows[-1]
            if len(block.rows) <= block.least and block is not fitted[0]:
                break
    return [*fitted, *lines]
