"""Random clusters with conflicts, and their remedies."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.pair_names import PairNames
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.remedy.remedy import RemedyReport, find_remedy
from tests.htools.random_clusters import random_cluster

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)


def broken(seed: int, folder: Path) -> ClusterState:
    """Return a random cluster, its conflicts and all; skip one that cannot be counted."""
    rng = random.Random(seed)
    made = random_cluster(rng, rng.choice(["drbd", "drbd", "sharedfile", "plain"]), 9, sound=rng.random() < 0.7)
    file = folder / "cluster.txt"
    file.write_text(made.text)
    state = read_state(f"text:{file}", SourceOptions())
    if any((item.disk_template == "drbd") != bool(item.secondary_nodes) for item in state.instances.values()):
        pytest.skip("DRBD instances alone have a secondary node in Ganeti")
    try:
        load_state(state)
    except GpolicyError as error:
        pytest.skip(error.message)
    return state


def remedied(state: ClusterState) -> RemedyReport:
    return find_remedy(state, PairNames(), rate=60, seconds=600, tell=lambda _: None)
