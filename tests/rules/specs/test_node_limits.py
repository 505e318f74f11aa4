"""Both bounds of specs are held against what the largest node of a group gives, promised or observed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.checking.context import Context
from gpolicy.checking.settings import DEFAULT
from gpolicy.findings import Severity
from gpolicy.policy.loading import load_policy
from gpolicy.rules.node_limits import excesses_by_group
from tests.rules.policy_texts import CLUSTER, GROUP, bounds
from tests.rules.run_rules import TODAY, check, cluster, codes, with_resources

HARDWARE = "hardware: {memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}\n"
KEPT = "hv_state:\n  kvm: {mem_node: 4G, mem_hv: 1G, cpu_node: 2}\n"
RESERVED = "disk_state:\n  plain:\n    xenvg: {disk_reserved: 1T}\n"
RATIO = "  spindle-ratio: 2\n"
XENVG = f"{CLUSTER}volume_group_name: xenvg\n---\n"


def specs(
    memory: str = "1G 8G", cpus: str = "1 4", disk: str = "1G 100G", spindles: str = "1 2", more: str = ""
) -> str:
    return f"ipolicy:\n  vcpu-ratio: 2\n{more}  minmax:\n    - name: some\n      {bounds(memory, cpus, disk, spindles)}"


def serious(text: str, directory: Path) -> list[str]:
    found = [item for item in check(text, directory) if item.severity is not Severity.INFO]
    return [f"{item.code} {item.message.removeprefix('size some: ').removeprefix('size some ')}" for item in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (specs("1G 63G"), []),
        (specs("1G 64G"), ["GP212 memory-size 64G is all that a node has, and some must stay free"]),
        (
            specs("1G 59G") + KEPT,
            ["GP212 memory-size 59G is all that a node has; it keeps 5G, and some must stay free"],
        ),
        (specs("1G 58G") + KEPT, []),
        (specs("1G 60G") + KEPT, ["GP212 memory-size 60G is more than a node has (59G; it keeps 5G)"]),
        (specs(cpus="1 16"), []),
        (specs(cpus="1 32"), ["GP212 cpu-count 32 is more than a node has (16)"]),
        (
            specs(cpus="1 32") + KEPT,
            ["GP212 cpu-count 32 is more than a node has (30; 16 CPUs times vcpu-ratio 2; it keeps 2)"],
        ),
        (specs(disk="1G 1500G"), []),
        (specs(disk="1G 3T"), ["GP212 disk-size 3T is more than a node has (2T)"]),
        (specs(disk="1G 3T", more="  disk-templates: [rbd]\n"), []),  # Ceph may hold it
        (specs("1G 60G", spindles="1 2", more="  spindle-ratio: 2\n") + "ndparams: {spindle_count: 1}\n", []),
        (
            specs(spindles="1 3", more="  spindle-ratio: 2\n") + "ndparams: {spindle_count: 1}\n",
            ["GP223 allows a spindle-use of 3, but a node takes 2 (spindle_count 1, ratio 2)"],
        ),
    ],
)
def test_the_largest_instance_and_the_promise(text: str, expected: list[str], tmp_path: Path) -> None:
    assert serious(f"{GROUP}{HARDWARE}{text}", tmp_path) == expected


def test_each_group_of_a_base_has_the_limits_that_hold_there(tmp_path: Path) -> None:
    base = f"gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\n{HARDWARE}{specs('1G 60G')}"
    own = ["", "", KEPT, "hardware: {memory: 32G}\n"]
    groups = [f"---\n{GROUP.replace('gold', f'g{n}')}extends: base\n{text}" for n, text in enumerate(own)]
    (tmp_path / "policy.yaml").write_text("".join([base, *groups]), encoding="utf-8")
    context = Context(load_policy(tmp_path), None, DEFAULT, TODAY)
    assert {name: group.name for name, group in context.alike.items()} == {
        "g0": "g0",
        "g1": "g0",
        "g2": "g2",
        "g3": "g3",
    }
    most = {name: [item.limit.most for item in found] for name, found in excesses_by_group(context).items()}
    assert most == {"g0": [], "g1": [], "g2": [59 * 1024], "g3": [32 * 1024]}


def test_disk_that_is_reserved(tmp_path: Path) -> None:
    text = f"{XENVG}{GROUP}{HARDWARE}{RESERVED}{specs(disk='1G 1500G')}"
    assert serious(text, tmp_path) == ["GP212 disk-size 1500G is more than a node has (1T; it keeps 1T)"]


def test_a_set_of_nodes_may_have_more_spindles(tmp_path: Path) -> None:
    text = f"{GROUP}{specs(spindles='1 3', more=RATIO)}ndparams: {{spindle_count: 1}}\n"
    nodes = "---\ngpolicy: v1\nkind: NodeSet\nname: some\nnodes: [n1]\nndparams: {spindle_count: 8}\n"
    assert serious(text, tmp_path) != []
    assert serious(text + nodes, tmp_path) == []


def test_volumes_of_a_node(tmp_path: Path) -> None:
    exclusive = f"{GROUP}{HARDWARE}ndparams: {{exclusive_storage: true}}\n"
    text = exclusive + specs(disk="900G 1988G", spindles="1 3").replace("ratio: 2", "ratio: 1")
    assert serious(text, tmp_path) == ["GP212 spindle-use 3 is more than a node has (2)"]


def test_what_observed_nodes_keep_counts(tmp_path: Path) -> None:
    state = with_resources(cluster({"gold": {}}, {"n1": "gold"}), memory_total=65536, memory_node=4096, cpu_total=16)
    assert codes(check(f"{GROUP}{specs('1G 59G', '1 16')}", tmp_path, state=state)) == []
    assert codes(check(f"{GROUP}{specs('1G 62G', '1 33')}", tmp_path, state=state)) == ["GP724", "GP724"]
    assert codes(check(f"{GROUP}{specs('1G 59G')}{KEPT}", tmp_path, state=state)) == ["GP724", "GP113"]
    unknown = replace(state, nodes={"n1": cluster({}, {"n1": "gold"}).nodes["n1"]})
    assert codes(check(f"{GROUP}{specs('1G 62G')}", tmp_path, state=unknown)) == []


@pytest.mark.parametrize(
    ("figures", "wrong"),
    [
        ("mem_total: 65G", True),
        ("mem_total: 60G", False),
        ("mem_total: 31G", True),
        ("cpu_total: 7", True),
        ("cpu_total: 8", False),
    ],
)
def test_totals_and_the_promise(figures: str, wrong: bool, tmp_path: Path) -> None:
    figure = f"hv_state:\n  kvm: {{{figures}}}\n"
    group = f"{GROUP}nodes: ['n[1-2]']\n{HARDWARE}"
    of_set = f"---\ngpolicy: v1\nkind: NodeSet\nname: some\nnodes: [n1]\n{figure}"
    for text in (f"{group}{figure}", f"{CLUSTER}{figure}---\n{group}", f"{group}{of_set}"):
        assert ("GP153" in codes(check(text, tmp_path))) is wrong


def test_totals_and_the_nodes(tmp_path: Path) -> None:
    state = with_resources(cluster({"gold": {}}, {"n1": "gold"}), memory_total=65536, disk_total=1024**2)
    for figures, wrong in (("64G", False), ("31G", True), ("72G", True)):
        text = f"{GROUP}hv_state:\n  kvm: {{mem_total: {figures}}}\n"
        assert ("GP154" in codes(check(text, tmp_path, state=state))) is wrong
    disk = f"{XENVG}{GROUP}disk_state:\n  plain:\n    xenvg: {{disk_total: 2T}}\n"
    assert "GP154" in codes(check(disk, tmp_path, state=state))


@pytest.mark.parametrize(
    ("size", "cpus", "disk", "hint"),
    [
        ("whole", "62 62", "3000G 4T", "lower the maximum to 3976G or less, or correct the hardware of the group"),
        ("half", "31 31", "1000G 4T", "lower the maximum to 1988G or less, or correct the hardware of the group"),
        ("whole", "64 64", "3000G 3970G", "lower min and max to 62 or less"),
        ("whole", "62 64", "3000G 3970G", "lower the maximum to 62 or less"),
    ],
)
def test_what_a_maximum_is_lowered_to_is_allowed_by_all_rules(
    size: str, cpus: str, disk: str, hint: str, tmp_path: Path
) -> None:
    text = (
        f"{GROUP}hardware: {{memory: 512G, cpus: 64, pv_count: 4, pv_size: 1T}}\n"
        "ndparams: {exclusive_storage: true}\nhv_state: {kvm: {mem_node: 8G, cpu_node: 2}}\nipolicy:\n"
        f"  vcpu-ratio: 1\n  disk-templates: [plain]\n  minmax:\n    - name: {size}\n"
        f"      {bounds('100G 200G', cpus, disk, '4 4' if size == 'whole' else '2 2')}"
    )
    (found,) = [item for item in check(text, tmp_path) if item.severity is not Severity.INFO]
    assert found.hint == hint


@pytest.mark.parametrize(
    ("name", "memory", "promise", "code"),
    [("large", "40G", "38G", "GP212"), ("whole", "34816M", "38G", "GP415"), ("half", "20G", "38G", "GP416")],
)
def test_the_number_of_a_hint_heals_as_ganeti_rounds_it(
    name: str, memory: str, promise: str, code: str, tmp_path: Path
) -> None:
    text = (
        f"{GROUP}hardware: {{memory: {promise}, cpus: 64, pv_count: 4, pv_size: 1T}}\n"
        "hv_state: {kvm: {mem_node: 4G, cpu_node: 2}}\nipolicy:\n  vcpu-ratio: 1\n  disk-templates: [plain]\n"
        f"  minmax:\n    - name: {name}\n      {bounds(f'8G {memory}', '2 4', '100G 1000G', '1 2')}"
    ) + ("" if name == "large" else "ndparams: {exclusive_storage: true}\n")
    (hint,) = [item.hint for item in check(text, tmp_path) if item.code == code]
    number = re.findall(r"\d+M", hint)[0]
    assert code not in codes(check(text.replace(f"memory-size: {memory}", f"memory-size: {number}"), tmp_path))
