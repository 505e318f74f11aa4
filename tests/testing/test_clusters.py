"""The clusters that tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.cluster.state_files import write_snapshot
from gpolicy.cluster.terms import VolumeSize
from gpolicy.policy.kinds import Policy
from gpolicy.testing.running_tests import Stages, run_tests
from tests.testing.policy_tests import CLUSTER, SMALL, outcome, policy_of, problems, with_tests

GIB = 1024


def _in_cluster(text: str) -> str:
    """Return the policy with `text` in its Cluster document."""
    return SMALL.replace("ipolicy:\n", f"{text}ipolicy:\n")


def cluster(policy: Policy) -> ClusterState:
    (scenario,) = policy.scenarios
    return Stages(policy).cluster(scenario.stage, scenario.name.value)


def stage(directory: Path, on: str, policy: str = SMALL) -> ClusterState:
    line = f'    "on": {on}\n' if on else ""
    text = f"  - name: t\n{line}    check_instance: {{spec: small}}\n    expect: {{refused: false}}\n"
    return cluster(policy_of(directory, with_tests(text, policy)))


def test_the_promised_hardware_is_on_the_nodes_that_the_groups_name(tmp_path: Path) -> None:
    state = stage(tmp_path, "")
    assert {name: node.group for name, node in state.nodes.items()} == dict.fromkeys(
        ["node1", "node2", "node3"], "main"
    )
    assert state.nodes["node1"].resources == Resources(
        memory_total=64 * GIB, memory_node=0, memory_free=64 * GIB,
        disk_total=1000 * GIB, disk_free=1000 * GIB, cpu_total=16, cpu_node=1,
    )  # fmt: skip


def test_a_node_keeps_what_its_hypervisors_state_says(tmp_path: Path) -> None:
    policy = _in_cluster("hv_state:\n  kvm: {mem_node: 4G, mem_hv: 1G, cpu_node: 2}\n")
    resources = stage(tmp_path, "", policy).nodes["node1"].resources
    assert (resources.memory_node, resources.memory_free, resources.cpu_node) == (4 * GIB, 59 * GIB, 2)
    resources = stage(tmp_path, "{simulate: {nodes: 1, memory_node: 1G}}", policy).nodes["node-1"].resources
    assert (resources.memory_node, resources.memory_free) == (1 * GIB, 62 * GIB)
    two = _in_cluster("hv_state:\n  kvm: {mem_node: 4G}\n  xen-pvm: {mem_node: 8G}\n")
    assert stage(tmp_path, "", two).nodes["node1"].resources.memory_node == 0  # nobody says which one counts
    chosen = two.replace("enabled_disk", "enabled_hypervisors: [xen-pvm, kvm]\nenabled_disk")
    assert stage(tmp_path, "", chosen).nodes["node1"].resources.memory_node == 8 * GIB


def test_under_exclusive_storage_volumes_count_less_than_their_size(tmp_path: Path) -> None:
    policy = SMALL + "ndparams: {exclusive_storage: true}\n"
    resources = stage(tmp_path, "", policy).nodes["node1"].resources
    assert (resources.spindles_total, resources.spindles_free) == (2, 2)
    assert resources.disk_total == 2 * VolumeSize(500 * GIB).usable
    mixed = stage(tmp_path, "{simulate: {nodes: [{name: a, pvs: [99G, 100G, 100G]}]}}", policy).nodes["a"].resources
    assert (mixed.disk_total, mixed.spindles_total) == (3 * VolumeSize(99 * GIB).usable, 3)


def test_nodes_can_be_counted_filled_or_named(tmp_path: Path) -> None:
    assert list(stage(tmp_path, "{simulate: {nodes: 2}}").nodes) == ["node-1", "node-2"]
    state = stage(tmp_path, "{simulate: {nodes: {empty: 1, half-full: 2}}}")
    assert list(state.nodes) == ["empty", "half-full-1", "half-full-2"]
    named = "{simulate: {memory: 8G, nodes: [{name: a, filled: quarter-full}, {name: b, memory: 16G, offline: true}]}}"
    state = stage(tmp_path, named)
    assert (state.nodes["a"].resources.memory_total, state.nodes["a"].resources.memory_free) == (8 * GIB, 6 * GIB)
    assert (state.nodes["b"].offline, state.nodes["b"].resources) == (True, Resources())


def test_the_numbers_of_counted_nodes_go_on_from_group_to_group(tmp_path: Path) -> None:
    policy = f"{SMALL}---\ngpolicy: v1\nkind: NodeGroup\nname: second\nhardware: {{memory: 8G, cpus: 4}}\n"

    def names(nodes: str, others: str) -> dict[str, str]:
        parts = f"[{{group: main, nodes: {nodes}}}, {{group: second, disk: 1T, nodes: {others}}}]"
        return {name: node.group for name, node in stage(tmp_path, f"{{simulate: {parts}}}", policy).nodes.items()}

    assert names("2", "1") == {"node-1": "main", "node-2": "main", "node-3": "second"}
    filled = names("{full: 1, empty: 2}", "{full: 1, empty: 1}")
    assert set(filled) == {"full", "empty-1", "empty-2", "full-1", "empty"}


@pytest.mark.parametrize(("filling", "quarters"), [("quarter-full", 1), ("half-full", 2), ("full", 4)])
def test_a_filled_node_has_used_quarters_of_everything(filling: str, quarters: int, tmp_path: Path) -> None:
    state = stage(tmp_path, f"{{simulate: {{nodes: {{{filling}: 1}}}}}}")
    resources = state.nodes[filling].resources
    assert resources.memory_free == 64 * GIB * (4 - quarters) // 4
    assert resources.disk_free == 1000 * GIB * (4 - quarters) // 4
    assert resources.memory_node == 64 * GIB * quarters // 4
    assert resources.cpu_node == 1 + quarters * ((16 * 4 - 1) // 4)  # a vcpu-ratio of 4, less the node's own one
    assert state.instances == {}


def test_two_volumes_cannot_be_a_quarter_full(tmp_path: Path) -> None:
    policy = SMALL + "ndparams: {exclusive_storage: true}\n"
    found = outcome(tmp_path, "on: {simulate: {nodes: {half-full: 1}}}\ncapacity: {}\nexpect: {standard: 1}", policy)
    assert found.error == "node half-full has 2 physical volumes: no quarter of them can be in use"


def test_added_instances_use_resources_and_removed_ones_free_them(tmp_path: Path) -> None:
    on = """
      simulate:
        nodes: [{name: a}, {name: b}]
        instances:
          - {name: web, nodes: [a, b], memory-size: 4G, disks: [20G, 10G]}
          - {name: old, nodes: [b], count: 2, running: false, spec: small}
