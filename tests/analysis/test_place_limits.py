"""Placing under the limits that a policy declares."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import GroupTerms, Limits
from tests.analysis.hspace_cases import from_text, text_of


def cluster(nodes: list[str], instances: list[str], limits: Limits, ratio: str = "99.0") -> ClusterState:
    policy = f"1024,1,1024,1,1,1|1024,1,1024,1,1,1;16384,8,9999,1,1,1|plain,drbd|{ratio}|99.0"
    state = from_text(text_of(["g|u|preferred||"], nodes, instances, [], [f"|{policy}", f"g|{policy}"]))
    return replace(state, terms={"g": GroupTerms(limits=limits)})


def node(name: str, *, used: int = 0, cpus: int = 64) -> str:
    return f"{name}|16384|0|{16384 - used}|999999|999999|{cpus}|N|u|9||N|0|0|1.0"


def running(name: str, memory: int, cpus: int, primary: str, secondary: str = "") -> str:
    return f"{name}|{memory}|1024|{cpus}|running|Y|{primary}|{secondary}|{'drbd' if secondary else 'plain'}||1|-|N"


def spread(count: int) -> tuple[list[str], list[str]]:
    """Return four nodes of 16 GiB, with `count` instances of 4 GiB in turn."""
    used = {name: len(range(place, count, 4)) for place, name in enumerate("abcd")}
    nodes = [node(name, used=4096 * number) for name, number in used.items()]
    return nodes, [running(f"i{number}", 4096, 1, "abcd"[number % 4]) for number in range(count)]


REQUEST = PlaceRequest(memory=4096, vcpus=1, template="plain")


def refusals(report: PlaceReport) -> dict[tuple[str, ...], tuple[str | None, str | None]]:
    return {item.nodes: (item.reason, item.detail) for item in report.candidates if not item.ok}


@pytest.mark.parametrize(("there", "fits"), [(5, True), (6, False)])
def test_any_two_nodes_may_fail(there: int, fits: bool) -> None:
    """A node takes three of 4 GiB, and two nodes are left: six instances in all."""
    report = place(cluster(*spread(there), Limits(max_node_failures=2)), REQUEST)
    assert report.ok is fits
    assert [item.sentence for item in report.limits] == [
        "limits of group g: 2 nodes of a group may fail at once (policy)"
    ]
    if fits:
        assert not any("hail itself" in note for note in report.notes)
        return
    assert report.info.startswith("Request successful")
    assert report.reason == "refused by max_node_failures (4 candidates)"
    (note,) = [note for note in report.notes if "hail itself" in note]
    assert note.startswith("hail itself would place it on ")
    text = "without a + b: no place for i1 (memory: 4G memory wanted, at most 4G free on 2 nodes)"
    assert refusals(report) == {(name,): ("max_node_failures", text) for name in "abcd"}


def test_the_best_pair_that_keeps_the_cpus_is_chosen() -> None:
    """8 CPUs on each node, ratio 1; 8 in use on a, mirrored on b. Of 4 more on b, b would have 12 without a; of 4 on c
    with the mirror on a, a would have 12 without c. Only c with b is left.
    """
    nodes = [node("a", used=1024, cpus=8), node("b", cpus=8), node("c", cpus=8)]
    state = cluster(nodes, [running("i", 1024, 8, "a", "b")], Limits(cpus_after_failure=True), "1.0")
    report = place(state, PlaceRequest(memory=1024, vcpus=4, template="drbd"))
    assert (report.ok, report.nodes) == (True, ("c", "b"))
    hail = place(replace(state, terms={}), PlaceRequest(memory=1024, vcpus=4, template="drbd"))
    assert hail.info == report.info
    for pair, (reason, detail) in refusals(report).items():
        if reason == "cpus_after_failure":
            lost, full = ("a", "b") if pair[0] == "b" else ("c", "a")
            assert detail is not None
            assert detail.startswith(f"without {lost}: no place for ")
            assert f"{full}: 12 virtual CPUs on 8 CPUs, allowed 1 each" in detail


def test_over_subscription_below_one_leaves_memory_alone() -> None:
    """Half of 16 GiB may be in use: 2 GiB are left beside the 6 that run on a."""
    nodes = [node("a", used=6144), node("b", used=5120)]
    there = [running("i", 6144, 1, "a"), running("j", 5120, 1, "b")]
    report = place(cluster(nodes, there, Limits(oversubscription=0.5)), replace(REQUEST, memory=3072))
    assert report.nodes == ("b",)
    more = place(cluster(nodes, there, Limits(oversubscription=0.5)), REQUEST)
    assert not more.ok
    assert refusals(more)["a",] == (
        "oversubscription",
        "a: 4G wanted, 2G left of 16G 0.5 times",
    )


def test_without_failures_to_survive_the_answer_is_that_of_hail() -> None:
    state = cluster(*spread(6), Limits(max_node_failures=0))
    exact = place(replace(state, terms={}), REQUEST)
    assert replace(place(state, REQUEST), limits=()) == exact


def test_limits_of_a_run_go_before_those_of_the_policy() -> None:
    """Six instances of 4 GiB are what two nodes hold, nine what three hold."""
    state = cluster(*spread(6), Limits(max_node_failures=2))
    assert not place(state, REQUEST).ok
    found = place(state, REQUEST, limits=Limits(max_node_failures=1))
    assert found.ok
    assert [item.sentence for item in found.limits] == [
        "limits of group g: 1 node of a group may fail at once (option)"
    ]
