"""Capacity, place and guards on clusters that show no figures of nodes, by what a policy declares: worked out by hand.

Each of the two nodes has 64 GiB, of which 4 GiB are for the node itself and 1 GiB for the hypervisor: 59 GiB are left.
With plain disks all instances must fit on one node, since N+1 asks where they go when the other fails. Some memory must
stay free, so 14 instances of 4 GiB fit on a node (56 GiB), and not 15 (60 GiB).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.basis import BasisKind
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState, PhysicalVolume, Resources
from gpolicy.cluster.state_files import read_config_file
from gpolicy.errors import GpolicyError
from gpolicy.impact.comparison import load_sides
from gpolicy.impact.declared_guards import declared_verdicts, guard_impact
from gpolicy.impact.impact import resource_model_change
from gpolicy.plan.sides import Sides, planned_sides
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.report.impact_sections import resource_model_section
from gpolicy.resolve.desired import pair_names

DATA = Path(__file__).parent.parent / "data" / "clusters"
SIZE = "memory-size: 4G, cpu-count: 1, disk-size: 90G, disk-count: 1, nic-count: 1, spindle-use: 1"
CLUSTER = f"""
gpolicy: v1
kind: Cluster
name: cluster.example.org
enabled_disk_templates: [plain]
ipolicy:
  minmax: [{{name: any, min: {{{SIZE}}}, max: {{{SIZE}}}}}]
  std: {{{SIZE}}}
  disk-templates: [plain]
  vcpu-ratio: 4
  spindle-ratio: 32
