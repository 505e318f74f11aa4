"""The verdict on a roll-out as a whole, and on each cluster."""

from __future__ import annotations

import pytest

from gpolicy.provenance import Provenance
from gpolicy.report.rollout_answer import rollout_index, rollout_report
from gpolicy.rollout.rollout_run import PlanStage, RolledOut


def _cluster(name: str, stage: PlanStage) -> RolledOut:
    return RolledOut(name=name, labels={}, wave="first", stage=stage, plan="p.json", plan_digest="d", journal="j")


@pytest.mark.parametrize(
    ("stages", "back", "verdict"),
    [
        ([PlanStage.DONE, PlanStage.UNTOUCHED], False, "1 not begun, 1 done"),
        ([PlanStage.DONE, PlanStage.DONE], False, "2 done"),
        ([PlanStage.BACK, PlanStage.UNTOUCHED], True, "taken back: 1 not begun, 1 taken back"),
        ([PlanStage.BACK, PlanStage.PARTLY_BACK], True, "1 partly taken back, 1 taken back"),
        ([PlanStage.EMPTY], True, "taken back: 1 nothing to do"),
    ],
)
def test_the_verdict_counts_plans_by_stage(stages: list[PlanStage], verdict: str, *, back: bool) -> None:
    clusters = [_cluster(f"c{number}", stage) for number, stage in enumerate(stages)]
    reports = [rollout_report(item, back=back) for item in clusters]
    answer = rollout_index(clusters, reports, Provenance(), ["go on"], back=back)
    assert answer.verdict == verdict
    count = "1 plan" if len(stages) == 1 else f"{len(stages)} plans"
    assert answer.title == f"{'Rollback' if back else 'Roll-out'} of {count}"
    assert answer.notes == ("go on",)
    assert [row[0] for row in answer.sections[0].tables[0].rows] == [item.name for item in clusters]


def test_the_table_of_clusters_is_never_cut() -> None:
    clusters = [_cluster(f"c{number}", PlanStage.DONE) for number in range(40)]
    reports = [rollout_report(item, back=False) for item in clusters]
    (section,) = rollout_index(clusters, reports, Provenance(), [], back=False).sections
    assert section.never_cut
    assert section.tables[0].most == 40