"""
    state = stage(tmp_path, on)
    assert list(state.instances) == ["web", "old-1", "old-2"]
    assert state.instances["web"].disk_template == "drbd"
    a, b = (state.nodes[name].resources for name in "ab")
    assert (a.memory_free, a.disk_free) == (60 * GIB, 1000 * GIB - 30 * GIB - 2 * 128)
    assert (b.memory_free, b.disk_free) == (64 * GIB, 1000 * GIB - 30 * GIB - 2 * 128 - 20 * GIB)
    edits = on + "      edits: [{remove_instance: web}, {remove_instance: old-2}, {remove_instance: old-1}]\n"
    state = stage(tmp_path, edits)
    assert [node.resources.disk_free for node in state.nodes.values()] == [1000 * GIB] * 2
    assert [node.resources.memory_free for node in state.nodes.values()] == [64 * GIB] * 2


def test_edits_change_nodes_and_tags(tmp_path: Path) -> None:
    on = """
      simulate: {group: main, nodes: [{name: a, tags: ["x:1", "x:2"]}, {name: b}], instances: [{name: web, nodes: [a]}]}
      edits:
        - {node: a, drained: true, remove_tags: ["x:1"], add_tags: ["y:1"]}
        - {node: b, offline: true, group: other}
        - {instance: web, add_tags: ["service:web"]}
