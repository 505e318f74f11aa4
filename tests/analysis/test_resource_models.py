from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.node_resources import DeclaredNumber
from gpolicy.analysis.resource_models import NodeModel, ResourceModel, resource_models
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState, Resources
from gpolicy.cluster.state_files import read_config_file
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Path, Value, Values
from gpolicy.impact import impact
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.comparison import load_sides
from gpolicy.impact.impact import ResourceModelChange
from gpolicy.plan.sides import Sides
from gpolicy.progress import silent
from gpolicy.report.impact_sections import resource_model_section
from tests.analysis.hspace_cases import DATA, from_text, text_of
from tests.impact.changes import resource_model_change

POLICY = "1024,1,5120,1,1,1|512,1,2560,1,1,1;4096,4,20480,1,1,4|plain|2.0|32.0"


def cluster(
    own: Values | None = None, group: Values | None = None, nodes: dict[str, Values] | None = None
) -> ClusterState:
    """Return two nodes of 16 GiB; on a 2 GiB run, 1 GiB is stopped and 4 GiB are ADMIN_offline."""
    rows = [
        "a|16384|1000|13000|204800|180000|8|N|u|1||N|0|1|1.0",
        "b|16384|1000|15384|204800|204800|8|N|u|1||N|0|1|1.0",
    ]
    instances = [
        "i1|2048|5120|1|running|Y|a||plain||1|-|N",
        "i2|1024|5120|2|ADMIN_down|Y|a||plain||1|-|N",
        "i3|4096|5120|4|ADMIN_offline|Y|a||plain||1|-|N",
    ]
    state = from_text(text_of(["g|u|preferred||"], rows, instances, [], [f"|{POLICY}", f"g|{POLICY}"]))
    item = state.groups["g"]
    extra: Values = {("enabled_hypervisors",): ["xen-pvm", "kvm"], ("volume_group_name",): "xenvg", **(own or {})}
    return replace(
        state,
        cluster=replace(state.cluster, own={**state.cluster.own, **extra}),
        groups={"g": replace(item, own={**item.own, **(group or {})})},
        nodes={
            name: replace(node, own={**node.own, **(nodes or {}).get(name, {})}) for name, node in state.nodes.items()
        },
        unreadable=(),
    )


def hv(name: str, value: Value, hypervisor: str = "xen-pvm") -> Values:
    path: Path = ("hv_state", hypervisor, name)
    return {path: value}


def disk(name: str, value: Value, group: str = "xenvg") -> Values:
    path: Path = ("disk_state", "plain", group, name)
    return {path: value}


def resource_model(state: ClusterState) -> ResourceModel:
    return resource_models([load_state(state)], [load_state(state, resource_model=True)], silent)[0]


def model(state: ClusterState, name: str = "a") -> NodeModel:
    return {node.node: node for node in resource_model(state).nodes}[name]


def test_without_declarations_there_is_no_resource_model() -> None:
    found = resource_model(cluster())
    assert found.groups == ()
    assert [node.declared for node in found.nodes] == [(), ()]
    assert all(node.measured == node.configured for node in found.nodes)
    section = resource_model_section(ResourceModelChange(found, found))
    assert section.summary == "nothing is declared"


def test_free_memory_and_disk_follow_the_document_s_equations() -> None:
    state = cluster(
        nodes={"a": {**hv("mem_total", 16000), **hv("mem_node", 2000), **hv("mem_hv", 300), **hv("cpu_total", 6),
                     **hv("cpu_node", 2), **disk("disk_total", 200000), **disk("disk_overhead", 1000),
                     **disk("disk_reserved", 500)}}
    )  # fmt: skip
    found = model(state)
    assert found.measured is not None
    assert found.measured.free_memory == 13000
    assert found.measured.free_disk == 180000
    assert found.configured.free_memory == 16000 - 2000 - 300 - (2048 + 1024)  # the stopped one counts, the offline not
    assert found.configured.free_disk == 200000 - 1000 - 3 * 5120 - 500
    assert found.configured.cpus == 2 * 6 - 2 - (1 + 2)
    assert found.measured.cpus == 2 * 8 - 1 - (1 + 2)


def test_declared_and_reported_numbers_are_shown_together() -> None:
    found = model(cluster(nodes={"a": {**hv("mem_hv", 100), **hv("cpu_node", 3), **disk("disk_reserved", 10)}}))
    overhead = 16384 - 1000 - 2048 - 13000
    assert found.declared == (
        DeclaredNumber("mem_hv", 100, "node", overhead),
        DeclaredNumber("cpu_node", 3, "node", 1),
        DeclaredNumber("disk_reserved", 10, "node", None),
    )
    assert [item.differs for item in found.declared] == [True, True, False]


def test_undeclared_numbers_are_the_reported_ones() -> None:
    found = model(cluster(nodes={"a": hv("mem_node", 1000)}))
    overhead = 16384 - 1000 - 2048 - 13000
    assert found.configured.free_memory == 16384 - 1000 - overhead - 2048 - 1024
    assert found.measured is not None
    assert found.configured.free_disk == found.measured.free_disk


