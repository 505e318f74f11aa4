from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import Disk, DiskTemplate, Instance, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import Wanted, search_dedicated
from gpolicy.analysis import place_search
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.size_words import find_pair
from gpolicy.analysis.wanted_instance import PlaceRequest, of_spec
from gpolicy.cluster.htools_sources import simulated_state
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.vocabulary import Value, Values
from tests.analysis.hspace_cases import from_text, text_of

SIZES = (
    "4094,1,40940,1,1,4;4096,4,40960,1,1,4;2046,1,20460,1,1,2;2048,2,20480,1,1,2;1022,1,10220,1,1,1;1024,1,10240,1,1,1"
)
"""Full, half and quarter nodes of 4 GiB, 40 GiB and 4 spindles (design document "dedicated allocation")."""


def dedicated(used: list[int], sizes: str = SIZES) -> ClusterState:
    """Return nodes with so many of their quarters in use; their names say it."""
    words = ["empty", "quarter", "half", "three-quarter"]
    nodes, instances = [], []
    for number, quarters in enumerate(used):
        name = f"{words[quarters]}{number}"
        free = 4 - quarters
        nodes.append(f"{name}|4097|0|{free * 1024 + 1}|40961|{free * 10240 + 1}|8|N|u|4||Y|{free}|0|1.0")
        instances += [f"i{number}-{place}|1024|10240|1|running|Y|{name}||plain||1|1|N" for place in range(quarters)]
    policy = f"1022,1,10220,1,1,1|{sizes}|plain|1.0|32.0"
    return from_text(text_of(["g|u|preferred||"], nodes, instances, [], [f"|{policy}", f"g|{policy}"]))


NAMES = PairNames(("full", "half", "quarter"), {"g": ("full", "half", "quarter")})


def of_pair(state: ClusterState, name: str) -> PlaceReport:
    pair, _ = find_pair(name, NAMES, state)
    return place(state, of_spec(PlaceRequest(), pair.min, state, None), names=NAMES)


def losses(report: PlaceReport) -> dict[str, tuple[tuple[int, ...] | None, int | None]]:
    return {re.sub(r"\d", "", item.nodes[0]): (item.lost_allocations, item.disk_left) for item in report.candidates}


def test_a_quarter_breaks_nothing_bigger() -> None:
    report = of_pair(dedicated([0, 1, 2, 3]), "quarter")
    assert report.metric == "lost-allocations"
    assert report.sizes == ("full", "half", "quarter")
    assert [re.sub(r"\d", "", item.nodes[0]) for item in report.candidates] == [
        "three-quarter",
        "quarter",
        "half",
        "empty",
    ]
    found = {name: lost for name, (lost, _) in losses(report).items()}
    assert found == {"three-quarter": (0, 0, 1), "quarter": (0, 0, 1), "half": (0, 1, 1), "empty": (1, 1, 1)}


def test_a_half_takes_the_half_full_node_first() -> None:
    report = of_pair(dedicated([0, 1, 2]), "half")
    assert [re.sub(r"\d", "", item.nodes[0]) for item in report.candidates] == ["half", "quarter", "empty"]
    assert [item.lost_allocations for item in report.candidates] == [(0, 1, 2), (0, 1, 2), (1, 1, 2)]


def test_another_size_changes_the_best_node() -> None:
    three = "3070,1,30700,1,1,3;3072,3,30720,1,1,3"
    parts = SIZES.split(";")
    sizes = ";".join([*parts[:2], three, *parts[2:]])
    names = PairNames((), {"g": ("full", "three-quarter", "half", "quarter")})
    state = dedicated([1, 2], sizes)
    pair, _ = find_pair("quarter", names, state)
    report = place(state, of_spec(PlaceRequest(), pair.min, state, None), names=names)
    assert [item.lost_allocations for item in report.candidates] == [(0, 0, 1, 1), (0, 1, 0, 1)]
    assert report.nodes == ("half1",)


def test_each_dedicated_candidate_equals_the_allocators_answer_for_it_alone() -> None:
    state = dedicated([0, 1, 1, 2, 3, 2])
    report = of_pair(state, "half")
    cluster = merge(cluster_data(state))
    wanted = Instance(-1, "new", 2046, 20460, (Disk(20460, 2),), 1, InstanceStatus.RUNNING, DiskTemplate.PLAIN)
    by_name = {node.facts.name: index for index, node in cluster.nodes.items()}
    for item in report.candidates:
        index = by_name[item.nodes[0]]
        alone = search_dedicated(Wanted(wanted, 1), RequestOptions(), cluster.nodes, cluster.instances, [index])
        if alone.solution is None:
            assert not item.ok
        else:
            assert (item.lost_allocations, item.disk_left) == (alone.solution.lost, alone.solution.disk_left)


