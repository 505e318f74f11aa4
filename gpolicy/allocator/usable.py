"""The groups that a capacity run may use when nodes fail N+1 already."""

from __future__ import annotations

from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.cluster_data import Group, Instance
    from gpolicy.allocator.node import Node


@dataclass(frozen=True, slots=True)
class Usable:
    """The groups, unusable ones as unallocable; the rules of the N+1 test; whether allocation is forbidden."""

    groups: Mapping[int, Group]
    rules: CapacityRules
    stopped: bool


def usable_groups(
    groups: Mapping[int, Group],
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    *,
    accept_existing: bool,
    independent: bool,
) -> Usable:
    """Return the usable groups of the initial state (hspace's `--accept-existing-errors`, `--independent-groups`)."""
    bad = tuple(index for index, node in nodes.items() if not node.facts.offline and node.fails_n1)
    rules = CapacityRules(skip_offline=accept_existing)
    result = dict(groups)
    if not accept_existing:
        for index in bad:
            _close(result, nodes[index].facts.group)
    if independent:
        failing = []
        for index in groups:
            members = {key: node for key, node in nodes.items() if node.facts.group == index}
            if not is_redundant(members, instances, rules):
                failing.append(index)
                _close(result, index)
        rules = replace(rules, ignored_groups=frozenset(failing))
    some_open = any(group.alloc_policy is not AllocPolicy.UNALLOCABLE for group in result.values())
    stopped = bool(bad) and not accept_existing and not (independent and some_open)
    return Usable(result, rules, stopped)


def _close(groups: dict[int, Group], index: int) -> None:
    groups[index] = replace(groups[index], alloc_policy=AllocPolicy.UNALLOCABLE)
