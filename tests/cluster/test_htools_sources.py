"""The text format of htools, and simulated clusters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpolicy.cluster.htools_sources import MOST_NODES, built_in_values, parse_text, read_text_file, simulated_state
from gpolicy.cluster.state import ClusterState, LiveDisk
from gpolicy.errors import InputError, RequestError
from gpolicy.ganeti.vocabulary import Level
from tests.cluster import recorded

RECORDED = recorded.path("full", "htools.data")


def parse(content: str) -> ClusterState:
    return parse_text(content, where="x.data", source="text:x.data")


def test_the_text_of_a_cluster_agrees_with_its_configuration() -> None:
    state, config = read_text_file(RECORDED), recorded.from_config("full")
    assert recorded.own_disagreements(state, config) == []
    for name, node in state.nodes.items():
        other = config.nodes[name]
        assert node.offline == (other.offline or other.drained or not other.vm_capable)
    for name, instance in state.instances.items():
        differ = recorded.known_differences(instance, config.instances[name], but=("disks", "minmem", "identity"))
        assert differ == []
        assert instance.minmem == config.instances[name].maxmem
        extra = 128 * (len(config.instances[name].disks) - 1) if instance.disk_template == "drbd" else 0
        assert sum(disk.size for disk in instance.disks) == extra + sum(
            disk.size for disk in config.instances[name].disks
        )


def test_effective_policies_are_those_of_the_text() -> None:
    state = read_text_file(RECORDED)
    assert state.groups["gold"].effective["ipolicy", "vcpu-ratio"] == 6.0
    assert state.groups["gold"].effective["ipolicy", "disk-templates"] == ["plain", "drbd"]
    assert state.cluster.own["ipolicy", "vcpu-ratio"] == 5.0
    assert state.groups["gold"].own == {("alloc_policy",): "last_resort"}


def test_own_values_are_unreadable_except_alloc_policy() -> None:
    state = read_text_file(RECORDED)
    assert state.readable(Level.CLUSTER, ("ipolicy", "minmax"))
    assert state.readable(Level.GROUP, ("alloc_policy",))
    assert not state.readable(Level.GROUP, ("ipolicy", "minmax"))
    assert not state.readable(Level.CLUSTER, ("ndparams", "cpu_speed"))
    assert not state.readable(Level.NODE, ("ndparams", "spindle_count"))
    assert state.notes


def test_nodes_keep_the_parameters_that_the_text_shows() -> None:
    state = read_text_file(RECORDED)
    assert state.effective_of_node(state.nodes["node4"])["ndparams", "spindle_count"] == 8
    assert state.nodes["node1"].resources.memory_free == 62464
    assert state.nodes["node1"].resources.spindles_total is None


def test_a_group_without_a_policy_line_has_the_built_in_policy() -> None:
    lines = RECORDED.read_text().splitlines()
    state = parse("\n".join(line for line in lines if not line.startswith("gold|128")))
    assert state.groups["gold"].effective["ipolicy", "vcpu-ratio"] == 4.0


def test_without_a_policy_line_for_the_cluster_its_policy_is_unreadable() -> None:
    state = parse("\n".join(line for line in RECORDED.read_text().splitlines() if not line.startswith("|")))
    assert not state.readable(Level.CLUSTER, ("ipolicy", "minmax"))


def test_exclusive_storage_and_question_marks() -> None:
    state = parse("g|u|preferred||\n\na|?|?|?|?|?|?|N|u\nb|8|1|7|80|70|4.0|M|u|6||Y|5|2|1.5\n\n\n\n")
    assert state.nodes["a"].offline
    assert state.nodes["a"].resources.memory_total is None
    assert state.nodes["b"].resources.spindles_free == 5
    assert state.nodes["b"].master
    assert state.effective_of_node(state.nodes["b"])["ndparams", "exclusive_storage"] is True


def test_disks() -> None:
    nodes = "g|u|preferred||\n\na|9|1|7|80|70|4|N|u\nb|9|1|7|80|70|4|N|u\n\n"
    state = parse(nodes + "i|2|640|1|running|Y|a|b|drbd||3|4|N\nd|2|0|1|ERROR_up|N|a||diskless|x,y\n\n\n")
    assert state.instances["i"].disks == (LiveDisk(size=512, template="drbd", spindles=4),)
    assert state.instances["d"].disks == ()
    assert state.instances["d"].tags == {"x", "y"}
    assert (state.instances["d"].admin_state, state.instances["d"].running) == ("down", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: "", "0 sections, not 4 or more"),
        (lambda text: text.replace("|preferred|", "|sometimes|").replace("\n\n", "\n"), "sections"),
        (lambda text: text.replace("node1|65536", "node1|lots"), "x.data:5: column 2: should be a number"),
        (lambda text: text.replace("node1|65536", "node1|nan"), "should be a number"),
        (lambda text: text.replace("node1|65536", "node1|1e300"), "is 1e300: no cluster has such an amount"),
        (lambda text: text.replace("node2|node3|drbd", "node2|node2|drbd"), "same primary and secondary"),
        (lambda text: text.replace("node2|node3|drbd", "node9|node3|drbd"), "an unknown node: 'node9'"),
        (lambda text: text.replace("|drbd||1", "|floppy||1"), "no such disk template"),
        (lambda text: text.replace("|running|", "|walking|"), "no such instance status"),
        (lambda text: text.replace(";32768,8", ";32768"), "six whole numbers"),
        (lambda text: text.replace("128,1,1024,1,1,1;", ""), "odd number"),
        (lambda text: text.replace("gold|128", "tin|128"), "an unknown group: 'tin'"),
        (lambda text: text.replace("node2|65", "node1|65"), "'node1' occurs twice"),
    ],
)
def test_errors_are_one_clear_line(change: Callable[[str], str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(change(RECORDED.read_text()))
    assert caught.value.message.startswith("x.data")


def test_a_policy_without_templates_allows_none() -> None:
    content = RECORDED.read_text()
    line = next(line for line in content.splitlines() if line.startswith("default|") and line.count("|") == 5)
    words = line.split("|")
    templates = ("ipolicy", "disk-templates")
    assert parse(content).groups["default"].effective[templates] == words[3].split(",")
    empty = "|".join([*words[:3], "", *words[4:]])
    assert parse(content.replace(line, empty)).groups["default"].effective[templates] == []


EXCLUSIVE = ("ndparams", "exclusive_storage")


def test_groups_and_nodes_are_numbered() -> None:
    state = simulated_state("p,2,2t,64g,16,4;u,1,100,200,2,3,True")
    assert [(group.name, group.own, group.position) for group in state.groups.values()] == [
        ("group-01", {("alloc_policy",): "preferred"}, 0),
        ("group-02", {("alloc_policy",): "unallocable", EXCLUSIVE: True}, 1),
    ]
    assert [(node.name, node.group, node.master, node.position) for node in state.nodes.values()] == [
        ("node-01-001", "group-01", True, 0),
        ("node-01-002", "group-01", False, 1),
        ("node-02-001", "group-02", False, 2),
    ]
    last = state.nodes["node-02-001"]
    assert last.own == {("ndparams", "spindle_count"): 3}
    found = last.resources
    assert (found.memory_total, found.memory_node, found.memory_free) == (200, 0, 200)
    assert (found.disk_total, found.disk_free, found.cpu_total, found.cpu_node) == (100, 100, 2, 1)
    assert (found.spindles_total, found.spindles_free) == (3, 3)
    assert state.nodes["node-01-001"].resources.memory_total == 65536
    assert state.groups["group-01"].effective[EXCLUSIVE] is False
    assert state.groups["group-02"].effective[EXCLUSIVE] is True


def test_the_cluster_has_built_in_values() -> None:
    values = built_in_values()
    assert values["ipolicy", "vcpu-ratio"] == 4.0
    assert values[EXCLUSIVE] is False
    assert None not in values.values()
    assert {path[0] for path in values} == {"ipolicy", "diskparams", "ndparams"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p,2", "sim: 2 sections in 'p,2'"),
        ("x,2,2t,64g,16", "sim: no such allocation policy: 'x'"),
        ("p,2,2t,64g,16,4,yes", "sim: exclusive storage is True or False, not 'yes'"),
        ("p,2,2t,64g,0", "sim: nodes without a CPU: htools would never stop counting on them"),
        ("p,2,2t,0,1", "sim: nodes without memory: the score of such a cluster is not a number"),
        ("p,2,2t,1g,1,0", "sim: nodes without a spindle: the score of such a cluster is not a number"),
        ("p,two,2t,1g,1", "sim: node count should be a whole number, not 'two'"),
        ("p,2,2q,1g,1", "sim: disk should be a size, not '2q'"),
        ("p,2,2t,1g," + "9" * 70, f"sim: CPUs should be a whole number, not '{'9' * 57}…'"),
        (f"p,{MOST_NODES},2t,1g,1;p,1,2t,1g,1", "sim: 10001 nodes; at most 10000 can be simulated"),
    ],
)
def test_what_cannot_be_simulated(text: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        simulated_state(text)
    assert caught.value.message == message
