"""The moves of an evacuation as commands, and the candidates of each, explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpolicy.allocator.cluster_data import Group
from gpolicy.allocator.enumerations import NO_NODE, InstanceStatus
from gpolicy.allocator.evacuation import Departure, EvacuationError
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.node import Node
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.refusals import of_move
from gpolicy.ganeti.expressible import check_name

_MIGRATE: Final = ("migrate", "--force", "--allow-failover", "--ignore-hvversions", "--no-runtime-changes")


def steps_of(moves: Sequence[InstanceMove], nodes: Nodes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what each move does, and its command: the opcode that hail gives to Ganeti for it."""
    for move in moves:
        instance = check_name("instance", move.instance.name)
        target = () if move.target == NO_NODE else (check_name("node", nodes[move.target].facts.name),)
        if move.kind is MoveKind.REPLACE_SECONDARY:
            yield "copy disks", ("gnt-instance", "replace-disks", "--new-secondary", *target, instance)
            continue
        to = ("--target-node", *target) if target else ()
        if move.instance.forthcoming:
            yield "fail over", ("gnt-instance", "failover", "--force", *to, instance)
            continue
        running = move.instance.status is InstanceStatus.RUNNING and not nodes[move.instance.primary].facts.offline
        yield "migrate" if running else "fail over", ("gnt-instance", *_MIGRATE, *to, instance)


def copied_by(moves: Sequence[InstanceMove]) -> int:
    """Return the disk (MiB) that the moves copy from node to node; a forthcoming instance has none yet."""
    copies = (move.instance for move in moves if move.kind is MoveKind.REPLACE_SECONDARY)
    return sum(disk.size for instance in copies if not instance.forthcoming for disk in instance.disks)


def touched_by(moves: Sequence[InstanceMove], nodes: Mapping[int, Node]) -> frozenset[str]:
    """Return the names of the nodes that the moves touch."""
    indices = {index for move in moves for index in (move.instance.primary, move.instance.secondary, move.target)}
    return frozenset(nodes[index].facts.name for index in indices - {NO_NODE})


def work_of(asked: Departure) -> int:
    """Return the work of explaining all candidates, in about microseconds."""
    number, group = len(asked.candidates), sum(node.facts.group == asked.group for node in asked.nodes.values())
    return number * (number - 1) * (_CHAIN + group) if asked.by_pairs else number * group


_CHAIN: Final = 200  # microseconds that the moves of one pair take


def explained(asked: Departure, groups: Mapping[int, Group]) -> tuple[Candidate, ...]:
    """Return the candidates of one instance: the possible ones, the best first, then the refused ones."""
    chosen: Candidate | None = None
    possible, refused = [], []
    for where, moved in asked.trials():
        nodes = tuple(asked.nodes[index].facts.name for index in where)
        group = groups[asked.nodes[where[0]].facts.group].name
        if not isinstance(moved, EvacuationError):
            left, score = sum(moved.nodes[index].free_disk for index in where), asked.score(moved)
            possible.append(Candidate(group, nodes, ok=True, score=score, disk_left=left))
            if chosen is None or not (chosen.score or 0.0) < score:  # as hail: of equal ones the later, or NaN
                chosen = possible[-1]
            continue
        assert moved.nodes is not None and moved.refused is not None and moved.reason is not None  # noqa: S101, PT018
        why = of_move(moved.nodes, moved.refused, moved.reason, force=asked.force)
        refused.append(
            Candidate(
                group=group,
                nodes=nodes,
                ok=False,
                reason=why.cause.key,
                explanation=why.cause.sentence,
                detail=why.detail,
                htools_reason=why.reason.title,
            )
        )
    best_first = sorted_by_score(possible[::-1], lambda item: item.score or 0.0)
    best_first.sort(key=lambda item: item is not chosen)
    return (*best_first, *refused)
