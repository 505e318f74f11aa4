"""What-if questions: an instance that the policy forbids, other weights of the score; and notes on the metric."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import Disk
from gpolicy.allocator.cluster_score import COMPONENTS, WEIGHTS
from gpolicy.allocator.engines import compiled_attempt
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidates_among, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.shown_score import other_weights, read_weights
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import RequestError
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS, Level, Values
from gpolicy.report.capacity_answer import capacity_answer
from gpolicy.report.capacity_json import capacity_data
from gpolicy.report.forms import Display, render
from gpolicy.report.place_answer import PLACE_DOCUMENT, place_answer
from gpolicy.what_if.supposing import WhatIf, suppose
from tests.analysis.hail_cases import HSPACE, document, real_hail
from tests.analysis.hspace_cases import from_text, text_of

ROOT = Path(__file__).resolve().parents[2]
LARGE = PlaceRequest(memory=4096, vcpus=2, disks=(Disk(20480),), template="drbd")


def cluster(exclusive: str = "N") -> ClusterState:
    """Return three nodes of 8 GiB under a policy that allows 1 GiB of memory and plain disks."""
    spindles = "8|" if exclusive == "Y" else "0|"
    rows = [f"n{n}|8192|0|{8192 - 1024 * n}|102400|100000|8|N|u|8||{exclusive}|{spindles}0|1.0" for n in range(3)]
    policy = "1024,1,10240,1,1,1|1024,1,10240,1,1,1;1024,1,10240,1,1,8|plain|4.0|32.0"
    return from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"]))


def ignoring(request: PlaceRequest) -> PlaceRequest:
    return replace(request, ignore_ipolicy=True)


def test_the_policy_is_not_held_against_the_instance() -> None:
    refused, placed = place(cluster(), LARGE), place(cluster(), ignoring(LARGE))
    assert {item.reason for item in refused.candidates} == {"ipolicy.minmax"}
    assert (placed.ok, placed.nodes) == (True, ("n0", "n2"))
    assert all(item.ok for item in placed.candidates)
    assert len(placed.candidates) == 6
    assert placed.what_if[0].startswith(
        "--ignore-ipolicy: its size and disk template are not compared with the policy."
    )
    assert "hail itself refuses it" in placed.what_if[0]
    assert refused.what_if == ()


def test_what_the_nodes_lack_still_counts() -> None:
    found = place(cluster(), ignoring(replace(LARGE, memory=8000)))
    assert {item.reason for item in found.candidates} <= {"memory"}
    assert not place(cluster(), ignoring(replace(LARGE, vcpus=33))).ok  # a ratio of 4 on 8 CPUs


def test_an_allowed_instance_is_placed_as_ever() -> None:
    small = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(10240),), template="plain")
    with_policy, without = place(cluster(), small), place(cluster(), ignoring(small))
    assert without.what_if == (
        "--ignore-ipolicy: its size and disk template are not compared with the policy, which allows them anyway",
    )
    assert replace(without, what_if=(), instance=with_policy.instance) == with_policy


def test_the_dedicated_metric_counts_the_sizes_of_the_policy() -> None:
    request = PlaceRequest(memory=4096, vcpus=2, disks=(Disk(20480, 2),), template="plain")
    found = place(cluster("Y"), ignoring(request))
    assert found.metric == "lost-allocations"
    # 4096 MiB of memory less on each node: four instances of 1024 MiB
    assert [item.lost_allocations for item in found.candidates] == [(4,), (4,), (4,)]


def test_both_engines_ignore_it_alike() -> None:
    data = cluster_data(cluster())
    known = merge(data)
    wanted = place(cluster(), ignoring(LARGE)).instance
    candidates = candidates_among(known.nodes, list(known.nodes), 2, None)
    rules = CapacityRules()
    law = try_allocate(
        known.nodes, wanted, candidates, predicate=redundancy_predicate(known.nodes, known.instances, rules)
    )
    found = compiled_attempt(known.nodes, known.instances, wanted, candidates, rules)
    assert found == law
    policed = replace(wanted, ignores_policy=False)
    refused = compiled_attempt(known.nodes, known.instances, policed, candidates, rules)
    assert refused == try_allocate(known.nodes, policed, candidates)
    assert refused is not None
    assert refused.solution is None


def texts(report: PlaceReport) -> list[str]:
    return [render(place_answer(report), Display(form=form)) for form in ("text", "markdown", "html")]


def test_every_form_says_it_at_its_top() -> None:
    report = place(cluster(), ignoring(LARGE))
    for text in texts(report):
        assert "With --ignore-ipolicy: new" in text
    assert PLACE_DOCUMENT.data(report)["what_if"] == list(report.what_if)
    schema = json.loads((ROOT / "schemas/output/place.json").read_text(encoding="utf-8"))
    assert "what_if" in schema["properties"]


@pytest.mark.htools
@pytest.mark.skipif(HSPACE is None, reason="no htools here")
def test_hail_itself_holds_the_policy_against_it(tmp_path: Path) -> None:
    request = {
        "type": "allocate", "name": "new", "memory": 4096, "vcpus": 2, "disks": [{"size": 20480}], "tags": [],
        "disk_template": "drbd", "spindle_use": 1, "nics": [], "required_nodes": 2, "disk_space_total": 20736,
        "os": "x", "hypervisor": "kvm", "ignore_ipolicy": True,
    }  # fmt: skip
    answer = real_hail(document(cluster(), request), tmp_path)
    assert answer is not None
    assert (answer["success"], answer["result"]) == (False, [])
    assert "FailMem: 6" in answer["info"]


# --- weights of the score ----------------------------------------------------------------------------------------


def test_weights_in_words() -> None:
    weights = read_weights(["reserved_mem_rtotal=0", "n1_cnt=2.5"])
    assert [
        (name, weight) for name, weight, own in zip(SCORE_COMPONENTS, weights, WEIGHTS, strict=True) if weight != own
    ] == [
        ("n1_cnt", 2.5),
        ("reserved_mem_rtotal", 0.0),
    ]
    said = (
        "--weight n1_cnt=2.5 --weight reserved_mem_rtotal=0: Ganeti has other weights, so hail and hspace place"
        " otherwise than this says"
    )
    assert other_weights(weights) == (said,)
    assert other_weights(read_weights([])) == ()
    assert tuple(component.name for component in COMPONENTS) == SCORE_COMPONENTS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["n1_count=1"], "weight n1_count=1: the cluster score has no component 'n1_count'"),
        (["n1_cnt"], "weight n1_cnt: a weight is a number from 0 to 1000"),
        (["n1_cnt=-1"], "weight n1_cnt=-1: a weight is a number from 0 to 1000"),
        (["n1_cnt=nan"], "weight n1_cnt=nan: a weight is a number from 0 to 1000"),
        (["n1_cnt=1", "n1_cnt=2"], "weight n1_cnt=2: n1_cnt is given twice"),
    ],
)
def test_weights_without_sense(words: list[str], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_weights(words)
    assert caught.value.message == message
    assert "n1_count" not in message or caught.value.hint == "Did you mean `n1_cnt`?"


def six_nodes() -> ClusterState:
    """Return the example of the design document "allocation efficiency"."""
    return read_state("sim:p,6,204801,10241,21")


def test_the_example_of_the_design_document() -> None:
    """Standard instances of 1024 MiB, 10240 MiB, 2 CPUs: 48 with the component, 34 without it."""
    state = six_nodes()
    std: Values = {
        ("ipolicy", "std", "disk-size"): 10240,
        ("ipolicy", "std", "memory-size"): 1024,
        ("ipolicy", "std", "cpu-count"): 2,
    }
    own: Values = {**state.cluster.own, **std}
    groups = {name: replace(group, effective=fill(group.own, own, Level.GROUP)) for name, group in state.groups.items()}
    state = replace(state, cluster=replace(state.cluster, own=own), groups=groups)
    counts = {}
    for weight in (0.25, 0.0):
        weights = read_weights([f"reserved_mem_rtotal={weight}"])
        found = capacity(state, template="drbd", weights=weights)
        counts[weight] = found.groups[0].standard.fits
    assert counts == {0.25: 48, 0.0: 34}
    assert (
        render(capacity_answer(found), Display(form="text", details=True)).count("--weight reserved_mem_rtotal=0") >= 1
    )
    assert capacity_data(found)["what_if"] == list(found.what_if)


def test_place_goes_by_the_weights() -> None:
    """Only free disk counts: all nodes end up alike in all else, so the node with the most free disk is the best."""
    rows = [f"n{n}|8192|0|{8192 - 2048 * n}|102400|{100000 - 30000 * (2 - n)}|8|N|u|8||N|0|0|1.0" for n in range(3)]
    policy = "1024,1,10240,1,1,1|1024,1,10240,1,1,1;1024,1,10240,1,1,8|plain|4.0|32.0"
    state = from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"]))
    small = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(10240),), template="plain")
    none = [f"{name}=0" for name in SCORE_COMPONENTS]
    disk = read_weights([item for item in none if not item.startswith("free_disk_cv=")])
    memory = read_weights([item for item in none if not item.startswith("free_mem_cv=")])
    by_disk, by_memory = (place(state, replace(small, weights=weights)) for weights in (disk, memory))
    assert (by_disk.nodes, by_memory.nodes) == (("n2",), ("n0",))
    assert "hail and hspace place otherwise" in by_disk.what_if[0]
    assert "--weight n1_cnt=0" in render(place_answer(by_disk), Display(form="text", details=True))


# --- the metric --------------------------------------------------------------------------------------------------


def test_groups_of_both_sorts_are_told_with_the_way_out() -> None:
    rows = [
        f"n{n}|8192|0|8192|102400|100000|8|N|{of}|8||{es}|8|0|1.0"
        for n, (of, es) in enumerate([("u", "Y"), ("v", "N")])
    ]
    policy = "1024,1,10240,1,1,1|1024,1,10240,1,1,1;1024,1,10240,1,1,8|plain|4.0|32.0"
    lines = [f"|{policy}", f"gold|{policy}", f"silver|{policy}"]
    state = from_text(text_of(["gold|u|preferred||", "silver|v|preferred||"], rows, [], [], lines))
    request = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(10240, 1),), template="plain", spindles_given=False)
    said = (
        "hail goes by the cluster score here, not by lost allocations, since not all groups have exclusive storage"
        " (only gold); name a group: group=gold"
    )
    assert said in place(state, request).notes
    named = place(state, replace(request, group="gold"))
    assert named.metric == "lost-allocations"
    assert said not in named.notes


def test_the_metric_says_where_spindles_would_bind() -> None:
    """A node has room for seven more of 1024 MiB, and two free volumes."""
    rows = ["n0|8192|0|8192|102400|100000|8|N|u|8||Y|2|0|1.0"]
    policy = "1024,1,10240,1,1,1|1024,1,10240,1,1,1;1024,1,10240,1,1,8|plain|4.0|32.0"
    state = from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"]))
    request = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(10240, 1),), template="plain")
    assert (
        "lost allocations do not count spindles (as hail's): on n0 they count room for 7 of the sizes, and its spindles"
        " are enough for 2"
    ) in place(state, request).notes


def test_capacity_is_none_where_hail_refuses_what_hspace_counts() -> None:
    state = read_state(f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
    lost = suppose(state, WhatIf(lost=("node4",)))
    groups = [next(item for item in capacity(each).groups if item.group == "default") for each in (state, lost)]
    assert [item.refusal is None for item in groups] == [True, False]
    assert groups[1].hspace_standard > 0
    assert groups[1].refusal_words.startswith("the loss of node1.example.org cannot be absorbed")
    asked = PlaceRequest(memory=128, vcpus=1, disks=(Disk(1024),), group="default")
    assert place(state, asked).ok
    refused = place(lost, asked)
    assert {item.reason for item in refused.candidates} == {"n1-capacity"}
