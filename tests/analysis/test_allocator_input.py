from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate, InstancePolicy
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.allocator_input import cluster_data, natural_key
from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.master import read_master
from gpolicy.cluster.process import Output
from gpolicy.cluster.rapi import read_rapi
from gpolicy.cluster.rapi_client import Client
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.cluster.state_files import dump_snapshot, parse_snapshot, read_config_file
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import RAPI_READS, Value, Values
from gpolicy.htools.rapi import parse_rapi
from gpolicy.htools.text_format import parse_cluster
from tests.analysis.hspace_cases import DATA, FULL, from_text, recorded_cases

CLUSTERS = DATA / "clusters"


def recorded_texts() -> list[tuple[str, str]]:
    files = ("hspace-hail-score.jsonl.gz", "evacuation.jsonl.gz")
    return [("full", FULL), *((str(case["seed"]), case["data"]) for file in files for case in recorded_cases(file))]


class RecordedClient(Client):
    """Answers with the documents of a recorded cluster."""

    def get(self, path: str, *, until: float | None = None) -> Value:  # noqa: ARG002
        name = path.partition("?")[0].rpartition("/")[2]
        answer: Value = json.loads((CLUSTERS / self.host / f"rapi-{name}.json").read_text())
        return answer

    def get_if_allowed(self, path: str, *, until: float | None = None) -> Value | None:  # noqa: ARG002
        return None


def from_rapi(cluster: str) -> ClusterState:
    return read_rapi(RecordedClient(cluster, 5080, None))


class RecordedMaster:
    """A master that answers as a real one did."""

    source = "local:"

    def __init__(self, cluster: str) -> None:
        self.folder = CLUSTERS / cluster

    def config_data(self) -> bytes:
        return (self.folder / "config.data").read_bytes()

    def run(self, argv: Sequence[str]) -> Output:
        return Output(0, (self.folder / f"{argv[0].removeprefix('gnt-')}-list.txt").read_bytes(), "")


def rapi_answers(cluster: str) -> dict[str, Value]:
    return {name: json.loads((CLUSTERS / cluster / f"rapi-{name}.json").read_text()) for name in RAPI_READS}


def sets_in_order(data: ClusterData) -> ClusterData:
    """Sort what is a set to Ganeti (tags, templates of a policy): the allocator asks only what is in it."""

    def sort(policy: InstancePolicy) -> InstancePolicy:
        return replace(policy, templates=tuple(sorted(policy.templates, key=list(DiskTemplate).index)))

    return replace(
        data,
        tags=tuple(sorted(data.tags)),
        policy=sort(data.policy),
        groups=tuple(replace(item, tags=tuple(sorted(item.tags)), policy=sort(item.policy)) for item in data.groups),
        nodes=tuple(replace(item, tags=tuple(sorted(item.tags))) for item in data.nodes),
        instances=tuple(replace(item, tags=tuple(sorted(item.tags))) for item in data.instances),
    )


def test_a_text_file_is_loaded_as_htools_loads_it() -> None:
    texts = recorded_texts()
    assert len(texts) == 351
    for name, text in texts:
        assert sets_in_order(cluster_data(from_text(text))) == sets_in_order(parse_cluster(text)), name


def test_a_snapshot_is_loaded_as_htools_loads_the_text() -> None:
    for name, text in recorded_texts()[::10]:
        state = from_text(text)
        assert cluster_data(parse_snapshot(dump_snapshot(state), "x")) == cluster_data(state), name


@pytest.mark.parametrize("cluster", ["base", "rich", "full"])
def test_the_remote_api_is_loaded_as_by_htools_except_the_cpu_speed(cluster: str) -> None:
    expected = sets_in_order(parse_rapi(rapi_answers(cluster), "x"))
    found = sets_in_order(cluster_data(from_rapi(cluster)))
    assert {node.cpu_speed for node in expected.nodes} == {1.0}  # htools does not read it from the remote API
    assert {node.cpu_speed for node in found.nodes} == ({1.0} if cluster == "base" else {1.5})
    assert replace(found, nodes=tuple(replace(node, cpu_speed=1.0) for node in found.nodes)) == expected


def test_the_remote_api_and_text_give_the_same_cluster() -> None:
    text = cluster_data(from_text(FULL))
    rapi = cluster_data(from_rapi("full"))
    assert rapi.groups == text.groups
    assert [replace(node, master=False) for node in rapi.nodes] == [replace(node, master=False) for node in text.nodes]
    # the text gives one disk for all disks of an instance
    assert [replace(item, disks=()) for item in rapi.instances] == [replace(item, disks=()) for item in text.instances]
    assert (rapi.tags, rapi.policy, rapi.hypervisor) == (text.tags, text.policy, "fake")


