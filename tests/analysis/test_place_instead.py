"""What would fit in place of an instance that does not: each answer, asked for in its own words, is placed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import Disk
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.size_words import read_words
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.htools_sources import simulated_state
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.cluster.terms import GroupTerms, Limits
from tests.analysis.hspace_cases import from_text, text_of

POLICY = (
    "128,1,1024,1,1,1|1024,2,20480,1,1,2;8192,8,204800,4,1,4;128,1,1024,1,1,1;512,1,10240,4,1,4|drbd,plain|4.0|32.0"
)
"""Small instances up to 512 MiB, and large ones from 1 to 8 GiB."""


def cluster(*, exclusive: bool = False, policy: str = POLICY) -> ClusterState:
    """Return nodes of 4 CPUs with 6000, 4000 and 2000 MiB of memory free; the last is of a closed group."""
    rest = "Y|4" if exclusive else "N|0"
    nodes = [
        f"n{number}|8192|0|{free}|204800|204800|4|N|{'v' if number == 2 else 'u'}|4|{tag}|{rest}|0|1.0"
        for number, (free, tag) in enumerate([(6000, "p:a"), (4000, "p:b"), (2000, "p:b")])
    ]
    groups = ["g|u|preferred||", "closed|v|unallocable||"]
    policies = [f"|{policy}", f"g|{policy}", f"closed|{policy}"]
    there = ["i|128|1024|1|running|Y|n0||plain|svc:a|1|1|N", "j|128|1024|1|running|Y|n1||plain|svc:a|1|1|N"]
    return from_text(text_of(groups, nodes, there, ["htools:iextags:svc"], policies))


def asked(state: ClusterState, *words: str) -> PlaceReport:
    return place(state, read_words(words).request, instead=True)


PLAIN = ("memory=2G", "vcpus=2", "disk=20G", "spindle-use=2", "template=plain")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["memory=40G"], ["memory=3868M"]),  # the policy allows 8G
        (["memory=600M"], ["memory=1G"]),  # between the pairs
        (["memory=40G", "disk=9T"], ["memory=3868M disk=203772M"]),  # 1 GiB is in use
        (["memory=7G"], ["memory=3868M"]),
        (["disk=150G", "disk=150G"], ["disk=101884M disk=101884M"]),
        (["disk=150G", "disk=120G", "disk=30G"], ["disk=86524M disk=86524M disk=30G"]),
        (["vcpus=100"], ["vcpus=8"]),
        (["vcpus=1"], ["vcpus=2"]),
        (["tags=svc:a"], ["without tags=svc:a"]),
        (["nodes=n2", "memory=3G"], ["without nodes=n2"]),
        (["group=closed", "memory=3G"], ["without group=closed"]),
        (["template=rbd"], ["template=drbd, not rbd"]),
        (["spindle-use=9"], ["spindle-use=4"]),
    ],
)
def test_what_would_fit_is_placed(words: list[str], expected: list[str]) -> None:
    state = cluster()
    given = [word for word in PLAIN if word.partition("=")[0] not in {each.partition("=")[0] for each in words}]
    report = asked(state, *given, *words)
    assert not report.ok
    assert report.instead is not None
    assert [item.words for item in report.instead] == expected
    for item in report.instead:
        change = item.words.removeprefix("without ").partition(",")[0].split()
        keys = {each.partition("=")[0] for each in change}
        kept = [each for each in (*given, *words) if each.partition("=")[0] not in keys]
        again = asked(state, *kept, *([] if "without" in item.words else change))
        assert (again.ok, again.nodes) == (True, item.nodes)


def test_one_more_mebibyte_is_refused() -> None:
    """The loss of n0 must leave room for it and i on n1, which has 4000 MiB free; Ganeti's command line takes 3868."""
    state = cluster()
    request = PlaceRequest(memory=3872, vcpus=2, disks=(Disk(20480),), spindle_use=2, template="plain")
    assert not place(state, request).ok
    assert place(state, replace(request, memory=3871)).ok


def test_the_limits_of_a_group_count() -> None:
    """Either node must be able to take over all: 2 GiB are free on n1 if 4000 - 128 MiB serve n0's."""
    state = replace(cluster(), terms={"g": GroupTerms(limits=Limits(oversubscription=0.5))})
    report = asked(state, "memory=5G", "vcpus=2", "disk=20G", "spindle-use=2", "template=plain")
    assert report.instead is not None
    (found,) = report.instead
    least = int(found.words.removeprefix("memory=").removesuffix("M"))
    for memory, fits in ((least, True), (least + 1, False)):
        request = PlaceRequest(memory=memory, vcpus=2, disks=(Disk(20480),), spindle_use=2, template="plain")
        assert place(state, request).ok is fits


