"""How many nodes it takes: against trying all numbers, against capacity, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings, strategies as st

from gpolicy import progress
from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, PairNames
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.progress import Stop, after
from gpolicy.report.size_answer import full_answer, size_answer
from gpolicy.what_if import sizing
from gpolicy.what_if.filling import count_until_full, room_of
from gpolicy.what_if.load import Amount, nodes_like, upgraded
from gpolicy.what_if.sizing import NodeOffer, SizeReport, SizeRequest, find_size, read_kind
from gpolicy.what_if.supposing import More, WhatIf, read_more, read_wanted, spec_instance, suppose
from tests.laws import examples

TWO_GROUPS = Path(__file__).resolve().parents[2] / "policies" / "two-groups.snapshot.json"
GIB = 1024


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return read_state(f"snapshot:{TWO_GROUPS}")


def ask(
    state: ClusterState, *wants: str, likes: tuple[str, ...] = ("node1",), limits: Limits = NO_LIMITS
) -> SizeReport:
    request = SizeRequest(wanted=tuple(map(read_wanted, wants)), kinds=tuple(map(read_kind, likes)))
    return find_size(state, request, PairNames(), limits, lambda _what: None)


def is_enough(
    state: ClusterState, group: str, kinds: tuple[NodeOffer, ...], nodes: tuple[int, ...], asked: list[More]
) -> bool:
    """Return whether all fit, without any of the search's own ways."""
    for kind, number in zip(kinds, nodes, strict=True):
        if number:
            state = nodes_like(state, kind.like, number, group)
    room, _ = room_of(state, group)
    reached = room.counted.initial
    wanted = [(spec_instance(state, more, group, PairNames())[1], more.count) for more in asked]
    for instance, number in sorted(
        wanted, key=lambda item: (item[0].memory, item[0].disk, item[0].vcpus), reverse=True
    ):
        before = len(reached.placed)
        reached = room.place(reached, instance, number)
        if len(reached.placed) - before < number:
            return False
    return True