@pytest.mark.parametrize("cluster", ["base", "rich", "full"])
def test_the_master_and_the_remote_api_give_the_same_cluster(cluster: str) -> None:
    assert cluster_data(read_master(RecordedMaster(cluster))) == cluster_data(from_rapi(cluster))


def test_a_configuration_without_live_data_names_what_is_missing() -> None:
    state = read_config_file(CLUSTERS / "full" / "config.data")
    with pytest.raises(
        GpolicyError, match=r"node1, node2, node3 show no memory, CPUs, disk; .*node4, node5 show no memory"
    ) as caught:
        load_state(state)
    assert "local:" in str(caught.value.hint)
    assert "`hardware`" in str(caught.value.hint)


def test_only_what_is_missing_is_named() -> None:
    state = from_rapi("full")
    silent = replace(state.nodes["node2"], resources=replace(state.nodes["node2"].resources, disk_free=None))
    with pytest.raises(GpolicyError, match=r"not known for group default: node2 shows no disk$"):
        load_state(replace(state, nodes={**state.nodes, "node2": silent}), group="default")
    unknown = replace(state.instances["inst1"], status=None)
    with pytest.raises(GpolicyError, match=r"not known for group default: node1 does not show whether instances run$"):
        load_state(replace(state, instances={**state.instances, "inst1": unknown}), group="default")


def test_a_node_that_does_not_answer_is_not_guessed() -> None:
    loaded = load_state(from_rapi("exclusive"))
    assert {group: item.reason for group, item in loaded.settled.unknown.items()} == {"gold": "node4 does not answer"}


def test_a_cluster_without_volume_groups_has_no_disk_to_measure() -> None:
    state = from_rapi("full")
    own: Values = {**state.cluster.own, ("enabled_disk_templates",): ["ext"]}
    nodes = {
        name: replace(node, resources=replace(node.resources, disk_total=None, disk_free=None))
        for name, node in state.nodes.items()
    }
    data = cluster_data(replace(state, nodes=nodes, cluster=replace(state.cluster, own=own)))
    assert {node.total_disk for node in data.nodes} == {0.0}


def test_an_offline_node_is_all_zero_and_a_drained_one_keeps_its_numbers() -> None:
    state = from_rapi("full")
    off = replace(state.nodes["node3"], offline=True, resources=Resources())
    data = cluster_data(replace(state, nodes={**state.nodes, "node3": off}))
    assert (data.nodes[2].offline, data.nodes[2].total_memory, data.nodes[2].node_cpus) == (True, 0.0, 0)
    assert (data.nodes[4].offline, data.nodes[4].total_memory) == (True, 65536.0)


def test_memory_of_a_running_instance_is_its_present_memory() -> None:
    state = from_rapi("full")
    ballooned = replace(state.instances["inst3"], oper_ram=1500)
    assert cluster_data(replace(state, instances={**state.instances, "inst3": ballooned})).instances[2].memory == 1500


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"disk_template": "mixed"}, "instance inst1 has disks of several templates, which htools cannot read"),
        ({"disk_template": "tape"}, "instance inst1: no such disk template: 'tape'"),
        ({"status": "asleep"}, "instance inst1: no such status: 'asleep'"),
    ],
)
def test_values_unknown_to_the_allocator_are_refused(change: dict[str, Any], message: str) -> None:
    state = from_rapi("full")
    odd = replace(state.instances["inst1"], **change)
    with pytest.raises(GpolicyError, match=message):
        cluster_data(replace(state, instances={**state.instances, "inst1": odd}))


def test_an_incomplete_policy_is_refused() -> None:
    state = from_rapi("full")
    own = {path: value for path, value in state.cluster.own.items() if path != ("ipolicy", "vcpu-ratio")}
    with pytest.raises(GpolicyError, match="cluster: its instance policy has no vcpu-ratio"):
        cluster_data(replace(state, cluster=replace(state.cluster, own=own)))


def test_a_source_without_order_is_in_ganeti_s_order() -> None:
    assert sorted(["node10", "node2", "node1", "a"], key=natural_key) == ["a", "node1", "node2", "node10"]
    state = from_rapi("full")
    nodes = {name: replace(node, position=None) for name, node in reversed(state.nodes.items())}
    assert [node.name for node in cluster_data(replace(state, nodes=nodes)).nodes] == sorted(nodes)