def test_reasons_have_policy_keys_and_numbers() -> None:
    small = place(dedicated([0, 3]), PlaceRequest(memory=500, vcpus=1, disks=(Disk(10240, 1),), template="plain"))
    assert [item.reason for item in small.candidates] == ["ipolicy.minmax", "ipolicy.minmax"]
    assert small.candidates[0].detail == "memory-size 500M (1022M to 1G) (size 3 of 3)"
    full = place(dedicated([3]), PlaceRequest(memory=2048, vcpus=1, disks=(Disk(20480, 2),), template="plain"))
    assert (full.candidates[0].reason, full.candidates[0].htools_reason) == ("memory", "FailMem")
    assert full.candidates[0].detail == "three-quarter0: 2G memory wanted, 1G free"
    assert full.reason == "refused by memory (1 candidate)"


def shared(vcpu: str = "1.0", tags: str = "", spindles: str = "32.0") -> ClusterState:
    specs = "128,1,1024,1,1,1|128,1,1024,1,1,1;4096,8,102400,4,4,4"
    nodes = [
        f"n{number}|8192|0|8000|102400|100000|2|N|u|1|{'p:a' if number else 'p:b'}|N|0|0|1.0" for number in range(3)
    ]
    row = "i1|192|2400|1|running|Y|n0|n1|drbd|svc:a|1|-|N"
    policy = f"{specs}|drbd,plain|{vcpu}|{spindles}"
    return from_text(text_of(["g|u|preferred||"], nodes, [row], tags.splitlines(), [f"|{policy}", f"g|{policy}"]))


@pytest.mark.parametrize(
    ("state", "request_", "reason", "detail"),
    [
        (shared(), PlaceRequest(vcpus=3), "ipolicy.vcpu-ratio", "n0: 4 virtual CPUs on 2 CPUs: 2, allowed 1"),
        (
            shared("8.0", "htools:iextags:svc"),
            PlaceRequest(vcpus=1, tags=("svc:a",)),
            "exclusion-tags",
            "n0: has svc:a already",
        ),
        (
            shared("8.0", spindles="1.0"),
            PlaceRequest(spindle_use=2),
            "ipolicy.spindle-ratio",
            "n0: spindle use 3, allowed 1",
        ),
        (
            shared("8.0"),
            PlaceRequest(disks=(Disk(102400),)),
            "disk",
            "n0: 100.1G disk wanted, 97.7G free",
        ),
        (shared("8.0"), PlaceRequest(template="rbd"), "ipolicy.disk-templates", "rbd wanted, allowed: drbd, plain"),
    ],
)
def test_each_reason_has_its_numbers(state: ClusterState, request_: PlaceRequest, reason: str, detail: str) -> None:
    report = place(state, request_)
    first = next(item for item in report.candidates if item.nodes[0] == "n0")
    assert (first.reason, first.detail) == (reason, detail)
    assert not first.ok


def test_a_desired_location_that_is_missed_costs_one() -> None:
    tags = "htools:nlocation:p\nhtools:desiredlocation:p"

    def scores(tag: str) -> dict[str, float]:
        report = place(shared("8.0", tags), PlaceRequest(tags=(tag,), template="plain"))
        return {item.nodes[0]: item.score or 0.0 for item in report.candidates}

    there, away = scores("p:b"), scores("p:a")  # n0 is in p:b, the others are in p:a
    assert [round(away[name] - there[name], 9) for name in ("n0", "n1", "n2")] == [1.0, -1.0, -1.0]


def test_missing_values_come_from_std() -> None:
    report = place(shared("8.0"), PlaceRequest())
    instance = report.instance
    assert (instance.memory, instance.vcpus, instance.spindle_use) == (128, 1, 1)
    assert (instance.disks, instance.disk, instance.template.value) == ((Disk(1024),), 1152, "drbd")
    assert report.ok
    assert report.chosen is not None
    assert report.chosen.score is not None


def test_only_named_nodes_are_tried() -> None:
    report = place(shared("8.0"), PlaceRequest(nodes=("n1", "n2")))
    assert {name for item in report.candidates for name in item.nodes} == {"n1", "n2"}


