"""The table of many clusters: a column for each figure that one of them has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.colour import Tone
from gpolicy.provenance import UNKNOWN
from gpolicy.report.answer import Answer, Figure
from gpolicy.report.fleet_report import ClusterReport, fleet_answer, fleet_pages


def _of(name: str, *figures: Figure) -> ClusterReport:
    answer = Answer(verb="plan", title="Plan", name=name, verdict="fine", figures=figures)
    return ClusterReport(name=name, labels={}, exit_code=0, answer=answer, data={})


def test_a_figure_that_only_some_clusters_have_has_a_column() -> None:
    changes, conflicts = Figure("changes", "1"), Figure("location conflicts", "2 new")
    answer = fleet_answer("plan", [_of("a", changes), _of("b", changes, conflicts)], UNKNOWN)
    (table,) = answer.sections[0].tables
    assert table.headings[-2:] == ("changes", "location conflicts")
    assert [row[-2:] for row in table.rows] == [("1", "-"), ("1", "2 new")]


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


def test_the_table_of_clusters_is_never_cut() -> None:
    (section,) = fleet_answer("plan", [_of(f"c{number}") for number in range(40)], UNKNOWN).sections
    assert section.never_cut
    assert section.tables[0].most == 40


def test_a_cluster_named_index_keeps_its_page() -> None:
    reports = [replace(_of(name), page=f"the page of {name}") for name in ("index", "_index", "a")]
    pages = fleet_pages(fleet_answer("plan", reports, UNKNOWN), reports)
    assert {name: text for name, text in pages.items() if len(text) < 100} == {
        f"{name}.html": f"the page of {name}" for name in ("index", "_index", "a")
    }
    assert 'href="index.html"' in pages["__index.html"]
