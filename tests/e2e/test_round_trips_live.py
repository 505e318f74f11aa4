"""Random policies on a real cluster: carried out, changed for others, and taken back to the very configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from gpolicy.cluster.state import ClusterState
from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy
from tests.e2e.live_policies import live_policies
from tests.ganeti.real_ganeti import RELEASE
from tests.strategies import Document

pytestmark = pytest.mark.e2e

FEW, MANY, BLOCK = int(os.environ.get("GPOLICY_E2E_CASES", "12")), 100, 10
TRIES, MOST_STEPS, ENOUGH = 50, 4, 8
HIDDEN = ("hv_state.", "disk_state.")


def random_policy(state: ClusterState, number: int, *, every_node: bool) -> list[Document]:
    """Return one of the policies that hypothesis makes for a state, by number.

    One draw at a time: the cluster's state decides what can be drawn next, and hypothesis itself would call that a
    flaw of the test.
    """
    drawn: list[list[Document]] = []

    @seed(number)
    @settings(
        max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(live_policies(state, every_node=every_node))
    def draw(documents: list[Document]) -> None:
        drawn.append(documents)

    draw()
    return drawn[-1]  # the first one is always the simplest


def carry_one_out(way: Way, directory: Path, number: int) -> Path:
    """Carry a random policy out that changes something here and can be done here; return its plan.

    One in ten may be large. Of the others it takes the first small one, or else the smallest.
    """
    large, found = number % 10 == 0, dict[Path, int]()
    policy, plan = directory / f"{number}.yaml", directory / f"{number}.json"
    for attempt in range(TRIES):
        tried = directory / f"{number}-{attempt}.yaml"
        write_policy(tried, random_policy(way.cluster.state(), number * TRIES + attempt, every_node=large))
        if way.plan(tried, plan, state=way.cluster.sources["config"]).code == 2:
            found[tried] = steps(plan)
            if large or found[tried] <= MOST_STEPS or len(found) == ENOUGH:
                break
    min(found, key=lambda file: found[file]).rename(policy)
    assert way.carry_out(policy, plan)
    return plan


def round_trip(cluster: LiveCluster, number: int, route: str, directory: Path) -> None:
    """apply(A), apply(B), and back again; after each, the plan is empty, and at the end all is as it was.

    RAPI shows no state parameters. There a plan that sets some is taken back at once: when another plan has changed the
    same objects meanwhile, nobody could tell whether the values are still those of this plan, and it is refused.
    """
    way, before = Way(cluster, route), content(cluster.config())
    plans: list[Path] = []
    for own in (2 * number, 2 * number + 1):
        plan = carry_one_out(way, directory, own)
        if route == "rapi" and sets_what_rapi_hides(plan):
            take_back(way, plan)
        else:
            plans.append(plan)
    for plan in reversed(plans):
        take_back(way, plan)
    assert differing(before, content(cluster.config())) == [], f"policies {number}"


def steps(plan: Path) -> int:
    return len(json.loads(plan.read_text(encoding="utf-8"))["steps"])


def sets_what_rapi_hides(plan: Path) -> bool:
    changes = json.loads(plan.read_text(encoding="utf-8"))["changes"]
    return any(change["path"].startswith(HIDDEN) for change in changes)


def take_back(way: Way, plan: Path) -> None:
    back = way.apply(plan, "--rollback")
    assert back.code == 0, f"{plan.name}: {back.err}{back.out}"


def first_number(route: str) -> int:
    """Return where the numbers of policies begin: each way, and each release, has its own."""
    return ROUTES.index(route) * 100_000 + (0 if RELEASE == "3.0" else 1_000_000)


@pytest.mark.parametrize("number", range(FEW))
@pytest.mark.parametrize("route", ROUTES)
def test_random_policies_there_and_back(fresh: LiveCluster, tmp_path: Path, route: str, number: int) -> None:
    round_trip(fresh, first_number(route) + number, route, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, BLOCK))
@pytest.mark.parametrize("route", ROUTES)
def test_many_random_policies_there_and_back(fresh: LiveCluster, tmp_path: Path, route: str, first: int) -> None:
    for number in range(first, first + BLOCK):
        round_trip(fresh, first_number(route) + number, route, tmp_path)


@pytest.mark.parametrize("source", ["config", "local", "rapi"])
def test_adopting_the_real_cluster_plans_to_nothing(cluster: LiveCluster, tmp_path: Path, source: str) -> None:
    address = cluster.sources[source]
    trust = cluster.rapi_options(address)
    adopted = gpolicy("adopt", "--state", address, "--save", tmp_path / "p", *trust)
    assert adopted.code == 0, adopted
    planned = gpolicy("plan", tmp_path / "p", "--state", address, *trust, "--detailed-exitcode")
    assert planned.code == 0, planned
    drift = gpolicy("drift", tmp_path / "p", "--state", address, *trust)
    assert drift.code == 0, drift
