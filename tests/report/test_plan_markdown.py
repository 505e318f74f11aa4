from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import example, given, strategies as st

from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.findings import Finding, Severity, Span
from gpolicy.impact.impact import Impact, LocationChange
from gpolicy.plan.plan import Plan
from gpolicy.printable import clipped, printable
from gpolicy.report.answer import Name
from gpolicy.report.answer_markdown import marker
from gpolicy.report.findings_text import findings_answer
from gpolicy.report.forms import COMMENT_BUDGET, LEAST_BUDGET
from gpolicy.report.impact_sections import impact_sections
from gpolicy.report.markdown import LONGEST_TEXT, cell, code, prose, row, table_head
from gpolicy.report.plan_answer import plan_answer
from tests.report.impact_samples import full_impact
from tests.report.plan_samples import HOSTILE, empty_plan, full_plan, hostile
from tests.report.rendered import markdown_of, mentions, page_of_markdown, unfolded

ELEMENTS = {
    "h3", "h4", "p", "strong", "em", "ul", "li", "table", "thead", "tbody", "tr", "th", "td",
    "code", "pre", "details", "summary", "b", "sub", "span",
}  # fmt: skip


def plan_markdown(plan: Plan, *, impact: Impact | None = None, budget: int = COMMENT_BUDGET) -> str:
    return markdown_of(plan_answer(plan, impact=impact), budget=budget)


def test_the_verdict_comes_first_then_the_table_and_all_else_is_folded() -> None:
    text = plan_markdown(full_plan(), impact=full_impact())
    lines = text.splitlines()
    assert lines[0] == "<!-- gpolicy plan ganeti.example.org -->"
    assert lines[3].startswith(
        "❌ **Not to be applied: 1 guard of 3 fails; not known for group remote: no measured memory"
    )
    assert lines[3].endswith("** · 7 changes in 2 steps")
    figures = [line.partition(":")[0] for line in lines[5:10]]
    words = ("changes", "newly violating", "capacity", "node failures", "location conflicts")
    assert figures == [f"- {word}" for word in words]
    assert "basis: mixed; declared: disk of node1, node2; all else is measured" in lines[-1]
    shown = unfolded(text)
    assert "| `shared` | `large` | 64G · 16 CPU · 1T | 8 | 3 | -5 |" in shown
    assert "| `shared` | `large` | 64G · 16 CPU · 1T | 8 | 3 | -5 | -62 % |" in text
    assert "- **FAILS** guard `no-shrink`: size large of shared: 8 → 3" in shown
    assert "  - override it with --allow no-shrink, if you must" in shown
    page = page_of_markdown(text)
    violations = list(impact_sections(full_impact()))[1]
    order = (
        "1 guard passes", "What changes (7): cluster (", "Capacity: ", f"Violations: {violations.summary}",
        "Steps (2)", "1 note", "As before",
    )  # fmt: skip
    places = [next(n for n, found in enumerate(page.summaries) if found.startswith(start)) for start in order]
    assert places == sorted(places)


def test_a_plan_that_can_be_applied_says_what_gets_worse() -> None:
    text = plan_markdown(full_plan(safe=True), impact=full_impact())
    verdict = text.splitlines()[3]
    worse = (
        "worse: size 1 in group shared 8 → 0 of 32G · 8 CPU · 1T (no size of the policy allows such an instance), and 4"
    )
    assert verdict.startswith(f"⚠ **Can be applied, 1 guard overridden, but {worse}")
    assert "web and 2 more newly violate the policy" in verdict
    harmless = Impact(location=LocationChange())
    shown = plan_markdown(full_plan(safe=True), impact=harmless).splitlines()[3]
    assert shown.startswith("⚠ **Can be applied, 1 guard overridden; not known: capacity, violations, ")
    shown = plan_markdown(full_plan(safe=True)).splitlines()[3]
    assert shown.startswith("⚠ **Can be applied, 1 guard overridden; what the changes do was not looked at; 1 value")