def test_an_unallocable_group_is_used_only_by_name() -> None:
    state = shared("8.0")
    group = state.groups["g"]
    closed = replace(
        state, groups={"g": replace(group, effective={**group.effective, ("alloc_policy",): "unallocable"})}
    )
    report = place(closed, PlaceRequest())
    assert not report.ok
    assert {item.reason for item in report.candidates} == {"alloc_policy"}
    named = place(closed, PlaceRequest(group="g"))
    assert named.ok
    assert "is unallocable" in named.notes[-1]


def test_checks_of_ganeti_that_hail_lacks_are_objections() -> None:
    assert "Ganeti refuses 9 in group g" in place(shared("8.0"), PlaceRequest(nic_count=9)).objections[0]


def test_an_offline_node_is_noted() -> None:
    state = shared("8.0")
    nodes = {**state.nodes, "n2": replace(state.nodes["n2"], offline=True)}
    report = place(replace(state, nodes=nodes), PlaceRequest())
    assert report.notes == ("n2 is offline: not tried",)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (PlaceRequest(group="x"), "there is no group 'x'"),
        (PlaceRequest(template="tape"), "there is no disk template 'tape'"),
        (PlaceRequest(nodes=("n9",)), "there is no node 'n9'"),
        (PlaceRequest(memory=0), "memory of the instance is 0"),
        (PlaceRequest(template="diskless", disks=(Disk(4),)), "an instance with disks is not diskless"),
    ],
)
def test_an_invalid_request_is_refused(request_: PlaceRequest, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        place(shared(), request_)


def test_networks_have_to_be_known() -> None:
    with pytest.raises(GpolicyError, match="not known: which networks"):
        place(shared(), PlaceRequest(networks=("net",)))


def test_a_pair_is_found_by_name_and_by_place() -> None:
    state = dedicated([0])
    assert find_pair("half", NAMES, state) == find_pair("2", NAMES, state)
    with pytest.raises(RequestError, match="there is no size 'tiny'"):
        find_pair("tiny", NAMES, state)


def test_the_template_is_one_of_a_group_that_has_nodes() -> None:
    state = shared("8.0")
    there = state.groups["g"]
    groups = {
        "empty": replace(
            there, name="empty", position=None, effective={**there.effective, ("ipolicy", "disk-templates"): ["plain"]}
        ),
        "g": replace(there, position=None, effective={**there.effective, ("ipolicy", "disk-templates"): ["drbd"]}),
    }
    own: Values = {**state.cluster.own, ("enabled_disk_templates",): ["plain", "drbd"]}
    report = place(replace(state, groups=groups, cluster=replace(state.cluster, own=own)), PlaceRequest())
    assert report.instance.template.value == "drbd"
    assert report.ok


@pytest.mark.parametrize("order", [["plain", "drbd"], ["drbd", "plain"], ["diskless", "plain"]])
def test_the_template_is_the_one_that_is_counted(order: list[Value]) -> None:
    """With no group given the cluster's list counts; where the request has disks, not `diskless`."""
    state, path = shared("8.0"), ("ipolicy", "disk-templates")
    own: Values = {**state.cluster.own, path: order, ("enabled_disk_templates",): [*sorted(map(str, order))]}
    there = replace(state.groups["g"], effective={**state.groups["g"].effective, path: order[::-1]})
    state = replace(state, cluster=replace(state.cluster, own=own), groups={"g": there})
    counted = capacity(state)
    assert counted.cluster is not None
    for request, item in ((PlaceRequest(), counted.cluster), (PlaceRequest(group="g"), counted.groups[0])):
        assert place(state, request).instance.template is item.template
    with_disks = place(state, PlaceRequest(disks=(Disk(1024),))).instance.template
    assert with_disks.value == next(template for template in order if template != "diskless")


def test_only_the_best_of_very_many_pairs_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer stays, each primary has some candidates, and a note counts the pairs that are left out."""
    state = simulated_state("p,12,2t,64g,16,4;p,9,3t,96g,24,6")
    request = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(1024),), template="drbd")
    whole = place(state, request)
    monkeypatch.setattr(place_search, "MOST_PAIRS", 80)
    short = place(state, request)
    assert len(whole.candidates) == 12 * 11 + 9 * 8
    assert 21 <= len(short.candidates) <= 80 + 11 + 8 + 2 * 21
    assert (short.nodes, short.info) == (whole.nodes, whole.info)
    assert short.chosen == short.candidates[0] == whole.candidates[0]
    assert set(short.candidates) <= set(whole.candidates)
    assert {item.nodes[0] for item in short.candidates} == set(state.nodes)
    assert whole.notes == ()
    assert f"considers all {len(whole.candidates)} pairs" in short.notes[-1]
    assert f"shows {len(short.candidates)} that" in short.notes[-1]
