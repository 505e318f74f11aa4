"""Moving existing instances away: relocate, node-evacuate, change-group.

Candidates are scored by a full computation over the nodes of the target group; of equal scores the later candidate
wins. Instance policies, allocation policies and N+1 are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, FailReason
from gpolicy.allocator.group_choice import RequestError, Wanted, choose_group, search_ordinary
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move, node_at
from gpolicy.allocator.native.library import Leaving, Unlisted
from gpolicy.allocator.native.streams import UnfitError

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Group, Instance
    from gpolicy.allocator.group_choice import RequestOptions
    from gpolicy.allocator.placement import Nodes


class EvacuationMode(Enum):
    """The nodes that an instance has to leave."""

    PRIMARY = "primary-only"
    SECONDARY = "secondary-only"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Evacuated:
    """A moved instance: the state after it, its record, and the moves in order."""

    nodes: Nodes
    instance: Instance
    moves: tuple[InstanceMove, ...]


@dataclass(frozen=True, slots=True)
class EvacuationResult:
    """The results for all instances, in the order of the request."""

    moved: tuple[tuple[Instance, int, tuple[int, ...], tuple[InstanceMove, ...]], ...]
    failed: tuple[tuple[Instance, str], ...]
    nodes: Nodes
    instances: Mapping[int, Instance]


class EvacuationError(RequestError):
    """An instance cannot be moved; the message says why."""


def evacuate(
    nodes: Nodes,
    instance: Instance,
    mode: EvacuationMode,
    group: int,
    candidates: Sequence[int],
    *,
    force: bool,
    engine: Narrowing,
) -> Evacuated:
    """Move one instance, with `candidates` (ascending) as possible new nodes in `group`.

    `force` ignores soft limits. `engine` narrows the candidates, one move after the other. Raises EvacuationError.
    """
    template = instance.template
    mirrored = template is DiskTemplate.DRBD
    if not mirrored and not template.externally_mirrored:
        raise EvacuationError(f"Instances of type {template.value} cannot be relocated")
    if not mirrored and mode is EvacuationMode.SECONDARY:
        raise EvacuationError(f"Instances with disk template '{template.value}' can't execute change secondary")
    candidates = engine.narrow(nodes, instance, mode, candidates, force=force)
    if not mirrored:
        return _one_node(nodes, instance, group, candidates, MoveKind.FAILOVER_TO, force=force)
    if mode is EvacuationMode.PRIMARY:
        return _move(Evacuated(nodes, instance, ()), MoveKind.FAILOVER, NO_NODE, "", force=force)
    if mode is EvacuationMode.SECONDARY:
        return _one_node(nodes, instance, group, candidates, MoveKind.REPLACE_SECONDARY, force=force)
    return _two_nodes(nodes, instance, group, candidates, force=force)


class Narrowing:
    """Finds the best move of each instance in turn with the compiled engine, so that the law tries few candidates.

    Without an engine, or if it cannot answer, the law tries all candidates.
    """

    def __init__(self, nodes: Nodes, instances: Mapping[int, Instance]) -> None:
        """Begin with the state before the first move."""
        self._engine = engine_cluster(nodes, instances)

    def narrow(
        self, nodes: Nodes, instance: Instance, mode: EvacuationMode, candidates: Sequence[int], *, force: bool
    ) -> Sequence[int]:
        """Return the candidates of the best move or, if there is none, those that the error message names."""
        if self._engine is None:
            return candidates
        mirrored = instance.template is DiskTemplate.DRBD
        try:
            found = self._engine.move(instance, _LEAVING[mode], _unlisted(nodes, instance), candidates, force=force)
        except UnfitError:
            self._engine = None
            return candidates
        if found:
            return [node for node in candidates if node in found]
        # the message names the last pair that failed, or each single node
        return candidates[-2:] if mirrored and mode is EvacuationMode.ALL else candidates


def _unlisted(nodes: Nodes, instance: Instance) -> Unlisted:
    """Return the nodes of a record that do not list it: an instance named twice moves again by its old record."""
    primary, secondary = nodes[instance.primary], nodes.get(instance.secondary)
    result = Unlisted(0)
    if instance.index not in primary.primaries:
        result |= Unlisted.PRIMARY
    if secondary is not None and instance.index not in secondary.secondaries:
        result |= Unlisted.SECONDARY
    return result


_LEAVING = {
    EvacuationMode.PRIMARY: Leaving.PRIMARY,
    EvacuationMode.SECONDARY: Leaving.SECONDARY,
    EvacuationMode.ALL: Leaving.BOTH,
}


def evacuate_nodes(
    nodes: Nodes,
    instances: Mapping[int, Instance],
    mode: EvacuationMode,
    wanted: Sequence[int],
    *,
    force: bool,
) -> EvacuationResult:
    """Move each of the instances `wanted` away from its node(s) within its group."""
    leaving = {index for index, node in nodes.items() if node.facts.offline}
    for index in wanted:
        instance = instances[index]
        if mode is not EvacuationMode.SECONDARY:
            leaving.add(instance.primary)
        if mode is not EvacuationMode.PRIMARY and instance.template is DiskTemplate.DRBD:
            leaving.add(instance.secondary)

    engine = Narrowing(nodes, instances)

    def go(state: Nodes, _table: Mapping[int, Instance], instance: Instance) -> Evacuated:
        group = nodes[instance.primary].facts.group
        candidates = [
            index
            for index, node in state.items()
            if node.facts.group == group and index not in leaving and index != instance.primary
        ]
        return evacuate(state, instance, mode, group, candidates, force=force, engine=engine)

    return _each(nodes, instances, wanted, go)


def relocate(
    nodes: Nodes,
    instances: Mapping[int, Instance],
    index: int,
    required_nodes: int,
    leaving: Sequence[int],
    *,
    force: bool,
) -> tuple[Evacuated, int]:
    """Move one instance from the node `leaving`; return the state and its new node.

    Raises RequestError.
    """
    instance = instances[index]
    if required_nodes != 1:
        raise RequestError(f"Exchange {required_nodes} nodes mode is not implemented")
    mirrored = instance.template is DiskTemplate.DRBD
    if not mirrored and not instance.template.externally_mirrored:
        raise RequestError("Can't relocate non-mirrored instances")
    role, node = ("secondary", instance.secondary) if mirrored else ("primary", instance.primary)
    if list(leaving) != [node]:
        raise RequestError(
            f"Unsupported request: excluded nodes not equal to instance's {role}({node} versus"
            f" [{','.join(map(str, leaving))}])"
        )
    mode = EvacuationMode.SECONDARY if mirrored else EvacuationMode.PRIMARY
    result = evacuate_nodes(nodes, instances, mode, [index], force=force)
    if result.failed:
        raise RequestError(result.failed[0][1])
    _, _, new_nodes, moves = result.moved[0]
    done = Evacuated(result.nodes, result.instances[index], moves)
    return done, new_nodes[-1]


def change_group(
    groups: Mapping[int, Group],
    nodes: Nodes,
    instances: Mapping[int, Instance],
    wanted: Sequence[int],
    targets: Sequence[int],
    options: RequestOptions,
    *,
    show_groups: Callable[[Sequence[Group]], str],
) -> EvacuationResult:
    """Move each of the instances `wanted` to one of the groups `targets` (empty: any other group).

    The group is chosen by placing a second copy of the instance, which is then dropped.
    """
    allowed = list(targets) if targets else list(groups)
    for number in dict.fromkeys(nodes[instances[index].primary].facts.group for index in wanted):
        if number in allowed:
            allowed.remove(number)

    engine = Narrowing(nodes, instances)

    def go(state: Nodes, table: Mapping[int, Instance], instance: Instance) -> Evacuated:
        populated = [group for group in groups.values() if any(n.facts.group == group.index for n in state.values())]
        if not any(group.index in allowed for group in populated):
            raise EvacuationError(
                "no groups for evacuation: allowed groups was Just"
                f" [{','.join(map(str, allowed))}], all groups: {show_groups(populated)}"
            )
        count = 2 if instance.template is DiskTemplate.DRBD else 1
        search = partial(search_ordinary, Wanted(instance, count), options)
        answer = choose_group(groups, state, table, instance, search, allowed=allowed)
        if answer.group is None:
            raise EvacuationError(", ".join(answer.messages))
        candidates = [
            index for index, node in state.items() if node.facts.group == answer.group and not node.facts.offline
        ]
        return evacuate(state, instance, EvacuationMode.ALL, answer.group, candidates, force=False, engine=engine)

    return _each(nodes, instances, wanted, go)


def _each(
    nodes: Nodes,
    instances: Mapping[int, Instance],
    wanted: Sequence[int],
    go: Callable[[Nodes, Mapping[int, Instance], Instance], Evacuated],
) -> EvacuationResult:
    """Move instances one after the other, each with its original record."""
    state: Nodes = nodes
    table = dict(instances)
    moved = []
    failed = []
    for index in wanted:
        instance = instances[index]
        try:
            done = go(state, table, instance)
        except RequestError as error:
            failed.append((instance, str(error)))
            continue
        state = done.nodes
        table[index] = done.instance
        new = done.instance
        mirrored = new.template is DiskTemplate.DRBD
        new_nodes = (new.primary, new.secondary) if mirrored else (new.primary,)
        moved.append((instance, nodes[new.primary].facts.group, new_nodes, done.moves))
    return EvacuationResult(tuple(moved), tuple(failed), state, table)


def _group_score(nodes: Nodes, group: int) -> float:
    return cluster_score(node for node in nodes.values() if node.facts.group == group)


def _one_node(
    nodes: Nodes,
    instance: Instance,
    group: int,
    candidates: Sequence[int],
    kind: MoveKind,
    *,
    force: bool,
) -> Evacuated:
    best: Evacuated | None = None
    best_score = 0.0
    reasons = []
    for target in candidates:
        try:
            moved = _move(Evacuated(nodes, instance, ()), kind, target, "", force=force)
        except EvacuationError as failure:
            reasons.append(f" Node {nodes[target].facts.name} failed: {failure};")
            continue
        score = _group_score(moved.nodes, group)
        if best is None or not best_score < score:
            best, best_score = moved, score
    if best is None:
        raise EvacuationError(f"Can't find any good node: {''.join(reasons)}")
    return best


def _two_nodes(nodes: Nodes, instance: Instance, group: int, candidates: Sequence[int], *, force: bool) -> Evacuated:
    best: Evacuated | None = None
    best_score = 0.0
    error = "no nodes available"
    for primary in candidates:
        for secondary in candidates:
            if primary == secondary:
                continue
            try:
                chain = _chain(nodes, instance, primary, secondary, force=force)
            except EvacuationError as failure:
                error = f"Allocation failed: {failure}"
                continue
            score = _group_score(chain.nodes, group)
            if best is None or not best_score < score:
                best, best_score = chain, score
    if best is None:
        raise EvacuationError(f"Can't find any good nodes for relocation: {error}")
    return best


def _chain(nodes: Nodes, instance: Instance, primary: int, secondary: int, *, force: bool) -> Evacuated:
    """Move a mirrored instance to a new pair by three or four moves."""
    state = Evacuated(nodes, instance, ())
    if node_at(nodes, instance.primary).facts.offline:
        state = _move(state, MoveKind.FAILOVER, NO_NODE, "Failing over to the secondary: ", force=force)
    state = _move(state, MoveKind.REPLACE_SECONDARY, primary, "Changing secondary to new primary: ", force=force)
    state = _move(state, MoveKind.FAILOVER, NO_NODE, "Failing over to new primary: ", force=force)
    return _move(state, MoveKind.REPLACE_SECONDARY, secondary, "Changing secondary to final secondary: ", force=force)


def _move(before: Evacuated, kind: MoveKind, target: int, prefix: str, *, force: bool) -> Evacuated:
    """Return the state after one more move. Raises EvacuationError, whose message begins with `prefix`."""
    move = InstanceMove(kind, before.instance, target)
    moved = apply_move(before.nodes, move, force=force)
    if isinstance(moved, FailReason):
        raise EvacuationError(f"{prefix}{moved.title}")
    return Evacuated({**before.nodes, **moved.changed}, moved.instance, (*before.moves, move))
