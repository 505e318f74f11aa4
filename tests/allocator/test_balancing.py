"""Balancing: worked examples, ties, and the engine's moves against those of the law."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gpolicy.allocator.balancing import FindMove, Goal, balance, engine_search, law_search
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason
from gpolicy.allocator.cluster_score import cluster_score, least_reserved
from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind
from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.native.library import MoveRules
from gpolicy.allocator.native.streams import UnfitError
from gpolicy.errors import InputError
from gpolicy.htools.text_format import parse_cluster
from tests.allocator.helpers import cluster, instance, node
from tests.htools.random_clusters import TEMPLATES, random_cluster

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

Found = list[tuple[int, MoveKind, int, float]]
ANY_MOVE = MoveRules(0)
ANYTHING = Goal(optimum=float("-inf"), limit=6, min_gain=0.0)


def taken(where: Cluster, rules: MoveRules, goal: Goal, *, law: bool) -> Found:
    """Return the moves: instance, kind, target, score after it."""
    movable = [
        number
        for number, item in where.instances.items()
        if item.template.balanced and item.auto_balance and item.secondary in {NO_NODE, *where.nodes}
    ]
    search: FindMove = (
        law_search(movable, rules) if law else engine_search(where.nodes, where.instances, movable, rules)
    )
    moves = balance(where.nodes, where.instances, rules, goal, search)
    return [(done.instance.index, done.move.kind, done.move.target, done.score) for done in moves]


def both_ways(where: Cluster, rules: MoveRules = ANY_MOVE, goal: Goal = ANYTHING) -> Found:
    """Return the law's moves, after comparing them with the engine's."""
    found = taken(where, rules, goal, law=True)
    assert taken(where, rules, goal, law=False) == found
    return found


def twins(count: int, used: dict[int, int]) -> list[object]:
    """Return equal nodes with one CPU for the host, less the memory and disk that are `used`."""
    free_disk = {0: 37_952, 1: 37_952}
    return [
        node(place, 4096, 40_000, 8.0, free_memory=4096 - used.get(place, 0), free_disk=free_disk.get(place, 40_000))
        for place in range(count)
    ]


def test_of_twelve_equal_scores_the_first_move_wins() -> None:
    """Two equal instances on one pair of four equal nodes."""
    pairs = [
        instance(512, 1024, 1, DiskTemplate.DRBD, index=number, name=f"i{number}", primary=0, secondary=1)
        for number in range(2)
    ]
    where = cluster(twins(4, {0: 1024}), pairs)  # type: ignore[arg-type]
    optimum = 0.25 * least_reserved(where.nodes.values())
    assert cluster_score(where.nodes.values()) == 4.0421857377724795
    assert both_ways(where, goal=Goal(optimum)) == [
        (0, MoveKind.REPLACE_PRIMARY, 2, 2.45768238943353),
        (0, MoveKind.REPLACE_SECONDARY, 3, 1.75),
    ]


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        (ANY_MOVE, set(MoveKind) - {MoveKind.FAILOVER_TO}),
        (MoveRules.NO_DISK_MOVES, {MoveKind.FAILOVER}),
        (MoveRules.NO_INSTANCE_MOVES, {MoveKind.REPLACE_SECONDARY}),
        (MoveRules.RESTRICTED_MIGRATION, {MoveKind.FAILOVER, MoveKind.REPLACE_SECONDARY}),
        (MoveRules.EVACUATION, set[MoveKind]()),
    ],
)
def test_what_the_rules_allow(rules: MoveRules, kinds: set[MoveKind]) -> None:
    seen: set[MoveKind] = set()
    for seed in range(60):
        rng = random.Random(seed)
        where = merge(parse_cluster(random_cluster(rng, "drbd", 6, sound=True).text))
        nodes = {index: item for index, item in where.nodes.items() if not item.facts.offline}
        pairs = {
            number: item
            for number, item in where.instances.items()
            if item.template is DiskTemplate.DRBD and {item.primary, item.secondary} <= set(nodes)
        }
        seen |= {kind for _, kind, _, _ in both_ways(replace(where, nodes=nodes, instances=pairs), rules)}
    assert seen == kinds


@given(st.integers(min_value=0, max_value=2**32))
def test_the_engine_takes_the_moves_of_the_law(seed: int) -> None:
    rng = random.Random(seed)
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "drbd"])
    where = merge(parse_cluster(random_cluster(rng, template, 6, sound=True).text), twice=rng.random() < 0.3)
    where = replace(
        where,
        nodes={
            index: item.with_facts(replace(item.facts, offline=True)) if rng.random() < 0.1 else item
            for index, item in where.nodes.items()
        },
        instances={
            number: replace(item, load=rng.choice([item.load, (0.1, 0.7, 0.3, 1e-3)]))
            for number, item in where.instances.items()
        },
    )
    rules = MoveRules(sum(rule for rule in MoveRules if rng.random() < 0.3))
    both_ways(where, rules, replace(ANYTHING, limit=3))


@given(st.integers(min_value=0, max_value=2**32))
def test_near_ties_of_equal_nodes_are_decided_by_the_last_bit(seed: int) -> None:
    rng = random.Random(seed)
    count, template = rng.randrange(3, 8), rng.choice([DiskTemplate.DRBD, DiskTemplate.EXT])
    items = []
    for number in range(rng.randrange(1, 2 * count)):
        primary, secondary = rng.sample(range(count), 2)
        more = {"secondary": secondary} if template is DiskTemplate.DRBD else {}
        items.append(instance(100, 700, 1, template, index=number, name=f"i{number}", primary=primary, **more))
    both_ways(cluster([node(place, 16_384, 200_000) for place in range(count)], items))


def one_pair(**more: object) -> Cluster:
    pair = instance(512, 1024, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)
    return cluster([node(place, 4096, 40_000) for place in range(4)], [replace(pair, **more)])  # type: ignore[arg-type]


def test_a_mirrored_instance_without_a_secondary_is_an_error() -> None:
    where = one_pair(secondary=NO_NODE)
    for law in (False, True):
        with pytest.raises(InputError, match="has no secondary node"):
            taken(where, ANY_MOVE, ANYTHING, law=law)
    assert both_ways(where, MoveRules.NO_DISK_MOVES) == []


def test_a_score_that_is_not_a_number_is_never_improved() -> None:
    where = one_pair()
    broken = replace(where.nodes[3].facts, high_spindles=0.0)
    nodes = {**where.nodes, 3: replace(where.nodes[3], facts=broken, score_values=None)}
    assert both_ways(replace(where, nodes=nodes)) == []


def test_the_law_moves_forthcoming_instances_beside_the_engine() -> None:
    items = [
        instance(512, 1024, 1, DiskTemplate.EXT, index=number, name=f"i{number}", primary=0, forthcoming=number % 2 > 0)
        for number in range(6)
    ]
    moves = both_ways(cluster([node(place, 4096, 40_000) for place in range(4)], items))
    assert {number % 2 for number, _, _, _ in moves} == {0, 1}


def test_no_node_online_means_no_move() -> None:
    where = one_pair()
    nodes = {index: item.with_facts(replace(item.facts, offline=True)) for index, item in where.nodes.items()}
    assert both_ways(replace(where, nodes=nodes)) == []


def wrong_move(_nodes: object, instances: dict[int, object], _score: float) -> tuple[InstanceMove, float]:
    return InstanceMove(MoveKind.REPLACE_SECONDARY, instances[0], 2), 1.0  # type: ignore[arg-type]


def test_a_wrong_score_of_a_search_is_found() -> None:
    where = one_pair()
    with pytest.raises(AssertionError, match="disagree on a score"):
        next(balance(where.nodes, where.instances, ANY_MOVE, ANYTHING, wrong_move))  # type: ignore[arg-type]


def test_a_move_that_no_node_takes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> Moved | FailReason:
        return FailReason.MEM

    monkeypatch.setattr("gpolicy.allocator.balancing.apply_move", refused)
    where = one_pair()
    with pytest.raises(AssertionError, match="disagree: FailMem"):
        next(balance(where.nodes, where.instances, ANY_MOVE, ANYTHING, wrong_move))  # type: ignore[arg-type]


@pytest.mark.parametrize("ask", [lambda e: e.balance({}, [5], ANY_MOVE), lambda e: e.balance({}, [1, 0], ANY_MOVE)])
def test_the_engine_refuses_instances_that_it_does_not_know(ask: Callable[[object], object]) -> None:
    pair = instance(512, 1024, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)
    where = cluster([node(place, 4096, 40_000) for place in range(4)], [pair, replace(pair, index=1, name="i1")])
    opened = engine_cluster(where.nodes, where.instances)
    with pytest.raises(UnfitError):
        ask(opened)
