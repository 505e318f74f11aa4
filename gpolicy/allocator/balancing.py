"""Balancing a group of nodes, as hbal does: one move after the other, each the best for the cluster score.

A step is judged by the full score of all nodes after it; of equal scores the earlier candidate wins. Instance policies
and N+1 of the whole cluster are not checked, only what each node takes (`gpolicy.allocator.node_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, FailReason
from gpolicy.allocator.instance_moves import (
    Moved,
    failover,
    failover_and_replace,
    failover_to,
    replace_and_failover,
    replace_primary,
    replace_secondary,
)
from gpolicy.allocator.native.library import StepRule
from gpolicy.allocator.native.streams import UnfitError

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.placement import Nodes


class StepKind(IntEnum):
    """The kinds of steps (`enum step_kind` of balancing.h)."""

    FAILOVER = 0
    FAILOVER_TO = 1
    REPLACE_SECONDARY = 2
    REPLACE_AND_FAILOVER = 3
    REPLACE_PRIMARY = 4
    FAILOVER_AND_REPLACE = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one instance (its record before the step); `target` is the new node, NO_NODE for a fail-over."""

    kind: StepKind
    instance: Instance
    target: int = NO_NODE


@dataclass(frozen=True, slots=True)
class StepRules:
    """Which steps may be taken.

    Without `disk_moves` mirrored instances only fail over; without `instance_moves` no primary changes. `evacuation`
    moves only instances on offline nodes, `restricted_migration` lets no instance that runs on an online node migrate
    with a change of its disks, and `force` ignores soft limits.
    """

    disk_moves: bool = True
    instance_moves: bool = True
    evacuation: bool = False
    restricted_migration: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop.

    After `limit` steps; at most `min_score` above the `optimum`; or when a step from a score of at most
    `min_gain_limit` gains less than `min_gain`.
    """

    optimum: float
    limit: int | None = None
    min_score: float = 1e-9
    min_gain: float = 0.01
    min_gain_limit: float = 0.1


@dataclass(frozen=True, slots=True)
class Balanced:
    """A step, and the score, nodes and instances after it."""

    step: Step
    score: float
    instance: Instance
    nodes: Nodes
    instances: Mapping[int, Instance]


Search = Callable[["Nodes", Mapping[int, "Instance"], float], "tuple[Step, float] | None"]
"""Finds the best step from a state with its score, and the score after it; None if no step improves the score."""


def is_split(instance: Instance, nodes: Nodes) -> bool:
    """Whether the two nodes of the instance are in two groups; such an instance stays where it is."""
    primary, secondary = nodes.get(instance.primary), nodes.get(instance.secondary)
    return primary is not None and secondary is not None and primary.facts.group != secondary.facts.group


def balance(
    nodes: Nodes, instances: Mapping[int, Instance], rules: StepRules, goal: Goal, search: Search
) -> Iterator[Balanced]:
    """Yield one step after the other, until the goal is reached or no step is worth it."""
    score, steps = cluster_score(nodes.values()), 0
    enough = goal.optimum + goal.min_score
    while (goal.limit is None or steps < goal.limit) and score > enough:
        found = search(nodes, instances, score)
        if found is None:
            return
        step, after = found
        if not (score > goal.min_gain_limit or score - after >= goal.min_gain):
            return
        moved = moved_by(nodes, step, force=rules.force)
        if isinstance(moved, FailReason):
            raise AssertionError(f"the engine and the node model disagree: {moved.title}")  # noqa: TRY004 - no wrong type
        nodes = {**nodes, **moved.changed}
        instances = {**instances, step.instance.index: moved.instance}
        score, steps = cluster_score(nodes.values()), steps + 1
        if score != after:
            raise AssertionError(f"the engine and the node model disagree on a score: {after!r}, {score!r}")
        yield Balanced(step, score, moved.instance, nodes, instances)


def law_search(movable: Sequence[int], rules: StepRules) -> Search:
    """Return the search that scores the state after each possible step of the instances `movable` (ascending)."""

    def search(nodes: Nodes, instances: Mapping[int, Instance], score: float) -> tuple[Step, float] | None:
        best: tuple[Step, float] | None = None
        least = score
        for number in movable:
            for step in possible_steps(nodes, instances[number], rules):
                moved = moved_by(nodes, step, force=rules.force)
                if isinstance(moved, FailReason):
                    continue
                after = cluster_score(moved.changed.get(index, node) for index, node in nodes.items())
                if least > after:
                    best, least = (step, after), after
        return best

    return search


class EngineSearch:
    """The search by the compiled engine, which keeps the state after each step that it finds.

    The law searches if there is no engine or it cannot answer.
    """

    def __init__(
        self, nodes: Nodes, instances: Mapping[int, Instance], movable: Sequence[int], rules: StepRules
    ) -> None:
        """Begin with the state before the first step of the instances `movable` (ascending)."""
        self._rules = _numbered(rules)
        self._movable = movable
        self._law = law_search(movable, rules)
        self._engine = engine_cluster(nodes, instances)

    def __call__(self, nodes: Nodes, instances: Mapping[int, Instance], score: float) -> tuple[Step, float] | None:
        """Return the best step from a state: the first one, or the state after the last step."""
        if self._engine is None:
            return self._law(nodes, instances, score)
        try:
            found = self._engine.balance(self._movable, self._rules)
        except UnfitError:
            self._engine = None
            return self._law(nodes, instances, score)
        if found is None:
            return None
        number, kind, target, after = found
        return Step(StepKind(kind), instances[number], target), after


def _numbered(rules: StepRules) -> StepRule:
    given = (
        (not rules.disk_moves, StepRule.NO_DISK_MOVES),
        (not rules.instance_moves, StepRule.NO_INSTANCE_MOVES),
        (rules.evacuation, StepRule.EVACUATION),
        (rules.restricted_migration, StepRule.RESTRICTED),
        (rules.force, StepRule.FORCE),
    )
    return StepRule(sum(rule for wanted, rule in given if wanted))


def possible_steps(nodes: Nodes, instance: Instance, rules: StepRules) -> Iterator[Step]:
    """Yield the steps of an instance that the rules allow, in the order in which they are tried."""
    primary, secondary = nodes[instance.primary], nodes.get(instance.secondary)
    mirrored = instance.template is DiskTemplate.DRBD
    if rules.evacuation and not (primary.facts.offline or (mirrored and secondary and secondary.facts.offline)):
        return
    if not mirrored and not rules.instance_moves:
        return
    fails_over = mirrored and secondary is not None and not secondary.facts.offline and rules.instance_moves
    if fails_over:
        yield Step(StepKind.FAILOVER, instance)
    if mirrored and not rules.disk_moves:
        return
    kinds = [StepKind.FAILOVER_TO]
    if mirrored:
        kinds = _replacements(rules, fails_over=fails_over, offline=primary.facts.offline)
    for target, node in nodes.items():
        if not node.facts.offline and target not in {instance.primary, instance.secondary}:
            for kind in kinds:
                yield Step(kind, instance, target)


def _replacements(rules: StepRules, *, fails_over: bool, offline: bool) -> list[StepKind]:
    """Return the kinds of steps that change the disks of a mirrored instance, whose primary may be `offline`."""
    kinds = [StepKind.REPLACE_SECONDARY]
    if not rules.instance_moves or (rules.restricted_migration and not offline):
        return kinds
    kinds.append(StepKind.REPLACE_AND_FAILOVER)
    if fails_over and not rules.restricted_migration:
        kinds.append(StepKind.REPLACE_PRIMARY)
    if fails_over:
        kinds.append(StepKind.FAILOVER_AND_REPLACE)
    return kinds


def moved_by(nodes: Nodes, step: Step, *, force: bool) -> Moved | FailReason:
    """Return the changed nodes and the instance after a step, or the first reason against it."""
    if step.kind is StepKind.FAILOVER:
        return failover(nodes, step.instance, force=force)
    return _MOVES[step.kind](nodes, step.instance, step.target, force=force)


_MOVES: Mapping[StepKind, Callable[..., Moved | FailReason]] = {
    StepKind.FAILOVER_TO: failover_to,
    StepKind.REPLACE_SECONDARY: replace_secondary,
    StepKind.REPLACE_AND_FAILOVER: replace_and_failover,
    StepKind.REPLACE_PRIMARY: replace_primary,
    StepKind.FAILOVER_AND_REPLACE: failover_and_replace,
}