def test_the_facts_for_a_decision_are_above_the_folds() -> None:
    """The reason for lost capacity, unchanged parts, touched objects, and the rows of the table."""
    before, after = Fit(650, Binding(Cause.SPINDLE_RATIO), None), Fit(0, Binding(Cause.BOUNDS), None)
    known = full_impact()
    assert known.capacity is not None
    first = known.capacity.groups[0]
    harder = replace(first, standard=replace(first.standard, before=before, after=after))
    text = plan_markdown(
        full_plan(safe=True),
        impact=replace(known, capacity=replace(known.capacity, groups=(harder, *known.capacity.groups[1:]))),
    )
    decided = unfolded(text)
    assert "standard in group dedicated 650 → 0 (no size of the policy allows such an instance)" in decided
    assert "- **Resource model**: not known for group remote: no measured memory; " in decided
    assert "**No worse**" not in decided
    cured = "3 moves, 120G to copy (about 34 min), cure 2 of 3 new faults, and 1 fault of today"
    assert f"- **Remedy**: not known for group remote: no measured memory; {cured}" in decided
    (touched,) = [summary for summary in page_of_markdown(text).summaries if summary.startswith("What changes")]
    whole, *counted = [int(number) for number in re.findall(r"\((\d+)\)", touched)]
    assert sum(counted) == whole == len(full_plan(safe=True).changes)


def test_an_empty_plan_is_two_lines_of_news() -> None:
    page = page_of_markdown(plan_markdown(empty_plan(), impact=full_impact()))
    assert "✅ " in page.prose
    assert "No changes: the cluster is what the policy declares" in page.prose
    assert page.tables == []
    assert "details" not in page.elements


def test_a_refused_plan_says_why() -> None:
    error = Finding("GP601", "no-such-node", Severity.ERROR, "there is no node x", Span("a.yaml", 1, 2, 1, 3), "fix")
    text = plan_markdown(replace(empty_plan(), findings=(error,)))
    assert "❌ **No plan: the policy has 1 error for this cluster**" in text
    assert "- **error** GP601 no-such-node `a.yaml:1:2`: there is no node x *Hint:* fix" in text


def test_an_unknown_part_is_reported_above_the_folds() -> None:
    text = plan_markdown(full_plan(), impact=Impact(unavailable={"capacity": "config: has no measured memory"}))
    assert "- Capacity: not known: config: has no measured memory" in unfolded(text)


def test_every_cell_is_shown_as_it_is_whatever_the_names() -> None:
    for name in HOSTILE:
        impact = full_impact(lambda base, name=name: base[:3] + name)  # type: ignore[misc]
        plan = full_plan(lambda base, name=name: base[:3] + name)  # type: ignore[misc]
        page = page_of_markdown(plan_markdown(plan, impact=impact, budget=10**6))
        assert page.elements <= ELEMENTS
        assert mentions(page) == []
        sections = list(impact_sections(impact))
        wanted = [item for section in sections for table in section.tables for line in table.rows for item in line]
        cells = chain.from_iterable(chain.from_iterable(table[1:] for table in page.tables))
        shown = {text.strip() for text in cells}
        for item in wanted:
            if isinstance(item, tuple):
                text = ", ".join(clipped(printable(part), LONGEST_TEXT) for part in item) or "-"
            else:
                text = clipped(printable(item), 120 if isinstance(item, Name) else 400)
            assert text.strip() in shown, (name, text)
        assert all(len({len(line) for line in table}) == 1 for table in page.tables)


