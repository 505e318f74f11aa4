"""Specifications of simulated clusters, part by part."""

from __future__ import annotations

import pytest

from gpolicy.cluster.htools_sources import MOST_NODES, built_in_values, simulated_state
from gpolicy.errors import UsageError

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
    with pytest.raises(UsageError) as caught:
        simulated_state(text)
    assert caught.value.message == message
