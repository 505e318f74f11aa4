"""The policies in `policies/` are correct, and the demo's plan can be applied."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpolicy.adopt.soundness import policy_of
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.terms import VolumeSize
from gpolicy.findings import Severity
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.plan.planned import make_plan

ROOT = Path(__file__).resolve().parents[2]
POLICIES = ROOT / "policies"
EXAMPLES = [
    POLICIES / "two-groups",
    POLICIES / "large-cluster",
    POLICIES / "fleet" / "amsterdam",
    POLICIES / "fleet" / "berlin",
    *sorted((POLICIES / "design-documents").iterdir()),
]
DEMO = POLICIES / "two-groups.snapshot.json"
TODAY = date(2026, 1, 1)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_it_passes_check(path: Path) -> None:
    policy = load_policy(path)
    assert policy.cluster is not None
    found = [
        finding
        for finding in find_mistakes(policy, today=TODAY, forecast=FORECAST)
        if finding.severity is not Severity.INFO
    ]
    assert found == []


@pytest.mark.parametrize("path", sorted(POLICIES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(POLICIES)))
def test_editors_find_the_schema(path: Path) -> None:
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    schema = first.removeprefix("# yaml-language-server: $schema=")
    assert second == f"# $schema: {schema}"
    assert (path.parent / schema).resolve() == ROOT / "schemas" / "policy.json"


def test_the_demo_changes_objects_of_every_kind_and_breaks_no_built_in_guard() -> None:
    state = read_state(f"snapshot:{DEMO}")
    policy = load_policy(POLICIES / "two-groups")
    found = [
        item
        for item in find_mistakes(policy, state=state, today=TODAY, forecast=FORECAST)
        if item.severity is not Severity.INFO
    ]
    ours = [item.message for item in found if item.code != "GP750"]
    assert ours == ["guard no-shrink would stop the plan"]  # the policy's own guard
    assert len(found) > 1  # and what the new tags make of places, which the remedy of the plan cures
    plan = make_plan(policy, state)
    assert {change.object.partition("/")[0] for change in plan.changes} == {"cluster", "group", "node"}
    assert {change.action.value for change in plan.changes} >= {"set", "rename", "move"}
    assert plan.findings == ()
    assert plan.not_compared == ()
    assert plan.safe
    assert 5 <= len(plan.steps) <= 20


def test_the_sizes_of_dedicated_disks_are_whole_volumes() -> None:
    group = load_policy(POLICIES / "two-groups").groups["dedicated"]
    assert group.hardware is not None
    volume = group.hardware.pv_sizes[0].value
    sizes: object = group.leaves["ipolicy", "minmax"].value
    assert isinstance(sizes, list)
    for pair, volumes in zip(sizes, (12, 6, 3), strict=True):
        low, high = pair["min"], pair["max"]
        assert low["spindle-use"] == high["spindle-use"] == volumes
        assert VolumeSize(volume).needed(low["disk-size"]) == VolumeSize(volume).needed(high["disk-size"]) == volumes
        assert high["disk-size"] <= VolumeSize(volume).largest_disk(volumes) < high["disk-size"] + 1024


def test_full_half_and_quarter_fill_a_dedicated_node() -> None:
    policy = load_policy(POLICIES / "two-groups")
    group, cluster = policy.groups["dedicated"], policy.cluster
    assert cluster is not None
    assert group.hardware is not None
    assert group.hardware.memory is not None
    assert group.hardware.cpus is not None
    kept_memory = cluster.leaves["hv_state", "kvm", "mem_node"].value
    kept_cpus = cluster.leaves["hv_state", "kvm", "cpu_node"].value
    sizes: object = group.leaves["ipolicy", "minmax"].value
    assert isinstance(sizes, list)
    assert isinstance(kept_memory, int)
    assert isinstance(kept_cpus, int)
    for pair, parts in zip(sizes, (1, 2, 4), strict=True):
        assert parts * pair["max"]["memory-size"] <= group.hardware.memory.value - kept_memory
        assert parts * pair["max"]["cpu-count"] <= group.hardware.cpus.value - kept_cpus


def test_the_clusters_of_the_fleet_share_what_the_base_says() -> None:
    amsterdam, berlin = (load_policy(POLICIES / "fleet" / name) for name in ("amsterdam", "berlin"))
    assert amsterdam.cluster is not None
    assert berlin.cluster is not None
    rate = ("diskparams", "drbd", "c-max-rate")
    assert amsterdam.cluster.leaves[rate].value == 60 * 1024
    assert berlin.cluster.leaves[rate].value == 200 * 1024
    assert [str(leaf.value) for leaf in berlin.cluster.leaves[rate].overridden] == [str(60 * 1024)]
    same = set(amsterdam.cluster.leaves) - {rate}
    assert all(amsterdam.cluster.leaves[path].value == berlin.cluster.leaves[path].value for path in same)
    hardware = berlin.groups["memory"].hardware
    assert hardware is not None
    assert hardware.cpus is not None
    assert hardware.cpus.value == 48


def test_the_example_of_the_design_document_is_what_it_says() -> None:
    path = POLICIES / "design-documents" / "constrained-sizes" / "policy.yaml"
    cluster = policy_of({"policy.yaml": path.read_text(encoding="utf-8").partition("\n---\n")[0]}).cluster
    assert cluster is not None
    sizes: object = cluster.leaves["ipolicy", "minmax"].value
    assert isinstance(sizes, list)

    def legal(cpus: int, memory: int, disk: int) -> bool:
        wanted = {"cpu-count": cpus, "memory-size": memory * 1024, "disk-size": disk * 1024}
        return any(all(pair["min"][name] <= wanted[name] <= pair["max"][name] for name in wanted) for pair in sizes)

    assert legal(1, 2, 50)
    assert legal(4, 4, 20)
    assert not legal(2, 4, 40)
