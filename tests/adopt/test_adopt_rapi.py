"""A cluster adopted through the remote API: what it cannot show is not declared, and the plan is empty all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from gpolicy.adopt.adopting import adopt_cluster
from gpolicy.cluster.rapi import read_rapi
from gpolicy.cluster.rapi_client import Client
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.vocabulary import Value
from gpolicy.policy.loading import load_policy
from gpolicy.writing.new_files import write_files
from tests.plan.planned import make_plan

CLUSTERS = Path(__file__).resolve().parents[1] / "data" / "clusters"


class RecordedClient:
    """Answers from files; without the recorded query it is one that may not see the nodes' own parameters."""

    host, port, timeout = "recorded", 5080, 60.0

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, path: str, *, until: float | None = None) -> Value:  # noqa: ARG002
        name = path.removeprefix("/2/").partition("?")[0].replace("/", "-")
        value: Value = json.loads((self._directory / f"rapi-{name}.json").read_text())
        return value

    def get_if_allowed(self, path: str, *, until: float | None = None) -> Value | None:  # noqa: ARG002
        return self.get(path) if (self._directory / "rapi-query-node.json").exists() else None


def recorded(cluster: str) -> ClusterState:
    return read_rapi(cast(Client, RecordedClient(CLUSTERS / cluster)))


@pytest.mark.parametrize("cluster", ["base", "rich", "full", "exclusive"])
def test_the_plan_is_empty_by_both_sources(cluster: str, tmp_path: Path) -> None:
    state = recorded(cluster)
    adopted = adopt_cluster(state)
    write_files(adopted.files, tmp_path / "policy")
    policy = load_policy(tmp_path / "policy")
    assert policy.findings == ()
    for seen in (state, read_state(f"config:{CLUSTERS / cluster / 'config.data'}")):
        plan = make_plan(policy, seen)
        assert (plan.changes, plan.findings, plan.not_compared) == ((), (), ())


def test_values_that_the_source_does_not_show_are_noted() -> None:
    files = adopt_cluster(recorded("rich")).files
    assert "hv_state" in next(line for line in files["cluster.yaml"].splitlines() if "does not show" in line)
    assert "# The source does not show " in files["groups/gold.yaml"]
    assert "hv_state:" not in files["groups/gold.yaml"]
