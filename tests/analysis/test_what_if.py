"""What-if questions: an instance that the policy forbids."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hail_cases import HSPACE, document, real_hail
from hspace_cases import from_text, text_of

from gpolicy.allocator.cluster_data import Disk
from gpolicy.allocator.engines import compiled_attempt
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidates_among, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, redundancy_predicate
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.cluster.state import ClusterState
from gpolicy.report.forms import Look, render
from gpolicy.report.place_answer import place_answer
from gpolicy.report.place_json import place_data

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
    assert placed.what_if[0].startswith("--ignore-ipolicy: its size and disk template are not held against the policy.")
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
        "--ignore-ipolicy: its size and disk template are not held against the policy, which allows them anyway",
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
    found = compiled_attempt(known.nodes, known.instances, wanted, candidates, rules, force=False, checked=True)
    assert found == law
    policed = replace(wanted, ignores_policy=False)
    refused = compiled_attempt(known.nodes, known.instances, policed, candidates, rules, force=False, checked=True)
    assert refused == try_allocate(known.nodes, policed, candidates)
    assert refused is not None
    assert refused.solution is None


def texts(report: PlaceReport) -> list[str]:
    return [render(place_answer(report), Look(form=form)) for form in ("text", "markdown", "html")]


def test_every_form_says_it_at_its_top() -> None:
    report = place(cluster(), ignoring(LARGE))
    for text in texts(report):
        assert "With --ignore-ipolicy: new" in text
    assert place_data(report)["what_if"] == list(report.what_if)
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
