"""place, suggest and test as Markdown and HTML: the figures of the report in every form, well-formed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import Disk, DiskTemplate
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.findings import Finding, Severity, Span
from gpolicy.policy.scenario import Action
from gpolicy.printable import Tone
from gpolicy.report.answer import (
    Answer,
    Entries,
    Entry,
    Findings,
    Line,
    Name,
    Section,
    SectionPart,
    Style,
    Table,
    Weight,
    percent,
)
from gpolicy.report.glossary import terms_of
from gpolicy.report.outcomes_answer import outcomes_answer
from gpolicy.report.place_answer import place_answer
from gpolicy.report.suggest_answer import suggest_answer
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest
from gpolicy.testing.outcome import Check, Outcome
from tests.cli.command_line import ROOT
from tests.report.plan_samples import HOSTILE
from tests.report.rendered import Page, html_of, markdown_of, mentions, page_of_markdown, text_of

FORMS: tuple[Callable[[Answer], Page], ...] = (
    lambda answer: page_of_markdown(markdown_of(answer)),
    lambda answer: Page(html_of(answer)),
)
FORM_NAMES = ("markdown", "html")


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return read_snapshot(ROOT / "policies/two-groups.snapshot.json")


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_a_placement_shows_every_candidate(state: ClusterState, shown: Callable[[Answer], Page]) -> None:
    request = PlaceRequest(memory=4096, vcpus=2, disks=(Disk(20480),), template=DiskTemplate.DRBD.value)
    report = place(state, request)
    page = shown(place_answer(report))
    possible, *refused = page.tables
    assert [(row[0], row[2]) for row in possible[1:]] == [
        (" / ".join(item.nodes), item.shown_score) for item in report.candidates if item.ok
    ]
    assert possible[1][0] == " / ".join(report.nodes)
    bad = [item for item in report.candidates if not item.ok]
    reasons = {item.reason for item in bad}
    assert len(refused) == len(reasons) > 0
    for reason in reasons:
        (title,) = [title for title in page.summaries if title.startswith(f"{reason} (")]
        assert f"{reason} ({sum(item.reason == reason for item in bad)}): " in title
    assert any("goes to" in text for text in page.prose)


@pytest.mark.parametrize(("ignored", "words"), [(False, "no size that the policy allows"), (True, "no smaller size")])
def test_a_placement_says_what_would_fit(state: ClusterState, ignored: bool, words: str) -> None:
    request = PlaceRequest(memory=10**6, template=DiskTemplate.DRBD.value, ignore_ipolicy=ignored)
    report = place(state, request, instead=True)
    assert report.instead is not None
    sections = place_answer(report).sections
    assert sections[0].title == "What would fit"
    assert [row[0] for table in sections[0].tables for row in table.rows] == [item.words for item in report.instead]
    assert place_answer(replace(report, instead=())).sections[0].summary == words
    assert place_answer(replace(report, instead=None)).sections[0].title == "Possible"
    assert place_answer(replace(report, instead=(), candidates=())).sections[0].title == "Possible"


def test_a_placement_that_goes_nowhere_says_so_first(state: ClusterState) -> None:
    report = place(state, PlaceRequest(memory=10**6, template=DiskTemplate.DRBD.value))
    answer = place_answer(report)
    assert answer.tone is Tone.BAD
    text = markdown_of(answer)
    assert text.splitlines()[3].startswith("❌ **new ")
    assert "goes nowhere" in text.splitlines()[3]
    assert "<summary><b>ipolicy.minmax (" in text
    assert 'class="verdict bad"' in html_of(answer)


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_suggested_sizes_come_with_their_document(state: ClusterState, shown: Callable[[Answer], Page]) -> None:
    report = suggest(state, SuggestRequest(mix={1: 2, 2: 3}))
    page = shown(suggest_answer(report))
    for item in report.groups:
        rows = [row for table in page.tables for row in table]
        for size in item.sizes:
            row = next(row for row in rows if row[0] == size.name and row[-1] == size.then.binding.cause.key)
            assert row[3:5] == [str(size.now.fits), str(size.then.fits)]
        assert f"NodeGroup document of {item.group}" in page.summaries
    text = markdown_of(suggest_answer(report))
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
    items = [" ".join(item.split()) for item in page.items]
    assert any(item.startswith("FAILED does not") for item in items)
    assert any(item.startswith("ERROR cannot") for item in items)
    assert "ok fits" in items
    words = " ".join(" ".join(page.prose).split())
    for said in ("node: expected n1, found n2", "score 1 there", "tests.yaml:6:5: no such node", "write it"):
        assert said in words
    assert any("3 tests, 1 failed, 1 could not run" in text for text in page.prose)


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_the_best_candidates_stand_apart_from_the_thousands(
    state: ClusterState, shown: Callable[[Answer], Page]
) -> None:
    report = place(state, PlaceRequest(memory=1024, vcpus=1, disks=(Disk(1024),)))
    few = shown(place_answer(report)).tables
    assert len(few[0]) == 1 + sum(item.ok for item in report.candidates)
    candidate = report.candidates[0]
    many = tuple(replace(candidate, nodes=(f"n{number}", "m")) for number in range(40))
    best, others = shown(place_answer(replace(report, candidates=many))).tables[:2]
    assert [row[0] for row in best[1:]] == [f"n{number} / m" for number in range(20)]
    assert [row[0] for row in others[1:]] == [f"n{number} / m" for number in range(20, 40)]


def test_repeated_names_are_shown_once_and_stay_in_the_rows_of_a_page() -> None:
    """A page can be sorted: there each row has the name of its group."""
    rows = (("a", "x", "1"), ("a", "y", "2"), ("b", "y", "3"))
    table = Table(title="Words", of="rows", headings=("group", "size", "n"), rows=rows, grouped=1)
    answer = Answer(verb="x", title="T", name="", verdict="v", sections=(Section(key="k", title="S", parts=(table,)),))
    assert [row[0] for row in page_of_markdown(markdown_of(answer)).tables[0][1:]] == ["a", "", "b"]
    assert [line.split() for line in text_of(answer).partition("n\n")[2].splitlines()[:3]] == [
        ["a", "x", "1"],
        ["y", "2"],
        ["b", "y", "3"],
    ]
    assert [row[0] for row in Page(html_of(answer)).tables[0][1:]] == ["a", "a", "b"]


def test_only_terms_that_are_used_are_defined() -> None:
    table = Table(title="T", of="rows", headings=("size", "bound by"), rows=(("tiered", "memory (was n1-reserve)"),))
    section = Section(key="k", title="S", parts=(table, replace(table, headings=("size", "fits"))))
    answer = Answer(verb="x", title="T", name="", verdict="v", sections=(section,), terms=(("fits", "has room"),))
    wanted = {"fits", "bound by", "memory", "n1-reserve", "size", "tiered"}
    assert set(terms_of(answer)) == wanted
    page, text = html_of(answer), text_of(answer)
    assert all(f"<dt>{term}</dt>" in page and f"{term}: " in text for term in wanted)


@pytest.mark.parametrize("shown", FORMS, ids=FORM_NAMES)
def test_passed_outcomes_are_one_line_and_no_outcomes_are_reported(shown: Callable[[Answer], Page]) -> None:
    page = shown(outcomes_answer(OUTCOMES[:1]))
    assert page.summaries in (["1 test passes"], [])
    assert any("1 test, all passed" in text for text in page.prose)
    assert any("there is no document of kind Test" in text for text in shown(outcomes_answer([])).prose)


@pytest.mark.parametrize("form", FORM_NAMES)
@pytest.mark.parametrize("text", HOSTILE)
def test_names_from_outside_stay_where_they_are(text: str, form: str) -> None:
    shown = FORMS[FORM_NAMES.index(form)]
    answer = answer_full_of(text)
    plain = shown(replace(answer, name="n", verdict="v", source="s", sections=()))
    page = shown(answer)
    assert [len(row) for row in page.tables[0]] == [2, 2, 2]
    assert form == "html" or not mentions(page)
    assert page.elements <= plain.elements | {
        *(
            "nav",
            "button",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "code",
            "section",
            "h2",
            "h3",
            "h4",
            "p",
            "div",
            "span",
        ),
        *("ul", "ol", "li", "strong", "em", "sub", "pre"),
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_on_a_terminal_names_from_outside_are_printable_and_begin_no_line(text: str) -> None:
    shown, calm = (text_of(answer_full_of(item)) for item in (text, "calm"))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
    begun, known = (sum(not line.startswith("  ") for line in said.splitlines()) for said in (shown, calm))
    assert begun == known


def answer_full_of(text: str) -> Answer:
    """Return an answer with every kind of part, all of it saying `text`."""
    table = Table(
        title="t",
        of="rows",
        headings=("a", "b"),
        rows=((Name(text), text), ((Name(text), Name(text)), text)),
        weight=Weight.CHANGED,
    )
    line = Line(text=text, mark="+")
    entry = Entry(text=text, mark=text, name=text, under=(text, text), below=(line, Line(text=text, is_code=True)))
    finding = Finding("GP1", text, Severity.ERROR, text, Span(text, 1, 1, 1, 2), text)
    parts: tuple[SectionPart, ...] = (
        table,
        *(Entries(of="thing", entries=(entry, entry), style=style) for style in Style),
        Findings(findings=(finding,), sources={}),
    )
    section = Section(key="k", title=text, weight=Weight.CHANGED, summary=text, parts=parts, notes=(text,))
    return Answer(
        verb="place",
        title="On",
        name=text,
        title_end=text,
        verdict=f"to {text}",
        sections=(section, section),
        notes=(text,),
        facts=(("fact", text),),
        source=text,
    )


def test_markdown_keeps_its_budget() -> None:
    table = Table(title="Rows", of="rows", headings=("a",), rows=tuple((str(n) * 20,) for n in range(5000)))
    folded = replace(table, title="Others", weight=Weight.SAME)
    section = Section(key="k", title="S", weight=Weight.CHANGED, parts=(table, folded))
    answer = Answer(verb="place", title="On", name="n", verdict="v", sections=(section,))
    text = markdown_of(answer, budget=6000)
    assert len(text.encode()) <= 6000
    assert "left out" in text
    assert text.index("| a |") < text.index("left out")
    assert page_of_markdown(text).tables[0][1] == ["0" * 20]


def test_a_text_keeps_the_notes_of_a_section_in_which_nothing_changes() -> None:
    section = Section(
        key="k", title="Redundancy", weight=Weight.SAME, summary="as before", notes=("group b: not known",)
    )
    answer = Answer(verb="plan", title="On", name="n", verdict="v", sections=(section,))
    assert "group b: not known" in text_of(answer)


def test_only_headings_are_painted_as_headings() -> None:
    """A column may be without a heading; what is new in it is red."""
    table = Table(title="Rows", of="rows", headings=("", "a"), rows=(("new", "b"),))
    answer = Answer(
        verb="plan", title="On", name="n", verdict="v", sections=(Section(key="k", title="S", parts=(table,)),)
    )
    lines = text_of(answer, colour=True).splitlines()
    assert any("[31mnew" in line for line in lines), lines


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (None, "-"), (0.0, "0 %"), (-0.04, "0 %"), (0.04, "0 %"), (-0.06, "-0.1 %"), (4.96, "+5 %"), (-5.0, "-5 %"),
        (9.94, "+9.9 %"), (9.96, "+10 %"), (-9.96, "-10 %"), (62.5, "+62 %"), (-1234.4, "-1,234 %"),
    ],
)  # fmt: skip
def test_a_share_has_the_decimals_of_what_is_shown(share: float | None, shown: str) -> None:
    assert percent(share) == shown
