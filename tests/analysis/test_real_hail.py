"""The installed hail, asked as Ganeti asks it, and `place`: the same answer, and the same reasons counted."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.analysis.allocator_input import charged_space
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.errors import GpolicyError
from tests.analysis.hail_cases import (
    HSPACE,
    HTOOLS,
    document,
    passed,
    random_parameters,
    real_hail,
    requested,
    with_parameters,
)
from tests.analysis.hspace_cases import from_text, recorded_cases
from tests.htools.random_clusters import TEMPLATES, random_cluster
from tests.htools.random_requests import allocation

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(
        HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools (hspace, hail) is not installed"
    ),
]


def space(request: dict[str, Any]) -> None:
    """Give the request the disk space that Ganeti would compute for it."""
    if request["disk_template"] == "diskless":
        request["disks"] = []
    if str(request.get("group_name")).startswith("uuid-"):
        # given a UUID, hail goes by the dedicated metric even on ordinary nodes; we take it for the group's name
        request["group_name"] = request["group_name"].replace("uuid-", "g")
    sizes = [disk["size"] for disk in request["disks"]]
    request["disk_space_total"] = charged_space(DiskTemplate(request["disk_template"]), sizes)


def compare(state: ClusterState, request: dict[str, Any], folder: Path, seed: int) -> PlaceReport | None:
    """Hold `place` against hail; None where one of them has no answer."""
    space(request)
    try:
        report = place(state, requested(request))
    except GpolicyError:
        return None
    stored = state.cluster.own.get(("default_iallocator_params",))
    answer = real_hail(document(state, request), folder, *passed(stored if isinstance(stored, dict) else {}))
    if answer is None:
        return None
    exclusive = {node.name for node in state.nodes.values() if state.has_exclusive_storage(node)}
    if request["disk_template"] != "plain" and not exclusive.isdisjoint(answer["result"]):
        assert any(note.startswith("hail itself accepts this") for note in report.notes), seed
        assert exclusive.isdisjoint(report.nodes), seed  # where Ganeti makes plain instances only
        return report
    assert report.info == answer["info"], seed
    assert list(report.nodes) == answer["result"], seed
    assert report.ok is answer["success"], seed
    if report.ok:
        assert report.candidates[0].nodes == report.nodes, seed
    for group in report.groups:
        counted = {name: int(count) for name, count in re.findall(r"(Fail\w+): (\d+)", group.message)}
        members = [item for item in report.candidates if item.group == group.group]
        assert Counter(item.htools_reason for item in members if item.htools_reason) == counted, seed
        successes = re.search(r"successes (\d+)", group.message)
        if successes:
            assert sum(item.htools_reason is None for item in members) == int(successes[1]), seed
    return report


def run(seeds: range, folder: Path, *, parameters: bool = False) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)  # noqa: S311 (no secrets here)
        template = rng.choice([*TEMPLATES, "drbd", "drbd", "plain", "plain", "plain"])
        cluster = random_cluster(rng, template, 8)
        request = allocation(rng, template, cluster)
        try:
            state = from_text(cluster.text)
        except GpolicyError:
            continue
        if parameters:
            state = with_parameters(state, random_parameters(rng, state), rng.choice(["kvm", "fake"]))
        report = compare(state, request, folder, seed)
        if report is not None:
            seen[f"{report.metric} {report.ok}"] += 1
            seen["decisive"] += any("decide this" in said for said in report.parameters)
    return seen


def test_random_clusters(tmp_path: Path) -> None:
    seen = run(range(150), tmp_path)
    assert {"score True", "score False", "lost-allocations True"} <= set(seen)


def test_random_clusters_with_parameters_for_hail(tmp_path: Path) -> None:
    seen = run(range(1000, 1150), tmp_path, parameters=True)
    assert {"score True", "score False", "lost-allocations True"} <= set(seen)
    assert seen["decisive"] >= 5


@pytest.mark.full
@pytest.mark.parametrize("parameters", [False, True])
def test_many_random_clusters(tmp_path: Path, *, parameters: bool) -> None:
    assert run(range(10_000, 13_000), tmp_path, parameters=parameters).total() > 2000


def test_recorded_clusters(tmp_path: Path) -> None:
    answers = 0
    for case in recorded_cases()[::3]:
        report = compare(from_text(case["data"]), json.loads(case["request"])["request"], tmp_path, case["seed"])
        answers += report is not None
    assert answers > 40


@pytest.mark.parametrize(
    "odd",
    [
        {"restrict-to-nodes": ["node1.example.org", "node1.example.org", "node2.example.org"]},
        {"restrict-to-nodes": ["node1.example.org", "node1.example.org"]},
        {"disks": [{"size": 10240, "spindles": 0}]},
        {
            "disks": [{"size": 2097152, "spindles": 0}],
            "disk_template": "plain",
            "memory": 65536,
            "vcpus": 8,
            "required_nodes": 1,
        },
        {"name": "search1.example.org"},
    ],
)
def test_unusual_requests_get_hails_answer(odd: dict[str, Any], tmp_path: Path) -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    request: dict[str, Any] = {
        "type": "allocate", "name": "new", "memory": 4096, "vcpus": 2, "disks": [{"size": 10240}], "tags": [],
        "nics": [],
        "spindle_use": 1, "disk_template": "drbd", "os": "none", "hypervisor": "kvm", "required_nodes": 2,
    }  # fmt: skip
    assert compare(state, request | odd, tmp_path, 0) is not None
