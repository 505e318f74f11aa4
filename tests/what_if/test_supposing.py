"""What is supposed of a cluster: laws, refusals, and the same numbers as a cluster that really is so."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest, of_spec
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.vocabulary import Value, Values
from gpolicy.what_if.load import instances_on
from gpolicy.what_if.supposing import WhatIf, read_more, read_move, read_upgrade, suppose
from tests.analysis.hspace_cases import from_text, hspace_keys, hspace_text, text_of, tiered

GIB = 1024
POLICY = "4096,2,20480,1,1,1|512,1,1024,1,1,1;8192,4,102400,4,1,2|plain,drbd|4.0|32.0"
TWO_GROUPS = Path(__file__).resolve().parents[2] / "policies" / "two-groups.snapshot.json"


def node(name: str, *, free: int = 60 * GIB, disk: int = 900 * GIB, group: str = "u") -> str:
    return f"{name}|{64 * GIB}|{4 * GIB}|{free}|{1000 * GIB}|{disk}|16|N|{group}|8||N|0|0|1.0"


def cluster(nodes: list[str], instances: list[str] | None = None) -> ClusterState:
    groups = ["g|u|preferred||", "h|v|preferred||"]
    policies = [f"|{POLICY}", f"g|{POLICY}", f"h|{POLICY}"]
    return from_text(text_of(groups, nodes, instances or [], [], policies))


def instance(name: str, primary: str, secondary: str = "", *, memory: int = 8 * GIB, disk: int = 100 * GIB) -> str:
    template = "drbd" if secondary else "plain"
    return f"{name}|{memory}|{disk}|2|running|Y|{primary}|{secondary}|{template}||1|-"


@pytest.fixture
def small() -> ClusterState:
    """Three nodes, of which the first has an instance with a mirror and one without."""
    nodes = [node("n1", free=44 * GIB, disk=800 * GIB), node("n2", disk=900 * GIB), node("n3", disk=1000 * GIB)]
    return cluster([*nodes], [instance("web", "n1", "n2"), instance("db", "n1")])


def same(one: ClusterState, other: ClusterState) -> None:
    """Hold that the allocator sees the same cluster, but for names."""
    assert plain(one) == plain(other)


def plain(state: ClusterState) -> str:
    return re.sub(r"n1\+", "new", hspace_text(cluster_data(state)))


def test_a_node_like_another_is_that_node_without_its_instances(small: ClusterState) -> None:
    found = suppose(small, WhatIf(more=(read_more("2x like:n1"),)))
    new = node("new", disk=1000 * GIB)
    nodes = [node("n1", free=44 * GIB, disk=800 * GIB), node("n2", disk=900 * GIB), node("n3", disk=1000 * GIB)]
    same(
        found,
        cluster(
            [*nodes, new.replace("new", "new1"), new.replace("new", "new2")],
            [instance("web", "n1", "n2"), instance("db", "n1")],
        ),
    )
    assert list(found.nodes)[3:] == ["n1+1", "n1+2"]
    assert found.supposed == ("2 more nodes like n1 in group g",)
    assert capacity(found).what_if == found.supposed


def test_nodes_of_two_suppositions_have_different_names(small: ClusterState) -> None:
    found = suppose(small, WhatIf(more=(read_more("like:n1"), read_more("like:n1 in h"))))
    assert [(name, item.group) for name, item in list(found.nodes.items())[3:]] == [("n1+1", "g"), ("n1+2", "h")]


def test_more_nodes_never_make_room_less(small: ClusterState) -> None:
    now = capacity(small, group="g").groups[0].standard.fits
    more = capacity(suppose(small, WhatIf(more=(read_more("like:n3"),))), group="g").groups[0].standard.fits
    assert more > now


def test_an_upgrade_is_the_node_with_other_figures(small: ClusterState) -> None:
    found = suppose(small, WhatIf(upgrades=(read_upgrade("n3 memory=+64G disk=2000G cpus=+8"),)))
    now = small.nodes["n3"].resources
    made = replace(
        now,
        memory_total=128 * GIB,
        memory_free=124 * GIB,
        disk_total=2000 * GIB,
        disk_free=2000 * GIB,
        cpu_total=24,
    )
    assert found.nodes["n3"].resources == made
    assert found.supposed == ("64G more of memory and 2000G of disk and 8 more CPUs in n3",)


def test_instances_that_come_and_go_leave_nothing_behind(small: ClusterState) -> None:
    more = suppose(small, WhatIf(more=(read_more("6x 1 in g"), read_more("2x 1:max in g"))))
    assert len(more.instances) == len(small.instances) + 8
    less = suppose(replace(more, supposed=()), WhatIf(less=("1+*",)))
    same(less, small)


def test_a_size_in_words_counts_as_the_same_spec(small: ClusterState) -> None:
    size = cluster_data(small).groups[0].policy.minmax[0].min
    words = f"memory={size.memory}M cpus={size.cpus} disk={size.disk_size}M spindle-use={size.spindle_use}"
    of_spec, in_words = (suppose(small, WhatIf(more=(read_more(f"3x {what} in g"),))) for what in ("1", words))
    assert sorted(set(in_words.instances) - set(small.instances)) == ["instance+1", "instance+2", "instance+3"]
    assert in_words.nodes == of_spec.nodes
    assert in_words.supposed == (f"3 more {words} in group g",)


@pytest.mark.parametrize(
    "text", ["3x", "in g", "3x memory=1G x in g", "3x memory=1G group=g", "3x memory=", "3x x=1", "3x memory=1G in g h"]
)
def test_words_that_name_no_size_are_refused(text: str) -> None:
    with pytest.raises(RequestError):
        read_more(text)


@pytest.mark.parametrize("templates", [["drbd", "plain"], ["plain", "drbd"]])
def test_an_instance_comes_where_hail_places_it(small: ClusterState, templates: list[Value]) -> None:
    policy: Values = {**small.groups["g"].effective, ("ipolicy", "disk-templates"): templates}
    state = replace(small, groups={**small.groups, "g": replace(small.groups["g"], effective=policy)})
    for number in range(1, 5):
        pair = cluster_data(state).groups[0].policy.minmax[0]
        asked = place(state, of_spec(PlaceRequest(group="g"), pair.min, state, "g"))
        state = suppose(state, WhatIf(more=(read_more("1 in g"),)))
        came = state.instances[f"1+{number}"]
        assert (came.primary_node, *came.secondary_nodes) == asked.nodes
        assert came.disk_template == templates[0]


def test_on_dedicated_nodes_it_comes_where_hail_places_it() -> None:
    state = read_state(f"snapshot:{TWO_GROUPS}")
    pair = next(group for group in cluster_data(state).groups if group.name == "dedicated").policy.minmax[0]
    asked = place(state, of_spec(PlaceRequest(group="dedicated", memory=64 * GIB), pair.min, state, "dedicated"))
    found = suppose(state, WhatIf(more=(read_more("1x 1 in dedicated"),)))
    assert asked.ok
    assert found.instances["1+1"].primary_node in {item.nodes[0] for item in asked.candidates if item.ok}


def test_a_lost_node_is_offline_and_its_mirrored_instances_run_elsewhere(small: ClusterState) -> None:
    found = suppose(small, WhatIf(lost=("n1",)))
    assert found.nodes["n1"].offline
    web, db = found.instances["web"], found.instances["db"]
    assert (web.primary_node, web.secondary_nodes) == ("n2", ("n1",))
    assert db.primary_node == "n1"
    assert found.nodes["n2"].resources.memory_free == 52 * GIB
    assert found.supposed == ("n1 lost (without failover of db)",)


def test_an_instance_does_not_fail_over_to_a_node_that_is_lost_as_well(small: ClusterState) -> None:
    found = suppose(small, WhatIf(lost=("n1,n2",)))
    assert found.instances["web"].primary_node == "n1"
    assert found.supposed == ("n1, n2 lost (without failover of db, web)",)


@pytest.mark.parametrize("why", ["no memory", "drained"])
def test_an_instance_does_not_fail_over_where_ganeti_refuses_it(small: ClusterState, why: str) -> None:
    other = small.nodes["n2"]
    if why == "drained":
        other = replace(other, drained=True)
    else:
        other = replace(other, resources=replace(other.resources, memory_free=8 * GIB - 1))
    found = suppose(replace(small, nodes={**small.nodes, "n2": other}), WhatIf(lost=("n1",)))
    assert found.instances["web"].primary_node == "n1"
    assert found.supposed == ("n1 lost (without failover of db, web)",)
    assert found.nodes["n2"] == other


def test_instances_fail_over_one_after_the_other_until_the_memory_ends() -> None:
    nodes = [node("n1", free=28 * GIB), node("n2", free=20 * GIB), node("n3")]
    found = suppose(cluster(nodes, [instance(name, "n1", "n2") for name in "cab"]), WhatIf(lost=("n1",)))
    assert found.nodes["n2"].resources.memory_free == 4 * GIB
    assert found.supposed == ("n1 lost (without failover of c)",)


def test_a_forthcoming_instance_has_no_disk_to_free(small: ClusterState) -> None:
    planned = replace(small.instances["db"], forthcoming=True)
    found = suppose(replace(small, instances={**small.instances, "db": planned}), WhatIf(less=("db",)))
    assert found.nodes == small.nodes


def test_names_that_went_are_not_those_of_others(small: ClusterState) -> None:
    state = suppose(suppose(small, WhatIf(more=(read_more("2x like:n1 in g"),))), WhatIf(less=("n1+1",)))
    less = suppose(suppose(state, WhatIf(more=(read_more("2x 1 in g"),))), WhatIf(less=("1+1",)))
    found = suppose(less, WhatIf(more=(read_more("2x like:n1 in g"), read_more("2x 1 in g"))))
    assert {name for name in found.nodes if "+" in name} == {"n1+1", "n1+2", "n1+3"}
    assert {name for name in found.instances if "+" in name} == {"1+1", "1+2", "1+3"}
    bare = suppose(found, WhatIf(less=("1+*",))).nodes
    assert bare["n1+1"].resources == bare["n1+2"].resources == bare["n1+3"].resources


def test_an_offline_node_keeps_its_instances(small: ClusterState) -> None:
    found = suppose(small, WhatIf(offline=("n1",)))
    assert {item.name for item in instances_on(found, "n1")} == {"web", "db"}
    assert found.instances["web"].status == "ERROR_nodeoffline"
    assert capacity(found, group="g").groups[0].nodes == 3


@pytest.mark.skipif(shutil.which("hspace") is None, reason="Debian's ganeti-htools (hspace) is not installed")
@pytest.mark.parametrize(
    "what_if",
    [
        WhatIf(more=(read_more("2x like:n1"), read_more("3x 1 in g"))),
        WhatIf(lost=("n2",), upgrades=(read_upgrade("n3 memory=+32G disk=+100G cpus=+4"),)),
        WhatIf(offline=("n2",), less=("db",), more=(read_more("like:n3"),)),
    ],
)
def test_hspace_counts_the_same_on_the_supposed_cluster(small: ClusterState, what_if: WhatIf, tmp_path: Path) -> None:
    found = suppose(small, what_if)
    file = tmp_path / "supposed.data"
    file.write_text(hspace_text(cluster_data(found)), encoding="utf-8")
    command = ["hspace", "-t", str(file), "--machine-readable=yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    keys = hspace_keys([line.removeprefix("HTS_") for line in done.stdout.splitlines()])
    whole = capacity(found).cluster
    assert whole is not None
    assert whole.hspace_standard == int(keys["FIN_INST_CNT"]) - int(keys["INI_INST_CNT"])
    assert tiered(whole) == keys["TSPEC"]


def test_a_node_moves(small: ClusterState) -> None:
    found = suppose(small, WhatIf(moves=(read_move("n3 to h"),)))
    assert found.nodes["n3"].group == "h"
    assert capacity(found, group="h").groups[0].nodes == 1


def test_hardware_comes_before_load(small: ClusterState) -> None:
    more = (read_more("40x 1:max in g"), read_more("8x like:n3 in g"))
    found = suppose(small, WhatIf(more=more))
    assert found.supposed == ("8 more nodes like n3 in group g", "40 more size 1 at its largest in group g")


@pytest.mark.parametrize(
    ("what_if", "said"),
    [
        (WhatIf(more=(read_more("like:n9"),)), "there is no node 'n9'"),
        (WhatIf(more=(read_more("like:n?"),)), "'n?' means 3 nodes"),
        (WhatIf(more=(read_more("like:n1 in j"),)), "there is no group 'j'"),
        (WhatIf(more=(read_more("2x huge in g"),)), "there is no size 'huge' in group g"),
        (WhatIf(more=(read_more("999x 1:max in g"),)), r"only \d+ of 999 size 1 at its largest fit in group g"),
        (WhatIf(more=(read_more("600x like:n1"),) * 2), "1,200 more nodes in all"),
        (WhatIf(more=(read_more("1x 1 in g"), read_more("20000x 1 in g"))), "20,001 more instances in all"),
        (WhatIf(less=("n1",)), "instances db, web are on node n1"),
        (WhatIf(less=("n2",)), "instance web is on node n2"),
        (WhatIf(less=("*",)), r"'\*' means nodes and instances"),
        (WhatIf(less=("mail",)), "there is no node or instance 'mail'"),
        (WhatIf(lost=("n1,x",)), "there is no node 'x'"),
        (WhatIf(upgrades=(read_upgrade("n1 memory=8G"),)), "n1 uses 20G of its memory: no less can be there"),
        (WhatIf(upgrades=(read_upgrade("n1 pvs=+1"),)), "n1 has no exclusive storage: volumes do not count"),
        (WhatIf(upgrades=(read_upgrade("n1 cpus=0"),)), "n1 would have no cpus left"),
        (WhatIf(moves=(read_move("n1 to x"),)), "there is no group 'x'"),
        (WhatIf(offline=("n1",), upgrades=(read_upgrade("n2,n2 disk=+1G"),), lost=("zz",)), "there is no node 'zz'"),
    ],
)
def test_what_is_impossible_is_refused(small: ClusterState, what_if: WhatIf, said: str) -> None:
    with pytest.raises(GpolicyError, match=said.replace("?", r"\?")):
        suppose(small, what_if)


@pytest.mark.parametrize(
    "words",
    ["", "2x", "2x 1 in", "2x 1 in g h", "like: in g", "1:most", "0x 1", "1001x like:n1", "20001x 1", "-1x 1", "2 1"],
)
def test_words_that_mean_nothing_are_refused(words: str, small: ClusterState) -> None:
    with pytest.raises(GpolicyError):
        suppose(small, WhatIf(more=(read_more(words),)))


@pytest.mark.parametrize(
    "words",
    ["", "n1", "memory=4G", "n1 mem=4G", "n1 memory=", "n1 memory=x", "n1 cpus=4G", "n1 cpus=1 cpus=2", "n1 4G"],
)
def test_an_upgrade_that_means_nothing_is_refused(words: str) -> None:
    with pytest.raises(RequestError):
        read_upgrade(words)


@pytest.mark.parametrize("words", ["", "n1", "n1 to", "n1 h", "n1 to h now"])
def test_a_move_that_means_nothing_is_refused(words: str) -> None:
    with pytest.raises(RequestError):
        read_move(words)


def test_the_hardware_of_an_offline_node_is_not_known(small: ClusterState) -> None:
    away = suppose(small, WhatIf(offline=("n1",)))
    with pytest.raises(RequestError, match="nobody measures its hardware"):
        suppose(away, WhatIf(more=(read_more("like:n1"),)))


def test_nodes_do_not_go_where_storage_is_another() -> None:
    state = read_state(f"snapshot:{TWO_GROUPS}")
    for what_if in (
        WhatIf(moves=(read_move("node1 to dedicated"),)),
        WhatIf(more=(read_more("like:node1 in dedicated"),)),
    ):
        with pytest.raises(
            RequestError, match="exclusive storage is on in only one of the groups default and dedicated"
        ):
            suppose(state, what_if)


def test_an_empty_node_of_exclusive_storage_has_whole_volumes() -> None:
    state = read_state(f"snapshot:{TWO_GROUPS}")
    name = next(
        item.name for item in state.nodes.values() if item.group == "dedicated" and instances_on(state, item.name)
    )
    made = suppose(state, WhatIf(more=(read_more(f"like:{name}"),))).nodes[f"{name}+1"].resources
    assert made.spindles_free == made.spindles_total
    assert made.disk_free is not None
    assert made.disk_total is not None
    assert made.disk_free <= made.disk_total


def test_a_declared_total_grows_with_the_memory(small: ClusterState) -> None:
    declared: Values = {("hv_state", "kvm", "mem_total"): 64 * GIB, ("hv_state", "kvm", "mem_node"): GIB}
    state = replace(
        small,
        cluster=replace(small.cluster, own={**small.cluster.own, ("enabled_hypervisors",): ["kvm"]}),
        nodes={**small.nodes, "n3": replace(small.nodes["n3"], own={**small.nodes["n3"].own, **declared})},
    )
    found = suppose(state, WhatIf(upgrades=(read_upgrade("n3 memory=+64G"),)))
    assert found.nodes["n3"].own["hv_state", "kvm", "mem_total"] == 128 * GIB
    assert found.nodes["n3"].own["hv_state", "kvm", "mem_node"] == GIB


def test_sizes_go_by_the_names_of_the_policy(small: ClusterState) -> None:
    found = suppose(small, WhatIf(more=(read_more("2x tiny in g"),)), PairNames(groups={"g": ("tiny",)}))
    assert [name for name in found.instances if name.startswith("tiny")] == ["tiny+1", "tiny+2"]
    assert found.supposed == ("2 more tiny at its smallest in group g",)


def test_a_pair_without_a_name_goes_by_what_reports_call_it(small: ClusterState) -> None:
    found = suppose(small, WhatIf(more=(read_more("2x pair 1 in g"), read_more("size 1:max in g"))))
    assert found.supposed == ("2 more size 1 at its smallest in group g", "1 more size 1 at its largest in group g")
