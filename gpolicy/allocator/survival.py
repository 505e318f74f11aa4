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

from gpolicy.allocator.redundancy import can_evacuate
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
        can_evacuate(nodes, instances, lost)
        for members in groups.values()
        for size in range(1, failures + 1)
        for lost in combinations(members, size)
    )
