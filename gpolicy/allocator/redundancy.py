"""The global N+1 test ("capacity"): can every node be evacuated, one at a time?

Evacuation is forced here: only lack of memory, disk or spindles stops it. Mirrored instances fail over, instances on
external storage move, all others need room for a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.cluster_score import WEIGHTS, Weights, cluster_score
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move
from gpolicy.allocator.node_changes import accepted, add_primary, keeps_vcpu_ratio, remove_primary
from gpolicy.allocator.placement import Nodes, Placement, Predicate, SingleCandidates, try_allocate
from gpolicy.light_dataclasses import dataclass, replace

Instances = Mapping[int, Instance]
RedundancyTest = Callable[[Nodes, Instances, "CapacityRules"], bool]


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """The nodes that the test skips: offline ones, and whole groups; and what htools' test lacks.

    `failures`: how many nodes of a group may fail at once. `cpus`: nodes that take over must keep their vcpu-ratio.
    `weights` are those of the score that homes are chosen by. `oversubscription`: the sum of the maximum memories of a
    node's primaries may be this many times its memory for instances; None: no limit. `force` ignores soft limits of
    primaries when instances are placed.
    """

    skip_offline: bool = False
    ignored_groups: frozenset[int] = frozenset()
    failures: int = 1
    cpus: bool = False
    weights: Weights = WEIGHTS
    oversubscription: float | None = None
    force: bool = False


def is_redundant(nodes: Nodes, instances: Instances, rules: CapacityRules) -> bool:
    """Whether each examined node, and each set of as many nodes of a group as may fail at once, can be evacuated.

    Nodes are lost in their own order, as in htools (GlobalN1.hs): a later one may have an instance that ends the
    question with an error.
    """
    examined = [
        node.facts
        for node in nodes.values()
        if not (rules.skip_offline and node.facts.offline) and node.facts.group not in rules.ignored_groups
    ]
    return all(
        can_evacuate(nodes, instances, tuple(one.index for one in lost), cpus=rules.cpus, weights=rules.weights)
        for size in range(1, rules.failures + 1)
        for lost in combinations(examined, size)
        if len({one.group for one in lost}) == 1
    )


def can_evacuate(
    nodes: Nodes, instances: Instances, lost: tuple[int, ...], *, cpus: bool = False, weights: Weights = WEIGHTS
) -> bool:
    """Whether the instances of all of `lost`, nodes of one group, can be kept running elsewhere in the group.

    htools asks this of one node at a time, without `cpus`. A mirrored instance that loses both nodes does not count.
    """
    moved = evacuate(dict(nodes), instances, lost, partial(best_home, weights=weights), cpus=cpus)
    return not any(home is None or isinstance(home, FailReason) for _, home in moved)


def evacuate(
    state: dict[int, Node],
    instances: Instances,
    lost: Sequence[int],
    choose: Callable[[Nodes, Instance, Sequence[int]], int | None] | None = None,
    *,
    cpus: bool = False,
) -> Iterator[tuple[Instance, int | FailReason | None]]:
    """Move the instances of `lost` away within `state`, one by one: mirrored ones, shared ones, then copies.

    Yield each instance before it moves, with its new node, the reason against its fail-over, or None if `choose` (by
    default `best_home`) finds no node. An instance without a new node stays where it is. One that a node lists twice
    (`merge`) moves again, from where it is then (htools, GlobalN1). With `cpus` no node takes an instance beyond its
    vcpu-ratio, which htools does not ask here.
    """
    residents = [number for index in lost for number in state[index].primaries]
    table = {number: instances[number] for number in residents}
    for number in residents:
        instance = table[number]
        if instance.template is DiskTemplate.DRBD and (len(lost) == 1 or instance.secondary not in lost):
            moved = apply_move(state, InstanceMove(MoveKind.FAILOVER, instance), force=True)
            if isinstance(moved, FailReason):
                yield instance, moved
            elif cpus and not keeps_vcpu_ratio(state[instance.secondary], instance):
                yield instance, FailReason.CPU
            else:
                yield instance, instance.secondary
                state.update(moved.changed)
                table[number] = moved.instance

    def turn(number: int) -> tuple[int, int]:
        return (0, 0) if table[number].template.movable_foreign else (1, -table[number].memory)

    others = sorted((one for one in residents if table[one].template is not DiskTemplate.DRBD), key=turn)
    group = state[lost[0]].facts.group
    there = state.items() if others else ()
    escape = [other for other, node in there if node.facts.group == group and other not in lost]
    for number in others:
        instance = table[number]
        allowed = [index for index in escape if keeps_vcpu_ratio(state[index], instance)] if cpus else escape
        home = (choose or best_home)(state, instance, allowed)
        yield instance, home
        if home is not None:
            taken = accepted(add_primary(state[home], instance, force=True))
            left = remove_primary(state[instance.primary], instance) if instance.template.movable_foreign else None
            state[home] = taken
            if left is not None:  # if the instance is at home already, it comes off its node
                state[instance.primary] = left
                table[number] = replace(instance, primary=home)


def best_home(state: Nodes, instance: Instance, escape: Sequence[int], weights: Weights = WEIGHTS) -> int | None:
    """Return the node of `escape` for the instance or a copy of it; None if none takes it."""
    if not instance.template.movable_foreign:
        homes = SingleCandidates(tuple(escape))
        solution = try_allocate(state, instance, homes, force=True, weights=weights).solution
        return None if solution is None else solution.nodes[0]
    best = None
    best_score = 0.0
    group = state[instance.primary].facts.group
    for target in escape:
        moved = apply_move(state, InstanceMove(MoveKind.FAILOVER_TO, instance, target), force=True)
        if isinstance(moved, FailReason):
            continue
        after = (moved.changed.get(index, node) for index, node in state.items() if node.facts.group == group)
        total = cluster_score(after, weights)
        if best is None or not best_score < total:
            best, best_score = target, total
    return best


def redundancy_predicate(
    nodes: Nodes, instances: Instances, rules: CapacityRules, test: RedundancyTest = is_redundant
) -> Predicate:
    """Return the test of the state after a placement, by `test` (`is_redundant`, or another one that equals it).

    The new instance gets the number after the last of `instances`; node lists that hold a negative
    number (an instance without an index of its own) refer to it.
    """
    number = len(instances)

    def satisfied(placement: Placement) -> bool:
        changed = {node.index: numbered(node, number) for node in placement.changed}
        return test({**nodes, **changed}, {**instances, number: placement.instance}, rules)

    return satisfied


def numbered(node: Node, number: int) -> Node:
    """Return `node` with every negative entry of its instance lists replaced by `number`."""
    if all(entry >= 0 for entry in (*node.primaries, *node.secondaries)):
        return node
    new = node.copy()
    new.primaries = tuple(number if entry < 0 else entry for entry in node.primaries)
    new.secondaries = tuple(number if entry < 0 else entry for entry in node.secondaries)
    return new
