"""Waves of nodes on random clusters: no constraint is broken in any step, and hroller's groups are no fewer."""

from __future__ import annotations

import contextlib

import pytest

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


@pytest.mark.full
def test_waves_of_many_random_clusters() -> None:
    for seed in (*range(18, 120), 207, 245):
        with contextlib.suppress(ImpossibleError):
            check_random(seed)
            upgrade = upgradable(broken(seed))
            check_waves(upgrade, find_waves(upgrade, EvacuationRequest()))
