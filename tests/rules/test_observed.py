"""Rules that need the cluster: what it has, and what becomes of it under the policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, LiveDisk, PhysicalVolume, Resources, Unreadable
from gpolicy.findings import Severity
from gpolicy.forecast.bridge import FORECAST
from gpolicy.ganeti.vocabulary import Level, Values
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.observed_clusters import with_enabled, with_volumes
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import check, cluster, codes, with_instance, with_resources

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GOLD = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SILVER = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"
STATE = cluster({"gold": {}, "silver": {}}, {"n1": "gold", "n2": "silver"})
WITH_WEB = with_instance(STATE, "n2", template="plain", hypervisor="kvm")  # of 1 GiB memory, one disk of 1 GiB
POLICIES = Path(__file__).resolve().parents[2] / "policies"


def specs(memory: str = "1G 8G", disk: str = "1G 10G", spindles: str = "1 1") -> str:
    return f"ipolicy:\n  minmax:\n    - name: some\n      {bounds(memory, '1 4', disk, spindles)}"


def message(text: str, directory: Path, state: ClusterState, code: str) -> str:
    (found,) = [found for found in check(text, directory, state=state) if found.code == code]
    return found.message


def test_a_template_is_in_use_by_its_disks(tmp_path: Path) -> None:
    text = f"{CLUSTER}enabled_disk_templates: [drbd]\n"
    state = with_enabled(WITH_WEB, "drbd", "plain")
    expected = "plain is to be disabled, but web1.example.org has disks of it"
    assert message(text, tmp_path, state, "GP309") == expected
    assert check(text, tmp_path, state=with_enabled(WITH_WEB, "drbd")) == []  # it was not enabled before either


def test_many_users_of_a_template_are_counted(tmp_path: Path) -> None:
    instance = WITH_WEB.instances["web1.example.org"]
    others = {name: replace(instance, name=name) for name in ("web2.example.org", "web3.example.org")}
    state = with_enabled(replace(WITH_WEB, instances={**WITH_WEB.instances, **others}), "drbd", "plain")
    found = message(f"{CLUSTER}enabled_disk_templates: [drbd]\n", tmp_path, state, "GP309")
    assert found == "plain is to be disabled, but web1.example.org and 2 more have disks of it"


@pytest.mark.parametrize(
    ("silver", "reason"),
    [
        (specs("2G 8G"), "memory-size 1G"),
        (specs(disk="2G 8G"), "disk-size 1G"),
        (specs(spindles="2 8"), "spindle-use 1"),
        ("ipolicy: {disk-templates: [drbd]}\n", "disk template plain"),
        (specs(), ""),
        ("", ""),
    ],
)
def test_a_move_is_checked_against_the_new_group(silver: str, reason: str, tmp_path: Path) -> None:
    state = replace(WITH_WEB, nodes={**WITH_WEB.nodes, "n3": replace(WITH_WEB.nodes["n2"], name="n3")})
    text = f"{GOLD}nodes: [n1, n2]\n{silver}---\n{SILVER}"
    found = [found.message for found in check(text, tmp_path, state=state) if found.code == "GP723"]
    expected = f"group gold does not allow web1.example.org ({reason}) of the nodes that move into it"
    assert found == ([expected] if reason else [])
    staying = f"{SILVER}nodes: [n2]\n{silver}"
    assert "GP723" not in codes(check(staying, tmp_path, state=state))


def test_a_move_into_exclusive_storage_is_checked_for_spindles(tmp_path: Path) -> None:
    text = f"{GOLD}nodes: [n1, n2]\nndparams: {{exclusive_storage: true}}\n{specs(spindles='2 2')}"
    web = WITH_WEB.instances["web1.example.org"]

    def moved(template: str, spindles: int | None) -> list[str]:
        disks = (LiveDisk(size=1024, template=template, spindles=spindles),)
        state = replace(WITH_WEB, instances={web.name: replace(web, disk_template=template, disks=disks)})
        return [found.message for found in check(text, tmp_path, state=state) if found.code == "GP723"]

    assert moved("plain", 2) == []
    assert moved("plain", None) == []  # not recorded: it may be right
    assert "(spindle-use 1)" in moved("plain", 1)[0]
    assert "(drbd disks with exclusive storage)" in moved("drbd", None)[0]


def test_a_renamed_group_is_no_other_group(tmp_path: Path) -> None:
    text = f"gpolicy: v1\nkind: NodeGroup\nname: bronze\nrenamed_from: silver\nnodes: [n2]\n{specs('2G 8G')}"
    assert "GP723" not in codes(check(text, tmp_path, state=WITH_WEB))


def test_the_last_group_has_no_replacement(tmp_path: Path) -> None:
    removed = "".join(f"{head}removed: true\n---\n" for head in (GOLD, SILVER))
    empty = replace(STATE, nodes={})
    assert codes(check(removed, tmp_path, state=empty)) == ["GP721"]
    assert check(removed, tmp_path) == []
    assert check(f"{GOLD}removed: true\n", tmp_path, state=empty) == []
    assert check(f"{removed}gpolicy: v1\nkind: NodeGroup\nname: new\n", tmp_path, state=empty) == []


def test_nodes_that_move_leave_an_empty_group(tmp_path: Path) -> None:
    assert codes(check(f"{SILVER}removed: true\n", tmp_path, state=STATE)) == ["GP722"]
    assert check(f"{SILVER}removed: true\n---\n{GOLD}nodes: [n1, n2]\n", tmp_path, state=STATE) == []


def test_exclusive_storage_needs_plain_disks_on_both_nodes(tmp_path: Path) -> None:
    text = f"{GOLD}ndparams: {{exclusive_storage: true}}\n"
    web = with_instance(STATE, "n2", template="drbd", hypervisor="kvm").instances["web1.example.org"]
    state = replace(STATE, instances={web.name: replace(web, secondary_nodes=("n1",))})
    found = message(text, tmp_path, state, "GP417")
    assert found == "web1.example.org has other disks than plain ones (drbd) in group gold"
    assert "GP417" not in codes(check(text, tmp_path, state=WITH_WEB))


@pytest.mark.parametrize(("second", "differs"), [(1020, False), (1021, True)])
def test_volumes_are_compared_over_the_group(second: int, differs: bool, tmp_path: Path) -> None:
    text = f"{GOLD}nodes: [n1, n2]\nndparams: {{exclusive_storage: true}}\n"
    large = with_volumes(STATE, second * 1024).nodes["n2"]
    state = with_volumes(STATE, 1000 * 1024)
    state = replace(state, nodes={**state.nodes, "n2": large})
    assert ("GP418" in codes(check(text, tmp_path, state=state))) is differs


@pytest.mark.parametrize(
    ("names", "shares"),
    [
        (("/dev/sdb1", "/dev/sdb2"), True),
        (("/dev/nvme0n1p1", "/dev/nvme0n1p2"), True),
        (("/dev/sdb1", "/dev/sdc1"), False),
        (("/dev/nvme0n1", "/dev/nvme1n1"), False),
        (("/dev/md0", "/dev/md1"), False),
    ],
)
def test_partitions_of_one_drive_share_it(names: tuple[str, str], shares: bool, tmp_path: Path) -> None:
    text = f"{GOLD}nodes: [n1, n2]\nndparams: {{exclusive_storage: true}}\n"
    state = with_volumes(STATE, 1000 * 1024)
    volumes = tuple(PhysicalVolume(name=name, size=1000 * 1024, free=1000 * 1024, used=0) for name in names)
    state = replace(state, nodes={**state.nodes, "n1": replace(state.nodes["n1"], physical_volumes=volumes)})
    assert ("GP418" in codes(check(text, tmp_path, state=state))) is shares


def test_disks_of_before_exclusive_storage_share_a_volume(tmp_path: Path) -> None:
    text = f"{GOLD}nodes: [n1, n2]\nndparams: {{exclusive_storage: true}}\n"
    state = with_volumes(with_instance(STATE, "n1", template="plain", hypervisor="kvm"), 1000 * 1024)
    web = state.instances["web1.example.org"]
    state = replace(state, instances={name: replace(web, name=name) for name in ("a", "b")})
    used = PhysicalVolume(name="/dev/sdb", size=1000 * 1024, free=1000 * 1024 - 2048, used=2048)
    state = replace(state, nodes={**state.nodes, "n1": replace(state.nodes["n1"], physical_volumes=(used,))})
    assert message(text, tmp_path, state, "GP418") == "2 disks on n1 share 1 physical volume"


def test_a_spec_is_checked_against_the_largest_node(tmp_path: Path) -> None:
    small = Resources(memory_total=32 * 1024, cpu_total=4, disk_total=100 * 1024)
    state = with_resources(STATE, memory_total=64 * 1024, cpu_total=16, disk_total=1024 * 1024)
    both = f"{GOLD}nodes: [n1, n2]\n"
    uneven = replace(state, nodes={**state.nodes, "n1": replace(state.nodes["n1"], resources=small)})
    assert check(f"{both}{specs('48G 60G')}", tmp_path, state=uneven) == []
    assert codes(check(f"{GOLD}{specs('48G 60G')}", tmp_path, state=uneven)) == ["GP724"]
    unknown = replace(uneven, nodes={**uneven.nodes, "n2": STATE.nodes["n2"]})
    assert check(f"{both}{specs('48G 96G')}", tmp_path, state=unknown) == []
    assert codes(check(f"{both}{specs('48G 96G')}", tmp_path, state=uneven)) == ["GP724"]
    found = message(f"{GOLD}{specs(disk='2T 4T')}", tmp_path, state, "GP724")
    assert found == "size some: disk-size 2T is more than any node of group gold has (1T)"
    cpus = specs().replace("ipolicy:\n", "ipolicy:\n  vcpu-ratio: 1\n").replace("cpu-count: 1,", "cpu-count: 4,")
    assert check(f"{GOLD}{cpus}", tmp_path, state=uneven) == []
    few = replace(uneven, nodes={"n1": replace(uneven.nodes["n1"], resources=replace(small, cpu_total=2))})
    assert codes(check(f"{GOLD}{cpus}", tmp_path, state=few)) == ["GP724"]


def test_hardware_may_keep_a_small_reserve(tmp_path: Path) -> None:
    text = f"{GOLD}hardware: {{memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}}\n"
    measured = with_resources(with_volumes(STATE, 1024**2, 1024**2), memory_total=62 * 1024, cpu_total=16)
    assert check(text, tmp_path, state=measured) == []
    less = with_resources(with_volumes(STATE, 900 * 1024), memory_total=48 * 1024, cpu_total=12)
    assert [found.message.partition(": ")[2] for found in check(text, tmp_path, state=less)] == [
        "memory 48G, not 64G",
        "CPUs 12, not 16",
        "physical volumes 1, not 2",
        "a physical volume of 900G, not 1T",
    ]
    assert check(text, tmp_path, state=STATE) == []  # nothing was measured


def test_std_and_homes_are_left_alone_where_a_group_is_not_declared(tmp_path: Path) -> None:
    std = "{memory-size: 64G, cpu-count: 1, disk-size: 1G, disk-count: 1, nic-count: 1, spindle-use: 1}"
    text = f"{CLUSTER}ipolicy:\n  std: {std}\n---\n{GOLD}alloc_policy: unallocable\n{specs()}"
    assert codes(check(text, tmp_path)) == ["GP216", "GP610"]
    assert check(text, tmp_path, state=STATE) == []
    assert codes(check(text, tmp_path, state=cluster({"gold": {}}))) == ["GP216", "GP610"]


def test_the_worked_example_suits_its_snapshot() -> None:
    state = read_state(f"snapshot:{POLICIES / 'two-groups.snapshot.json'}", SourceOptions())
    found = find_mistakes(load_policy(POLICIES / "two-groups"), state=state, today=date(2026, 6, 15), forecast=FORECAST)
    serious = [item for item in found if item.severity is not Severity.INFO]
    assert serious[0].message == "guard no-shrink would stop the plan"  # as the tutorial shows
    assert codes(serious[1:]) == ["GP750", "GP750"]  # as its plan shows: racks are new to this cluster


FLAG: tuple[str, ...] = ("ndparams", "exclusive_storage")


@pytest.mark.parametrize(
    ("of_gold", "of_silver", "own", "line", "said"),
    [
        (True, False, False, 4, "n2: exclusive_storage is off there, of the node itself, and on in group gold"),
        (False, True, True, 4, "n2: exclusive_storage is on there, of the node itself, and off in group gold"),
        (True, False, True, None, ""),
        (True, False, None, None, ""),
    ],
)
def test_a_node_brings_its_own_flag_into_a_group(
    of_gold: bool, of_silver: bool, own: bool | None, line: int | None, said: str, tmp_path: Path
) -> None:
    """The policy does not name the flag: what the cluster has counts."""
    flags: dict[str, Values] = {} if own is None else {"n2": {FLAG: own}}
    state = cluster({"gold": {FLAG: of_gold}, "silver": {FLAG: of_silver}}, {"n1": "gold", "n2": "silver"}, flags)
    text = (
        "gpolicy: v1\nkind: NodeGroup\nname: gold\nnodes: [n1, n2]\n---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n"
    )
    found = [item for item in check(text, tmp_path, state=state) if item.code == "GP412"]
    assert [(item.span and item.span.line, item.severity.value) for item in found] == (
        [(line, "error")] if line else []
    )
    assert not found or found[0].message == f"{said}, which it moves into"
    hidden = replace(state, unreadable=(Unreadable(level=Level.GROUP, prefix=("ndparams",)),))
    assert "GP412" not in codes(check(text, tmp_path, state=hidden))


@pytest.mark.parametrize("name", ["godl", "Gold", "go-ld"])
def test_a_new_group_with_almost_the_name_of_another_is_perhaps_misspelt(name: str, tmp_path: Path) -> None:
    text = SILVER.replace("silver", name)
    assert message(text, tmp_path, STATE, "GP728") == (
        f"the cluster has no group {name}, but gold, which the policy does not name: group {name} will be created"
    )
    assert "GP728" not in codes(check(f"{text}---\n{GOLD}", tmp_path, state=STATE))
    assert "GP728" not in codes(check(f"{text}---\n{SILVER}renamed_from: gold\n", tmp_path, state=STATE))


def test_a_misspelt_renamed_from_is_found_as_well(tmp_path: Path) -> None:
    (found,) = check(f"{GOLD.replace('gold', 'fast')}renamed_from: godl\n", tmp_path, state=STATE)
    assert (found.code, found.hint) == ("GP728", "Did you mean `gold`?")
    assert found.span is not None
    assert found.span.line == 4


@pytest.mark.parametrize(
    ("there", "new"), [("rack1", "rack2"), ("gold", "gold2"), ("gold-a", "gold-b"), ("gold", "fast")]
)
def test_names_of_one_series_and_other_names_are_no_misspelling(there: str, new: str, tmp_path: Path) -> None:
    assert check(GOLD.replace("gold", new), tmp_path, state=cluster({there: {}})) == []


def test_the_nodes_of_a_group_bound_the_failures_that_it_survives(tmp_path: Path) -> None:
    text = f"{GOLD}nodes: ['n*']\nlimits: {{max_node_failures: 2}}\n"
    assert check(text, tmp_path) == []  # how many nodes there are is not known
    assert codes(check(text, tmp_path, state=cluster({"gold": {}}, {"n1": "gold", "n2": "gold"}))) == ["GP615"]
    three = cluster({"gold": {}}, dict.fromkeys(("n1", "n2", "n3"), "gold"))
    assert check(text, tmp_path, state=three) == []
