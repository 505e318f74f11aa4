"""What would make a group accept instances again that takes none, since it cannot absorb the loss of a node.

An instance whose size the policy forbids finds no new home (htools, GlobalN1.hs): at a size that it allows, it may, or
with a policy that allows the size. Where room is missing, another place of an instance may help.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from gpolicy.allocator.balancing import possible_moves
from gpolicy.allocator.cluster_data import ClusterData, Instance, NodeData
from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.enumerations import NO_NODE, FailReason
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move
from gpolicy.allocator.native.library import MoveRules
from gpolicy.allocator.placement import Nodes
from gpolicy.allocator.redundancy import Instances
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.losses import FirstLoss
from gpolicy.analysis.place_instead import nearest_allowed
from gpolicy.analysis.policy_limits import OtherValue, with_value

_MOST_CHANGES: Final = 3
_MOST_WORK: Final = 200_000
"""Moves that are tried at most, times the nodes and instances, which each trial looks at."""
_ANY_MOVE: Final = MoveRules(0)


@dataclass(frozen=True, slots=True)
class Cure:
    """Changes of instances or of the policy, in words, and how many instances of each pair and of the standard size
    then fit."""

    changes: tuple[str, ...]
    fits: tuple[int, ...]
    standard: int


_Changed = tuple[str, CountedCluster]
"""One change in words, and the cluster with it."""


def find_cure(counted: CountedCluster) -> Cure | None:
    """Return a few changes after which the group takes instances, legal sizes first; None if none are found."""
    changes, pairs, std = list[str](), counted.policy.minmax, counted.policy.std
    while (loss := counted.loss) is not None:
        found = next(_changes(counted, loss), None) if len(changes) < _MOST_CHANGES else None
        if found is None:
            return None
        words, counted = found
        changes.append(words)
    fits = tuple(counted.fit_pair(pair).fits for pair in pairs)
    standard = counted.standard(std, std.spindle_use).fits
    return Cure(tuple(changes), fits, standard) if changes and (standard or any(fits)) else None


def _changes(counted: CountedCluster, loss: FirstLoss) -> Iterator[_Changed]:
    """Yield changes that may end a loss, the best first."""
    if loss.homeless.key != Cause.BOUNDS.key:
        yield from _moves(counted, loss)
        return
    item = next(one for one in counted.data.instances if one.name == loss.homeless.instance)
    exclusive = any(node.exclusive_storage for node in counted.data.nodes)
    legal = nearest_allowed(item, counted.policy, exclusive=exclusive)
    if legal is not None:
        new, words = legal
        yield f"{item.name} at {words}", replace(counted, data=_with(counted.data, item, new))
    yield OtherValue(Cause.BOUNDS, None, item).words, with_value(counted, Cause.BOUNDS, item)


def _moves(counted: CountedCluster, loss: FirstLoss) -> Iterator[_Changed]:
    """Yield single moves after which every loss is absorbed."""
    nodes, instances, rules = counted.cluster.nodes, counted.cluster.instances, counted.rules.redundancy
    for move in islice(_possible(nodes, instances, loss), _MOST_WORK // (len(nodes) + len(instances))):
        moved = apply_move(nodes, move, force=False)
        if isinstance(moved, FailReason):
            continue
        old, new = move.instance, moved.instance
        if is_redundant({**nodes, **moved.changed}, {**instances, old.index: new}, rules):
            where = " + ".join(nodes[index].facts.name for index in (new.primary, new.secondary) if index != NO_NODE)
            yield f"{old.name} on {where}", replace(counted, data=_with(counted.data, old, new))


def _possible(nodes: Nodes, instances: Instances, loss: FirstLoss) -> Iterator[InstanceMove]:
    """Yield moves of instances within their group: fail-overs, then other moves, first from the nodes of the loss."""
    movable = [item for item in instances.values() if item.primary in nodes and not item.forthcoming]
    movable.sort(key=lambda item: nodes[item.primary].facts.name not in loss.nodes)
    for fail_over in (True, False):
        for item in movable:
            group = nodes[item.primary].facts.group
            for move in possible_moves(nodes, item, _ANY_MOVE):
                inside = move.target == NO_NODE or nodes[move.target].facts.group == group
                if inside and (move.kind is MoveKind.FAILOVER) is fail_over:
                    yield move
                if fail_over:  # of a mirrored instance, the first possible move
                    break


def _with(data: ClusterData, old: Instance, new: Instance) -> ClusterData:
    """Return `data` with another size of an instance, or on other nodes."""
    nodes = {node.index: node for node in data.nodes}
    for item, sign in ((old, 1), (new, -1)):
        for index in (item.primary, item.secondary):
            if index in nodes:
                nodes[index] = _freed(nodes[index], item, sign, primary=index == item.primary)
    instances = tuple(new if one.index == old.index else one for one in data.instances)
    return replace(data, nodes=tuple(nodes.values()), instances=instances)


def _freed(node: NodeData, item: Instance, sign: int, *, primary: bool) -> NodeData:
    """Return a node with what an instance takes from it given back (`sign` 1), or taken (-1)."""
    memory = item.memory if primary and item.uses_memory else 0
    disk, spindles = (item.disk, item.total_spindles or 0) if item.template.local else (0, 0)
    return replace(
        node,
        free_memory=node.free_memory + sign * memory,
        free_disk=node.free_disk + sign * disk,
        free_spindles=node.free_spindles + sign * spindles,
    )
