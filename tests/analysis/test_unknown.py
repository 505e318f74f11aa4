"""Groups that cannot be counted are left out with their reason; the others are counted as ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.allocator_input import Unknown, not_known, require
from gpolicy.analysis.basis import settle
from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, LiveDisk, Resources
from gpolicy.errors import GpolicyError
from gpolicy.what_if.load import instances_on, offline, without

SNAPSHOT = Path(__file__).resolve().parents[2] / "policies/two-groups.snapshot.json"
NODES = [f"node{number}.example.org" for number in range(1, 9)]


def cluster() -> ClusterState:
    return read_state(f"snapshot:{SNAPSHOT}", SourceOptions())


def showing(state: ClusterState, resources: Resources, *names: str) -> ClusterState:
    nodes = {name: replace(state.nodes[name], resources=resources) for name in names}
    return replace(state, nodes={**state.nodes, **nodes})


def silent(*names: str) -> ClusterState:
    return showing(cluster(), Resources(), *names)


def with_mixed_disks(state: ClusterState, *names: str) -> ClusterState:
    odd = {
        name: replace(
            state.instances[name],
            disk_template="mixed",
            disks=(
                LiveDisk(size=1024, template="plain"),
                LiveDisk(size=2048, template="drbd"),
                LiveDisk(size=4, template="rbd"),
            ),
        )
        for name in names
    }
    return replace(state, instances={**state.instances, **odd})


def unknown(state: ClusterState) -> dict[str, str]:
    return {group: item.reason for group, item in settle(state).unknown.items()}


def check_others_are_the_same(state: ClusterState, left_out: str) -> None:
    known, part = load_state(cluster()), load_state(state)
    assert part.settled.unknown.keys() == {left_out}
    assert part.groups.keys() == known.groups.keys() - {left_out}
    for name, counted in part.groups.items():
        assert counted.gives_the_same(known.groups[name])


@pytest.mark.parametrize("node", NODES)
def test_without_an_answer_of_a_node_the_other_groups_are_the_same_clusters(node: str) -> None:
    state = silent(node)
    check_others_are_the_same(state, state.nodes[node].group)


def test_an_instance_that_htools_cannot_read_takes_its_own_group_only() -> None:
    for name, instance in cluster().instances.items():
        state = with_mixed_disks(cluster(), name)
        check_others_are_the_same(state, state.nodes[instance.primary_node].group)


def test_an_unknown_admin_state_is_no_state() -> None:
    state = cluster()
    odd = replace(state.instances["web1.example.org"], admin_state="x", status="running")
    state = replace(state, instances={**state.instances, odd.name: odd})
    assert unknown(state) == {"default": "instance web1.example.org: no such status: 'x'"}


def test_the_reason_names_the_nodes_and_what_they_do_not_show() -> None:
    one, two, *_, last = NODES
    assert unknown(cluster()) == {}
    assert unknown(silent(two)) == {"default": f"{two} does not answer"}
    assert unknown(silent(one, two, last)) == {
        "default": f"{one}, {two} do not answer",
        "spare": f"{last} does not answer",
    }
    state = cluster()
    no_disk = replace(state.nodes[two].resources, disk_total=None, disk_free=None)
    assert unknown(showing(state, no_disk, two)) == {"default": f"{two} shows no disk"}
    no_memory = replace(state.nodes[two].resources, memory_total=0)
    assert unknown(showing(state, no_memory, two)) == {"default": f"{two} shows no memory"}
    assert unknown(showing(silent(one), no_disk, two)) == {"default": f"{one} does not answer; {two} shows no disk"}
    assert unknown(with_mixed_disks(state, "web1.example.org", "web2.example.org")) == {
        "default": "instance web1.example.org has disks of several templates, which htools cannot read"
        " (and 1 more instance)"
    }


def test_no_way_out_leads_back_to_the_same_source() -> None:
    two = NODES[1]
    way_out = settle(silent(two)).unknown["default"].way_out
    assert f"`gnt-node modify --offline yes {two}`" in way_out
    assert f"`--offline {two}`" in way_out
    assert "until then Ganeti asks no allocator" in way_out
    assert "read the running cluster" not in way_out
    state = cluster()
    no_disk = replace(state.nodes[two].resources, disk_total=None, disk_free=None)
    assert "until then" not in settle(showing(state, no_disk, two)).unknown["default"].way_out
    names = [node.name for node in state.nodes_of("dedicated")]
    none_shows_spindles = {
        name: replace(
            node,
            physical_volumes=None,
            resources=replace(node.resources, spindles_total=None, spindles_free=None),
        )
        for name, node in state.nodes.items()
        if name in names
    }
    found = settle(replace(state, nodes={**state.nodes, **none_shows_spindles})).unknown["dedicated"]
    assert found.reason == f"{', '.join(names)} show no spindles"
    assert "read the running cluster" in found.way_out
    odd = settle(with_mixed_disks(state, "web1.example.org")).unknown["default"].way_out
    assert "`--without web1.example.org`" in odd
    assert "`gnt-instance modify --disk N:remove web1.example.org`" in odd


def test_what_a_way_out_supposes_makes_the_group_known() -> None:
    two = NODES[1]
    assert unknown(offline(silent(two), [two])) == {}
    state = with_mixed_disks(cluster(), "web1.example.org")
    gone = without(state, ["web1.example.org"])
    assert unknown(gone) == {}
    node = state.instances["web1.example.org"].primary_node
    freed = gone.nodes[node].resources.disk_free, state.nodes[node].resources.disk_free
    assert (freed[0] or 0) - (freed[1] or 0) == 1024 + 2048 + 128


def test_an_instance_with_its_mirror_in_a_group_that_is_left_out_counts_on_its_primary() -> None:
    state = silent(NODES[7])
    item = next(item for item in instances_on(state, NODES[0]) if item.disk_template == "drbd")
    moved = replace(item, primary_node=NODES[0], secondary_nodes=(NODES[7],))
    loaded = load_state(replace(state, instances={**state.instances, item.name: moved}))
    assert loaded.notes == (f"instance {item.name}: its nodes are in two groups; counted on its primary only",)
    (counted,) = (one for one in loaded.groups["default"].data.instances if one.name == item.name)
    assert (counted.template.value, counted.secondary) == ("plain", -1)


def test_a_question_about_what_is_not_known_is_refused() -> None:
    state = silent(NODES[1])
    found = settle(state).unknown
    require(state, found, {"dedicated", None})
    with pytest.raises(
        GpolicyError, match=r"not known for group default: node2\.example\.org does not answer$"
    ) as caught:
        require(state, found, {"default"})
    assert caught.value.hint == found["default"].way_out
    state = silent(*NODES)
    with pytest.raises(
        GpolicyError, match=r"not known for group default: node1.* show no memory, CPUs, disk; not known"
    ):
        require(state, settle(state).unknown)


def test_many_groups_are_named_by_their_reasons() -> None:
    assert not_known({}) == ()
    assert not_known({"a": "x", "b": "x", "c": "y"}) == ("not known for groups a, b: x", "not known for group c: y")
    said = not_known({str(number): Unknown(f"reason {number}", "").reason for number in range(5)})
    assert len(said) == 4
    assert said[-1] == "and not for 2 more, for other reasons"
