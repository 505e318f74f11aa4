"""What redundancy loses is marked worse: the section, its tables and its words."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.impact.impact import GroupRedundancyChange, RedundancyChange
from gpolicy.report.answer import Section, Table, Weight, plain_text
from gpolicy.report.redundancy_section import redundancy_section
from tests.report.impact_samples import SCORE

GROUP = "default"


def _survives(number: int, *losses: Loss, nodes: int = 5) -> GroupRedundancy:
    return GroupRedundancy(GROUP, nodes, 2, number, losses, (), 15)


def _section(before: GroupRedundancy | None, after: GroupRedundancy | None) -> Section:
    return redundancy_section(RedundancyChange(2, (GroupRedundancyChange(GROUP, before, after),), SCORE, SCORE))


def _table(section: Section, title: str) -> Table:
    (found,) = (table for table in section.tables if table.title.startswith(title))
    return found


def test_a_redundancy_that_falls_is_marked_worse() -> None:
    section = _section(_survives(2), _survives(1))
    assert section.weight is Weight.WORSE
    assert section.worse == "today group default survives the loss of 2 nodes, after of 1 node"
    assert section.summary == section.worse
    (table,) = section.tables
    assert table.weight is Weight.WORSE
    assert [[plain_text(cell) for cell in row] for row in table.rows] == [["default", "5", "2 of 2", "1 of 2"]]


def test_a_redundancy_that_rises_is_a_change() -> None:
    section = _section(_survives(1), _survives(2))
    assert section.weight is Weight.CHANGED
    assert section.worse == ""
    assert section.summary == "today group default survives the loss of 1 node, after of 2 nodes"


def test_a_group_that_loses_its_last_node_has_no_redundancy_to_lose() -> None:
    section = _section(_survives(1), _survives(0, nodes=0))
    assert (section.weight, section.worse, section.tables) == (Weight.SAME, "", ())


def test_the_same_redundancy_is_no_row() -> None:
    section = _section(_survives(1), _survives(1))
    assert (section.weight, section.worse, section.tables) == (Weight.SAME, "", ())
    assert section.summary == "every loss of up to 2 nodes that is absorbed today is absorbed after"


def test_each_component_of_the_score_that_changes_is_a_row() -> None:
    first, *rest = SCORE.components
    after = replace(SCORE, total=SCORE.total + 1, components=(replace(first, weight=first.weight + 1), *rest))
    (table,) = redundancy_section(RedundancyChange(2, (), SCORE, after)).tables
    assert [plain_text(row[0]) for row in table.rows] == ["cluster score", "theoretical minimum", first.name]
    assert [plain_text(cell) for cell in table.rows[0][1:]] == [SCORE.shown, after.shown]
    assert table.rows[2][1] != table.rows[2][2]
    (table,) = redundancy_section(RedundancyChange(2, (), SCORE, replace(after, components=tuple(rest)))).tables
    assert plain_text(table.rows[2][2]) == "-"