@settings(max_examples=examples(6))
@given(small=st.integers(0, 40), large=st.integers(1, 14), costs=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_no_cheaper_choice_is_enough(small: int, large: int, costs: tuple[int, int]) -> None:
    state = read_state(f"snapshot:{TWO_GROUPS}")
    state = upgraded(state, "node4.example.org", {"memory": Amount(64 * GIB, more=True)})
    asked = [More(number, None, spec="1", bound=bound) for number, bound in ((large, "max"), (small, "min")) if number]
    kinds = (NodeOffer("node1.example.org", costs[0]), NodeOffer("node4.example.org", costs[1]))
    found = find_size(state, SizeRequest(wanted=tuple(asked), kinds=kinds), PairNames(), NO_LIMITS)
    assert is_enough(state, "default", kinds, found.nodes, asked)
    for nodes in itertools.product(range(sum(found.nodes) * 9 + 1), repeat=2):
        cost = sum(kind.cost * number for kind, number in zip(kinds, nodes, strict=True))
        if (cost, sum(nodes)) < (found.cost, sum(found.nodes)):
            assert not is_enough(state, "default", kinds, nodes, asked), nodes


def test_it_agrees_with_capacity(state: ClusterState) -> None:
    fits = capacity(state, group="default").groups[0].specs[0].fits
    assert ask(state, f"{fits}x 1:max").nodes == (0,)
    found = ask(state, f"{fits + 1}x 1:max")
    assert found.nodes == (1,)
    assert found.shortage is not None
    assert (found.shortage.fits, found.shortage.nodes) == (fits, (0,))
    assert found.shortage.binding.cause.key == capacity(state, group="default").groups[0].specs[0].binding.cause.key
    assert found.more[0] == capacity(nodes_like(state, "node1.example.org", 1, "default"), group="default").groups[
        0
    ].specs[0].fits - (fits + 1)


def test_the_loss_of_more_nodes_takes_more_nodes(state: ClusterState) -> None:
    one, two = (ask(state, "12x 1:max", limits=Limits(max_node_failures=number)) for number in (1, 2))
    assert sum(two.nodes) > sum(one.nodes) > 0


def test_a_kind_that_is_too_small_is_not_bought(state: ClusterState) -> None:
    small = upgraded(
        nodes_like(state, "node1.example.org", 1, "default"),
        "node1.example.org+1",
        {"memory": Amount(8 * GIB, more=False)},
    )
    found = ask(small, "12x 1:max", likes=("node1.example.org+1=1", "node1.example.org=20"))
    assert found.nodes[0] == 0
    assert found.nodes[1] > 0


def test_when_no_number_is_enough_it_says_what_binds(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "MOST_NODES", 3)
    with pytest.raises(GpolicyError, match=r"3 more nodes are too few: \d+ of 200 size 1 at its largest fit") as caught:
        ask(state, "200x 1:max")
    assert "the limit is " in str(caught.value.hint)


def test_when_the_time_ends_the_best_so_far_counts(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def tell(_what: str) -> None:
        now[0] += 1  # each trial takes a second

    request = SizeRequest(wanted=(read_wanted("30x 1:max"),), kinds=(NodeOffer("node1"), NodeOffer("node4", 3)))
    found = find_size(state, request, PairNames(), NO_LIMITS, tell, after(6))
    assert not found.exhaustive
    assert found.nodes == (4, 4)
    late = SizeRequest(wanted=(read_wanted("30x 1:max"),), kinds=(NodeOffer("node1"),))
    with pytest.raises(GpolicyError, match="no answer after 1 trial"):
        find_size(state, late, PairNames(), NO_LIMITS, tell, after(2))


@pytest.mark.parametrize("why", ["time", "interrupt"])
def test_a_single_trial_ends_with_the_time(state: ClusterState, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes a second: the first trial is over after a few of its instances."""
    looks = itertools.count()

    def look() -> int:
        found = next(looks)
        if why == "interrupt" and found > 6:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=look))
    request = SizeRequest(wanted=(read_wanted("2000x 1"),), kinds=(NodeOffer("node1"),))
    with pytest.raises(GpolicyError, match="no answer after 0 trials"):
        find_size(state, request, PairNames(), NO_LIMITS, stop=after(6))
    assert next(looks) < 15


def test_a_run_in_parts_is_the_run_at_once(state: ClusterState) -> None:
    room, _ = room_of(state, "default")
    _, instance = spec_instance(state, read_wanted("1x 1"), "default", PairNames())
    for number in (1, 7, 1000):
        whole = room.place(room.counted.initial, instance, number)
        parts = room.place_by_parts(room.counted.initial, instance, number, Stop())
        assert parts.placed == whole.placed
        assert room.binding(parts, instance) == room.binding(whole, instance)


def test_a_group_with_both_kinds_of_storage_is_refused(state: ClusterState) -> None:
    node = replace(state.nodes["node1.example.org"], own={("ndparams", "exclusive_storage"): True})
    mixed = replace(state, nodes={**state.nodes, node.name: node})
    with pytest.raises(GpolicyError, match="group default: exclusive storage is on for only some of its nodes"):
        count_until_full(mixed, "default", NO_LIMITS)


@pytest.mark.parametrize(
    ("wants", "likes", "said"),
    [
        (("1x 1",), ("node9",), "like: there is no node 'node9'"),
        (("1x 9",), ("node1",), "there is no size '9' in group default"),
        (("1x 1",), ("node1", "node1.example.org=2"), "like names a node twice"),
        (("1x 1",), ("node1", "node5"), "the kinds of nodes are in several groups"),
        (("1x 1 in default",), ("node1",), "names a group"),
        (("1x like:node1",), ("node1",), "names no instances"),
        (("x1 1",), ("node1",), "want 'x1 1' cannot be read"),
        (("1x 1",), ("node1=",), "like 'node1=' cannot be read"),
        (("1x 1",), ("=3",), "like '=3' cannot be read"),
        (("1x 1",), ("node1=1e9",), "like 'node1=1e9' cannot be read"),
        (("1x 1",), ("node1=0",), "a node that costs nothing"),
    ],
)
def test_a_question_without_sense_is_refused(
    state: ClusterState, wants: tuple[str, ...], likes: tuple[str, ...], said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        ask(state, *wants, likes=likes)


def test_until_it_is_full_the_mix_stays(state: ClusterState) -> None:
    found = count_until_full(state, "default", NO_LIMITS)
    now, more = (sum(getattr(part, name) for part in found.parts) for name in ("now", "more"))
    assert now + found.left_out == sum(
        item.primary_node in {node.name for node in state.nodes_of("default")} for item in state.instances.values()
    )
    for part in found.parts:
        assert abs(part.more - more * part.now / now) < 1
    room, _ = room_of(state, "default")
    reached = room.counted.initial
    for part in found.parts:
        reached = room.place(reached, part.instance, part.more)
    assert len(reached.placed) <= more


def test_the_same_size_twice_is_wanted_once_as_often(state: ClusterState) -> None:
    assert ask(state, "5x 1:max", "7x 1:max") == ask(state, "12x 1:max")


def test_what_ganeti_does_not_make_on_exclusive_storage_does_not_fit(state: ClusterState) -> None:
    group = state.groups["dedicated"]
    group = replace(group, effective={**group.effective, ("ipolicy", "disk-templates"): ["drbd"]})
    mirrored = replace(state, groups={**state.groups, "dedicated": group})
    with pytest.raises(GpolicyError, match="0 of 2 size 1 at its smallest fit") as caught:
        ask(mirrored, "2x 1", likes=("node5",))
    assert "Ganeti makes only plain instances" in str(caught.value.hint)
    with pytest.raises(GpolicyError, match="Ganeti makes no drbd instance on nodes with exclusive storage"):
        suppose(mirrored, WhatIf(more=(read_more("1x 1 in dedicated"),)))


def test_a_forthcoming_instance_counts_in_the_mix_as_the_others(state: ClusterState) -> None:
    name, item = next((name, item) for name, item in state.instances.items() if item.primary_node.startswith("node1."))
    planned = replace(state, instances={**state.instances, name: replace(item, forthcoming=True)})
    real, other = (count_until_full(each, "default", NO_LIMITS) for each in (state, planned))
    assert [(part.instance, part.now) for part in real.parts] == [(part.instance, part.now) for part in other.parts]


@pytest.mark.parametrize("why", ["time", "interrupt"])
def test_a_count_that_is_stopped_says_what_it_has(
    state: ClusterState, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(what: str) -> None:
        if what == "3 more":
            if why == "interrupt":
                raise KeyboardInterrupt
            monkeypatch.setattr("gpolicy.progress.time.monotonic", lambda: float("inf"))

    found = count_until_full(state, "default", NO_LIMITS, tell, after(600))
    assert sum(part.more for part in found.parts) == 3
    assert found.binding is None


def test_a_group_without_instances_has_no_mix(state: ClusterState) -> None:
    with pytest.raises(RequestError, match="group spare has no instances whose sizes its policy allows"):
        count_until_full(state, "spare", NO_LIMITS)


def test_sizes_that_look_alike_are_told_apart(state: ClusterState) -> None:
    first, second = [item for item in state.instances.values() if item.name.startswith("dns")]
    other = replace(second, spindle_use=2, disks=tuple(replace(disk, size=disk.size // 2) for disk in second.disks * 2))
    changed = replace(state, instances={**state.instances, other.name: other})
    report = count_until_full(changed, "default", NO_LIMITS)
    rows = [row[0] for table in full_answer(report).sections[0].tables for row in table.rows]
    assert len(set(rows)) == len(rows)
    assert f"1G · 1 CPU · 10G ({first.disks[0].size // GIB}G, spindle use 1)" in rows
    assert "1G · 1 CPU · 10G (5G + 5G, spindle use 2)" in rows


def with_ratio(state: ClusterState, group: str, name: str, value: float) -> ClusterState:
    """Return the cluster with another ratio in the policy of a group."""
    item = state.groups[group]
    changed = replace(item, effective={**item.effective, ("ipolicy", name): value})
    return replace(state, groups={**state.groups, group: changed})


def test_a_number_of_the_policy_that_costs_nodes_is_named(state: ClusterState) -> None:
    wanted = "300x memory=128M disk=1G"
    found = ask(state, wanted)
    assert found.instead is not None
    assert sum(found.instead.nodes) < sum(found.nodes)
    then = found.instead.other.then
    assert isinstance(then, float)
    assert found.instead.other.words == f"ipolicy.spindle-ratio {then:g} instead of 32"
    assert ask(with_ratio(state, "default", "spindle-ratio", then), wanted).nodes == found.instead.nodes
    assert ask(with_ratio(state, "default", "spindle-ratio", 100 * then), wanted).nodes == found.instead.nodes
    assert f"; with {found.instead.other.words} it needs" in size_answer(found).verdict


def test_a_size_that_no_spec_allows_says_what_it_would_take(state: ClusterState) -> None:
    with pytest.raises(GpolicyError) as caught:
        ask(state, "60x memory=1G vcpus=20 disk=1G")
    assert "with a size for 1G · 20 CPU · 1G in ipolicy.minmax it needs" in (caught.value.hint or "")


def test_hardware_that_costs_nodes_is_no_number_of_the_policy(state: ClusterState) -> None:
    found = ask(state, "30x memory=16G vcpus=4 disk=10G")
    assert found.shortage is not None
    assert (sum(found.nodes) > 0, found.instead) == (True, None)


def test_a_number_of_the_policy_that_ends_a_mix_is_named(state: ClusterState) -> None:
    tight = with_ratio(state, "default", "spindle-ratio", 10)
    found = count_until_full(tight, "default", NO_LIMITS).policy_limit
    assert found is not None
    assert found.other is not None
    assert isinstance(found.other.then, float)
    eased = count_until_full(with_ratio(tight, "default", "spindle-ratio", found.other.then), "default", NO_LIMITS)
    assert sum(part.more for part in eased.parts) == found.would_fit > found.fits
    assert "today's mix: the limit is a number of the policy: with ipolicy.spindle-ratio" in found.sentence