def test_node_overrides_group_overrides_cluster_and_totals_that_ganeti_filled_in_do_not_count() -> None:
    state = cluster(
        own={**hv("mem_node", 1), **hv("mem_hv", 2), **hv("cpu_node", 1), **hv("mem_total", 0), **hv("cpu_total", 1)},
        group=hv("mem_hv", 20),
        nodes={"a": hv("mem_node", 300)},
    )
    levels = {
        node.node: {item.name: (item.declared, item.level) for item in node.declared}
        for node in resource_model(state).nodes
    }
    assert levels["a"] == {"mem_node": (300, "node"), "mem_hv": (20, "group"), "cpu_node": (1, "cluster")}
    assert levels["b"] == {"mem_node": (1, "cluster"), "mem_hv": (20, "group"), "cpu_node": (1, "cluster")}


def test_other_hypervisors_and_volume_groups_are_noted_but_ignored() -> None:
    found = resource_model(cluster(group={**hv("mem_node", 4096, "kvm"), **disk("disk_reserved", 9, "other")}))
    assert all(node.declared == () for node in found.nodes)
    assert [note.partition(" is ignored")[0] for note in found.notes[:2]] == ["disk_state.plain.other", "hv_state.kvm"]


def standard_by_the_law(state: ClusterState) -> int:
    """Place standard instances the literal way on a cluster with these numbers as measured ones."""
    data = cluster_data(state)
    prepared = merge(data)
    run = CountedCluster(data, None)
    std = data.policy.std
    wanted = replace(run.instance(std, std.spindle_use))
    candidates = candidate_nodes(prepared.groups, prepared.nodes, 1)
    law = Allocator(ReferenceEngine(candidates, CapacityRules()))
    return len(law.standard(AllocationState(prepared.nodes, prepared.instances), wanted, None).placed)


def test_capacity_under_both_models() -> None:
    declared = {name: {**hv("mem_node", 8000), **hv("mem_hv", 0), **hv("cpu_node", 1)} for name in ("a", "b")}
    found = resource_model(cluster(nodes=declared)).groups[0]
    assert found.measured_fits == standard_by_the_law(cluster())
    plain = cluster()
    free = 16384 - 8000 - 2048 - 1024  # htools keeps 4096 for the offline one, the declared model does not
    resources = {
        "a": Resources(memory_total=16384, memory_node=8000, memory_free=free + 4096, disk_total=204800,
                       disk_free=180000, cpu_total=7, cpu_node=0),
        "b": Resources(memory_total=16384, memory_node=8000, memory_free=16384 - 8000, disk_total=204800,
                       disk_free=204800, cpu_total=7, cpu_node=0),
    }  # fmt: skip
    nodes = {name: replace(node, resources=resources[name]) for name, node in plain.nodes.items()}
    instances = {**plain.instances, "i2": replace(plain.instances["i2"], status="running", admin_state="up")}
    assert found.configured_fits == standard_by_the_law(replace(plain, nodes=nodes, instances=instances))
    assert 0 < found.configured_fits < found.measured_fits


def test_over_subscription_counts_maxmem_of_instances_that_may_start() -> None:
    state = cluster(nodes={"a": {**hv("mem_node", 1384), **hv("mem_hv", 0)}})
    instances = {**state.instances, "i1": replace(state.instances["i1"], maxmem=20000)}
    found = model(replace(state, instances=instances))
    assert (found.minimum_memory, found.maximum_memory, found.available_memory) == (2048 + 1024, 21024, 15000)
    assert found.oversubscription == pytest.approx(21024 / 15000)


def test_a_source_without_hv_state_and_disk_state_is_noted() -> None:
    state = replace(cluster(nodes={"a": hv("mem_node", 8000)}), unreadable=HIDDEN_BY_RAPI, source="rapi://x")
    found = resource_model(state)
    assert found.notes[0] == "rapi://x does not show hv_state and disk_state: only what a policy declares counts"
    assert found.notes[1].startswith("a: 336M of memory and ")
    assert " are neither free nor used by the instances there; they count as used" in found.notes[1]
    assert [node.minimum_memory for node in found.nodes] == [3072, 0]


def test_without_measured_numbers_nothing_is_compared() -> None:
    with pytest.raises(GpolicyError, match="not known"):
        resource_model(read_config_file(DATA / "clusters" / "rich" / "config.data"))


def test_capacity_under_the_measured_model_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def counted(*arguments: object, **options: object) -> Allocator:
        asked.append(arguments)
        return CompiledAllocator(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("gpolicy.allocator.compiled_allocation.CompiledAllocator", counted)
    state = cluster(nodes={"a": hv("mem_node", 8000)})
    loaded = load_sides(Sides(state, state))
    capacity = capacity_change(loaded, silent)
    counts = len(asked)
    (model,) = impact.resource_model_change(loaded, silent).after.groups
    assert capacity.groups[0].standard.after is not None
    assert model.measured_fits == capacity.groups[0].standard.after.fits != model.configured_fits
    assert len(asked) == counts + 1  # the declared one alone


def test_equal_clusters_before_and_after_are_counted_once() -> None:
    told: list[str] = []
    before = cluster(nodes={"a": hv("mem_node", 8000)})
    change = resource_model_change(before, before, tell=told.append)
    assert change.before == change.after
    assert told == ["group g: standard instances under both resource models"] * 2  # one for each model
    after: ResourceModel = resource_model_change(before, cluster(nodes={"a": hv("mem_node", 500)})).after
    assert after.groups[0].configured_fits > change.after.groups[0].configured_fits


def test_values_of_wrong_types_are_ignored() -> None:
    odd: Any = {("hv_state", "xen-pvm", "mem_node"): True}
    assert model(cluster(group=odd)).declared == ()
