"""The figures that come first in a plan, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.impact.impact import Compared, GroupRedundancyChange, Impact, LocationChange, RedundancyChange
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.plan import Plan
from gpolicy.policy.kinds import Measure
from gpolicy.printable import Tone
from gpolicy.report.answer import Figure, Section, Weight
from gpolicy.report.impact_sections import impact_section
from gpolicy.report.plan_answer import plan_answer, plan_figures
from tests.plan.planned import cluster, plan_for
from tests.report.impact_samples import SCORE, location, remedy_change

PLAN = plan_for(cluster(), "Cluster\nname: cluster.example.org\nmax_running_jobs: 3")
GOOD, BAD = GuardResult("disks-stay", True, "fine"), GuardResult("right-cluster", False, "another")
OVERRIDDEN = GuardResult("master-network", True, "moved", allowed=True)


def _figures(impact: Impact, plan: Plan = PLAN) -> dict[str, Figure]:
    return {item.name: item for item in plan_figures(plan, impact, impact_section(impact).sections)}


def _redundancy(*sides: tuple[int, int], unmirrored: int = 0, split: int = 0) -> Impact:
    """Return the impact on groups that survive so many losses before and after."""
    groups = []
    for number, (now, then) in enumerate(sides):
        after = GroupRedundancy(f"g{number}", 3, 2, then, (), (), 1, unmirrored=unmirrored, split=split)
        groups.append(GroupRedundancyChange(f"g{number}", replace(after, survives=now, unmirrored=9, split=9), after))
    return Impact(redundancy=RedundancyChange(2, tuple(groups), SCORE, SCORE))


@pytest.mark.parametrize(
    ("sides", "value", "tone"),
    [
        ([(1, 1)], "1 node", Tone.GOOD),
        ([(2, 1), (1, 1)], "1 node", Tone.BAD),
        ([(2, 1)], "2 → 1 node", Tone.BAD),
        ([(1, 2)], "1 → 2 nodes", Tone.PLAIN),
    ],
)
def test_redundancy_is_that_of_the_weakest_group(sides: list[tuple[int, int]], value: str, tone: Tone) -> None:
    found = _figures(_redundancy(*sides))["node failures"]
    assert (found.value, found.tone, found.about) == (value, tone, "redundancy")
    worse = tone is Tone.BAD
    assert found.detail.endswith("; of each group may fail") is worse
    assert found.detail.startswith("of each group may fail; ") is not worse


@pytest.mark.parametrize(
    ("unmirrored", "split", "said"),
    [
        (0, 0, ""),
        (1, 0, "; 1 without a mirror stays down"),
        (0, 1, "; 1 instance with the mirror in another group counts as if without"),
        (2, 0, "; 2 without a mirror stay down"),
        (0, 3, "; 3 instances with the mirror in another group count as if without"),
    ],
)
def test_instances_that_redundancy_says_nothing_of(unmirrored: int, split: int, said: str) -> None:
    impact = _redundancy((1, 1), unmirrored=unmirrored, split=split)
    summary = impact_section(impact).sections
    (section,) = (item for item in summary if item.key == "redundancy")
    assert _figures(impact)["node failures"].detail == f"of each group may fail{said}; {section.summary}"


def test_conflicts_of_location_name_their_cure() -> None:
    assert "location conflicts" not in _figures(Impact(location=LocationChange()))
    new = LocationChange(shared_domains=Compared(new=location().shared_domains.still))
    found = _figures(Impact(location=new))["location conflicts"]
    assert (found.value, "remedy" in found.detail) == ("1 new", False)
    found = _figures(Impact(location=new, remedy=remedy_change()))["location conflicts"]
    assert "; remedy: " in found.detail
    old = LocationChange(shared_domains=location().shared_domains)
    gone = replace(old, shared_domains=replace(old.shared_domains, new=()))
    found = _figures(Impact(location=gone, remedy=remedy_change()))["location conflicts"]
    assert (found.value, "remedy" in found.detail) == ("0 new", False)


@pytest.mark.parametrize(
    ("guards", "value", "detail", "tone"),
    [
        ((), "none", "the policy declares none", Tone.PLAIN),
        ((GOOD,), "1 of 1 pass", "nothing is in the way", Tone.GOOD),
        ((GOOD, BAD), "1 of 2 fails", "", Tone.BAD),
        ((BAD, BAD, BAD), "3 of 3 fail", "", Tone.BAD),
        ((GOOD, OVERRIDDEN), "1 of 2 pass", "overridden: master-network: moved", Tone.CAREFUL),
        ((BAD, OVERRIDDEN), "1 of 2 fails", "", Tone.BAD),
    ],
)
def test_guards(guards: tuple[GuardResult, ...], value: str, detail: str, tone: Tone) -> None:
    found = _figures(Impact(), replace(PLAN, guards=guards))["guards"]
    assert (found.value, found.detail, found.tone) == (value, detail, tone)


@pytest.mark.parametrize(("guards", "weight"), [((GOOD,), Weight.CHANGED), ((GOOD, BAD), Weight.WORSE)])
def test_one_guard_that_fails_makes_its_section_worse(guards: tuple[GuardResult, ...], weight: Weight) -> None:
    answer = plan_answer(replace(PLAN, guards=guards))
    (section,) = (item for item in answer.sections if item.key == "guards")
    assert section.weight is weight
    assert answer.tone is (Tone.GOOD if weight is Weight.CHANGED else Tone.BAD)


def test_what_is_not_known_says_why() -> None:
    found = _figures(Impact(unavailable={"capacity": "no memory"}))
    assert [(found[name].value, found[name].detail) for name in ("capacity", "node failures")] == [
        ("?", "not known: no memory"),
        ("?", "not known: not computed"),
    ]


def test_figures_have_the_names_of_the_measures_of_guards() -> None:
    measures = (Measure.NEWLY_VIOLATING, Measure.CAPACITY_LOSS, Measure.NODE_FAILURES)
    words = [measure.value.removesuffix("_loss").replace("_", " ") for measure in measures]
    assert list(_figures(Impact()))[1:4] == words


def test_guards_that_pass_are_not_good_news_beside_what_gets_worse() -> None:
    found = {item.name: item for item in plan_figures(replace(PLAN, guards=(GOOD,)), Impact(), [])}["guards"]
    assert found.tone is Tone.GOOD
    impact = _redundancy((2, 1))
    worse = {item.name: item for item in plan_figures(replace(PLAN, guards=(GOOD,)), impact, _sections(impact))}[
        "guards"
    ]
    assert (worse.tone, worse.detail) == (Tone.PLAIN, "none of them stops it")


def _sections(impact: Impact) -> tuple[Section, ...]:
    return impact_section(impact).sections


@pytest.mark.parametrize(
    ("detail", "short"),
    [
        ("", ""),
        ("of each group may fail; every loss is absorbed", "of each group may fail"),
        (f"{'long ' * 12}; in short", "in short"),
        ("x" * 60, "x" * 47 + "…"),
    ],
)
def test_a_tile_has_a_short_clause(detail: str, short: str) -> None:
    assert Figure("a", "1", detail).short == short


def test_a_plan_says_whether_there_is_a_way_back() -> None:
    assert "way back: the step can be undone" in plan_answer(PLAN).looked_at
    (step,) = PLAN.steps
    lost = replace(step, inverse=replace(step.inverse, not_restored=("a stays",)))
    said = plan_answer(replace(PLAN, steps=(lost,))).looked_at
    assert f"no full way back: 1 step of 1 cannot be undone ({step.title})" in said


def test_hours_and_gigabytes_of_a_remedy_stand_at_the_top() -> None:
    said = plan_answer(PLAN, impact=Impact(remedy=remedy_change())).looked_at
    assert [text for text in said if text.startswith("remedy: ") and " to copy (about " in text]
