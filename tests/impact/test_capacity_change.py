from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpolicy.allocator.cluster_data import Spec, SpecPair
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.allocator.requests import allocation_vector, sample_instances
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.binding import Cause, Room
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.cluster.state import ClusterState, Identity, LiveGroup
from gpolicy.cluster.state_files import read_config_file
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Value, Values
from gpolicy.impact.capacity_change import CapacityChange, GroupCapacityChange, matched_pairs
from gpolicy.report.capacity_section import headline, headline_falls
from tests.analysis.hspace_cases import DATA, from_text, text_of
from tests.impact.changes import capacity_change


def spec(memory: int, cpus: int, disk: int, spindles: int = 1) -> dict[str, Value]:
    return {
        "memory-size": memory, "cpu-count": cpus, "disk-size": disk, "disk-count": 1, "nic-count": 1,
        "spindle-use": spindles,
    }  # fmt: skip


def pair(memory: int, cpus: int, disk: int, spindles: int = 1) -> dict[str, Value]:
    """Return a pair whose least size is half of its greatest."""
    return {"min": spec(memory // 2, 1, disk // 2, spindles), "max": spec(memory, cpus, disk, spindles)}


BIG, SMALL = pair(4096, 2, 20480), pair(1024, 1, 5120)
NODES = [f"n{number}|16384|0|16384|204800|204800|8|N|u|4||N|0|0|1.0" for number in range(4)]
INSTANCES = ["i1|1024|5120|1|running|Y|n0||plain||1|-|N", "i2|1024|5120|1|running|Y|n1||plain||1|-|N"]
NODES[0] = NODES[0].replace("|16384|204800|204800", "|15360|204800|199680")
NODES[1] = NODES[1].replace("|16384|204800|204800", "|15360|204800|199680")


def cluster(**changed: Value) -> ClusterState:
    """Return a cluster of one group of four nodes; `changed` are values of its policy (vcpu_ratio, minmax, …)."""
    policy = "1024,1,5120,1,1,1|512,1,2560,1,1,1;1024,1,5120,1,1,1|plain|4.0|32.0"
    state = from_text(text_of(["g|u|preferred||"], NODES, INSTANCES, [], [f"|{policy}", f"g|{policy}"]))
    values = {"minmax": [BIG, SMALL], **changed}
    return with_policy(state, "g", **values)


def with_policy(state: ClusterState, group: str, **changed: Any) -> ClusterState:
    values: Values = {("ipolicy", name.replace("_", "-")): value for name, value in changed.items()}
    own = {**state.cluster.own, **values}
    item = state.groups[group]
    groups = {**state.groups, group: replace(item, effective={**item.effective, **values})}
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups)


def only(change: CapacityChange) -> GroupCapacityChange:
    assert len(change.groups) == 1
    return change.groups[0]


def figures(item: GroupCapacityChange) -> list[tuple[str, int | None, int | None]]:
    rows = (*item.rows, item.tiered, item.standard)
    return [(row.name, row.before.fits if row.before else None, row.after.fits if row.after else None) for row in rows]


def counted(state: ClusterState) -> list[int]:
    found = capacity(state).groups[0]
    return [*(item.fits for item in found.specs), sum(size.count for size in found.tiered), found.standard.fits]


def test_both_sides_equal_capacity() -> None:
    before, after = cluster(), cluster(vcpu_ratio=1.0)
    item = only(capacity_change(before, after, names=PairNames((), {"g": ("big", "small")})))
    assert [name for name, _, _ in figures(item)] == ["big", "small", "tiered", "standard"]
    assert [fits for _, fits, _ in figures(item)] == counted(before)
    assert [fits for _, _, fits in figures(item)] == counted(after)
    row = item.rows[1]
    assert row.delta is not None
    assert row.delta < 0
    assert row.before is not None
    assert row.after is not None
    assert (row.before.binding.cause, row.after.binding.cause) == (Cause.REDUNDANCY, Cause.VCPU_RATIO)
    assert row.percent == pytest.approx(100 * (row.after.fits - row.before.fits) / row.before.fits)


def test_a_removed_pair_is_counted_under_the_new_policy() -> None:
    item = only(capacity_change(cluster(), cluster(minmax=[SMALL])))
    small, big = item.rows
    assert (small.name, small.before and small.before.fits == small.after.fits if small.after else None) == ("1", True)
    assert (big.name, big.after, big.delta) == ("was 1", None, None)
    assert big.old_size_after is not None
    assert (big.old_size_after.fits, big.old_size_after.binding.cause) == (0, Cause.BOUNDS)


def test_a_pair_that_is_resized_shows_both_sizes() -> None:
    wider = pair(2048, 1, 5120)
    item = only(capacity_change(cluster(), cluster(minmax=[BIG, wider])))
    row = item.rows[1]
    assert row.before is not None
    assert row.after is not None
    assert row.before.spec is not None
    assert row.after.spec is not None
    assert (row.before.spec.memory, row.after.spec.memory) == (1024, 2048)
    assert row.old_size_after is not None
    assert row.old_size_after.fits == row.before.fits  # the old size still lies inside the new pair


def test_a_bigger_pair_before_those_that_stay_takes_nothing_away() -> None:
    """Tiered allocation begins with it, so its count is of other sizes: fewer is no loss."""
    item = only(capacity_change(cluster(minmax=[SMALL]), cluster()))
    assert (item.tiered.delta or 0) < 0
    assert item.tiered.resized
    assert not any(row.is_loss for row in (*item.rows, item.tiered, item.standard))
    fewer = only(capacity_change(cluster(), cluster(vcpu_ratio=0.25))).tiered
    assert fewer.is_loss


def test_a_pair_that_grows_is_no_loss_while_as_many_of_its_old_size_fit() -> None:
    wider = {"min": SMALL["min"], "max": spec(2048, 1, 10240)}
    grown = only(capacity_change(cluster(minmax=[SMALL]), cluster(minmax=[wider]))).rows[0]
    assert (grown.delta or 0) < 0
    assert not grown.is_loss
    shrunk = only(capacity_change(cluster(minmax=[wider]), cluster(minmax=[SMALL]))).rows[0]
    assert (shrunk.delta or 0) > 0
    assert shrunk.is_loss  # none of the old size may be made any more


PLAIN_FIRST, DRBD_FIRST = cluster(disk_templates=["plain", "drbd"]), cluster(disk_templates=["drbd", "plain"])


def test_another_first_template_is_counted_beside_the_one_of_today() -> None:
    item = only(capacity_change(PLAIN_FIRST, DRBD_FIRST))
    assert [fits for _, fits, _ in figures(item)] == counted(PLAIN_FIRST)
    assert [fits for _, _, fits in figures(item)] == counted(DRBD_FIRST)
    for row in (*item.rows, item.standard):
        assert (row.templates, row.resized, row.is_loss) == (("plain", "drbd"), True, False)
        assert row.before is not None
        assert row.old_size_after is not None
        assert row.old_size_after.fits == row.before.fits
    assert (item.tiered.templates, item.tiered.worst_after) == (("plain", "drbd"), None)
    value, words = headline(capacity_change(PLAIN_FIRST, DRBD_FIRST))
    assert value == str(counted(PLAIN_FIRST)[-1])
    assert words.startswith("of today's standard size (1G · 1 CPU · 5G, plain); ")
    assert f"{counted(DRBD_FIRST)[-1]} of the new one (1G · 1 CPU · 5G, drbd); tiered" in words


def with_std(state: ClusterState, memory: int) -> ClusterState:
    std: Values = {("ipolicy", "std", name): value for name, value in spec(memory, 1, 5120).items()}
    group, own = state.groups["g"], state.cluster
    groups = {"g": replace(group, effective={**group.effective, **std})}
    return replace(state, cluster=replace(own, own={**own.own, **std}), groups=groups)


def test_an_abolished_standard_size_is_not_the_headline() -> None:
    least_of_today = {"min": spec(1024, 1, 2560), "max": SMALL["max"]}
    change = capacity_change(with_std(cluster(), 512), with_std(cluster(minmax=[BIG, least_of_today]), 1024))
    row = only(change).standard
    assert row.after is not None
    assert row.is_abolished
    assert not headline_falls(change)
    value, words = headline(change)
    assert value == str(row.after.fits) != "0"
    assert words.startswith("of the new standard size (1G · 1 CPU · 5G); ")
    assert "not allowed then" in words
    fewer = capacity_change(cluster(), cluster(vcpu_ratio=1.0))
    assert headline_falls(fewer)
    assert not only(fewer).standard.is_abolished


def test_a_template_that_is_withdrawn_is_a_loss() -> None:
    for row in only(capacity_change(PLAIN_FIRST, cluster(disk_templates=["drbd"]))).rows:
        assert row.is_loss
        assert row.old_size_after is not None
        assert (row.old_size_after.fits, row.old_size_after.binding.cause) == (0, Cause.TEMPLATE)


def test_a_group_is_emptied_only_if_it_takes_nothing_of_todays_template_either() -> None:
    def full(*templates: str) -> ClusterState:
        state = cluster(disk_templates=[*templates])
        nodes = {
            name: replace(node, resources=replace(node.resources, disk_free=0)) for name, node in state.nodes.items()
        }
        return replace(state, nodes=nodes, instances={})

    for after, emptied in ((full("drbd", "diskless"), False), (full("drbd"), True)):
        item = only(capacity_change(full("diskless", "drbd"), after))
        assert item.before is not None
        assert item.after is not None
        assert (item.before.most_fits > 0, item.after.most_fits, bool(item.emptied)) == (True, 0, emptied)


def test_a_new_pair_has_nothing_before() -> None:
    item = only(capacity_change(cluster(minmax=[BIG]), cluster()))
    assert [(row.name, row.before is None, row.after is None) for row in item.rows] == [
        ("1", False, False),
        ("2", True, False),
    ]


def test_another_standard_size_shows_how_many_of_the_old_one_fit() -> None:
    before = cluster()
    after = cluster(std=spec(2048, 1, 5120))
    after = replace(before, groups={"g": replace(before.groups["g"], effective={
        **before.groups["g"].effective, ("ipolicy", "std", "memory-size"): 2048})})  # fmt: skip
    row = only(capacity_change(before, after)).standard
    assert row.before is not None
    assert row.old_size_after is not None
    assert row.old_size_after.fits == row.before.fits


def test_equal_clusters_are_counted_once() -> None:
    told: list[str] = []
    before = cluster()
    change = capacity_change(before, cluster(), tell=told.append)
    assert all(row.delta == 0 for row in (*only(change).rows, only(change).tiered, only(change).standard))
    assert told == [
        "group g, today: size 1 of 2",
        "group g, today: size 2 of 2",
        "group g, today: standard instances",
    ]


def test_a_renamed_group_is_the_same_a_new_and_a_removed_one_are_not() -> None:
    before = cluster()
    group = replace(before.groups["g"], identity=Identity(uuid="u-1"))
    before = replace(before, groups={"g": group, "old": LiveGroup(name="old", own={}, effective=group.effective)})
    nodes = {name: replace(node, group="h") for name, node in before.nodes.items()}
    renamed = replace(group, name="h")
    fresh = LiveGroup(name="fresh", own={}, effective=group.effective)
    after = replace(before, groups={"h": renamed, "fresh": fresh}, nodes=nodes)
    change = capacity_change(before, after)
    assert [(item.group, item.renamed_from) for item in change.groups] == [("h", "g"), ("fresh", None), ("old", None)]
    assert change.groups[0].rows[0].delta == 0
    assert change.groups[1].before is None
    assert change.groups[2].after is None
    assert [row.name for row in change.groups[2].rows] == ["1", "2"]


def test_moved_nodes_count_in_their_new_group() -> None:
    before = cluster()
    other = LiveGroup(name="other", own={}, effective=before.groups["g"].effective)
    before = replace(before, groups={**before.groups, "other": other})
    nodes = {**before.nodes, "n3": replace(before.nodes["n3"], group="other")}
    change = capacity_change(before, replace(before, nodes=nodes))
    assert [item.after.nodes if item.after else None for item in change.groups] == [3, 1]
    assert change.cluster is not None
    assert change.cluster.before is not None
    assert change.cluster.before.nodes == 4


def exclusive(state: ClusterState, *, spindles: int | None) -> ClusterState:
    group = state.groups["g"]
    effective = {**group.effective, ("ndparams", "exclusive_storage"): True}
    nodes = {
        name: replace(node, own={**node.own, ("ndparams", "exclusive_storage"): True},
                      resources=replace(node.resources, spindles_total=spindles, spindles_free=spindles))
        for name, node in state.nodes.items()
    }  # fmt: skip
    return replace(state, groups={**state.groups, "g": replace(group, effective=effective)}, nodes=nodes)


def test_exclusive_storage_without_spindle_numbers_is_not_guessed() -> None:
    before = cluster()
    other = LiveGroup(name="other", own={}, effective=before.groups["g"].effective)
    nodes = {**before.nodes, "x": replace(before.nodes["n3"], name="x", group="other", position=4)}
    before = replace(before, groups={**before.groups, "other": other}, nodes=nodes)
    after = exclusive(before, spindles=None)
    moved = {**after.nodes, "x": before.nodes["x"]}
    change = capacity_change(before, replace(after, nodes=moved))
    assert change.unavailable == dict.fromkeys(("g", ""), "n0, n1, n2, n3 show no spindles")
    assert [item.group for item in change.groups] == ["other"]
    assert change.cluster is None


def test_nothing_known_at_all_is_an_error() -> None:
    state = read_config_file(DATA / "clusters" / "full" / "config.data")
    with pytest.raises(GpolicyError, match="not known"):
        capacity_change(state, state)


def test_allocation_vectors_are_summed_over_the_nodes() -> None:
    before = exclusive(cluster(minmax=[BIG, SMALL]), spindles=4)
    after = exclusive(cluster(minmax=[SMALL, pair(8192, 2, 40960)], vcpu_ratio=0.5), spindles=4)
    vectors = only(capacity_change(before, after)).vectors
    assert vectors is not None
    assert (vectors.names, vectors.new_names) == (("2", "1"), ("2", "1"))
    for state, policy_of, expected in (
        (before, before, vectors.before),
        (after, before, vectors.after),
        (after, after, vectors.new_after),
    ):
        samples = sample_instances(cluster_data(policy_of).groups[0].policy)
        nodes = merge(cluster_data(state)).nodes.values()
        assert (
            tuple(sum(column) for column in zip(*(allocation_vector(n, samples) for n in nodes), strict=True))
            == expected
        )
    assert vectors.lost == tuple(a - b for a, b in zip(vectors.before, vectors.after, strict=True))
    assert vectors.lost[1] > 0


def test_without_exclusive_storage_there_are_no_vectors() -> None:
    assert only(capacity_change(cluster(), cluster())).vectors is None


def mirrored() -> ClusterState:
    """Return the cluster with instances that have a secondary."""
    return with_policy(cluster(minmax=[pair(2048, 1, 20480)]), "g", disk_templates=["drbd"])


@pytest.mark.parametrize("state", [cluster(), cluster(vcpu_ratio=0.5), cluster(minmax=[SMALL]), mirrored()])
def test_stranded_resources_are_the_rest_after_the_laws_placements(state: ClusterState) -> None:
    data = cluster_data(state)
    found = capacity(state).cluster
    assert found is not None
    assert found.template is not None
    assert found.stranded is not None
    cluster_ = merge(data)
    count = 2 if found.template.value == "drbd" else 1
    candidates = candidate_nodes(cluster_.groups, cluster_.nodes, count)
    rules = CapacityRules()
    law = Allocator(ReferenceEngine(candidates, rules), each=True)
    run = CountedCluster(data, found.template)
    final = AllocationState(cluster_.nodes, cluster_.instances)
    for size in data.policy.minmax:
        final = law.tiered(final, run.instance(size.max, data.policy.std.spindle_use), None)
    for size in data.policy.minmax:
        final = law.standard(final, run.instance(size.min, size.min.spindle_use), None)
    online = [node for node in final.nodes.values() if not node.facts.offline]
    left = Room(
        memory=sum(node.available_memory for node in online),
        disk=sum(node.available_disk for node in online),
        cpus=sum(node.available_cpus for node in online),
        spindles=None,
        spindle_use=sum(max(0, int(node.facts.high_spindles - node.instance_spindles)) for node in online),
    )
    assert found.stranded.left == left
    for size in data.policy.minmax:
        wanted = run.instance(size.min, size.min.spindle_use)
        assert law.engine.attempt(final.nodes, final.instances, wanted, checked=True).solution is None


def test_a_large_cluster_of_several_groups_is_counted_as_a_whole() -> None:
    policy = "128,1,1024,1,1,1|4096,2,20480,1,1,1;8192,4,102400,4,4,4|drbd|4.0|32.0"
    groups = [f"{name}|{name}|preferred||" for name in "gh"]
    nodes = [f"n{place}|16384|0|16384|204800|204800|8|N|{'gh'[place % 2]}|4||N|0|0|1.0" for place in range(110)]
    state = from_text(text_of(groups, nodes, [], [], [f"|{policy}", *(f"{name}|{policy}" for name in "gh")]))
    change = capacity_change(state, state)
    assert (len(change.groups), change.unavailable) == (2, {})
    assert change.cluster is not None
    assert change.cluster.after is not None
    assert change.cluster.after.nodes == 110
    assert change.cluster.after.tiered
    assert change.cluster.before == change.cluster.after == capacity(state).cluster


def box(memory: int, cpus: int, disk: int) -> SpecPair:
    return SpecPair(Spec(1, 1, 1, 1, 1, 1), Spec(memory, cpus, disk, 1, 1, 1))


def test_pairs_are_matched_by_their_bounds() -> None:
    full, half, quarter = box(4096, 4, 40960), box(2048, 2, 20480), box(1024, 1, 10240)
    assert matched_pairs([full, half], [full, half]) == [(0, 0), (1, 1)]
    assert matched_pairs([full, half], [half, full]) == [(1, 0), (0, 1)]
    assert matched_pairs([full, half, quarter], [full, quarter]) == [(0, 0), (2, 1), (1, None)]
    assert matched_pairs([full, half], [full, box(3000, 3, 30000)]) == [(0, 0), (1, 1)]
    assert matched_pairs([full, half, quarter], [box(1100, 1, 10240), full]) == [(2, 0), (0, 1), (1, None)]
    assert matched_pairs([half], [full, box(2100, 2, 20480)]) == [(None, 0), (0, 1)]
    assert matched_pairs([], []) == []


def test_instances_that_violate_the_new_policy_and_let_nothing_fit_are_named() -> None:
    """N+1 holds the copy of a plain instance against the policy, so one that violates it makes every loss fatal."""
    before = cluster()
    after = cluster(minmax=[{"min": spec(2048, 1, 8192), "max": spec(4096, 2, 20480)}], std=spec(2048, 1, 8192))
    change = capacity_change(before, after)
    assert change.groups[0].standard.after is not None
    assert change.groups[0].standard.after.fits == 0
    assert change.groups[0].emptied.startswith("the loss of n0 cannot be absorbed (i1, ")
    there = capacity_change(replace(before, instances={}), replace(after, instances={}))
    assert there.groups[0].tiered.after is not None
    assert there.groups[0].tiered.after.fits > 0
    assert not there.groups[0].emptied
