"""Moving existing instances: away within their group (relocate, node-evacuate), or to other groups (change-group).

Candidates are scored by a full computation over the nodes of the target group; of equal scores the later candidate
wins. Instance policies, allocation policies and N+1 are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import permutations

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Group, Instance
from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move, node_at
from gpolicy.allocator.request_options import NotGrantedError, RequestOptions
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpolicy.allocator.engines import Narrowing
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.placement import Nodes
    from gpolicy.progress import Stop


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
    """The results for all instances, in the order of the request, and the cluster after them."""

    moved: tuple[tuple[Instance, int, tuple[int, ...], tuple[InstanceMove, ...]], ...]
    failed: tuple[tuple[Instance, str], ...]
    after: Cluster

    @property
    def words(self) -> str:
        """The result as hail says it."""
        return f"{len(self.failed)} instances failed to move and {len(self.moved)} were moved successfully"


class EvacuationError(NotGrantedError):
    """An instance cannot be moved; the message says why.

    `refused` is the move that a reason forbids, and the state in which it does, if it is a single one.
    """

    def __init__(self, message: str, refused: tuple[Nodes, InstanceMove, FailReason] | None = None) -> None:
        super().__init__(message)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Departure:
    """One instance that is to leave its node(s) in the state `nodes`, for nodes of `group`.

    `candidates` (ascending) are the possible new nodes, `force` ignores soft limits.
    """

    nodes: Nodes
    instance: Instance
    mode: EvacuationMode
    group: int
    candidates: Sequence[int]
    force: bool

    @property
    def by_pairs(self) -> bool:
        """Whether a candidate is a new primary and a new secondary."""
        return self.mode is EvacuationMode.ALL and self.instance.template is DiskTemplate.DRBD

    def trials(self) -> Iterator[tuple[tuple[int, ...], Evacuated | EvacuationError]]:
        """Yield each candidate with the state after the moves to it, or why it cannot be."""
        start = Evacuated(self.nodes, self.instance, ())
        for where in self._possible_targets():
            try:
                if self.by_pairs:
                    yield where, _chain(start, *where, force=self.force)
                elif _fails_over(self.mode, self.instance):
                    yield where, _move(start, MoveKind.FAILOVER, NO_NODE, "", force=self.force)
                else:
                    mirrored = self.instance.template is DiskTemplate.DRBD
                    kind = MoveKind.REPLACE_SECONDARY if mirrored else MoveKind.FAILOVER_TO
                    yield where, _move(start, kind, where[0], "", force=self.force)
            except EvacuationError as failure:
                yield where, failure

    def score(self, moved: Evacuated) -> float:
        """Return the score of the group after the moves; the smaller the better."""
        return cluster_score(node for node in moved.nodes.values() if node.facts.group == self.group)

    def _possible_targets(self) -> Iterable[tuple[int, ...]]:
        if self.by_pairs:
            return permutations(self.candidates, 2)
        if _fails_over(self.mode, self.instance):
            return ((self.instance.secondary,),)
        return ((index,) for index in self.candidates)

    def why_none(self, failures: Sequence[tuple[int, EvacuationError]]) -> EvacuationError:
        """Return the error for an instance that no candidate takes, from the last node and the error of each."""
        if _fails_over(self.mode, self.instance):
            return failures[0][1]
        if self.by_pairs:
            last = f"Allocation failed: {failures[-1][1]}" if failures else "no nodes available"
            return EvacuationError(f"Can't find any good nodes for relocation: {last}")
        texts = (f" Node {self.nodes[target].facts.name} failed: {failure};" for target, failure in failures)
        return EvacuationError(f"Can't find any good node: {''.join(texts)}")


Observer = Callable[[Departure], None]
"""Told of each instance of a movable template before it is moved."""


def _evacuate(asked: Departure, engine: Narrowing | None, observer: Observer | None) -> Evacuated:
    """Move one instance to the best of its candidates; of equal ones the later wins.

    `engine` narrows the candidates, one move after the other; None if there is one at most. Raises EvacuationError.
    """
    template = asked.instance.template
    mirrored = template is DiskTemplate.DRBD
    if not mirrored and not template.externally_mirrored:
        raise EvacuationError(f"Instances of type {template.value} cannot be relocated")
    if not mirrored and asked.mode is EvacuationMode.SECONDARY:
        raise EvacuationError(f"Instances with disk template '{template.value}' can't execute change secondary")
    if observer is not None:
        observer(asked)
    return _best(asked if engine is None else replace(asked, candidates=engine.narrow(asked)))


def _best(asked: Departure) -> Evacuated:
    best: Evacuated | None = None
    best_score: float | None = None  # of a single candidate it is not needed
    failures = []
    for where, moved in asked.trials():
        if isinstance(moved, EvacuationError):
            failures.append((where[-1], moved))
        elif best is None:
            best = moved
        else:
            best_score = asked.score(best) if best_score is None else best_score
            score = asked.score(moved)
            if not best_score < score:
                best, best_score = moved, score
    if best is None:
        raise asked.why_none(failures)
    return best


def _fails_over(mode: EvacuationMode, instance: Instance) -> bool:
    """Whether the instance moves to its secondary node, whatever the candidates are."""
    return mode is EvacuationMode.PRIMARY and instance.template is DiskTemplate.DRBD


def evacuate_nodes(
    cluster: Cluster,
    mode: EvacuationMode,
    wanted: Sequence[int],
    *,
    force: bool,
    observer: Observer | None = None,
    stop: Stop | None = None,
) -> EvacuationResult:
    """Move each of the instances `wanted` away from its node(s) within its group; none after a `stop`."""
    nodes, instances = cluster.nodes, cluster.instances
    leaving = {index for index, node in nodes.items() if node.facts.offline}
    for index in wanted:
        instance = instances[index]
        if mode is not EvacuationMode.SECONDARY:
            leaving.add(instance.primary)
        if mode is not EvacuationMode.PRIMARY and instance.template is DiskTemplate.DRBD:
            leaving.add(instance.secondary)

    engine = None
    if not all(_fails_over(mode, instances[index]) for index in wanted):
        from gpolicy.allocator.engines import Narrowing  # noqa: PLC0415 - a fail-over has no choice

        engine = Narrowing(nodes, instances)

    def go(state: Cluster, instance: Instance) -> Evacuated:
        group = nodes[instance.primary].facts.group
        near = [index for index, node in state.nodes.items() if node.facts.group == group]
        candidates = [index for index in near if index not in leaving and index != instance.primary]
        return _evacuate(Departure(state.nodes, instance, mode, group, candidates, force), engine, observer)

    return _each_in_turn(cluster, wanted, go, stop)


def relocate(
    cluster: Cluster, index: int, required_nodes: int, leaving: Sequence[int], *, force: bool
) -> tuple[EvacuationResult, int]:
    """Move one instance from the node `leaving`; return the result and its new node. Raises NotGrantedError."""
    instance = cluster.instances[index]
    if required_nodes != 1:
        raise NotGrantedError(f"Exchange {required_nodes} nodes mode is not implemented")
    mirrored = instance.template is DiskTemplate.DRBD
    if not mirrored and not instance.template.externally_mirrored:
        raise NotGrantedError("Can't relocate non-mirrored instances")
    role, node = ("secondary", instance.secondary) if mirrored else ("primary", instance.primary)
    if list(leaving) != [node]:
        raise NotGrantedError(
            f"Unsupported request: excluded nodes not equal to instance's {role}({node} versus"
            f" [{','.join(map(str, leaving))}])"
        )
    mode = EvacuationMode.SECONDARY if mirrored else EvacuationMode.PRIMARY
    result = evacuate_nodes(cluster, mode, [index], force=force)
    if result.failed:
        raise NotGrantedError(result.failed[0][1])
    _, _, new_nodes, _ = result.moved[0]
    return result, new_nodes[-1]


def change_group(
    cluster: Cluster,
    wanted: Sequence[int],
    targets: Sequence[int],
    options: RequestOptions,
    *,
    show_groups: Callable[[Sequence[Group]], str],
    observer: Observer | None = None,
    stop: Stop | None = None,
) -> EvacuationResult:
    """Move each of the instances `wanted` to one of the groups `targets` (empty: any other group); none after a `stop`.

    The group is chosen by placing a second copy of the instance, which is then dropped.
    """
    from gpolicy.allocator.engines import Narrowing  # noqa: PLC0415 - only what is needed
    from gpolicy.allocator.requests import Wanted, choose_group, search_ordinary  # noqa: PLC0415

    groups, nodes, instances = cluster.groups, cluster.nodes, cluster.instances
    allowed = list(targets) if targets else list(groups)
    for number in dict.fromkeys(nodes[instances[index].primary].facts.group for index in wanted):
        if number in allowed:
            allowed.remove(number)

    engine = Narrowing(nodes, instances)

    def go(state: Cluster, instance: Instance) -> Evacuated:
        used = {node.facts.group for node in state.nodes.values()}
        populated = [group for group in groups.values() if group.index in used]
        if not any(group.index in allowed for group in populated):
            raise EvacuationError(
                "no groups for evacuation: allowed groups was Just"
                f" [{','.join(map(str, allowed))}], all groups: {show_groups(populated)}"
            )
        count = 2 if instance.template is DiskTemplate.DRBD else 1
        search = partial(search_ordinary, Wanted(instance, count), options)
        answer = choose_group(state, instance, search, allowed=allowed)
        if answer.group is None:
            raise EvacuationError(", ".join(answer.messages))
        candidates = [
            index for index, node in state.nodes.items() if node.facts.group == answer.group and not node.facts.offline
        ]
        asked = Departure(state.nodes, instance, EvacuationMode.ALL, answer.group, candidates, force=False)
        return _evacuate(asked, engine, observer)

    return _each_in_turn(cluster, wanted, go, stop)


def _each_in_turn(
    cluster: Cluster, wanted: Sequence[int], go: Callable[[Cluster, Instance], Evacuated], stop: Stop | None
) -> EvacuationResult:
    """Move instances one after the other, each with its original record."""
    table = dict(cluster.instances)
    state = replace(cluster, instances=table)
    moved, failed = [], []
    for index in wanted:
        instance = cluster.instances[index]
        try:
            done = _unless_stopped(stop, partial(go, state, instance))
        except NotGrantedError as error:
            failed.append((instance, str(error)))
            continue
        state, new = replace(state, nodes=done.nodes), done.instance
        table[index] = new
        new_nodes = (new.primary, new.secondary) if new.template is DiskTemplate.DRBD else (new.primary,)
        moved.append((instance, cluster.nodes[new.primary].facts.group, new_nodes, done.moves))
    return EvacuationResult(tuple(moved), tuple(failed), state)


def _unless_stopped(stop: Stop | None, go: Callable[[], Evacuated]) -> Evacuated:
    if stop is None:
        return go()
    from gpolicy.progress import until_stopped  # noqa: PLC0415 (hail never stops)

    with until_stopped():
        stop.spend()
        return go()
    stop.ended = True
    raise EvacuationError("not looked at: the search ended early")


def _chain(state: Evacuated, primary: int, secondary: int, *, force: bool) -> Evacuated:
    """Move a mirrored instance to a new pair by three or four moves."""
    if node_at(state.nodes, state.instance.primary).facts.offline:
        state = _move(state, MoveKind.FAILOVER, NO_NODE, "Failing over to the secondary: ", force=force)
    state = _move(state, MoveKind.REPLACE_SECONDARY, primary, "Changing secondary to new primary: ", force=force)
    state = _move(state, MoveKind.FAILOVER, NO_NODE, "Failing over to new primary: ", force=force)
    return _move(state, MoveKind.REPLACE_SECONDARY, secondary, "Changing secondary to final secondary: ", force=force)


def _move(before: Evacuated, kind: MoveKind, target: int, prefix: str, *, force: bool) -> Evacuated:
    """Return the state after one more move. Raises EvacuationError, whose message begins with `prefix`."""
    move = InstanceMove(kind, before.instance, target)
    moved = apply_move(before.nodes, move, force=force)
    if isinstance(moved, FailReason):
        raise EvacuationError(f"{prefix}{moved.title}", (before.nodes, move, moved))
    return Evacuated({**before.nodes, **moved.changed}, moved.instance, (*before.moves, move))
