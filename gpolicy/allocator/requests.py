"""Answers to allocation requests: one instance, many instances, a secondary for an instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from gpolicy.allocator.cluster_data import Group, Instance
from gpolicy.allocator.dedicated_nodes import is_dedicated, search_dedicated
from gpolicy.allocator.engines import find_placement
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate
from gpolicy.allocator.group_choice import (
    GroupAnswer,
    Search,
    Wanted,
    choose_group,
    describe,
    one_group,
    search_ordinary,
)
from gpolicy.allocator.node_changes import remove_primary
from gpolicy.allocator.placement import Nodes, PairCandidates, Placement
from gpolicy.allocator.redundancy import CapacityRules, Instances, settled
from gpolicy.allocator.request_options import RequestError, RequestOptions
from gpolicy.light_dataclasses import dataclass, replace

Groups = Mapping[int, Group]


@dataclass(frozen=True, slots=True)
class MultiAnswer:
    """The result for each instance of a multi-allocate request, and the state after it."""

    placed: tuple[tuple[Instance, Placement], ...]
    failed: tuple[tuple[Instance, str], ...]
    nodes: Nodes
    instances: Instances


def allocate(
    groups: Groups, nodes: Nodes, instances: Instances, wanted: Wanted, options: RequestOptions
) -> GroupAnswer:
    """Place one instance. An answer without a placement is a failure; other failures raise RequestError."""
    search, dedicated = search_for(groups, nodes, wanted, options)
    return answer(groups, nodes, instances, wanted, search, dedicated=dedicated)


def allocate_many(
    groups: Groups, nodes: Nodes, instances: Instances, wanted: Sequence[Wanted], options: RequestOptions
) -> MultiAnswer:
    """Place instances one after the other. Raises RequestError if the whole request fails."""
    dedicated = is_dedicated(groups, nodes, [item.group_name for item in wanted])
    state, table = nodes, dict(instances)
    placed, failed = [], []
    for item in wanted:
        # on dedicated nodes htools solves each request for one group on the initial state
        anew = dedicated and item.group_name is not None
        solved_on = (nodes, instances) if anew else (state, table)
        search = partial(search_dedicated if dedicated else search_ordinary, item, options)
        found = answer(groups, *solved_on, item, search, dedicated=dedicated)
        if found.placement is None:
            if item.group_name is None:
                raise RequestError(", ".join(found.messages))
            text = found.messages[0]
            failed.append((item.instance, text.partition("): ")[2] if dedicated else ", ".join(found.messages)))
            continue
        placed.append((item.instance, found.placement))
        number = len(table)
        changed = {node.index: settled(node, number) for node in found.placement.changed}
        narrow = dedicated or item.group_name is not None
        state = {
            index: changed.get(index, node)
            for index, node in solved_on[0].items()
            if not narrow or node.facts.group == found.group
        }
        table[number] = found.placement.instance
    return MultiAnswer(tuple(placed), tuple(failed), state, table)


def allocate_secondary(
    nodes: Nodes, instances: Instances, index: int, options: RequestOptions
) -> tuple[Placement, str]:
    """Find a secondary for an instance that becomes a mirrored one; return the placement and a message.

    Raises RequestError.
    """
    instance = instances[index]
    if instance.secondary != NO_NODE:
        raise RequestError("Instance already has a secondary")
    primary = remove_primary(nodes[instance.primary], instance)
    state = {**nodes, instance.primary: primary}
    others = tuple(
        other for other, node in state.items() if node.facts.group == primary.facts.group and other != instance.primary
    )
    trial = replace(instance, template=DiskTemplate.DRBD)
    candidates = PairCandidates(((instance.primary, others),))
    rules = CapacityRules(failures=int(options.capacity_checks), force=options.ignore_soft_errors)
    attempt = find_placement(state, instances, trial, candidates, rules)
    if attempt.solution is None:
        raise RequestError(describe(attempt, state))
    return attempt.solution, describe(attempt, state)


def search_for(groups: Groups, nodes: Nodes, wanted: Wanted, options: RequestOptions) -> tuple[Search, bool]:
    """Return what tries `wanted` on nodes, and whether it does so by the dedicated metric instead of the score."""
    dedicated = is_dedicated(groups, nodes, [wanted.group_name])
    return partial(search_dedicated if dedicated else search_ordinary, wanted, options), dedicated


def answer(
    groups: Groups, nodes: Nodes, instances: Instances, wanted: Wanted, search: Search, *, dedicated: bool
) -> GroupAnswer:
    """Answer by `search`, in the group that is asked for or in the best one. Raises RequestError."""
    if wanted.group_name is None:
        separate = not dedicated
        return choose_group(groups, nodes, instances, wanted.instance, search, separate_network_messages=separate)
    return one_group(groups, wanted.group_name, nodes, instances, wanted.instance, search)
