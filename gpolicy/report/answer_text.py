"""An answer as text for a terminal: tables in columns, and one line for unchanged parts."""

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from gpolicy.printable import Painter, Tone, as_text, columns, printable, without_colour, wrapped
from gpolicy.report.answer import Answer, Entries, Findings, Section, SectionPart, Table, Weight, plain_text
from gpolicy.report.findings_text import findings_text
from gpolicy.report.forms import Display

_MOST_NAMES: Final = 4
_FEW_NAMES: Final = 2
_ONE_SCREEN: Final = 20  # lines; below longer ones the verdict stands once more


def render(answer: Answer, display: Display) -> str:
    """Return the answer as text."""
    return as_text(_TextWriter(answer, display).lines())


class _TextWriter:
    def __init__(self, answer: Answer, display: Display) -> None:
        self.answer, self.display, self.paint = answer, display, Painter(display.colour)

    def lines(self) -> Iterator[str]:
        answer = self.answer
        quiet = (
            answer.made,
            f"read from {answer.read_from}" if answer.snapshot else "",
            *answer.looked_at,
            *answer.basis,
        )
        head = [self.paint(Tone.STRONG, answer.heading), *self.summary()]
        head += [line for sentence in quiet if sentence for line in self.prose(sentence)]
        yield from head
        body = list(self.body())
        body += self.small_print([*head, *body])
        yield from body
        if len(body) > _ONE_SCREEN:
            yield ""
            yield from self.verdict()

    def prose(self, text: str, indent: str = "", tone: Tone = Tone.QUIET, *, head: str = "") -> Iterator[str]:
        """Yield a sentence, broken at blanks to fit the terminal; `tone` is that of `head`, its beginning."""
        room = self.room(f"{indent}  ")
        left = len(head or text)
        for number, line in enumerate(wrapped(text, room)):
            painted = self.paint(tone, line[:left]) if left > 0 else ""
            yield f"{indent}{'  ' if number else ''}{painted}{line[max(left, 0) :]}"
            left -= len(line) + 1

    def verdict(self) -> Iterator[str]:
        answer = self.answer
        amount = f" · {answer.amount}" if answer.amount else ""
        head = answer.first_line
        yield from self.prose(f"{head}{amount}", tone=answer.colour, head=head if amount else "")

    def summary(self) -> Iterator[str]:
        """Yield the verdict and the figures."""
        yield from self.verdict()
        figures = [figure for figure in self.answer.figures if figure.detail]
        rows = [(figure.name, figure.value, figure.detail) for figure in figures]

        def paint(row: int, place: int, text: str) -> str:
            return self.paint(figures[row - 1].tone, text) if place == 1 and row else text

        _, *lines = table_blocks(("", "", ""), rows, (), paint, self.room("  "))
        yield from (f"  {line}" for line in itertools.chain.from_iterable(lines))

    def body(self) -> Iterator[str]:
        answer = self.answer
        for section in answer.sections:
            if not section.brief_only:
                yield from self.top(section)
        for listing in answer.listings:
            yield "---" if listing is not answer.listings[0] else ""
            yield from listing.text.splitlines()

    def small_print(self, page: list[str]) -> Iterator[str]:
        """Yield the terms that `page` uses with their definitions, and the notes."""
        from gpolicy.report.glossary import terms_of  # noqa: PLC0415 (a short answer has no terms)

        answer, terms = self.answer, terms_of(self.answer, " ".join(without_colour(" ".join(page)).split()))
        if terms or answer.notes:
            yield ""
        for text in (
            *(f"{term}: {meaning}" for term, meaning in terms.items()),
            *(f"note: {note}" for note in answer.notes),
        ):
            yield from self.prose(text)

    def top(self, section: Section) -> Iterator[str]:
        """Yield a top-level section, with an empty line before it."""
        body = list(self.section(section, ""))
        if body and body[0]:  # headings of entries have theirs
            yield ""
        yield from body

    def section(self, section: Section, indent: str) -> Iterator[str]:
        parts = [part for part in section.parts if isinstance(part, Table | Entries | Findings)]
        if not (parts or section.summary or section.notes or section.sections):
            return
        if section.weight is Weight.SAME and not (section.never_cut or section.sections):
            yield from self.prose(_headed(section.title, section.summary), indent)
            for note in section.notes:
                yield from self.prose(note, f"{indent}  ")
            return
        tone = Tone.BAD if section.weight is Weight.WORSE else Tone.STRONG
        lists = [part.entries[0].under[0] for part in parts if isinstance(part, Entries)]  # each with its own headings
        if section.title and not any(lists) and not any(isinstance(part, Findings) for part in parts):
            yield from self.prose(_headed(section.title, section.summary), indent, tone, head=section.title)
        loud = [item for item in section.sections if item.never_cut or item.weight is not Weight.SAME]
        for below in (*loud, *(item for item in section.sections if item not in loud)):
            yield from self.section(below, f"{indent}  ")
        inner = f"{indent}  " if section.title else indent
        for part in parts:
            if part is not parts[0] and not indent:
                yield ""
            titled = isinstance(part, Table) and part.title == section.title
            yield from self.part(part, inner, never_cut=section.never_cut and part is parts[0], titled=titled)
        for note in section.notes:
            yield from self.prose(note, inner)

    def part(self, part: SectionPart, indent: str, *, never_cut: bool, titled: bool) -> Iterator[str]:
        match part:
            case Findings():
                lines = findings_text(part.findings, part.sources, colour=self.display.colour).splitlines()
                yield from lines[:-2] if self.answer.verb == "check" else lines  # the last one is the verdict
            case Entries():
                yield from self.entries(part, indent)
            case Table():
                yield from self.table(part, indent, never_cut=never_cut, titled=titled)

    def entries(self, part: Entries, indent: str) -> Iterator[str]:
        for (heading, remark), entries in itertools.groupby(part.entries, key=lambda entry: entry.under):
            if heading:
                yield ""
                yield f"{self.paint(Tone.STRONG, heading)}  {self.paint(Tone.QUIET, remark)}".rstrip()
            for entry in entries:
                mark = f"{entry.mark} " if entry.mark else ""
                name = f"{entry.name}: " if entry.name else ""
                tone = entry.tone if mark else Tone.PLAIN
                yield from self.prose(f"{mark}{name}{entry.text}", indent, tone, head=entry.mark)
                for line in entry.below:
                    text = f"{line.mark} {line.text}" if line.mark else line.text
                    if line.is_code:  # to be copied as it is
                        yield f"{indent}    {self.paint(line.tone, text)}"
                    else:
                        yield from self.prose(text, f"{indent}    ", line.tone)

    def table(self, table: Table, indent: str, *, never_cut: bool, titled: bool) -> Iterator[str]:
        if table.weight is Weight.SAME and not self.display.every:
            yield from self.prose(f"{table.title} ({table.amount}): {_first_names(table)}", indent)
            return
        if not (never_cut or titled):
            yield f"{indent}{table.title}"
            indent = f"{indent}  "
        most = len(table) if never_cut or self.display.every else table.most
        names = 0 if self.display.every else _FEW_NAMES if table.last_apart else _MOST_NAMES
        rows = [[plain_text(cell, names) for cell in row] for row in itertools.islice(table.shown_rows, most)]
        paint = self.painted(table.headings, rows)
        if table.last_apart:
            _, *lines = table_blocks(table.headings[:-1], [row[:-1] for row in rows], table.right, paint)
            for (line,), row in zip(lines, rows, strict=True):
                yield f"{indent}{line}"
                yield f"{indent}  {row[-1]}"
        else:
            lines = list(table_blocks(table.headings, rows, table.right, paint, self.room(indent)))
            yield from (f"{indent}{line}" for line in itertools.chain.from_iterable(lines))
        if len(table) > most:
            left = len(table) - most
            of = table.of if left > 1 else table.of.removesuffix("s")
            rest = f"{indent}and {left:,} more {of}, all {self.answer.rows_with}"
            yield self.paint(Tone.QUIET, rest)

    def room(self, indent: str) -> int:
        """Return how many columns a table may take; 0: any number."""
        return max(self.display.width - len(indent), 1) if self.display.width else 0

    def painted(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Callable[[int, int, str], str]:
        """Return how to paint a table: its headings, and differences by their direction."""

        def paint(row: int, place: int, text: str) -> str:
            heading, cell = headings[place], rows[row - 1][place] if row else ""
            if not row:
                return self.paint(Tone.STRONG, text)
            if heading in ("Δ", "%") and cell[:1] in ("-", "+") and len(cell) > 1:
                return self.paint(Tone.BAD if cell[0] == "-" else Tone.GOOD, text)
            return self.paint(Tone.BAD, text) if heading in ("", "since") and cell in ("new", "newly") else text

        return paint


def _headed(title: str, summary: str) -> str:
    return f"{title}: {summary}" if summary else title


def _first_names(table: Table) -> str:
    """Return the first names of a table: of the first column, or where rows are grouped, what is in which group."""
    groups: dict[str, dict[str, None]] = {}
    for row in table.rows:
        inner = groups.setdefault(plain_text(row[0], 1), {})
        if table.grouped:
            inner[plain_text(row[1], 1)] = None
    shown = [f"{', '.join(inner)} in {name}" if inner else name for name, inner in groups.items()]
    more = f" and {len(shown) - _MOST_NAMES:,} more" if len(shown) > _MOST_NAMES else ""
    return ("; " if table.grouped else ", ").join(shown[:_MOST_NAMES]) + more


def table_blocks(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    paint: Callable[[int, int, str], str],
    room: int = 0,
) -> Iterator[list[str]]:
    """Yield the lines of the headings of a table, then those of each row: columns as wide as needed.

    Columns in `right` hold numbers. `paint` paints a cell, padded already: given its row (0: the headings), its column
    from 0, and the text to paint. What is not printable is escaped. `room` is how many columns of the terminal there
    are (0: enough); where they are too few, the widest columns go on in further lines.
    """
    shown = [[printable(cell) for cell in row] for row in (headings, *rows)]
    widths = _widths(list(zip(*shown, strict=True)), room)
    for number, row in enumerate(shown):
        pieces = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        lines = []
        for line in itertools.zip_longest(*pieces, fillvalue=""):
            cells = []
            for place, (heading, cell, width) in enumerate(zip(headings, line, widths, strict=True)):
                gap = " " * (width - columns(cell)) if heading in right or place < len(row) - 1 else ""
                text = gap + cell if heading in right else cell + gap
                cells.append(paint(number, place, text) if cell else text)
            lines.append("  ".join(cells).rstrip())
        yield lines


def _widths(cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return how wide columns are, so that they fit into `room` with two blanks between them.

    No column is narrower than its longest word: a name stays in one piece.
    """
    widths = [max(map(columns, column)) for column in cells]
    over = sum(widths) + 2 * (len(widths) - 1) - room if room else 0
    if over <= 0:
        return widths
    least = [max(columns(word) for cell in column for word in cell.split(" ")) for column in cells]
    while over > 0 and widths != least:
        widest = max((place for place, width in enumerate(widths) if width > least[place]), key=widths.__getitem__)
        widths[widest] -= 1
        over -= 1
    return widths
