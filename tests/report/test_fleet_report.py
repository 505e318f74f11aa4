"""The table of many clusters: a column for each figure that one of them has."""

from __future__ import annotations

from gpolicy.provenance import UNKNOWN
from gpolicy.report.answer import Answer, Figure
from gpolicy.report.fleet_report import ClusterReport, fleet_answer


def _of(name: str, *figures: Figure) -> ClusterReport:
    answer = Answer(verb="plan", title="Plan", name=name, verdict="fine", figures=figures)
    return ClusterReport(name=name, labels={}, exit_code=0, answer=answer, data={})


def test_a_figure_that_only_some_clusters_have_has_a_column() -> None:
    changes, conflicts = Figure("changes", "1"), Figure("location conflicts", "2 new")
    answer = fleet_answer("plan", [_of("a", changes), _of("b", changes, conflicts)], UNKNOWN)
    (table,) = answer.sections[0].tables
    assert table.headings[-2:] == ("changes", "location conflicts")
    assert [row[-2:] for row in table.rows] == [("1", "-"), ("1", "2 new")]
