"""Random clusters with conflicts, and their remedies."""

from __future__ import annotations

import random
from functools import cache

from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError
from gpolicy.remedy.remedy import RemedyReport, find_remedy
from tests.htools.random_clusters import random_cluster

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)


class ImpossibleError(Exception):
    """A cluster that cannot be."""


@cache
def broken(seed: int) -> ClusterState:
    """Return a random cluster, its conflicts and all. Raise `ImpossibleError` for one that Ganeti cannot have."""
    rng = random.Random(seed)
    made = random_cluster(rng, rng.choice(["drbd", "drbd", "sharedfile", "plain"]), 9, sound=rng.random() < 0.7)
    state = parse_text(made.text, where="a text", source="text:random")
    if any((item.disk_template == "drbd") != bool(item.secondary_nodes) for item in state.instances.values()):
        raise ImpossibleError("DRBD instances alone have a secondary node in Ganeti")
    try:
        load_state(state)
    except GpolicyError as error:
        raise ImpossibleError(error.message) from None
    return state


@cache
def remedy_of(seed: int) -> RemedyReport:
    """Return the remedy of such a cluster."""
    return remedied(broken(seed))


def remedied(state: ClusterState) -> RemedyReport:
    """Return the remedy of a cluster."""
    return find_remedy(state, PairNames(), rate=60)
