from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.analysis import loaded_state
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import GroupCapacity, capacity
from gpolicy.analysis.loaded_state import group_data, split_instances
from gpolicy.analysis.placing import place
from gpolicy.analysis.size_words import read_words
from gpolicy.cluster.state import ClusterState, LiveGroup
from gpolicy.cluster.state_files import read_config_file, read_snapshot
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.vocabulary import Value, Values
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.comparison import load_sides
from gpolicy.plan.sides import Sides
from gpolicy.what_if.load import moved
from tests.analysis.hspace_cases import DATA, FULL, from_text, hspace_keys, recorded_cases, tiered

ROOT = Path(__file__).parent.parent.parent
SPECS = "128,1,1024,1,1,1|128,1,1024,1,1,1;1024,2,10240,4,4,1"


ONES = {"disk-count": 1, "nic-count": 1, "spindle-use": 1}


def small(
    *nodes: str,
    group: str = "preferred",
    specs: str = SPECS,
    templates: str = "plain,drbd",
    ratios: str = "4.0|32.0",
    instances: str = "",
) -> ClusterState:
    """Return a cluster of one group whose policy is the cluster's."""
    policy = f"{specs}|{templates}|{ratios}"
    listed = "\n".join(nodes)
    return from_text(f"g|u|{group}||\n\n{listed}\n\n{instances}\n\n|{policy}\ng|{policy}\n")


def node(
    name: str, memory: int = 8192, disk: int = 102400, cpus: int = 8, *, flag: str = "N", spindles: int = 4
) -> str:
    return f"{name}|{memory}|0|{memory}|{disk}|{disk}|{cpus}|{flag}|u|{spindles}||N|0|0|1.0"


def only(state: ClusterState, template: str | None = None) -> GroupCapacity:
    report = capacity(state, template=template)
    assert len(report.groups) == 1
    return report.groups[0]


def test_a_group_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    state = read_snapshot(ROOT / "policies" / "two-groups.snapshot.json")
    whole = capacity(state)
    monkeypatch.setattr(loaded_state, "MOST_STEPS", 6400)
    found = capacity(state)
    assert [item.group for item in found.groups] == ["default", "spare"]
    assert found.groups[0] == whole.groups[1]
    assert found.unknown["dedicated"].reason.startswith("counting takes too long")
    assert found.cluster is None
    with pytest.raises(GpolicyError, match="counting takes too long"):
        capacity(state, group="dedicated")
    compared = load_sides(Sides(state, state))
    change = capacity_change(compared, lambda _what: None)
    assert change.unavailable["dedicated"].startswith("counting takes too long")
    assert [item.group for item in change.groups] == ["default", "spare"]


def test_the_whole_cluster_equals_hspace() -> None:
    compared = 0
    for case in recorded_cases():
        options = [item for item in case["hspace"]["args"] if item.startswith("-")]
        plain = all(item in {"-t", "--machine-readable"} or "--disk-template" in item for item in options)
        if not plain or case["hspace"]["rc"]:
            continue
        keys = hspace_keys(case["hspace"]["stdout"])
        found = capacity(from_text(case["data"]), template=keys["HTS_SPEC_DISK_TEMPLATE"]).cluster
        assert found is not None
        assert found.score.shown == keys["HTS_INI_SCORE"], case["seed"]
        assert str(found.hspace_standard) == keys["HTS_ALLOC_INSTANCES"], case["seed"]
        assert tiered(found) == keys["HTS_TSPEC"], case["seed"]
        compared += 1
    assert compared >= 20


def test_the_components_of_the_score_equal_hbal() -> None:
    cases = [case for case in recorded_cases() if case["score"]]
    assert len(cases) >= 50
    for case in cases[::4]:
        found = capacity(from_text(case["data"])).cluster
        assert found is not None
        shown = [[part.name, part.shown[0], f"x{part.shown[1]}"] for part in found.score.components]
        assert shown == [list(row) for row in case["score"]], case["seed"]


def test_the_score_is_the_sum_of_twenty_products() -> None:
    for item in capacity(from_text(FULL)).groups:
        assert len(item.score.components) in (0, 20)
        assert math.isclose(item.score.total, math.fsum(part.product for part in item.score.components))