def test_spindles_are_found_only_where_the_volumes_are_known() -> None:
    report = asked(cluster(exclusive=True), "memory=4G", "vcpus=2", "disk=60G", "template=plain")
    assert (report.ok, report.instead) == (False, ())


def test_nothing_is_said_of_an_instance_that_fits() -> None:
    assert asked(cluster(), *PLAIN).instead is None
    assert place(cluster(), PlaceRequest(memory=10**6)).instead is None


def test_nothing_fits_in_a_full_group() -> None:
    state = cluster()
    nodes = {
        name: replace(node, resources=replace(node.resources, memory_free=0)) for name, node in state.nodes.items()
    }
    assert asked(replace(state, nodes=nodes), *PLAIN).instead == ()


def test_a_group_too_large_for_its_limits_has_no_answer_to_this() -> None:
    state = simulated_state("p,60,4T,128G,32")
    request = PlaceRequest(memory=122880, vcpus=1, disks=(Disk(1024),), template="plain")
    report = place(state, request, limits=Limits(max_node_failures=3), instead=True)
    assert (report.ok, report.reason, report.instead) == (False, "refused by ipolicy.minmax (60 candidates)", None)


def test_a_group_that_takes_the_instance_when_it_is_named_comes_first() -> None:
    """With exclusive storage hail goes by lost allocations, without N+1, but only in a group that is named."""
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    words = ("memory=110G", "vcpus=7", "disk=1T:1", "template=plain")
    report = asked(state, *words)
    assert not report.ok
    assert report.instead is not None
    assert [item.words for item in report.instead] == ["group=dedicated", "memory=66260M"]
    assert asked(state, *words, "group=dedicated").nodes == report.instead[0].nodes


def test_a_refusal_by_redundancy_names_the_loss() -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    report = asked(state, "memory=1G", "vcpus=1", "disk=1G", "template=plain", "group=spare")
    assert [item.detail for item in report.candidates] == [
        "without node8.example.org: no place for new (nodes: no other node in the group)"
    ]
    report = asked(state, "memory=110G", "vcpus=7", "disk=1T:1", "template=plain")
    (refused,) = [item for item in report.candidates if item.reason == "n1-capacity"]
    lost = "no place for analytics.example.org (memory: 248G memory wanted, at most 140.7G free on 2 nodes)"
    assert refused.detail == f"without node5.example.org: {lost}"


def test_a_mirror_in_a_group_of_one_node_is_told() -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    report = asked(state, "memory=1G", "vcpus=1", "disk=1G", "template=drbd", "group=spare")
    assert report.reason == "drbd needs 2 online nodes, and group spare has 1"


def test_named_nodes_that_are_no_pair_are_told() -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    words = ("memory=1G", "vcpus=1", "disk=1G", "template=drbd")
    needs = "drbd needs 2 online nodes of one group, and the request names"
    assert (
        asked(state, *words, "nodes=node1.example.org,node8.example.org").reason
        == f"{needs} 2 nodes in groups default, spare"
    )
    assert asked(state, *words, "nodes=node1.example.org").reason == f"{needs} 1 node in group default"
    other = asked(state, *words, "nodes=node1.example.org,node2.example.org", "group=dedicated")
    assert other.reason == "the named nodes are in group default, not in dedicated"


def test_without_the_group_the_template_is_chosen_anew() -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    words = ("memory=4G", "disk=20G")
    report = asked(state, *words, "group=dedicated")
    assert report.instead is not None
    assert [(item.words, item.nodes) for item in report.instead] == [
        ("without group=dedicated", asked(state, *words).nodes)
    ]
    assert len(report.instead[0].nodes) == 2


def test_the_one_tag_in_the_way_is_named() -> None:
    report = asked(cluster(), *PLAIN, "tags=env:test,svc:a")
    assert report.instead is not None
    assert [item.words for item in report.instead] == ["without tags=svc:a"]


def test_a_policy_of_instances_without_disks_has_no_spindles_to_share() -> None:
    without = "128,1,0,0,1,1|128,1,0,0,1,1;1024,2,0,0,1,2|plain,diskless|4.0|32.0"
    report = asked(cluster(exclusive=True, policy=without), "memory=1G", "vcpus=1", "disk=1G", "template=plain")
    assert (report.ok, report.instead) == (False, ())
