"""The table of many clusters: a column for each figure that one of them has."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import replace

import pytest

from gpolicy.cli.many_clusters import show_fleet
from gpolicy.findings import Finding, Severity, Span
from gpolicy.printable import Tone
from gpolicy.provenance import UNKNOWN
from gpolicy.report.answer import Answer, Figure, Findings, Section
from gpolicy.report.fleet_report import ClusterReport, fleet_answer, fleet_markdown, fleet_pages, less_shared
from gpolicy.report.forms import COMMENT_BUDGET, Display


def _of(name: str, *figures: Figure) -> ClusterReport:
    answer = Answer(verb="plan", title="Plan", name=name, verdict="fine", figures=figures)
    return ClusterReport(name=name, labels={}, exit_code=0, answer=answer, data={})


def test_a_figure_that_only_some_clusters_have_has_a_column() -> None:
    changes, conflicts = Figure("changes", "1"), Figure("location conflicts", "2 new")
    answer = fleet_answer("plan", [_of("a", changes), _of("b", changes, conflicts)], UNKNOWN)
    (table,) = answer.sections[0].tables
    assert table.headings[-2:] == ("changes", "location conflicts")
    assert [row[-2:] for row in table.rows] == [("1", "-"), ("1", "2 new")]
    (table,) = fleet_answer("plan", [_of("a", changes), _of("b", conflicts)], UNKNOWN).sections[0].tables
    assert [row[-2:] for row in table.rows] == [("1", "-"), ("-", "2 new")]


@pytest.mark.parametrize(
    ("code", "tone", "expected"),
    [
        (0, Tone.GOOD, Tone.GOOD),
        (2, Tone.CAREFUL, Tone.CAREFUL),
        (1, Tone.GOOD, Tone.BAD),
        (3, Tone.GOOD, Tone.BAD),
        (0, None, Tone.BAD),
    ],
)
def test_the_tone_of_a_cluster(code: int, tone: Tone | None, expected: Tone) -> None:
    report = replace(_of("a"), exit_code=code)
    answer = None if tone is None or report.answer is None else replace(report.answer, tone=tone)
    found = replace(report, answer=answer, error="gone")
    assert found.tone is expected
    assert found.verdict == ("gone" if answer is None else "fine")
    assert found.is_quiet is (expected is Tone.GOOD)


def test_the_worst_come_first_and_those_without_news_are_one_row() -> None:
    def changing(name: str, tone: Tone = Tone.GOOD) -> ClusterReport:
        report = _of(name)
        return replace(report, answer=report.answer and replace(report.answer, amount="1 change", tone=tone))

    gone = ClusterReport(name="gone", labels={}, exit_code=3, error="no answer")
    reports = [*(_of(f"c{number}") for number in range(40)), changing("new"), changing("worse", Tone.CAREFUL), gone]
    answer = fleet_answer("plan", reports, UNKNOWN)
    assert answer.verdict == ("1 could not be looked at: gone; 1 gets worse: worse; 1 changes: new; 40 are fine")
    assert [(figure.name, figure.value) for figure in answer.figures] == [
        *(("clusters", "43"), ("fine", "40"), ("not looked at", "1"), ("get worse", "1"), ("change", "1")),
    ]
    (table,) = answer.sections[0].tables
    assert [row[0] for row in table.rows] == ["gone", "worse", "new", "40 others"]
    (whole,) = fleet_answer("plan", reports, UNKNOWN, every=True).sections
    assert whole.never_cut
    checked = [_of(f"c{number}", Figure("error", "0"), Figure("warning", "0")) for number in range(40)]
    (table,) = fleet_answer("check", checked, UNKNOWN).sections[0].tables
    assert [row[0] for row in table.rows] == ["all 40"]
    assert len(whole.tables[0]) == whole.tables[0].most == 43


def with_findings(name: str, *found: Finding) -> ClusterReport:
    report = _of(name)
    sections = (Section("findings", "Findings", [Findings(found, {})]),)
    return replace(report, exit_code=1, answer=report.answer and replace(report.answer, sections=sections))


def test_what_clusters_share_is_said_once() -> None:
    place = Span("base.yaml", 3, 1, 3, 2)
    both, own = (Finding(code, "n", Severity.ERROR, "wrong", place) for code in ("GP201", "GP202"))

    reports = [with_findings("a", both, own), with_findings("b", both)]
    answer = fleet_answer("check", reports, UNKNOWN)
    (part,) = answer.sections[1].parts
    assert isinstance(part, Findings)
    assert [item.message for item in part.findings] == ["wrong (in a, b)"]
    assert answer.next == ("a, b: base.yaml:3:1: GP201 wrong",)
    left = [section.parts for item in less_shared(reports) if item.answer for section in item.answer.sections]
    assert left == [(Findings([own], {}),), ()]


def test_what_clusters_share_has_what_follows_in_any_of_them() -> None:
    base = Finding("GP201", "n", Severity.ERROR, "wrong", Span("base.yaml", 3, 1, 3, 2))
    ours = [Finding("GP202", "n", Severity.ERROR, f"wrong in {name}") for name in ("a", "b")]
    reports = [with_findings(item.message[-1], replace(base, consequences=(item,))) for item in ours]
    (part,) = fleet_answer("check", reports, UNKNOWN).sections[1].parts
    assert isinstance(part, Findings)
    assert [finding.consequences for finding in part.findings] == [tuple(ours)]


def test_a_comment_is_short_however_many_clusters_there_are() -> None:
    reports = [replace(_of(f"cluster{number}.example.org"), exit_code=1) for number in range(3000)]
    text = fleet_markdown(fleet_answer("plan", reports, UNKNOWN), reports, Display(form="markdown"))
    assert COMMENT_BUDGET - 2000 < len(text.encode()) <= COMMENT_BUDGET


def test_a_verb_and_a_name_of_a_part_are_escaped() -> None:
    reports = [replace(_of("other"), name="[a](b) -->", exit_code=1)]
    text = fleet_markdown(fleet_answer("plan --> [x](y)", reports, UNKNOWN), reports, Display(form="markdown"))
    assert text.startswith("<!-- gpolicy plan----x-y- -->\n")
    assert ("[x](y)" in text, "### [a](b)" in text) == (False, False)


def test_no_cluster_is_not_fine() -> None:
    answer = fleet_answer("plan", [], UNKNOWN)
    assert (answer.first_line, answer.colour) == ("no cluster was looked at", Tone.PLAIN)


def test_the_page_of_the_table_is_html_only() -> None:
    reports = [replace(_of("a"), exit_code=1)]
    text = io.StringIO()
    with redirect_stdout(text):
        show_fleet(fleet_answer("plan", reports, UNKNOWN), reports, Display(form="html"), "plan")
    assert text.getvalue().rstrip().endswith("</html>")


def test_a_cluster_named_index_keeps_its_page() -> None:
    reports = [replace(_of(name), page=f"the page of {name}") for name in ("index", "_index", "a")]
    pages = fleet_pages(fleet_answer("plan", reports, UNKNOWN), reports)
    assert {name: text for name, text in pages.items() if len(text) < 100} == {
        f"{name}.html": f"the page of {name}" for name in ("index", "_index", "a")
    }
    assert 'href="index.html"' in pages["__index.html"]