NAMES = st.text(min_size=1, max_size=60) | st.sampled_from(HOSTILE)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_any_text_stays_in_its_cell(texts: list[str]) -> None:
    lines = [*table_head(["a"] * len(texts)), row([code(text) for text in texts]), row([cell(text) for text in texts])]
    page = page_of_markdown("\n".join(lines))
    assert len(page.tables) == 1
    wanted = [clipped(printable(text), LONGEST_TEXT).strip() for text in texts]
    assert [[text.strip() for text in line] for line in page.tables[0][1:]] == [wanted, wanted]
    assert page.elements <= {"table", "thead", "tbody", "tr", "th", "td", "code", "span"}
    assert mentions(page) == []


@given(NAMES)
@example(" -")
def test_any_message_stays_in_its_item(text: str) -> None:
    page = page_of_markdown(f"- {prose(text)}\n- x")
    assert page.elements <= {"ul", "li", "span"}
    shown = clipped(printable(text), LONGEST_TEXT).strip()
    assert "".join(page.prose).strip() == (f"{shown}\n\nx" if shown else "x") or shown in "".join(page.prose)


@pytest.mark.parametrize("budget", [LEAST_BUDGET, 5_000, 8_192, 20_000, COMMENT_BUDGET])
@pytest.mark.parametrize("named", [str, hostile])
def test_the_budget_is_kept_and_the_rest_is_whole(budget: int, named: object) -> None:
    name = hostile if named is hostile else str
    text = plan_markdown(full_plan(name, many=400), impact=full_impact(name), budget=budget)
    assert len(text.encode()) <= budget
    page = page_of_markdown(text)
    assert page.elements <= ELEMENTS
    assert text.startswith(marker(name("ganeti.example.org")))
    assert any(text.startswith("Not to be applied: 1 guard of 3 fails; not known for group ") for text in page.prose)
    assert "left out" in text.lower()
    assert text.count("<details>") == text.count("</details>")
    assert "read from" in text.splitlines()[-1]


def test_a_budget_is_used_to_the_last_item() -> None:
    plan, impact = full_plan(many=5), full_impact()
    whole = plan_markdown(plan, impact=impact)
    size = len(whole.encode())
    assert plan_markdown(plan, impact=impact, budget=size) == whole
    cut = plan_markdown(plan, impact=impact, budget=size - 1)
    assert len(cut.encode()) <= size - 1
    assert "left out: no room in this comment" in cut or "Left out, no room in this comment" in cut
    assert "`large`" in cut


def test_the_least_important_part_is_dropped_first() -> None:
    plan, impact = full_plan(many=400), full_impact()
    small = plan_markdown(plan, impact=impact, budget=10_900)
    assert re.search(r"\*Left out, no room in this comment: .*\d+ steps", small)
    assert "**Newly violating**" in small
    assert "As before" not in small
    assert "| `shared` | `large` |" in small


def test_the_marker_of_a_cluster_is_one_safe_line() -> None:
    for name in HOSTILE:
        assert re.fullmatch(r"<!-- gpolicy plan [A-Za-z0-9._-]* -->", marker(name))
        assert "--" not in marker(name)[4:-3].replace("gpolicy plan", "")


def test_findings_are_a_list_with_the_worst_first() -> None:
    place = Span("policies/gold.yaml", 3, 7, 3, 11)
    found = [
        Finding("GP201", "overlap", Severity.WARNING, "overlaps `x` | y", place, "move @it"),
        Finding("GP012", "wrong-value", Severity.ERROR, "is <wrong>", None),
    ]
    text = markdown_of(findings_answer(found, {}, fails=bool))
    page = page_of_markdown(text)
    assert text.splitlines()[0] == "<!-- gpolicy check -->"
    assert text.index("GP012") < text.index("GP201")
    assert "overlaps `x` | y" in "".join(page.prose)
    assert mentions(page) == []
    assert "1 error, 1 warning" in page.prose
    many = markdown_of(findings_answer(found * 2_000, {}, fails=bool))
    assert len(many.encode()) <= COMMENT_BUDGET
    assert "left out" in many.lower()
    assert markdown_of(findings_answer([], {}, fails=bool)).splitlines()[-1] == "✅ **no mistakes**"