def test_a_cluster_of_one_group_is_that_group() -> None:
    state = small(node("a"), node("b"), node("c"))
    report = capacity(state)
    assert report.cluster is not None
    assert replace(report.groups[0], group=None) == report.cluster
    nobody = LiveGroup(name="nobody", own={}, effective=state.groups["g"].effective)
    both = capacity(replace(state, groups={**state.groups, "nobody": nobody}))  # so that the whole is counted as such
    assert both.cluster == report.cluster


def test_a_group_alone_has_its_own_policy_and_nodes() -> None:
    data = cluster_data(from_text(FULL))
    alone = group_data(data, 2)
    assert split_instances(data, 2) == []
    assert [item.name for item in alone.nodes] == ["node4", "node5"]
    assert [item.index for item in alone.nodes] == [0, 1]
    assert [(item.name, item.primary, item.secondary) for item in alone.instances] == [("inst5", 0, 1)]
    assert alone.policy == data.groups[2].policy


def test_an_instance_in_two_groups_is_counted_on_its_primary_and_named() -> None:
    moved = FULL.replace("|inst2", "").replace("|node2|node3|drbd|", "|node2|node4|drbd|")
    report = capacity(from_text(moved))
    assert report.notes[-1] == "instance inst2: its nodes are in two groups; counted on its primary only"
    assert [item.instances for item in report.groups] == [5, 0, 1]


@pytest.mark.parametrize(
    ("state", "template", "cause"),
    [
        (small(node("a", memory=3072), node("b", memory=3072)), "plain", Cause.REDUNDANCY),
        (small(node("a", disk=5000), node("b", disk=5000)), "drbd", Cause.DISK),
        (small(node("a", memory=600), node("b", memory=600)), "drbd", Cause.MEMORY),
        (small(node("a", disk=10**6), node("b", disk=10**6), ratios="64.0|1.0"), "drbd", Cause.SPINDLE_RATIO),
        (small(node("a", memory=10**6), node("b", memory=10**6), ratios="99.0|99.0"), "drbd", Cause.DISK),
        (small(node("a", 10**6, 10**7), node("b", 10**6, 10**7), ratios="1.0|99.0"), "drbd", Cause.VCPU_RATIO),
        (small(node("a", 10241, 10**7), node("b", 10241, 10**7), ratios="99.0|99.0"), "drbd", Cause.RESERVE),
        (small(node("a"), node("b"), templates="plain"), "drbd", Cause.TEMPLATE),
        (small(node("a", flag="Y"), node("b")), "drbd", Cause.NO_NODES),
        (small(), "plain", Cause.NO_NODES),
        (small(node("a"), node("b"), group="unallocable"), "plain", Cause.CLOSED),
        (small(node("a"), node("b"), templates=""), None, Cause.NO_TEMPLATE),
    ],
)
def test_the_binding_resource_is_named(state: ClusterState, template: str | None, cause: Cause) -> None:
    assert only(state, template).specs[0].binding.cause is cause


def test_a_node_that_breaks_n1_forbids_everything() -> None:
    first = "i1|4000|1024|1|running|Y|a|b|drbd||1|-|N"
    full = "b|8192|0|100|102400|100000|8|N|u|4||N|0|0|1.0"
    found = only(small(node("a", memory=8192), full, instances=first))
    assert (found.standard.fits, found.hspace_standard) == (0, 0)
    assert found.refusal is not None


def test_a_standard_size_outside_the_policy_is_noted() -> None:
    specs = "64,1,1024,1,1,1|128,1,1024,1,1,1;1024,2,10240,4,4,1"
    assert only(small(node("a"), node("b"), specs=specs)).standard.binding.cause is Cause.BOUNDS


def test_the_spindle_use_is_the_nearest_that_the_pair_takes() -> None:
    specs = "128,1,1024,1,1,1|128,1,1024,1,1,1;1024,2,10240,4,4,1;2048,2,10240,1,1,3;4096,4,20480,4,4,6"
    assert [spec.spindle_use for spec in only(small(node("a"), node("b"), specs=specs)).specs] == [1, 3]


