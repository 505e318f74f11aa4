from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, capacity
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState
from gpolicy.cluster.terms import GroupTerms, Limits, PairNames
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.vocabulary import Values
from tests.analysis.hspace_cases import from_text, text_of

SPECS = "4096,1,4096,1,1,1|2048,1,4096,1,1,1;4096,1,4096,1,1,1"


def cluster(nodes: int = 4, instances: list[str] | None = None) -> ClusterState:
    """Return nodes of 16 GiB on which memory is all that can run out."""
    rows = [f"n{number}|16384|0|16384|999999|999999|64|N|u|9||N|0|0|1.0" for number in range(nodes)]
    policy = f"{SPECS}|plain,drbd|99.0|99.0"
    return from_text(text_of(["g|u|preferred||"], rows, instances or [], [], [f"|{policy}", f"g|{policy}"]))


def counted(state: ClusterState, template: str = "plain", **options: float) -> GroupCapacity:
    asked = Limits(
        max_node_failures=int(options["failures"]) if "failures" in options else None,
        oversubscription=options.get("ratio"),
        cpus_after_failure=True if "cpus" in options else None,
    )
    found = capacity(state, template=template, limits=asked, names=PairNames(("only",), {"g": ("only",)}))
    assert found.cluster is not None
    assert found.cluster.specs[0].fits == found.groups[0].specs[0].fits  # it is the only group
    return found.groups[0]


@pytest.mark.parametrize(("failures", "nodes_left"), [(0, 4), (1, 3), (2, 2), (3, 1)])
def test_capacity_is_what_the_remaining_nodes_hold(failures: int, nodes_left: int) -> None:
    found = counted(cluster(), failures=failures)
    assert found.specs[0].name == "only"
    assert found.specs[0].fits == 3 * nodes_left  # a fourth of 4 GiB would leave a node of 16 GiB with nothing
    causes = {0: Cause.MEMORY, 1: Cause.REDUNDANCY}
    assert found.specs[0].binding.cause is causes.get(failures, Cause.NODE_FAILURES)
    assert found.standard.fits == found.specs[0].fits


def test_one_failure_is_what_htools_counts() -> None:
    state = cluster(5)
    exact = capacity(state, template="plain").groups[0]
    assert counted(state, failures=1).specs[0].fits == exact.specs[0].fits


@pytest.mark.parametrize(("ratio", "fits"), [(0.5, 2), (1.0, 4), (1.5, 6), (2.0, 7)])
def test_maximum_memories_are_bounded_by_the_ratio_minimum_ones_by_the_node(ratio: float, fits: int) -> None:
    found = counted(cluster(2), failures=0, ratio=ratio)
    pair = found.specs[0]
    assert pair.fits == 2 * fits  # at most 7 of 2 GiB leave something of 16 GiB, whatever the ratio
    assert pair.binding.cause is (Cause.MEMORY if ratio == 2.0 else Cause.OVERSUBSCRIPTION)


def test_existing_instances_count_with_their_maximum_memory() -> None:
    row = "i1|2048|4096|1|running|Y|n0||plain||1|-|N"
    state = cluster(2, [row])
    grown = replace(state, instances={"i1": replace(state.instances["i1"], maxmem=8192, oper_ram=2048)})
    assert counted(grown, failures=0, ratio=1.0).specs[0].fits == 2 + 4


@pytest.mark.parametrize("template", ["plain", "drbd"])
def test_existing_instances_are_guaranteed_only_minmem(template: str) -> None:
    """Design document "Resource model": the sum of the minimum memories is bounded by the node's memory."""
    pair = "n0||plain" if template == "plain" else "n0|n1|drbd"
    rows = [f"i{number}|6144|4096|1|running|Y|{pair}||1|-|N" for number in range(2)]
    state = cluster(2, rows)
    nodes = {
        name: replace(node, resources=replace(node.resources, memory_free=16384 - 12288 * (name == "n0")))
        for name, node in state.nodes.items()
    }
    shrunk = {name: replace(item, minmem=2048, maxmem=6144, oper_ram=6144) for name, item in state.instances.items()}
    state = replace(state, nodes=nodes)
    tight = counted(state, template, failures=0, ratio=4.0).specs[0].fits
    loose = counted(replace(state, instances=shrunk), template, failures=0, ratio=4.0).specs[0].fits
    if template == "plain":
        assert tight == 1 + 7  # 4 GiB less the last MiB beside the two, and 14 GiB on the other node
        assert loose == 5 + 7  # 12 GiB beside twice 2 GiB
    assert loose > tight
    exact = counted(replace(state, instances=shrunk), template, failures=0).specs[0].fits
    assert exact == counted(state, template, failures=0).specs[0].fits  # without a ratio nothing is guaranteed less


