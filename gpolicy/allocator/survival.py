"""Whether a cluster survives the loss of several nodes at once (`max_node_failures`).

Source: Ganeti design document "Resource model", which asks for a configurable number of node failures;
htools knows one only (`gpolicy.allocator.redundancy`, with which this agrees for one failure). A mirrored
instance whose two nodes fail together is lost whatever room there is, so it is not counted: the
question here is whether everything that can be restarted finds room.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from gpolicy.allocator.kinds import DiskTemplate, FailReason
from gpolicy.allocator.moves import failover
from gpolicy.allocator.placement import SingleCandidates, try_allocate
from gpolicy.allocator.redundancy import can_evacuate, move_foreign
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.allocator.placement import Nodes
    from gpolicy.allocator.redundancy import CapacityRules, Instances

MOST_CASES = 20000
"""How many sets of failing nodes are looked at before the question is refused."""


def survives(nodes: Nodes, instances: Instances, rules: CapacityRules, failures: int) -> bool:
    """Whether any `failures` nodes of one group, and any fewer, can fail at the same time.

    Raises InputError for a negative number, or where there are too many sets of nodes to look at.
    """
    if failures < 0:
        raise InputError(f"the number of node failures to survive is {failures}, which is less than 0")
    groups: dict[int, list[int]] = {}
    for index, node in nodes.items():
        skipped = rules.skip_offline and node.facts.offline
        if not skipped and node.facts.group not in rules.ignored_groups:
            groups.setdefault(node.facts.group, []).append(index)
    cases = sum(comb(len(members), size) for members in groups.values() for size in range(1, failures + 1))
    if cases > MOST_CASES:
        raise InputError(
            f"surviving {failures} failures means looking at {cases} sets of nodes, at most {MOST_CASES} are",
            hint="ask for fewer failures, or for one group at a time",
        )
    return all(
        can_lose(nodes, instances, lost)
        for members in groups.values()
        for size in range(1, failures + 1)
        for lost in combinations(members, size)
    )


def can_lose(nodes: Nodes, instances: Instances, lost: tuple[int, ...]) -> bool:
    """Whether the instances of all of `lost`, nodes of one group, can be kept running on the others."""
    if len(lost) == 1:
        return can_evacuate(nodes, instances, lost[0])
    state = dict(nodes)
    group = nodes[lost[0]].facts.group
    escape = [index for index, node in nodes.items() if node.facts.group == group and index not in lost]
    residents = [instances[number] for index in lost for number in nodes[index].primaries]
    for instance in residents:
        if instance.template is DiskTemplate.DRBD and instance.secondary not in lost:
            moved = failover(state, instance, force=True)
            if isinstance(moved, FailReason):
                return False
            state.update(moved.changed)
    for instance in residents:
        if instance.template.movable_foreign and not move_foreign(state, instance, escape, group):
            return False
    rest = [
        instance
        for instance in residents
        if instance.template is not DiskTemplate.DRBD and not instance.template.movable_foreign
    ]
    for instance in sorted(rest, key=lambda item: -item.memory):
        if not escape:
            return False
        attempt = try_allocate(state, instance, SingleCandidates(tuple(escape)), force=True)
        if attempt.solution is None:
            return False
        (new,) = attempt.solution.changed
        state[new.index] = new
    return True