def test_the_default_template_is_the_first_of_the_policy_that_is_enabled() -> None:
    state = small(node("a"), node("b"), templates="plain,ext")
    assert only(state).template is DiskTemplate.PLAIN
    own: Values = {**state.cluster.own, ("enabled_disk_templates",): ["ext", "plain"]}
    assert only(replace(state, cluster=replace(state.cluster, own=own))).template is DiskTemplate.PLAIN
    own = {**own, ("enabled_disk_templates",): ["drbd", "ext"]}
    assert only(replace(state, cluster=replace(state.cluster, own=own))).template is DiskTemplate.EXT


def test_a_template_that_is_not_enabled_or_not_there_is_refused() -> None:
    state = small(node("a"), node("b"))
    own: Values = {**state.cluster.own, ("enabled_disk_templates",): ["drbd"]}
    with pytest.raises(RequestError, match="plain is not enabled"):
        capacity(replace(state, cluster=replace(state.cluster, own=own)), template="plain")
    with pytest.raises(RequestError, match="there is no disk template 'tape'"):
        capacity(state, template="tape")


def test_one_group_is_counted_alone_and_an_unknown_one_refused() -> None:
    report = capacity(from_text(FULL), group="gold", template="plain")
    assert [item.group for item in report.groups] == ["gold"]
    assert report.cluster is None
    with pytest.raises(RequestError, match="there is no group 'silver'"):
        capacity(from_text(FULL), group="silver")


def test_without_live_data_nothing_is_counted() -> None:
    with pytest.raises(
        GpolicyError, match="not known for group default: node1, node2, node3 show no memory, CPUs, disk"
    ):
        capacity(read_config_file(DATA / "clusters" / "full" / "config.data"))


def test_a_spec_without_memory_is_refused() -> None:
    specs = "0,1,1024,1,1,1|0,1,1024,1,1,1;0,2,10240,4,4,1"
    with pytest.raises(GpolicyError, match="a size without memory"):
        capacity(small(node("a"), node("b"), specs=specs))


def test_progress_is_reported() -> None:
    told: list[str] = []
    capacity(from_text(FULL), tell=told.append)
    for what in ("group default", "the whole cluster"):  # counted side by side: in any order
        assert told.index(f"{what}: size 1 of 1") < told.index(f"{what}: standard instances")


def test_nodes_that_never_take_a_size_do_not_bind_it() -> None:
    """Most nodes of the cluster are those of other groups, whose policy or alloc_policy keeps the size out."""
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    report = capacity(moved(state, "node4.example.org", "spare"))
    assert report.cluster is not None
    assert report.cluster.standard.binding.cause is Cause.SPINDLE_RATIO
    (dedicated,) = [item for item in report.groups if item.group == "dedicated"]
    assert dedicated.standard.binding.cause is Cause.BOUNDS  # there are no others


def test_what_hail_refuses_does_not_fit_though_hspace_counts_it() -> None:
    """hspace does not test N+1 for each mirrored instance; one without a mirror that is too small finds no new node."""
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    group = state.groups["default"]
    larger: list[Value] = [
        {
            "min": {**ONES, "cpu-count": 4, "memory-size": 24 * 1024, "disk-size": 100 * 1024},
            "max": {**ONES, "cpu-count": 8, "memory-size": 48 * 1024, "disk-size": 500 * 1024},
        }
    ]
    own: Values = {**group.own, ("ipolicy", "minmax"): larger}
    changed = replace(group, own=own, effective={**group.effective, ("ipolicy", "minmax"): larger})
    for after, told in ((state, False), (replace(state, groups={**state.groups, "default": changed}), True)):
        report = capacity(after, group="default")
        (found,) = report.groups
        assert found.hspace_standard or any(spec.hspace for spec in found.specs)
        assert (found.refusal is not None) is told
        assert ("the loss of" in found.refusal_words) is told
        assert bool(found.most_fits) is not told
        placed = place(after, read_words(["memory=24G", "vcpus=4", "disk=100G", "group=default"]).request)
        assert placed.ok is not told


def test_where_all_groups_take_too_long_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    state = read_snapshot(ROOT / "policies" / "two-groups.snapshot.json")
    monkeypatch.setattr(loaded_state, "MOST_STEPS", 10)
    groups = {name: item for name, item in state.groups.items() if name != "spare"}
    nodes = {name: item for name, item in state.nodes.items() if item.group != "spare"}
    with pytest.raises(GpolicyError, match="counting takes too long"):
        capacity(replace(state, groups=groups, nodes=nodes))