def test_a_group_that_would_take_minutes_is_not_counted() -> None:
    with pytest.raises(GpolicyError, match="the loss of any 4 nodes would be simulated"):
        counted(cluster(60), failures=4)


def with_cpus(nodes: int, cpus: int, wanted: int) -> ClusterState:
    """Return nodes where only CPUs can run out, with ratio 1, for instances of so many CPUs."""
    rows = [f"n{number}|999999|0|999999|999999|999999|{cpus}|N|u|99||N|0|0|1.0" for number in range(nodes)]
    policy = f"4096,{wanted},4096,1,1,1|2048,1,4096,1,1,1;4096,{wanted},4096,1,1,1|plain,drbd|1.0|999.0"
    return from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"]))


@pytest.mark.parametrize(
    ("nodes", "template", "wanted", "failures", "fits"),
    [
        (2, "drbd", 1, 0, 16),  # 8 CPUs on each
        (2, "drbd", 1, 1, 8),  # all on the one that is left
        (3, "plain", 1, 1, 16),  # two nodes are left
        (3, "plain", 1, 2, 8),
        (3, "plain", 3, 1, 4),  # a node takes two of 3 CPUs, so the two nodes that are left take four
        (3, "plain", 3, 0, 6),
    ],
)
def test_cpus_are_kept_after_failures(nodes: int, template: str, wanted: int, failures: int, fits: int) -> None:
    found = counted(with_cpus(nodes, 8, wanted), template, failures=failures, cpus=True).specs[0]
    assert found.fits == fits
    assert found.binding.cause is (Cause.CPUS_AFTER_FAILURE if failures else Cause.VCPU_RATIO)
    without = counted(with_cpus(nodes, 8, wanted), template, failures=failures).specs[0]
    assert (without.fits, without.binding.cause) == (nodes * (8 // wanted), Cause.VCPU_RATIO)


def test_declared_limits_count_and_options_go_before_them() -> None:
    """Four nodes with three of 4 GiB each: any two may fail, so two nodes hold all."""
    state = cluster()
    declared = replace(state, terms={"g": GroupTerms(limits=Limits(max_node_failures=2))})
    report = capacity(declared, template="plain")
    assert extended_fits(report) == [6, 6]
    assert [item.sentence for item in report.limits] == [
        "limits of group g: 2 nodes of a group may fail at once (policy)"
    ]
    exact = capacity(state, template="plain")
    assert exact.limits == ()
    assert [item.hspace for item in report.groups[0].specs] == [item.hspace for item in exact.groups[0].specs]
    asked = capacity(declared, template="plain", limits=Limits(max_node_failures=3))
    assert extended_fits(asked) == [3, 3]
    assert [item.sentence for item in asked.limits] == [
        "limits of group g: 3 nodes of a group may fail at once (option)"
    ]


def extended_fits(report: CapacityReport) -> list[int]:
    return [*(spec.fits for spec in report.groups[0].specs), report.groups[0].standard.fits]


@pytest.mark.parametrize(
    ("failures", "ratio"), [(-1, None), (9, None), (None, 0.0), (None, -1.0), (None, float("inf")), (None, 1e308)]
)
def test_invalid_limits_are_refused(failures: int | None, ratio: float | None) -> None:
    with pytest.raises(RequestError, match=r"it must be 0 to 8$|it must be above 0 and at most 100$"):
        Limits(max_node_failures=failures, oversubscription=ratio)


def test_declared_resources_replace_measured_ones() -> None:
    state = cluster()
    own: Values = {**state.cluster.own, ("enabled_hypervisors",): ["kvm"], ("hv_state", "kvm", "mem_node"): 8192}
    state = replace(state, cluster=replace(state.cluster, own=own), unreadable=())
    half = capacity(state, template="plain", resource_model=True).groups[0]
    assert half.specs[0].fits == 3  # one of 4 GiB on each node but the one that may fail
    assert capacity(state, template="plain").groups[0].specs[0].fits > 3
    nothing = capacity(replace(cluster(), unreadable=()), template="plain", resource_model=True)
    assert nothing.notes == ("hv_state and disk_state declare nothing that counts, so these are the measured numbers",)
    with pytest.raises(GpolicyError, match="not known: hv_state and disk_state"):
        capacity(replace(cluster(), unreadable=HIDDEN_BY_RAPI), resource_model=True)
