"""`check --state` says what `plan` would refuse, in the words of the plan's own guards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.checking.checking import check_by_settings
from gpolicy.cluster.state import ClusterObject, ClusterState
from gpolicy.findings import Severity, told
from gpolicy.forecast.bridge import FORECAST
from gpolicy.ganeti.vocabulary import Value, Values
from gpolicy.policy.loading import load_policy
from tests.plan.planned import make_plan
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import TODAY, check, cluster, codes, with_instance, with_resources

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SILVER = "---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n"
OWN: Values = {
    ("enabled_disk_templates",): ["drbd", "plain"],
    ("volume_group_name",): "xenvg",
    ("drbd_usermode_helper",): "/bin/true",
    ("master_netdev",): "eth0",
    ("diskparams", "rbd", "pool"): "rbd",
}


def observed(template: str = "drbd") -> ClusterState:
    """Return a cluster of two groups with an instance on the two nodes of the first."""
    state = cluster({"gold": {}, "silver": {}}, {"n1": "gold", "n2": "gold", "n3": "silver"})
    state = with_instance(state, "n1", template=template, hypervisor="kvm")
    instances = {name: replace(item, secondary_nodes=("n2",)) for name, item in state.instances.items()}
    group = {name: replace(item, effective=OWN) for name, item in state.groups.items()}
    return replace(state, instances=instances, groups=group, cluster=ClusterObject(own=OWN))


MEASURED = {
    "memory_total": 4096,
    "memory_node": 512,
    "memory_free": 2048,
    "disk_total": 9999,
    "disk_free": 9999,
    "cpu_total": 4,
    "cpu_node": 1,
}

REFUSED = {
    "right-cluster": (CLUSTER.replace("c.ex", "d.ex"), "GP705", 3),
    "expressible": (f"{CLUSTER}diskparams: {{rbd: {{user-id: x}}}}\n", "GP101", 4),
    "templates-in-use": (f"{CLUSTER}enabled_disk_templates: [plain]\n", "GP309", 4),
    "groups-empty": (f"{GROUP}removed: true\n{SILVER}", "GP722", 4),
    "pairs-together": (f"{GROUP}nodes: [n1]\n{SILVER}nodes: [n2]\n", "GP741", 9),
    "storage-set-up": (f'{CLUSTER}volume_group_name: ""\n', "GP304", 4),
    "disks-stay": (f"{CLUSTER}diskparams: {{rbd: {{pool: other}}}}\n", "GP742", 4),
    "exclusive-storage": (f"{SILVER[4:]}ndparams: {{exclusive_storage: true}}\n", "GP742", 4),
    "master-network": (f"{CLUSTER}master_netdev: eth1\n", "GP742", 4),
}


@pytest.mark.parametrize("guard", REFUSED)
def test_check_says_what_the_plan_would_refuse(guard: str, tmp_path: Path) -> None:
    text, code, line = REFUSED[guard]
    state = observed("rbd" if guard == "disks-stay" else "drbd")
    found = [item for item in check(text, tmp_path, state=state) if item.severity is not Severity.INFO]
    policy = load_policy(tmp_path)
    refused = [item for item in make_plan(policy, state).guards if not item.ok]
    assert guard in [item.name for item in refused]
    (said,) = [item for item in found if item.code == code]
    assert said.span is not None
    assert said.span.line == line
    if code in ("GP741", "GP742"):
        (verdict,) = [item for item in refused if item.name == guard]
        assert said.message == f"{guard}: {verdict.message}"
        planning = codes(check_by_settings(policy, state, today=TODAY, forecast=FORECAST).findings)
        assert code not in planning, "the plan shows its guards itself"
    else:
        assert not {"GP741", "GP742"} & set(codes(found)), "said once"


def test_a_policy_that_the_cluster_has_already_is_silent(tmp_path: Path) -> None:
    text = f"{CLUSTER}enabled_disk_templates: [drbd, plain]\nmaster_netdev: eth0\n---\n{GROUP}nodes: [n1, n2]\n"
    assert check(text, tmp_path, state=observed()) == []


@pytest.mark.parametrize(
    ("declared", "observed_release", "found"),
    [
        ("2.16", "3.0.2", ["GP743"]),
        ("3.0", "3.0.2", []),
        ("3.0", None, []),
        ("3.0", "3.1.0~rc2", ["GP743"]),  # GP138 follows from it
    ],
)
def test_another_release(declared: str, observed_release: str | None, found: list[str], tmp_path: Path) -> None:
    state = replace(observed(), software_version=observed_release)
    assert codes(check(f'{CLUSTER}ganeti_version: "{declared}"\n', tmp_path, state=state)) == found


SIZES: dict[str, Value] = {
    "memory-size": 1024,
    "cpu-count": 1,
    "disk-size": 1024,
    "disk-count": 1,
    "nic-count": 1,
    "spindle-use": 1,
}
ALLOWING: Values = {
    ("ipolicy", "disk-templates"): ["drbd", "plain"],
    ("ipolicy", "minmax"): [{"min": SIZES, "max": {**SIZES, "memory-size": 4096}}],
    ("ipolicy", "spindle-ratio"): 32.0,
    ("ipolicy", "vcpu-ratio"): 4.0,
    **{("ipolicy", "std", name): size for name, size in SIZES.items()},
}


@pytest.mark.parametrize(
    ("template", "memory", "places"),
    [
        ("plain", "1G 4G", [(5, "plain")]),
        ("drbd", "2G 4G", [(8, "memory-size")]),
        ("drbd", "256M 512M", [(9, "memory-size")]),
        ("plain", "2G 4G", [(5, "plain"), (8, "memory-size")]),
        ("drbd", "1G 4G", []),
    ],
)
def test_the_place_is_what_would_not_allow_an_instance(
    template: str, memory: str, places: list[tuple[int, str]], tmp_path: Path
) -> None:
    specs = f"  minmax:\n    - name: some\n      {bounds(memory, '1 4', '1G 1T', '1 8')}"
    text = f"{GROUP}ipolicy:\n  disk-templates: [drbd]\n{specs}"
    state = observed(template)
    groups = {name: replace(item, own=ALLOWING, effective=ALLOWING) for name, item in state.groups.items()}
    instances = {name: replace(item, nic_count=1) for name, item in state.instances.items()}
    found = check(text, tmp_path, state=replace(state, groups=groups, instances=instances))
    violating = [item for item in found if item.code == "GP749"]
    message = "group gold would no longer allow web1.example.org ({})"
    assert [(item.span.line if item.span else 0, item.message) for item in violating] == [
        (line, message.format(word)) for line, word in places
    ]


def test_the_place_is_the_spec_that_changed_and_a_guard_that_would_stop_is_named_there(tmp_path: Path) -> None:
    large, small = ({**SIZES, "memory-size": size} for size in (8192, 1024))
    minmax: Value = [
        {"min": large, "max": {**large, "memory-size": 16384}},
        {"min": SIZES, "max": {**small, "cpu-count": 4}},
    ]
    allowing: Values = {**ALLOWING, ("ipolicy", "minmax"): minmax}
    state = observed("drbd")
    groups = {name: replace(item, own=allowing, effective=allowing) for name, item in state.groups.items()}
    instances = {name: replace(item, nic_count=1) for name, item in state.instances.items()}
    state = replace(state, groups=groups, instances=instances)
    one = "disk-size: 1G, disk-count: 1, nic-count: 1, spindle-use: 1"
    pairs = "".join(
        f"    - name: {name}\n      min: {{memory-size: {low}, cpu-count: {cpus}, {one}}}\n"
        f"      max: {{memory-size: {high}, cpu-count: 4, {one}}}\n"
        for name, low, high, cpus in (("large", "8G", "16G", 1), ("small", "1G", "1G", 2))
    )
    text = f"{GROUP}ipolicy:\n  disk-templates: [drbd]\n  minmax:\n{pairs}"
    (found,) = (item for item in check(text, tmp_path, state=state) if item.code == "GP749")
    assert (found.span and found.span.line, found.message) == (
        11,
        "group gold would no longer allow web1.example.org (cpu-count)",
    )
    for most, names in ((0, ["GP749"]), (1, [])):
        guard = f"---\ngpolicy: v1\nkind: Guards\nguards:\n  - {{name: nobody, newly_violating: {most}}}\n"
        guarded = check(text + guard, tmp_path, state=state)
        said = [item for item in guarded if item.code in ("GP748", "GP749")]
        assert [item.code for item in said] == names
        assert all(item.span == found.span and "--allow nobody" in item.hint for item in said)
    capacity = "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: kept, at_least: 4}\n"
    (cause,) = check(text + capacity, tmp_path, state=state)
    assert [cause.code, *(item.code for item in cause.consequences)] == ["GP749", "GP748"]
    (alone,) = check(f"{GROUP}alloc_policy: last_resort\n{capacity}", tmp_path, state=state)
    assert (alone.code, alone.message) == ("GP748", "guard kept would stop the plan")
    limits = "{name: few, max_changes: 1}", "{name: kept, group: gold, at_least: 4}"
    guards = f"---\ngpolicy: v1\nkind: Guards\nguards:\n  - {limits[0]}\n  - {limits[1]}\n"
    for other in ("ndparams: {ssh_port: 5080}", "ipolicy: {vcpu-ratio: 0.5}"):  # a warning about another group
        unrelated = check(f"{GROUP}alloc_policy: last_resort\n{SILVER}{other}\n{guards}", tmp_path, state=state)
        assert [item.message for item in unrelated if item.code == "GP748"] == [
            "guard few would stop the plan",
            "guard kept would stop the plan",
        ]


def test_a_node_that_would_be_above_the_ratio_of_its_new_group_is_named_at_the_ratio(tmp_path: Path) -> None:
    state = with_resources(observed("plain"), **MEASURED)
    text = f"{GROUP}nodes: [n2]\n{SILVER}nodes: [n1, n3]\nipolicy:\n  spindle-ratio: 0.5\n"
    groups = {name: replace(item, own=ALLOWING, effective=ALLOWING) for name, item in state.groups.items()}
    instances = {name: replace(item, secondary_nodes=(), status="running") for name, item in state.instances.items()}
    found = check(text, tmp_path, state=replace(state, groups=groups, instances=instances))
    breach = "1 spindle in use, 0.5 allowed: spindle_count 1 times spindle-ratio 0.5"
    (said,) = (item for item in told(found) if item.code == "GP749")
    assert (said.span and said.span.line, said.message) == (
        11,
        f"group silver would have nodes above its spindle-ratio: n1 ({breach})",
    )
