"""An answer as Markdown for a comment: the verdict and the tables that matter open, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator

from gpolicy.report.answer import Answer, Listing
from gpolicy.report.budget import COMMENT_BUDGET
from gpolicy.report.markdown import Block, Document, code, fence, prose, table_head
from gpolicy.report.markdown_table import CLOSE, folded, table_items, table_rows
from gpolicy.report.plan_markdown import marker
from gpolicy.report.section import Section, Table, Weight


def answer_markdown(answer: Answer, *, budget: int = COMMENT_BUDGET) -> str:
    """Return the answer as Markdown of at most `budget` bytes (at least `markdown.LEAST_BUDGET`)."""
    named = f" {code(answer.name, 100)}" if answer.name else ""
    first = marker(answer.name, answer.verb) if answer.name else f"<!-- gpolicy {answer.verb} -->"
    sign = {True: "✅ ", False: "❌ ", None: ""}[answer.good]
    head = (first, f"### {answer.title}{named}", "", f"{sign}**{prose(answer.verdict)}**")
    blocks = [Block(name="", importance=100, head=head)]
    for section in answer.order:
        blocks += _section(section)
    blocks += [_listing(listing) for listing in answer.listings]
    foot = ("", f"<sub>read from {code(answer.source, 200)}</sub>") if answer.source else ()
    return Document(blocks, tail=foot).text(budget)


def _section(section: Section) -> Iterator[Block]:
    """Give the blocks of one section; its tables may be cut, the words about it stay."""
    said = f": {prose(section.summary)}" if section.summary else ""
    yield Block(name="", importance=90, head=("", f"#### {prose(section.title)}{said}"))
    for table in section.tables:
        yield _open(table) if table.weight > Weight.SAME else _folded(table)
    if section.notes:
        yield Block(name="notes", importance=50, head=("",), items=tuple(f"- {prose(note)}" for note in section.notes))


def _open(table: Table) -> Block:
    importance = 80 if table.weight is Weight.WORSE else 70
    return Block(name=f"rows of “{table.title}”", importance=importance, items=tuple(table_items(table)))


def _folded(table: Table) -> Block:
    items = tuple(table_rows(table))
    rule = ("", *table_head(table.headings, table.right))
    head = (*folded(f"<b>{prose(table.title)}</b> ({len(items):,})"), *rule)
    return Block(name=f"rows of “{table.title}”", importance=30, head=head, items=items, tail=CLOSE)


def _listing(listing: Listing) -> Block:
    lines = listing.text.splitlines()
    ticks = fence(lines)
    return Block(
        name=f"lines of “{listing.title}”",
        importance=40,
        head=(*folded(f"<b>{prose(listing.title)}</b>"), "", f"{ticks}{listing.language}"),
        items=tuple(lines),
        close=(ticks,),
        tail=CLOSE,
    )
