"""place, suggest and test as Markdown and as pages: the figures of the report, in whatever form, and nothing broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from command_line import ROOT
from plan_samples import HOSTILE
from rendered import Page, mentions, page_of_markdown

from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest, WantedDisk
from gpolicy.cluster.snapshot import read_snapshot
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Span
from gpolicy.policy.scenario import Action
from gpolicy.report.answer import Answer
from gpolicy.report.answer_html import answer_html
from gpolicy.report.answer_markdown import answer_markdown
from gpolicy.report.outcomes_section import outcomes_answer
from gpolicy.report.place_section import place_answer
from gpolicy.report.section import Name, Section, Table, Weight
from gpolicy.report.suggest_section import suggest_answer
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import Request
from gpolicy.testing.outcome import Check, Outcome

FORMS: tuple[Callable[[Answer], Page], ...] = (
    lambda answer: page_of_markdown(answer_markdown(answer)),
    lambda answer: Page(answer_html(answer)),
)
FORM_NAMES = ("markdown", "html")


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return read_snapshot(ROOT / "policies/two-groups.snapshot.json")


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_a_placement_shows_every_candidate(state: ClusterState, shown: Callable[[Answer], Page]) -> None:
    request = PlaceRequest(memory=4096, vcpus=2, disks=(WantedDisk(20480),), template=DiskTemplate.DRBD.value)
    report = place(state, request)
    page = shown(place_answer(report))
    possible, reasons, refused = page.tables
    assert [(row[0], row[2]) for row in possible[1:]] == [
        (" / ".join(item.nodes), item.shown_score) for item in report.candidates if item.ok
    ]
    assert possible[1][0] == " / ".join(report.nodes)
    bad = [item for item in report.candidates if not item.ok]
    assert sum(int(row[3]) for row in reasons[1:]) == len(bad) > 0
    assert {row[0] for row in refused[1:]} == {item.reason for item in bad}
    assert any("goes to" in text for text in page.prose)


def test_a_placement_that_goes_nowhere_says_so_first(state: ClusterState) -> None:
    report = place(state, PlaceRequest(memory=10**6, template=DiskTemplate.DRBD.value))
    answer = place_answer(report)
    assert answer.good is False
    text = answer_markdown(answer)
    assert text.splitlines()[3].startswith("❌ **new ")
    assert "goes nowhere" in text.splitlines()[3]
    assert "**Reasons**" in text
    assert 'class="verdict fails"' in answer_html(answer)


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_suggested_sizes_come_with_their_document(state: ClusterState, shown: Callable[[Answer], Page]) -> None:
    report = suggest(state, Request(mix={1: 2, 2: 3}))
    page = shown(suggest_answer(report))
    for item in report.groups:
        rows = [row for table in page.tables for row in table]
        for size in item.sizes:
            row = next(row for row in rows if row[0] == size.name and row[-1] == size.then.binding.cause.key)
            assert row[3:5] == [str(size.now.fits), str(size.then.fits)]
        assert f"NodeGroup document of {item.group}" in page.summaries
    text = answer_markdown(suggest_answer(report))
    for item in report.groups:
        assert f"```yaml\n{item.document.rstrip()}\n```" in text


def span(line: int) -> Span:
    return Span("tests.yaml", line, 5, line, 9)


OUTCOMES = [
    Outcome(name="fits", action=Action.PLACE, span=span(1), checks=(Check("node", True, "n1", "n1", span(2)),)),
    Outcome(
        name="does not",
        action=Action.PLACE,
        span=span(3),
        checks=(Check("node", False, "n1", "n2", span(4), "score 1 there"),),
    ),
    Outcome(name="cannot", action=Action.PLACE, span=span(5), error="no such node", hint="write it", place=span(6)),
]


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_outcomes_say_what_was_expected_and_found(shown: Callable[[Answer], Page]) -> None:
    page = shown(outcomes_answer(OUTCOMES))
    failed, errors, every = page.tables
    assert failed[1] == ["does not", "node", "n1", "n2 (score 1 there)", "tests.yaml:4:5"]
    assert errors[1] == ["cannot", "no such node", "write it", "tests.yaml:6:5"]
    assert [row[1:] for row in every[1:]] == [["fits", "ok"], ["does not", "failed"], ["cannot", "could not run"]]
    assert any("3 tests, 1 failed, 1 could not run" in text for text in page.prose)


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_the_best_candidates_stand_apart_from_the_thousands(
    state: ClusterState, shown: Callable[[Answer], Page]
) -> None:
    report = place(state, PlaceRequest(memory=1024, vcpus=1, disks=(WantedDisk(1024),)))
    few = shown(place_answer(report)).tables
    assert len(few[0]) == 1 + sum(item.ok for item in report.candidates)
    candidate = report.candidates[0]
    many = tuple(replace(candidate, nodes=(f"n{number}", "m")) for number in range(40))
    best, others = shown(place_answer(replace(report, candidates=many))).tables[:2]
    assert [row[0] for row in best[1:]] == [f"n{number} / m" for number in range(20)]
    assert [row[0] for row in others[1:]] == [f"n{number} / m" for number in range(20, 40)]


def test_tables_of_words_are_lists_on_a_narrow_screen() -> None:
    html = answer_html(outcomes_answer(OUTCOMES))
    assert '<table aria-label="Expected otherwise" class="stack">' in html
    assert '<td data-heading="found">n2 (score 1 there)</td>' in html


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_good_outcomes_are_open_and_none_are_said(shown: Callable[[Answer], Page]) -> None:
    page = shown(outcomes_answer(OUTCOMES[:1]))
    assert "details" not in page.elements
    assert len(page.tables) == 1
    assert any("there are none" in text for text in shown(outcomes_answer([])).prose)


@pytest.mark.parametrize("form", FORM_NAMES)
@pytest.mark.parametrize("text", HOSTILE)
def test_names_from_outside_stay_where_they_are(text: str, form: str) -> None:
    shown = FORMS[FORM_NAMES.index(form)]
    table = Table(
        title="t",
        of="rows",
        headings=("a", "b"),
        rows=((Name(text), text), ((Name(text), Name(text)), text)),
        weight=Weight.CHANGED,
    )
    section = Section(key="k", title=text, weight=Weight.CHANGED, summary=text, tables=(table,), notes=(text,))
    answer = Answer(
        verb="place", title="On", name=text, verdict=f"to {text}", good=None, sections=(section,), source=text
    )
    plain = shown(replace(answer, name="n", verdict="v", source="s", sections=()))
    page = shown(answer)
    assert [len(row) for row in page.tables[0]] == [2, 2, 2]
    assert form == "html" or not mentions(page)
    assert page.elements <= plain.elements | {
        *("table", "thead", "tbody", "tr", "th", "td", "code", "section", "h2", "h3", "h4", "p", "div", "span"),
        *("ul", "li", "strong", "sub"),
    }


def test_markdown_keeps_its_budget() -> None:
    table = Table(title="Rows", of="rows", headings=("a",), rows=tuple((str(n) * 20,) for n in range(5000)))
    folded = replace(table, title="Others", weight=Weight.SAME)
    section = Section(key="k", title="S", weight=Weight.CHANGED, summary="", tables=(table, folded))
    answer = Answer(verb="place", title="On", name="n", verdict="v", good=True, sections=(section,))
    text = answer_markdown(answer, budget=6000)
    assert len(text.encode()) <= 6000
    assert "left out" in text
    assert text.index("| a |") < text.index("left out")
    assert page_of_markdown(text).tables[0][1] == ["0" * 20]