"""
HV_STATE = "hv_state: {fake: {mem_total: 64G, mem_node: 4G, mem_hv: 1G, cpu_total: 16, cpu_node: 1}}\n"
DISK_STATE = "disk_state: {plain: {xenvg: {disk_total: 8T, disk_reserved: 0, disk_overhead: 0}}}\n"
GROUP = "---\ngpolicy: v1\nkind: NodeGroup\nname: default\n"


def configured() -> ClusterState:
    """Return a real config.data, cut down to two nodes without instances; nothing of it is measured."""
    state = read_config_file(DATA / "base" / "config.data")
    nodes = {name: node for name, node in state.nodes.items() if name in ("node1", "node2")}
    return replace(state, nodes=nodes, instances={})


def written(directory: Path, text: str) -> Policy:
    (directory / "policy.yaml").write_text(text)
    policy = load_policy(directory / "policy.yaml")
    assert [item.message for item in policy.findings if item.severity == "error"] == []
    return policy


def sides(state: ClusterState, policy: Policy) -> tuple[ClusterState, ClusterState]:
    made = planned_sides(policy, state)
    return made.before, made.after


def under(state: ClusterState, directory: Path, text: str) -> ClusterState:
    return sides(state, written(directory, text))[1]


@pytest.mark.parametrize("where", ["cluster", "group"])
def test_on_config_data_alone_the_declared_figures_count(where: str, tmp_path: Path) -> None:
    declared = HV_STATE + DISK_STATE
    text = CLUSTER + (declared if where == "cluster" else "") + GROUP + (declared if where == "group" else "")
    report = capacity(under(configured(), tmp_path, text))
    assert report.groups[0].standard.fits == 14
    assert report.basis.kind is BasisKind.DECLARED
    assert report.basis.sentence == "basis: declared; declared: memory and CPUs of node1, node2, disk of node1, node2"


def test_promised_hardware_counts_where_nothing_else_is_declared(tmp_path: Path) -> None:
    hardware = "hardware: {memory: 64G, cpus: 16, pv_size: 1T, pv_count: 8}\n"
    found = capacity(under(configured(), tmp_path, CLUSTER + GROUP + hardware))
    assert found.groups[0].standard.fits == 15  # of all 64 GiB: 61,440 of 65,536 MiB
    assert found.notes == (
        "mem_node is not declared for node1, node2: 0 counts",
        "mem_hv is not declared for node1, node2: 0 counts",
        "cpu_node is not declared for node1, node2: 1 counts",
    )
    kept = capacity(
        under(configured(), tmp_path, f"{CLUSTER}hv_state: {{fake: {{mem_node: 4G, mem_hv: 1G}}}}\n{GROUP}{hardware}")
    )
    assert kept.groups[0].standard.fits == 14


def test_a_node_goes_before_its_group_and_that_before_the_cluster(tmp_path: Path) -> None:
    smaller = "hv_state: {fake: {mem_total: 48G}}\n"
    nodes = "---\ngpolicy: v1\nkind: NodeSet\nname: small\nnodes: [node1]\nhv_state: {fake: {mem_total: 32G}}\n"
    state = under(configured(), tmp_path, CLUSTER + HV_STATE + DISK_STATE + GROUP + smaller + nodes)
    report = capacity(state)
    # 27 GiB on node1, 43 GiB on node2: six of 4 GiB on the smaller one
    assert report.groups[0].standard.fits == 6


def test_nothing_is_guessed_where_a_total_is_not_declared(tmp_path: Path) -> None:
    text = f"{CLUSTER}hv_state: {{fake: {{mem_node: 4G}}}}\n{DISK_STATE}{GROUP}"
    with pytest.raises(GpolicyError, match="not known for group default: node1, node2 show no memory, CPUs"):
        capacity(under(configured(), tmp_path, text))


def test_a_cpu_total_of_1_that_ganeti_fills_in_beside_a_declared_total_does_not_count(tmp_path: Path) -> None:
    state = configured()
    assert state.cluster.own["hv_state", "fake", "cpu_total"] == 1
    total = "hv_state: {fake: {mem_total: 64G, mem_node: 4G, mem_hv: 1G}}\n"
    hardware = "hardware: {memory: 32G, cpus: 16, pv_size: 1T, pv_count: 8}\n"
    assert capacity(under(state, tmp_path, CLUSTER + total + GROUP + hardware)).groups[0].standard.fits == 14
    with pytest.raises(GpolicyError, match="not known for group default: node1, node2 show no CPUs"):
        capacity(under(state, tmp_path, CLUSTER + total + DISK_STATE + GROUP))


def test_the_defaults_that_ganeti_fills_in_declare_nothing_but_those_of_the_policy_do(tmp_path: Path) -> None:
    state = configured()
    assert state.cluster.own["hv_state", "fake", "mem_node"] == 0
    measured = Resources(
        memory_total=65536,
        memory_node=8192,
        memory_free=57344,
        disk_total=2**23,
        disk_free=2**23,
        cpu_total=16,
        cpu_node=1,
    )
    state = replace(state, nodes={name: replace(node, resources=measured) for name, node in state.nodes.items()})
    by_ganeti = capacity(under(state, tmp_path, CLUSTER), resource_model=True)
    assert (by_ganeti.basis.kind, by_ganeti.groups[0].standard.fits) == (BasisKind.MEASURED, 13)  # 56 GiB, not all
    by_policy = capacity(under(state, tmp_path, f"{CLUSTER}hv_state: {{fake: {{mem_node: 0}}}}\n"), resource_model=True)
    assert (by_policy.basis.kind, by_policy.groups[0].standard.fits) == (BasisKind.MIXED, 15)  # all 64 GiB
    assert by_policy.notes == ("node1, node2: mem_node is declared as 0, reported as 8G",)


def test_on_rapi_what_the_policy_of_this_run_declares_counts(tmp_path: Path) -> None:
    own = {path: value for path, value in configured().cluster.own.items() if path[0] != "hv_state"}
    measured = Resources(
        memory_total=131072,
        memory_node=0,
        memory_free=131072,
        disk_total=2**23,
        disk_free=2**23,
        cpu_total=64,
        cpu_node=0,
    )
    state = configured()
    nodes = {name: replace(node, resources=measured) for name, node in state.nodes.items()}
    state = replace(state, cluster=replace(state.cluster, own=own), nodes=nodes, unreadable=HIDDEN_BY_RAPI)
    after = under(state, tmp_path, CLUSTER + HV_STATE + GROUP)
    assert capacity(after).groups[0].standard.fits == 31  # what is measured: 128 GiB, of which some must stay free
    assert capacity(after, resource_model=True).groups[0].standard.fits == 14


def volumes(*free: int) -> tuple[PhysicalVolume, ...]:
    return tuple(
        PhysicalVolume(name=f"/dev/sd{number}", size=102400, free=left, used=102400 - left)
        for number, left in enumerate(free)
    )


def test_exclusive_storage_counts_volumes_measured_or_promised(tmp_path: Path) -> None:
    exclusive = "ndparams: {exclusive_storage: true}\n"
    hardware = "hardware: {memory: 64G, cpus: 16, pv_size: 100G, pv_count: 4}\n"
    promised = under(configured(), tmp_path, CLUSTER + HV_STATE + GROUP + exclusive + hardware)
    report = capacity(promised)
    # a disk of 90 GiB takes one volume, of which int(102400 / 1.03) = 99,417 MiB count; all hail asks for no N+1 here
    assert report.groups[0].standard.fits == 8
    assert report.groups[0].hspace_standard == 4
    assert report.basis.declared == {"memory and CPUs": ("node1", "node2"), "disk and spindles": ("node1", "node2")}
    state = configured()
    nodes = {
        "node1": replace(state.nodes["node1"], physical_volumes=volumes(102400, 102400, 50000, 102400)),
        "node2": replace(state.nodes["node2"], physical_volumes=volumes(102400, 102400, 102400, 102400)),
    }
    measured = under(replace(state, nodes=nodes), tmp_path, CLUSTER + HV_STATE + GROUP + exclusive)
    report = capacity(measured)
    assert report.groups[0].standard.fits == 7  # one volume of node1 is used in part
    assert report.basis.declared == {"memory and CPUs": ("node1", "node2")}
    room = report.groups[0].stranded
    assert room is not None
    assert (room.free.spindles, room.free.disk) == (7, 7 * 99417)


def test_place_by_declaration(tmp_path: Path) -> None:
    state = under(configured(), tmp_path, CLUSTER + HV_STATE + DISK_STATE + GROUP)
    fits = place(state, PlaceRequest(name="new"))
    assert (fits.ok, fits.basis.kind) == (True, BasisKind.DECLARED)
    vast = "min: {memory-size: 4G, cpu-count: 1, disk-size: 90G, disk-count: 1, nic-count: 1, spindle-use: 1}"
    wide = CLUSTER.replace(f"min: {{{SIZE}}}, max: {{{SIZE}}}", f"{vast}, max: {{{SIZE.replace('4G', '64G')}}}")
    state = under(configured(), tmp_path, wide + HV_STATE + DISK_STATE + GROUP)
    refused = place(state, PlaceRequest(name="new", memory=60416))
    assert not refused.ok
    assert {item.detail for item in refused.candidates} == {
        f"{name}: 59G memory wanted, 59G free, of which 1M must stay free" for name in ("node1", "node2")
    }


def test_a_guard_fails_when_the_declared_capacity_falls(tmp_path: Path) -> None:
    guards = """---
