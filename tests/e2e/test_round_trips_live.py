"""Random policies on a real cluster: carried out, changed for others, and taken back to the very configuration."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from carried_out import ROUTES, Way, write_policy
from hypothesis import HealthCheck, Phase, given, seed, settings
from live_cluster import LiveCluster, content, differing, gpolicy
from live_policies import live_policies
from strategies import Document

from gpolicy.cluster.state import ClusterState

pytestmark = pytest.mark.e2e

CASES = {"few": int(os.environ.get("GPOLICY_E2E_CASES", "2")), "many": 150}


def random_policy(state: ClusterState, number: int) -> list[Document]:
    """Return one of the policies that hypothesis makes for a state, by number.

    One draw at a time: what the cluster is by then decides what can be drawn next, which hypothesis itself takes for
    a flaw of the test.
    """
    drawn: list[list[Document]] = []

    @seed(number)
    @settings(
        max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(live_policies(state))
    def draw(documents: list[Document]) -> None:
        drawn.append(documents)

    draw()
    return drawn[-1]  # the first one is always the simplest


def round_trip(cluster: LiveCluster, number: int, route: str) -> int:
    """apply(A), apply(B), and back again; after each, the plan is empty, and at the end all is as it was.

    Return how many plans were carried out.
    """
    way = Way(cluster, route)
    before = content(cluster.config())
    with tempfile.TemporaryDirectory() as directory:
        plans: list[Path] = []
        for name, own in (("a", 2 * number), ("b", 2 * number + 1)):
            policy = write_policy(Path(directory, f"{name}.yaml"), random_policy(cluster.state(), own))
            planned = way.plan(policy, state=cluster.sources["config"])
            if planned.code == 1:  # what the policy asks cannot be done here; nothing is: that is shown elsewhere
                continue
            if way.carry_out(policy, Path(directory, f"{name}.json")):
                plans.append(Path(directory, f"{name}.json"))
        for plan in reversed(plans):
            back = way.apply(plan, "--rollback")
            assert back.code == 0, f"policies {number}: {back.err}{back.out}"
    assert differing(before, content(cluster.config())) == [], f"policies {number}"
    return len(plans)


def run_round_trips(cluster: LiveCluster, route: str, cases: int) -> None:
    first = ROUTES.index(route) * 100_000
    assert sum(round_trip(cluster, first + number, route) for number in range(cases)) >= cases


@pytest.mark.parametrize("route", ROUTES)
def test_random_policies_there_and_back(fresh: LiveCluster, route: str) -> None:
    run_round_trips(fresh, route, CASES["few"])


@pytest.mark.full
@pytest.mark.parametrize("route", ROUTES)
def test_many_random_policies_there_and_back(fresh: LiveCluster, route: str) -> None:
    run_round_trips(fresh, route, CASES["many"])


@pytest.mark.parametrize("source", ["config", "local", "rapi"])
def test_adopting_the_real_cluster_plans_to_nothing(cluster: LiveCluster, tmp_path: Path, source: str) -> None:
    address = cluster.sources[source]
    trust = cluster.rapi_options(address)
    adopted = gpolicy("adopt", "--state", address, "-o", tmp_path / "p", *trust)
    assert adopted.code == 0, adopted
    planned = gpolicy("plan", tmp_path / "p", "--state", address, *trust, "--detailed-exitcode")
    assert planned.code == 0, planned
    drift = gpolicy("drift", tmp_path / "p", "--state", address, *trust)
    assert drift.code == 0, drift
