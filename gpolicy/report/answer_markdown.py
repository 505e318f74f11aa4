"""An answer as Markdown for a comment on a review: the verdict and its grounds open, all else folded.

A hidden first line marks the comment, so that a later run can find and replace it. Parts beyond the budget are cut
from the least important end, and the comment says so.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final

from gpolicy.findings import Finding, Severity, Span
from gpolicy.printable import Tone, clipped, count, printable
from gpolicy.report import answer
from gpolicy.report.forms import Display
from gpolicy.report.markdown import Block, code, document, fence, prose, table_head, table_items, table_rows

_LONGEST_LINE: Final = 4_000  # of a command; longer ones are in the plan file
_FIGURE: Final = 110  # characters of the words of a figure
_MOST_OPEN: Final = 12  # lines of changes that stand open
_MOST_ALSO: Final = 20  # what follows from one finding
_CLEAN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SIGNS: Final = {Tone.GOOD: "✅ ", Tone.BAD: "❌ ", Tone.CAREFUL: "⚠ "}


class _Importance(IntEnum):
    """The more important the part, the higher the number."""

    AS_BEFORE = 10
    NOTES = 15
    COMMANDS = 20
    DETAIL = 30
    PASSED = 35
    CHANGED = 40
    CHANGES = 50
    WORSE = 60
    NOT_KNOWN = 65
    WARNINGS = 70
    MAIN = 80
    HEADLINES = 85
    FAILED = 90
    HEADINGS = 95


def marker(cluster: str, verb: str = "plan") -> str:
    """Return the hidden line by which a comment of `verb` about `cluster` is found again."""
    named = f"{_CLEAN.sub('-', cluster)[:100].strip('-')} " if cluster else ""
    return f"<!-- gpolicy {_CLEAN.sub('-', verb)} {named}-->"


def render(full: answer.Answer, display: Display) -> str:
    """Return the answer as Markdown of at most `display.budget` bytes (at least `forms.LEAST_BUDGET`)."""
    figures = (
        f"- {item.name}: **{prose(item.value)}** {prose(item.first_clauses(_FIGURE))}"
        for item in full.figures
        if item.detail
    )
    told = {item.about for item in full.figures if item.detail}
    blocks = [
        Block(name="", importance=100, head=tuple(_head(full))),
        _list("figures", _Importance.FAILED, figures),
        *itertools.chain.from_iterable(_blocks(item, told) for item in answer.with_content(full.sections)),
        *map(_listing, full.listings),
        _list("notes", _Importance.NOTES, map(_item, full.notes), f"<b>{count(len(full.notes), 'note')}</b>"),
    ]
    blocks = [block for block in blocks if block.head or block.items]
    blocks.sort(key=lambda block: block.importance == _Importance.AS_BEFORE)
    return document(blocks, tuple(_foot(full)), display.budget)


def _head(full: answer.Answer) -> Iterator[str]:
    yield marker(full.name, full.verb)
    name = code(full.name, 100) if full.name else ""
    yield f"### {' '.join(filter(None, (prose(full.title), name, prose(full.title_end))))}"
    yield ""
    amount = f" · {prose(full.amount)}" if full.amount else ""
    yield f"{_SIGNS.get(full.colour, '')}**{prose(full.first_line, 1000)}**{amount}"


def _foot(full: answer.Answer) -> Iterator[str]:
    parts = [prose(sentence) for sentence in (full.made, *full.looked_at, *full.basis) if sentence]
    parts += [f"{name} {code(value, 20)}" for name, value in full.facts]
    if full.source:
        parts.append(f"read from {code(full.read_from, 200)}")
    if parts:
        yield ""
        yield f"<sub>{' · '.join(parts)}</sub>"


def _blocks(section: answer.Section, told: Collection[str]) -> Iterable[Block]:
    """Return the blocks of a section at the top: open, or folded by its weight, changes unless they are short.

    `told` are the keys of sections that a figure is about.
    """
    if section.sections:
        return _overview(section, told)
    changes = [
        part for part in section.parts if isinstance(part, answer.Entries) and part.style is answer.Style.CHANGES
    ]
    lines = sum(1 + len(entry.below) for part in changes for entry in part.entries)
    is_short = bool(changes) and lines <= _MOST_OPEN
    return _section(section) if section.weight > answer.Weight.DETAIL or is_short else [_fold(section)]


def _titled(section: answer.Section) -> str:
    return prose(section.title) + (f": {prose(section.summary, 600)}" if section.summary else "")


def _item(text: str) -> str:
    return f"- {prose(text)}"


def _section(section: answer.Section) -> Iterator[Block]:
    """Yield the blocks of an open section; its parts may be cut, its heading is cut last."""
    if all(isinstance(part, answer.Picture) for part in section.parts) and not (section.notes or section.summary):
        return
    if section.title:
        yield Block(name="headings", importance=_Importance.HEADINGS, items=(f"\n#### {_titled(section)}",))
    for part in section.parts:
        never_cut = section.never_cut and part is section.parts[0]
        if never_cut and isinstance(part, answer.Table):
            yield _rows_of(part, _Importance.MAIN)
        else:
            yield from _open(part)
    yield _list("notes", _Importance.CHANGED, map(_item, section.notes))


def _rows_of(table: answer.Table, importance: int, summary: str = "") -> Block:
    """Return a table without its title; a `summary` folds it away."""
    return Block(
        name=f"rows of “{table.title}”",
        importance=importance,
        summary=summary,
        head=("", *table_head(table.headings, table.right)),
        items=tuple(table_rows(table)),
    )


def _open(part: answer.SectionPart) -> Iterator[Block]:
    """Yield the blocks of a part, open or folded by its weight."""
    match part:
        case answer.Table(weight=answer.Weight.SAME | answer.Weight.DETAIL):
            yield _rows_of(part, _Importance.DETAIL, f"<b>{prose(part.title)}</b> ({part.amount})")
        case answer.Table():
            importance = _Importance.MAIN if part.weight is answer.Weight.WORSE else _Importance.WARNINGS
            yield Block(name=f"rows of “{part.title}”", importance=importance, items=tuple(table_items(part)))
        case answer.Entries(style=answer.Style.LIST):
            good = [entry for entry in part.entries if entry.tone is Tone.GOOD]
            others = [entry for entry in part.entries if entry.tone is not Tone.GOOD]
            yield _list(f"{part.of}s", _Importance.FAILED, _entries(part, others))
            passed = f"<b>{count(len(good), part.of)} {'passes' if len(good) == 1 else 'pass'}</b>"
            yield _list(f"{part.of}s that pass", _Importance.PASSED, _entries(part, good), passed)
        case answer.Entries():
            yield _fenced(part)
        case answer.Findings():
            yield from _findings(part)


def _list(name: str, importance: int, items: Iterable[str], summary: str = "") -> Block:
    """Return a list; a `summary` folds it away."""
    found = tuple(items)
    return Block(name=name, importance=importance, summary=summary, head=("",) if found else (), items=found)


def _fold(section: answer.Section) -> Block:
    """Return a whole section as one folded part."""
    first = section.parts[0] if section.parts else None
    titled = f": {prose(section.summary, 600)}" if section.summary else ""
    if isinstance(first, answer.Entries):
        summary = f"<b>{prose(section.title)}</b> ({len(first):,}){titled}"
        if first.style is not answer.Style.LIST:
            return _fenced(first, summary)
        return _list(f"{first.of}s", _Importance.DETAIL, _entries(first, first.entries), summary)
    name = f"rows about {section.title.lower()}"
    items = [*_rows(section.tables), *(f"\n{_item(note)}" for note in section.notes)]
    return _list(name, _Importance.DETAIL, items, f"<b>{prose(section.title)}</b>{titled}")


def _rows(tables: Iterable[answer.Table]) -> Iterator[str]:
    return itertools.chain.from_iterable(map(table_items, tables))


def _overview(section: answer.Section, told: Collection[str]) -> Iterator[Block]:
    """Yield the blocks of inner sections: a line for the most important, the main table, and all else folded.

    `told` are the keys of sections that a figure is about: they need no line.
    """
    below = answer.with_content(section.sections)
    heavy = [item for item in below if item.weight is answer.Weight.WORSE or item.never_cut or item.unknown]
    lines = [f"- **{prose(item.title)}**: {prose(item.summary, 600)}" for item in heavy if item.key not in told]
    yield _list("headlines", _Importance.HEADLINES, lines)
    for item in below:
        if item.never_cut:
            yield from (_rows_of(table.short, _Importance.MAIN) for table in item.tables[:1] if table.brief)
    for part in section.parts:
        if isinstance(part, answer.Entries):
            yield _list("reasons", _Importance.NOT_KNOWN, _entries(part, part.entries))
    yield from (_about(item) for item in below if item.weight is not answer.Weight.SAME or item.never_cut)
    same = [table for item in below for table in item.tables if table.weight is answer.Weight.SAME]
    quiet = [f"- {_titled(item)}" for item in below if item.weight is answer.Weight.SAME and not item.never_cut]
    yield _list("rows that are as before", _Importance.AS_BEFORE, (*quiet, *_rows(same)), "<b>As before</b>")


def _about(section: answer.Section) -> Block:
    """Return one section, folded."""
    tables = [table for table in section.tables if table.weight is not answer.Weight.SAME]
    notes = [f"\n{prose(note)}" for note in section.notes]
    importance = _Importance.WORSE if section.weight is answer.Weight.WORSE else _Importance.CHANGED
    title, _, rest = _titled(section).partition(": ")
    return _list(f"rows about {section.title.lower()}", importance, (*_rows(tables), *notes), f"<b>{title}</b>: {rest}")


def _entries(part: answer.Entries, entries: Iterable[answer.Entry]) -> Iterator[str]:
    """Yield entries as items of a list; a common heading comes with the first of them."""
    for (heading, remark), group in itertools.groupby(entries, key=lambda entry: entry.under):
        for number, entry in enumerate(group):
            mark = f"**{prose(entry.mark.strip())}** " if entry.mark else ""
            name = f"{part.of} {code(entry.name, 100)}: " if entry.name else ""
            lines = [f"- {mark}{name}{prose(entry.text)}"]
            lines += [
                f"  - {code(line.text) if line.is_code else prose(f'{line.mark} {line.text}'.strip())}"
                for line in entry.below
            ]
            if heading and not number:
                lines = ["", f"**{code(heading)}** {prose(remark)}".rstrip(), "", *lines]
            yield "\n".join(lines)


def _fenced(part: answer.Entries, summary: str = "") -> Block:
    """Return entries as a block of code: a diff of changes, or commands to be copied. A `summary` folds it away."""
    is_diff = part.style is answer.Style.CHANGES
    items = []
    for (heading, remark), group in itertools.groupby(part.entries, key=lambda entry: entry.under):
        for number, entry in enumerate(group):
            lines = [f"# {heading}  {remark}".rstrip()] if heading and not number else []
            lines += _diff_lines(entry) if is_diff else _command_lines(entry)
            items.append("\n".join(clipped(printable(line), _LONGEST_LINE) for line in lines))
    importance = _Importance.CHANGES if is_diff else _Importance.COMMANDS
    return _code(f"{part.of}s", importance, items, "diff" if is_diff else "sh", summary)


def _code(name: str, importance: int, lines: Sequence[str], language: str, summary: str) -> Block:
    """Return a block of code. A `summary` folds it away."""
    ticks = fence(lines)
    head, items = ("", f"{ticks}{language}"), tuple(lines)
    return Block(name=name, importance=importance, summary=summary, head=head, items=items, close=(ticks,))


def _diff_lines(entry: answer.Entry) -> Iterator[str]:
    yield f"{entry.mark if entry.mark in ('+', '-') else '!'} {entry.text}"
    for line in entry.below:
        yield f"{line.mark}   {line.text}" if line.mark in ("+", "-") else f"    {line.mark}{line.text}"


def _command_lines(entry: answer.Entry) -> Iterator[str]:
    yield f"# {entry.mark.strip()} {entry.text}"
    yield from (line.text if line.is_code else f"# {line.text}" for line in entry.below)


def _findings(part: answer.Findings) -> Iterator[Block]:
    for severity in Severity:
        found = [finding for finding in part.findings if finding.severity is severity]
        importance = _Importance.FAILED if severity is Severity.ERROR else _Importance.WARNINGS - severity.rank
        name = "findings" if severity is Severity.INFO else f"{severity}s"
        yield _list(name, importance, (_finding(item, part) for item in found))


def _finding(finding: Finding, part: answer.Findings) -> str:
    def place(span: Span | None) -> str:
        return f" {code(str(replace(span, file=part.locate(span.file))), 160)}" if span else ""

    hint = f" *Hint:* {prose(finding.hint)}" if finding.hint else ""
    more = "".join(
        f" *Also:* {item.code}{place(item.span)}: {prose(item.message)}" for item in finding.consequences[:_MOST_ALSO]
    )
    more += f" and {len(finding.consequences) - _MOST_ALSO} more" if len(finding.consequences) > _MOST_ALSO else ""
    head = f"- **{finding.severity}** {finding.code} {prose(finding.name)}{place(finding.span)}"
    return f"{head}: {prose(finding.message)}{hint}{more}"


def _listing(listing: answer.Listing) -> Block:
    lines, summary = listing.text.splitlines(), f"<b>{prose(listing.title)}</b>"
    return _code(f"lines of “{listing.title}”", _Importance.CHANGED, lines, listing.language, summary)