"""
    policy = SMALL + "---\ngpolicy: v1\nkind: NodeGroup\nname: other\n"
    state = stage(tmp_path, on, policy)
    assert state.nodes["a"].drained
    assert state.nodes["a"].tags == {"x:2", "y:1"}
    assert (state.nodes["b"].offline, state.nodes["b"].group) == (True, "other")
    assert state.instances["web"].tags == {"service:web"}


def test_the_policy_is_applied_to_the_nodes(tmp_path: Path) -> None:
    policy = CLUSTER + (
        "---\ngpolicy: v1\nkind: NodeGroup\nname: main\nhardware: {memory: 8G, cpus: 4}\n"
        "---\ngpolicy: v1\nkind: NodeSet\nname: set\nnodes: ['a*']\nndparams: {spindle_count: 7}\ntags: ['rack:1']\n"
        "---\ngpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n"
    )
    text = (
        "  - name: t\n    'on': {simulate: {nodes: [{name: a1}, {name: b1, spindles: 3}]}}\n"
        "    check_instance: {memory-size: 1G}\n    expect: {refused: false}\n"
    )
    state = cluster(policy_of(tmp_path, with_tests(text, policy)))
    count = ("ndparams", "spindle_count")
    assert [state.effective_of_node(node)[count] for node in state.nodes.values()] == [7, 3]
    assert [node.tags for node in state.nodes.values()] == [frozenset({"rack:1"}), frozenset()]
    assert state.cluster.tags == {"htools:nlocation:rack"}


def test_a_group_that_claims_the_nodes_by_a_glob_does_not_get_those_of_another(tmp_path: Path) -> None:
    policy = SMALL.replace('["node[1-3]"]', '["*"]') + "---\ngpolicy: v1\nkind: NodeGroup\nname: other\n"
    state = stage(tmp_path, "{simulate: {group: other, nodes: [{name: a, memory: 8G, cpus: 4}]}}", policy)
    assert state.nodes["a"].group == "other"


def test_with_several_groups_a_test_must_name_one(tmp_path: Path) -> None:
    policy = SMALL + "---\ngpolicy: v1\nkind: NodeGroup\nname: other\n"
    found = outcome(
        tmp_path, "on: {simulate: {nodes: 1}}\ncheck_instance: {spec: small}\nexpect: {refused: false}", policy
    )
    assert (found.error, found.hint) == ("the simulated nodes have no group", "say `group:`, one of main, other")
    found = outcome(tmp_path, "check_instance: {spec: small}\nexpect: {refused: false}", policy)
    assert (found.error, found.hint) == ("which group is meant?", "say `group:`, one of main, other")
    spare = f"{policy}alloc_policy: unallocable\n"  # hail would not choose it
    assert outcome(tmp_path, "check_instance: {spec: small}\nexpect: {refused: false}", spare).error is None


# --- snapshots -----------------------------------------------------------------------------------------------------


def snapshot(directory: Path, name: str = "s.json") -> Path:
    file = directory / name
    write_snapshot(read_state("sim:p,3,500g,64g,16"), file)
    return file


def test_a_snapshot_beside_the_document_is_read_and_the_policy_applied(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    snapshot(tmp_path / "below")
    text = CLUSTER + "tags: ['x:1']\n"
    test = (
        "  - name: t\n    'on': {snapshot: below/s.json, edits: [{node: node-01-002, offline: true}]}\n"
        "    place: {memory-size: 1G, disks: [10G]}\n    expect: {node: node-01-003, group: group-01}\n"
    )
    policy = policy_of(tmp_path, with_tests(test, text))
    state = cluster(policy)
    assert state.cluster.tags == {"x:1"}
    assert state.nodes["node-01-002"].offline
    (found,) = run_tests(policy)
    assert problems(found) == []


def test_an_invalid_or_unsuitable_snapshot_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    body = "on: {snapshot: s.json}\ncapacity: {}\nexpect: {standard: 1}"
    assert "not a snapshot of gpolicy" in (outcome(tmp_path, body, CLUSTER).error or "")
    snapshot(tmp_path)
    policy = CLUSTER + "---\ngpolicy: v1\nkind: NodeGroup\nname: main\nnodes: [gone]\n"
    assert (
        outcome(tmp_path, body, policy).error == "the policy does not match the cluster: the cluster has no node 'gone'"
    )


def test_a_test_without_a_cluster_uses_the_given_one(tmp_path: Path) -> None:
    text = "  - name: t\n    place: {memory-size: 1G, disks: [10G]}\n    expect: {node: node-01-002}\n"
    policy = policy_of(tmp_path, with_tests(text, CLUSTER))
    (found,) = run_tests(policy, stages=Stages(policy, read_state("sim:p,2,500g,64g,16")))
    assert problems(found) == []


def test_edits_take_the_words_of_what_if(tmp_path: Path) -> None:
    edits = "[{with: 2x like:node1 in main}, {upgrade: node3 memory=+64G}, {with: 4x small}, {lost: node2}]"
    policy = policy_of(
        tmp_path,
        with_tests(
            f"  - name: t\n    on: {{edits: {edits}}}\n    place: {{spec: small}}\n    expect: {{refused: false}}\n"
        ),
    )
    state = cluster(policy)
    assert [name for name in state.nodes if "+" in name] == ["node1+1", "node1+2"]
    assert state.nodes["node3"].resources.memory_total == 128 * GIB
    assert list(state.instances) == [f"small+{number}" for number in range(1, 5)]
    assert state.nodes["node2"].offline
    assert run_tests(policy)[0].ok


@pytest.mark.parametrize(
    "edit", ["with: 2x like:node9 in main", "lost: node9", "upgrade: node9 memory=+1G", "with: 2x"]
)
def test_words_that_mean_nothing_here_have_their_place(edit: str, tmp_path: Path) -> None:
    found = outcome(tmp_path, f"on: {{edits: [{{{edit}}}]}}\nplace: {{spec: small}}\nexpect: {{refused: false}}")
    assert found.error
    assert not found.error.startswith("-")
    assert found.place is not None
