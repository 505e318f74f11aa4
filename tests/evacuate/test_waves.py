"""Waves of nodes on random clusters: no constraint is broken in any step, and hroller's groups are no fewer."""

from __future__ import annotations

import contextlib

import pytest

from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.evacuate.clearing import Cleared, Clearing, Refused
from gpolicy.evacuate.evacuation import EvacuationRequest
from gpolicy.evacuate.in_turn import find_waves
from tests.evacuate.all_upgrades import upgradable
from tests.evacuate.waves_replayed import check_waves
from tests.remedy.broken_clusters import ImpossibleError, broken
from tests.remedy.small_clusters import small_cluster


def check_random(seed: int) -> None:
    state = broken(seed)
    report = find_waves(state, EvacuationRequest())
    check_waves(state, report)
    assert [bool(wave.waits) for wave in report.waves] == [number > 0 for number in range(len(report.waves))]


@pytest.mark.parametrize("seed", range(18))
def test_waves_of_random_clusters(seed: int) -> None:
    with contextlib.suppress(ImpossibleError):
        check_random(seed)


@pytest.mark.parametrize("seed", range(10))
def test_waves_of_small_clusters(seed: int) -> None:
    state, _ = small_cluster(seed)
    check_waves(state, find_waves(state, EvacuationRequest()))


POLICY = "128,1,1024,1,1,1|64,1,256,1,1,1;65536,16,1048576,4,8,12|rbd,plain|8.0|64.0"


def half_full_on_shared_storage(count: int) -> ClusterState:
    """Return a cluster whose instances, in half of each node's memory, may start on any node of the group."""
    sizes = [[8192, 8192, 8192, 6144], [4096] * 8, [2048] * 14]
    own = [sizes[no % 3] for no in range(count)]
    nodes = [
        f"node{no}|65536|1024|{64512 - sum(mine)}|2097152|2097152|32|N|u0|1||N|0|0|1.0" for no, mine in enumerate(own)
    ]
    rows = [
        f"inst{no}-{number}|{size}|20480|1|running|Y|node{no}||rbd||1|-|N"
        for no, mine in enumerate(own)
        for number, size in enumerate(mine)
    ]
    text = "\n".join(["g|u0|preferred||", "", *nodes, "", *rows, "", "", f"|{POLICY}", f"g|{POLICY}", ""])
    return parse_text(text, where="a text", source="text:shared")


def test_nodes_on_shared_storage_go_in_few_waves() -> None:
    """Hardly half of the nodes can go at once; N+1 is looked at of many together."""
    state = half_full_on_shared_storage(24)
    report = find_waves(state, EvacuationRequest())
    check_waves(state, report)
    assert [len(wave.nodes) for wave in report.waves] == [11, 11, 2]
    assert [wave.waits.partition(" if ")[0] for wave in report.waves] == ["", "N+1:", "N+1:"]


def test_no_more_nodes_are_tried_once_several_in_a_row_were_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[int]()
    join = Clearing.join

    def counted(self: Clearing, here: Cleared, index: int, *, careful: bool) -> Cleared | Refused:
        tried.extend([index] if careful else [])
        return join(self, here, index, careful=careful)

    monkeypatch.setattr(Clearing, "join", counted)
    report = find_waves(half_full_on_shared_storage(40), EvacuationRequest())
    assert sum(len(wave.nodes) for wave in report.waves) == 40
    assert 8 <= len(tried) < 40


@pytest.mark.full
def test_waves_of_many_random_clusters() -> None:
    for seed in (*range(18, 120), 207, 245):
        with contextlib.suppress(ImpossibleError):
            check_random(seed)
            upgrade = upgradable(broken(seed))
            check_waves(upgrade, find_waves(upgrade, EvacuationRequest()))