gpolicy: v1
kind: Guards
guards:
  - {name: room, at_least: 14, group: default}
  - {name: no-loss, capacity_loss: {at_most: 0%}}
  - {name: redundant, node_failures: 1}
"""
    before = under(configured(), tmp_path, CLUSTER + HV_STATE + DISK_STATE + GROUP)
    assert capacity(before).groups[0].standard.fits == 14
    policy = written(
        tmp_path, CLUSTER + HV_STATE.replace("mem_node: 4G", "mem_node: 24G") + DISK_STATE + GROUP + guards
    )
    before, after = sides(replace(before, terms={}), policy)
    names = pair_names(policy, after)
    known = guard_impact(Sides(before, after, names), policy.guards)
    verdicts = {item.name: (item.ok, item.message) for item in declared_verdicts(policy.guards, (), known)}
    # 39 GiB are left on each node: nine of 4 GiB
    assert verdicts["room"] == (
        False,
        "group default, size any at its largest (declared): 9 fit after, fewer than 14 (bound by n1-capacity)",
    )
    assert verdicts["no-loss"] == (
        False,
        "group default, size any at its largest (declared): 14 fit today, 9 after, a loss of 35.7 %, more than 0 %",
    )
    assert verdicts["redundant"][0]


def test_a_plan_that_declares_figures_first_changes_no_capacity(tmp_path: Path) -> None:
    guards = "---\ngpolicy: v1\nkind: Guards\nguards: [{name: no-loss, capacity_loss: {at_most: 0%}}]\n"
    policy = written(tmp_path, CLUSTER + HV_STATE + DISK_STATE + GROUP + guards)
    before, after = sides(configured(), policy)
    assert before.cluster.own["hv_state", "fake", "mem_total"] == 0
    assert capacity(before).basis == capacity(after).basis
    assert capacity(before).groups[0].stranded is not None
    known = guard_impact(Sides(before, after, pair_names(policy, after)), policy.guards)
    assert known.capacity is not None
    (group,) = known.capacity.groups
    assert group.before is not None
    assert group.after is not None
    assert group.after.standard.fits == 14
    section = resource_model_section(resource_model_change(load_sides(Sides(before, after)), lambda _: None))
    assert section.summary == "nodes report nothing to compare with"
