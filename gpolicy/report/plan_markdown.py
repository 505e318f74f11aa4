"""A plan as a comment on a review: the verdict, what is dear about it and the capacity table; all else is folded.

A hidden first line marks the comment, so that a later run can find and replace it. What does not fit the budget is cut
from the least important end, and the comment says so.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

from gpolicy.cluster.state import read_from
from gpolicy.ganeti.parameter import TakesEffect
from gpolicy.impact.impact import Impact
from gpolicy.plan.change import Change, ChangeAction, some
from gpolicy.plan.plan import Plan
from gpolicy.printable import printable
from gpolicy.report.budget import COMMENT_BUDGET
from gpolicy.report.capacity_section import ROW_WORDS
from gpolicy.report.change_words import change_words, differs_in_effect, pair_changes, step_command
from gpolicy.report.findings_markdown import finding_items
from gpolicy.report.impact_sections import impact_sections, not_known
from gpolicy.report.markdown import Block, Document, cell, clipped, code, fence, prose, table_head
from gpolicy.report.markdown_table import CLOSE, folded, table_items, table_rows
from gpolicy.report.section import Name, Section, Table, Weight, count
from gpolicy.report.values_text import value_text
from gpolicy.report.verdict import amount, can_be_allowed, get_worse, guard_verdict, verdict, worst_first

_MOST_OBJECTS: Final = 8
_LONGEST_LINE: Final = 4_000  # of a command: longer ones are what the plan file is for
_CLEAN: Final = re.compile(r"[^A-Za-z0-9._-]+")


class _Importance(IntEnum):
    """What is kept longer has the higher number."""

    AS_BEFORE = 10
    NOTES = 15
    STEPS = 20
    UNREADABLE = 25
    PASSED = 35
    CHANGED = 40
    CHANGES = 50
    WORSE = 60
    NOT_KNOWN = 65
    WARNINGS = 70
    CAPACITY = 80
    HEADLINES = 85
    FAILED = 90


def marker(cluster: str, verb: str = "plan") -> str:
    """Return the hidden line by which a comment about the plan of `cluster` is found again."""
    return f"<!-- gpolicy {verb} {_CLEAN.sub('-', cluster)[:100].strip('-')} -->"


def plan_markdown(plan: Plan, *, impact: Impact | None = None, budget: int = COMMENT_BUDGET) -> str:
    """Return the plan as Markdown of at most `budget` bytes (at least `markdown.LEAST_BUDGET`)."""
    sections = list(impact_sections(impact)) if impact is not None and plan.changes else []
    blocks = [
        Block(name="", importance=100, head=tuple(_head(plan, sections))),
        _failed_guards(plan),
        *_findings(plan),
        _headlines(plan, sections),
        *_capacity(sections),
        *(_not_known(impact) if impact is not None and plan.changes else ()),
        _passed_guards(plan),
        *_details(sections),
        _changes(plan),
        _steps(plan),
        _unreadable(plan),
        _as_before(sections),
        _notes(plan),
    ]
    document = Document([block for block in blocks if block.head or block.items], tail=("", _foot(plan)))
    return document.text(budget)


def _head(plan: Plan, sections: Iterable[Section]) -> Iterator[str]:
    cost = get_worse(plan, sections)
    sign = "❌" if not plan.safe else "⚠️" if cost else "✅"
    yield marker(plan.cluster)
    yield f"### gpolicy plan for {code(plan.cluster, 100)}"
    yield ""
    much = f" · {amount(plan)}" if plan.changes else ""
    yield f"{sign} **{verdict(plan)}**{f', {cost}' if cost else ''}{much}"


def _foot(plan: Plan) -> str:
    digests = f"policy `{plan.policy_digest[:19]}`, state `{plan.state_digest[:19]}`"
    source = code(read_from(plan.source, plan.snapshot), 200)
    return f"<sub>Ganeti {cell(plan.version, 20)}, {digests}, read from {source}</sub>"


def _failed_guards(plan: Plan) -> Block:
    """Return the guards that fail or were overridden."""
    items = []
    for guard in worst_first(plan.guards):
        if not guard.ok or guard.allowed:
            hint = f" ({code(f'--allow {guard.name}', 120)} passes it)" if can_be_allowed(guard) else ""
            items.append(f"- guard {code(guard.name, 100)} **{guard_verdict(guard)}**: {prose(guard.message)}{hint}")
    head = ("",) if items else ()
    return Block(name="failed guards", importance=_Importance.FAILED, head=head, items=tuple(items))


def _passed_guards(plan: Plan) -> Block:
    passed = [guard for guard in plan.guards if guard.ok and not guard.allowed]
    items = tuple(f"- {code(guard.name, 100)}: {prose(guard.message)}" for guard in passed)
    words = f"{count(len(items), 'guard')} {'passes' if len(items) == 1 else 'pass'}"
    head = (*folded(f"<b>{words}</b>"), "") if items else ()
    return Block(name="guards that pass", importance=_Importance.PASSED, head=head, items=items, tail=CLOSE)


def _findings(plan: Plan) -> Iterator[Block]:
    errors = [item for item in plan.findings if item.severity == "error"]
    others = [item for item in plan.findings if item.severity != "error"]
    for importance, findings in ((_Importance.FAILED, errors), (_Importance.WARNINGS, others)):
        items = tuple(finding_items(findings))
        yield Block(name="findings", importance=importance, head=("",) if items else (), items=items)


def _headlines(plan: Plan, sections: Iterable[Section]) -> Block:
    """Return what is needed to decide: what gets worse, what does not, and what is touched.

    Each section that gets worse has a line, and capacity always has one.
    """
    said = [section for section in sections if section.weight is Weight.WORSE or section.key == "capacity"]
    items = [f"- **{section.title}**: {prose(section.summary, 600)}" for section in said]
    no_worse = [section.title.lower() for section in sections if section not in said]
    if no_worse:
        items.append(f"- **No worse**: {', '.join(no_worse)}")
    if plan.changes:
        items.append(f"- **Changed**: {_touched(plan)}")
    return Block(name="headlines", importance=_Importance.HEADLINES, head=("",) if items else (), items=tuple(items))


def _touched(plan: Plan) -> str:
    """Return the objects that change, those with most changes first."""
    counts = Counter(change.object for change in plan.changes).most_common()
    shown = [f"{code(name, 100)} ({number})" for name, number in counts[:_MOST_OBJECTS]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {count(more, 'more object', 'more objects')}" if more else "")


def _capacity(sections: Iterable[Section]) -> Iterator[Block]:
    """Give the capacity table, which is not folded, and its notes."""
    for section in sections:
        if section.key == "capacity" and section.tables:
            table = section.tables[0]
            yield Block(
                name="rows of the capacity table",
                importance=_Importance.CAPACITY,
                head=("", *table_head(table.headings, table.right)),
                items=tuple(table_rows(table)),
            )
            named = {row[1] for row in table.rows if not isinstance(row[1], Name)}
            legend = "; ".join(f"{name.strip('· ')}: {words}" for name, words in ROW_WORDS.items() if name in named)
            yield Block(
                name="notes",
                importance=_Importance.NOTES,
                head=("",) if legend else (),
                items=(f"<sub>{prose(legend)}</sub>",) if legend else (),
            )
        if section.key == "capacity":
            yield Block(
                name="notes",
                importance=_Importance.CHANGED,
                head=("",) if section.notes else (),
                items=tuple(f"- {prose(note)}" for note in section.notes),
            )


def _details(sections: Iterable[Section]) -> Iterator[Block]:
    """Give a folded block for each section with something new in it."""
    for section in sections:
        tables = [table for table in _tables(section) if table.weight is not Weight.SAME]
        if not tables and not (section.notes and section.weight is not Weight.SAME):
            continue
        notes = () if section.key == "capacity" else section.notes
        yield Block(
            name=f"rows about {section.title.lower()}",
            importance=_Importance.WORSE if section.weight is Weight.WORSE else _Importance.CHANGED,
            head=folded(f"<b>{section.title}</b>: {_about(section)}"),
            items=(*itertools.chain(*map(table_items, tables)), *(f"\n{prose(note)}" for note in notes)),
            tail=CLOSE,
        )


def _about(section: Section) -> str:
    """Return what a folded section is about; the summary of the capacity is above its table already."""
    if section.key != "capacity":
        return prose(section.summary, 600)
    return "; ".join(table.title.partition(":")[0].lower() for table in _tables(section))


def _tables(section: Section) -> tuple[Table, ...]:
    return section.tables[1:] if section.key == "capacity" else section.tables


def _as_before(sections: Iterable[Section]) -> Block:
    """Return what was so before and stays so, of all sections, in one folded block."""
    same = [table for section in sections for table in _tables(section) if table.weight is Weight.SAME]
    quiet = [s for s in sections if s.weight is Weight.SAME and s.key != "capacity"]
    items = (
        *(f"- {section.title}: {prose(section.summary)}" for section in quiet),
        *itertools.chain(*map(table_items, same)),
    )
    head = (*folded("<b>As before</b>"), "") if items else ()
    return Block(name="rows that are as before", importance=_Importance.AS_BEFORE, head=head, items=items, tail=CLOSE)


def _not_known(impact: Impact) -> Iterator[Block]:
    items = tuple(f"- {title} is not known: {prose(reason)}" for title, reason in not_known(impact))
    yield Block(name="reasons", importance=_Importance.NOT_KNOWN, head=("",) if items else (), items=items)


def _changes(plan: Plan) -> Block:
    items = []
    for obj, changes in itertools.groupby(plan.changes, key=lambda change: change.object):
        for number, change in enumerate(changes):
            lines = [*([] if number else [f"# {printable(obj)}"]), *_change(change)]
            items.append("\n".join(clipped(line, _LONGEST_LINE) for line in lines))
    return _code_block("changes", "diff", items, f"<b>{count(len(items), 'change')}</b>", _Importance.CHANGES)


def _change(change: Change) -> Iterator[str]:
    if change.path == ("ipolicy", "minmax"):
        yield "! ipolicy.minmax"
        for sign, line in pair_changes(change.before, change.after):
            yield f"  ({line})" if sign == "#" else f"{sign}   {line}"
    else:
        sign = {ChangeAction.CREATE: "+", ChangeAction.REMOVE: "-"}.get(change.action, "!")
        yield f"{sign} {printable(change_words(change))}"
    if change.action in (ChangeAction.SET, ChangeAction.RESET) and differs_in_effect(change):
        yield printable(f"    in effect: {value_text(change.effective_before)} → {value_text(change.effective_after)}")
    if change.takes_effect not in (TakesEffect.AT_ONCE, TakesEffect.CAPACITY_ONLY):
        yield f"    takes effect: {printable(change.takes_effect)}"
    if change.affects:
        yield f"    also in {printable(some(change.affects, 4))}, which inherit it"
    if change.reason:
        yield f"    {change.risk} risk: {printable(change.reason)}"


def _steps(plan: Plan) -> Block:
    items = []
    for number, step in enumerate(plan.steps, start=1):
        lost = [f"# cannot be undone: {printable(reason)}" for reason in step.inverse.not_restored]
        lines = [f"# {number}. {printable(step.title)}", printable(step_command(step)), *lost]
        items.append("\n".join(clipped(line, _LONGEST_LINE) for line in lines))
    return _code_block("steps", "sh", items, f"<b>{count(len(items), 'step')}</b>", _Importance.STEPS)


def _code_block(name: str, language: str, items: list[str], summary: str, importance: int) -> Block:
    if not items:
        return Block(name=name, importance=importance)
    ticks = fence(items)
    return Block(
        name=name,
        importance=importance,
        head=(*folded(summary), "", f"{ticks}{language}"),
        items=tuple(items),
        close=(ticks,),
        tail=CLOSE,
    )


def _unreadable(plan: Plan) -> Block:
    items = tuple(
        f"- {code(item.object)} {code('.'.join(item.path))}, wanted {code(value_text(item.wanted))}"
        for item in plan.unreadable
    )
    head = (*folded(f"<b>{len(items):,} not compared</b>: this source cannot show them"), "") if items else ()
    return Block(name="values not compared", importance=_Importance.UNREADABLE, head=head, items=items, tail=CLOSE)


def _notes(plan: Plan) -> Block:
    items = tuple(f"- {prose(note)}" for note in plan.notes)
    head = (*folded(f"<b>{count(len(items), 'note')}</b> of the source"), "") if items else ()
    return Block(name="notes", importance=_Importance.NOTES, head=head, items=items, tail=CLOSE)
