"""Balancing a group of nodes, as hbal does: one move after the other, each the best for the cluster score.

A move is judged by the full score of all nodes after it; of equal scores the earlier candidate wins. Instance policies
and N+1 of the whole cluster are not checked, only what each node takes (`gpolicy.allocator.node_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance
from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move
from gpolicy.allocator.native.library import MoveRules
from gpolicy.allocator.native.streams import UnfitError
from gpolicy.allocator.node_changes import accepted
from gpolicy.allocator.placement import Nodes
from gpolicy.allocator.redundancy import Instances
from gpolicy.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop.

    After `limit` moves; at most `min_score` above the `optimum`; or when a move from a score of at most
    `min_gain_limit` gains less than `min_gain`.
    """

    optimum: float
    limit: int | None = None
    min_score: float = 1e-9
    min_gain: float = 0.01
    min_gain_limit: float = 0.1


@dataclass(frozen=True, slots=True)
class Balanced:
    """A move, and the score, instance, nodes and instances after it."""

    move: InstanceMove
    score: float
    instance: Instance
    nodes: Nodes
    instances: Instances


FindMove = Callable[[Nodes, Instances, float], tuple[InstanceMove, float] | None]
"""Finds the best move from a state with its score, and the score after it; None if no move improves the score."""


def balance(nodes: Nodes, instances: Instances, rules: MoveRules, goal: Goal, search: FindMove) -> Iterator[Balanced]:
    """Yield one move after the other, until the goal is reached or no move is worth it."""
    score, count = cluster_score(nodes.values()), 0
    enough = goal.optimum + goal.min_score
    while (goal.limit is None or count < goal.limit) and score > enough:
        found = search(nodes, instances, score)
        if found is None:
            return
        move, after = found
        if not (score > goal.min_gain_limit or score - after >= goal.min_gain):
            return
        moved = accepted(apply_move(nodes, move, force=MoveRules.FORCE in rules))
        nodes = {**nodes, **moved.changed}
        instances = {**instances, move.instance.index: moved.instance}
        score, count = cluster_score(nodes.values()), count + 1
        if score != after:
            raise AssertionError(f"the engine and the node model disagree on a score: {after!r}, {score!r}")
        yield Balanced(move, score, moved.instance, nodes, instances)


def law_search(movable: Sequence[int], rules: MoveRules) -> FindMove:
    """Return the search that scores the state after each possible move of the instances `movable` (ascending)."""

    def search(nodes: Nodes, instances: Instances, score: float) -> tuple[InstanceMove, float] | None:
        best: tuple[InstanceMove, float] | None = None
        least = score
        for number in movable:
            for move in possible_moves(nodes, instances[number], rules):
                moved = apply_move(nodes, move, force=MoveRules.FORCE in rules)
                if isinstance(moved, FailReason):
                    continue
                after = cluster_score(moved.changed.get(index, node) for index, node in nodes.items())
                if least > after:
                    best, least = (move, after), after
        return best

    return search


def engine_search(nodes: Nodes, instances: Instances, movable: Sequence[int], rules: MoveRules) -> FindMove:
    """Return the search by the compiled engine, which keeps the state after each move that it finds.

    It begins with the state before the first move of the instances `movable` (ascending); each call is about the state
    after the last move. The law searches if there is no engine or it cannot answer.
    """
    law, engine = law_search(movable, rules), engine_cluster(nodes, instances)

    def search(nodes: Nodes, instances: Instances, score: float) -> tuple[InstanceMove, float] | None:
        nonlocal engine
        try:
            if engine is not None:
                return engine.balance(instances, movable, rules)
        except UnfitError:
            engine = None
        return law(nodes, instances, score)

    return search


def possible_moves(nodes: Nodes, instance: Instance, rules: MoveRules) -> Iterator[InstanceMove]:
    """Yield the moves of an instance that the rules allow, in the order in which they are tried."""
    primary, secondary = nodes[instance.primary], nodes.get(instance.secondary)
    mirrored = instance.template is DiskTemplate.DRBD
    instance_moves, disk_moves = MoveRules.NO_INSTANCE_MOVES not in rules, MoveRules.NO_DISK_MOVES not in rules
    offline, secondary_offline = primary.facts.offline, secondary is not None and secondary.facts.offline
    if MoveRules.EVACUATION in rules and not (offline or (mirrored and secondary_offline)):
        return
    if not mirrored and not instance_moves:
        return
    fails_over = mirrored and secondary is not None and not secondary_offline and instance_moves
    if fails_over:
        yield InstanceMove(MoveKind.FAILOVER, instance)
    if mirrored and not disk_moves:
        return
    kinds = _replacements(rules, fails_over=fails_over, offline=offline) if mirrored else [MoveKind.FAILOVER_TO]
    for target, node in nodes.items():
        if not node.facts.offline and target not in {instance.primary, instance.secondary}:
            yield from (InstanceMove(kind, instance, target) for kind in kinds)


def _replacements(rules: MoveRules, *, fails_over: bool, offline: bool) -> list[MoveKind]:
    """Return the kinds of moves that change the disks of a mirrored instance, whose primary may be `offline`."""
    kinds, restricted = [MoveKind.REPLACE_SECONDARY], MoveRules.RESTRICTED_MIGRATION in rules
    if MoveRules.NO_INSTANCE_MOVES in rules or (restricted and not offline):
        return kinds
    kinds.append(MoveKind.REPLACE_AND_FAILOVER)
    if fails_over and not restricted:
        kinds.append(MoveKind.REPLACE_PRIMARY)
    if fails_over:
        kinds.append(MoveKind.FAILOVER_AND_REPLACE)
    return kinds
