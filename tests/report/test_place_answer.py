"""Candidates by what they break of larger sizes, or by their score; the same as JSON."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.report.place_answer import PLACE_DOCUMENT, place_answer
from tests.analysis.test_placing import dedicated, of_pair

REPORT = of_pair(dedicated([0, 1, 2, 3]), "quarter")


def _headings(report: object) -> set[str]:
    answer = place_answer(report)  # type: ignore[arg-type]
    return {heading for section in answer.sections for table in section.tables for heading in table.headings}


def test_the_heading_names_the_sizes_that_are_lost() -> None:
    assert "lost allocations (full, half, quarter)" in _headings(REPORT)
    assert "lost allocations" in _headings(replace(REPORT, sizes=()))
    assert "score" in _headings(replace(REPORT, metric="score"))


def test_json_has_the_groups_and_the_metric() -> None:
    data = PLACE_DOCUMENT.data(REPORT)
    assert [item["group"] for item in data["groups"]] == ["g"]
    assert data["metric"]["name"] == "lost-allocations"
    assert data["metric"]["sizes"] == ["full", "half", "quarter"]
    assert [item["nodes"] for item in data["candidates"]] == [list(item.nodes) for item in REPORT.candidates]
