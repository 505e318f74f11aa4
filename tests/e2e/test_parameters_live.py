"""Every parameter at every level that has it: set, changed and reset on a real cluster, by both ways to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.commands import only_route
from gpolicy.ganeti.vocabulary import Level, Path as ValuePath, Values
from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import LiveCluster
from tests.e2e.parameter_values import (
    ALONE,
    GROUP,
    INHERIT,
    NODE,
    alone_values,
    concrete,
    first_values,
    levels,
    only,
    policy_documents,
    stored,
    written_values,
)
from tests.e2e.proven import Proof, read_proofs, write_proofs
from tests.ganeti.real_ganeti import RELEASE

pytestmark = pytest.mark.e2e

Wanted = dict[Level, dict[ValuePath, Any]]


def own_values(state: ClusterState, level: Level) -> Values:
    match level:
        case Level.CLUSTER:
            return state.cluster.own
        case Level.GROUP:
            return state.groups[GROUP].own
    return state.nodes[NODE].own


def seen(cluster: LiveCluster, wanted: Wanted) -> set[tuple[str, Level]]:
    """Return the parameters that every source that can show them shows as wanted; fail with those that are not."""
    wrong: list[str] = []
    found: set[tuple[str, Level]] = set()
    for source in cluster.sources:
        state = cluster.state(source)
        for level, values in wanted.items():
            own = own_values(state, level)
            for path, written in values.items():
                if not state.readable(level, path):
                    continue
                there, want = (path in own, own.get(path)), (written != INHERIT, written)
                if there[0] != want[0] or (there[0] and there[1] != stored(path, written)):
                    wrong.append(f"{source} {level} {'.'.join(path)}: wanted {written!r}, found {there[1]!r}")
                found.add((".".join(path), level))
    assert wrong == []
    return found


def by_way(route: str, values: Wanted) -> Wanted:
    """Return what this way can carry: two parameters can be set by one of the ways alone."""
    other = {"local": "rapi", "rapi": "argv"}[route]
    return only(lambda path: only_route(path, version=RELEASE) != other, values)


@pytest.mark.parametrize("route", ROUTES)
def test_every_parameter_is_set_changed_and_reset(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    """Many parameters go in each plan: 334 values in five or six jobs."""
    way, store = Way(fresh, route), str(fresh.base / "store")
    first = first_values(fresh.state())
    together = only(lambda path: path not in ALONE, first)
    runs = [
        ("set", written_values(0, store)),
        ("changed", written_values(1, store)),
        ("reset", together),
        ("set", alone_values(0)),
        ("changed", alone_values(1)),
        ("reset", only(lambda path: path in ALONE, first)),
    ]
    proof = Proof(RELEASE, route)
    for number, (what, values) in enumerate(runs):
        wanted = by_way(route, values)
        policy = write_policy(tmp_path / f"{number}.yaml", policy_documents(fresh.state(), wanted))
        assert way.carry_out(policy, tmp_path / f"{number}.json")
        way.expect_nothing_left(policy, tuple(fresh.sources))
        for name, level in seen(fresh, wanted):
            proof.add(name, level, what)
    proof.complete([(".".join(concrete(item.path)), level) for item, level in levels()])
    if os.environ.get("GPOLICY_E2E_RECORD"):
        write_proofs(proof)
    assert read_proofs()[RELEASE][route] == proof.as_json(), "run scripts/e2e with --record"
