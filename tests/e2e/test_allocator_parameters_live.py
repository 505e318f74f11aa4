"""Parameters of the allocator, declared, applied and obeyed: `place` says what `gnt-instance add` then does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import LiveCluster, gpolicy
from tests.strategies import Document, document

pytestmark = pytest.mark.e2e

NAME: Final = "placed1"
NEW: Final = ("-t", "plain", "-o", "noop", "--disk=0:size=1g", "--no-name-check", "--no-ip-check")
WORDS: Final = ("memory=256M", "vcpus=1", "disk=1G", "template=plain")
ALONE: Final = [
    document("NodeGroup", "default", {("alloc_policy",): "unallocable"}),
    document("NodeGroup", "alone", nodes=["node1"]),
]
"""The only node that takes instances is alone in its group: nothing there survives its loss."""


@pytest.fixture
def emptied(fresh: LiveCluster) -> Iterator[LiveCluster]:
    """The cluster, without the instance of this test in the end."""
    yield fresh
    fresh.ganeti("gnt-instance", "remove", "-f", NAME, check=False)


def declared(parameters: dict[str, Any], *others: Document) -> list[Document]:
    return [document("Cluster", "cluster", {("default_iallocator_params",): parameters}), *others]


def placed() -> dict[str, Any]:
    """Return where `place` says that the instance goes."""
    found: dict[str, Any] = json.loads(gpolicy("place", *WORDS, "--state", "local:", "--format", "json").out)
    return found


def added(cluster: LiveCluster) -> tuple[list[str], str]:
    """Let Ganeti place the instance, and return its node, or none and what Ganeti says; the instance goes again."""
    done = cluster.ganeti("gnt-instance", "add", "-I", "hail", *NEW, "-B", "memory=256,vcpus=1", NAME, check=False)
    config = cluster.config()
    nodes = {uuid: node["name"] for uuid, node in config["nodes"].items()}
    there = [nodes[item["primary_node"]] for item in config["instances"].values() if item["name"] == NAME]
    cluster.ganeti("gnt-instance", "remove", "-f", NAME, check=bool(there))
    assert (done.returncode == 0) is bool(there), done.stdout + done.stderr
    return there, done.stdout + done.stderr


@pytest.mark.parametrize("route", ROUTES)
def test_a_flag_and_a_list_of_nodes_are_obeyed(emptied: LiveCluster, tmp_path: Path, route: str) -> None:
    way, policy = Way(emptied, route), tmp_path / "policy.yaml"
    cases: tuple[tuple[dict[str, Any], list[str], bool], ...] = (
        ({}, [], False),
        ({"no-capacity-checks": None}, ["node1"], True),
        ({"restrict-allocation-to": "node5,node1", "no-capacity-checks": None}, ["node1"], True),
        ({"restrict-allocation-to": "node5,node2", "no-capacity-checks": None}, [], False),
    )
    for number, (stored, where, decides) in enumerate(cases):
        write_policy(policy, declared(stored, *ALONE))
        assert way.carry_out(policy, tmp_path / f"{number}.json")
        way.expect_nothing_left(policy, sources=("config", "local", "rapi"))
        assert emptied.config()["cluster"]["default_iallocator_params"] == stored
        answer = placed()
        assert answer["nodes"] == where
        assert any("decide this: without them it would go nowhere" in note for note in answer["notes"]) is decides
        found, said = added(emptied)
        assert found == where, said
        assert where or "Request failed" in said


@pytest.mark.parametrize("node", ["node2", "node4"])
def test_one_node_of_many_is_obeyed(emptied: LiveCluster, tmp_path: Path, node: str) -> None:
    policy = write_policy(tmp_path / "policy.yaml", declared({"restrict-allocation-to": node}))
    assert Way(emptied, "local").carry_out(policy, tmp_path / "plan.json")
    found, said = added(emptied)
    assert placed()["nodes"] == [node] == found, said


@pytest.mark.parametrize(
    ("words", "stored", "says"),
    [
        ("no-capacity-checks=true", {"no-capacity-checks": "true"}, "doesn't allow an argument"),
        ("-bogus", {"bogus": None}, "unrecognized option `--bogus'"),
        ("static-kvm-node-memory=4G", {"static-kvm-node-memory": "4G"}, "leftover characters when parsing '4G'"),
        ("no-capacity-checks", {"no-capacity-checks": True}, ""),
    ],
)
def test_what_hail_refuses_is_told_before(emptied: LiveCluster, words: str, stored: dict[str, Any], says: str) -> None:
    emptied.ganeti("gnt-cluster", "modify", f"--default-iallocator-params={words}")
    assert emptied.config()["cluster"]["default_iallocator_params"] == stored
    answer = placed()
    assert answer["reason"].startswith("hail refuses every request")
    assert says in answer["reason"]
    found, said = added(emptied)
    assert found == []
    assert says in said
