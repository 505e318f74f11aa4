"""An evacuation that ends early has hail's answers as far as it came, and says that the rest was not looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.evacuate.evacuating import find_evacuation
from gpolicy.evacuate.evacuation import EvacuationReport, EvacuationRequest
from gpolicy.ganeti.vocabulary import Value
from gpolicy.progress import after
from gpolicy.report.evacuate_answer import evacuate_answer

REQUEST = EvacuationRequest(nodes="node2", mode=EvacuationMode.PRIMARY, ignore_soft_errors=True)


def two_groups() -> ClusterState:
    file = Path(__file__).parents[2] / "policies" / "two-groups.snapshot.json"
    return read_state(f"snapshot:{file}", SourceOptions())


def moved(report: EvacuationReport) -> dict[str, tuple[str, ...]]:
    return {item.instance: item.nodes_after for item in report.moved}


def test_without_time_everything_stays() -> None:
    whole = find_evacuation(two_groups(), REQUEST)
    report = find_evacuation(two_groups(), REQUEST, stop=after(0))
    assert whole.exhaustive
    assert whole.moved
    assert (report.moved, report.exhaustive) == ((), False)
    assert {item.instance for item in report.stays} >= moved(whole).keys()
    assert {item.reason for item in report.stays} == {"not looked at: the search ended early"}
    assert any("ended early" in note for note in evacuate_answer(report).notes)


def test_ctrl_c_keeps_what_hail_has_answered() -> None:
    told: list[str] = []

    def stop(what: str) -> None:
        told.append(what)
        if len(told) == 3:
            raise KeyboardInterrupt

    report = find_evacuation(two_groups(), REQUEST, stop)
    assert not report.exhaustive
    assert set(moved(report)) == set(told[:2])
    assert moved(report).items() <= moved(find_evacuation(two_groups(), REQUEST)).items()
    assert told[2] in {item.instance for item in report.stays}


def test_pictures_show_the_disk_that_there_is_whatever_ganeti_reports_to_hail() -> None:
    state = two_groups()
    own: dict[tuple[str, ...], Value] = {**state.cluster.own, ("enabled_disk_templates",): ["sharedfile", "drbd"]}
    first_is_shared = replace(state, cluster=replace(state.cluster, own=own))
    assert find_evacuation(first_is_shared, REQUEST).nodes_before == find_evacuation(state, REQUEST).nodes_before
