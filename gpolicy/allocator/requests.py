"""hail's answers to allocation requests (one instance, many, a secondary), and its choice of a group, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gpolicy.allocator.cluster_data import NO_NODE, AllocPolicy, DiskTemplate, FailReason, Group, Instance
from gpolicy.allocator.engines import find_placement
from gpolicy.allocator.ghc_numbers import fixed, sorted_by_score
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node_changes import remove_primary
from gpolicy.allocator.placement import Attempt, NoCandidatesError, Nodes, PairCandidates, Placement, candidates_among
from gpolicy.allocator.redundancy import CapacityRules, Instances, settled
from gpolicy.allocator.request_options import RequestError, RequestOptions
from gpolicy.light_dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Wanted:
    """An instance to place on `count` nodes (1 or 2), in any group or in the one of `group_name`."""

    instance: Instance
    count: int
    group_name: str | None = None


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The placement, None if there is none, and messages about it: all of hail's, and those on each group by index."""

    placement: Placement | None
    messages: tuple[str, ...]
    group: int | None
    on_groups: Mapping[int, str]


Search = Callable[[Nodes, Instances, Sequence[int]], Attempt]
"""Tries a wanted instance: scope of the scores, instances, candidate nodes."""


def search_ordinary(
    wanted: Wanted, options: RequestOptions, nodes: Nodes, instances: Instances, members: Sequence[int]
) -> Attempt:
    """Try `wanted` on `members`, scored over all of `nodes`."""
    failures, force = int(options.capacity_checks), options.ignore_soft_errors
    rules = CapacityRules(failures=failures, weights=options.weights, force=force)
    candidates = candidates_among(nodes, members, wanted.count, options.restriction)
    return find_placement(nodes, instances, wanted.instance, candidates, rules)


def describe(attempt: Attempt, nodes: Nodes) -> str:
    """Describe the result of an attempt, in htools' words."""
    failures = attempt.failures
    counts = ", ".join(f"{reason.title}: {failures[reason]}" for reason in FailReason if failures[reason])
    if attempt.solution is None:
        return f"No valid allocation solutions, failure reasons: {counts or 'unknown reasons'}"
    names = "/".join(nodes[index].facts.name for index in attempt.solution.nodes)
    lost, left = attempt.solution.lost, attempt.solution.disk_left
    metric = fixed(attempt.solution.score, 8) if lost is None else f"([{','.join(map(str, lost))}],{left})"
    return f"score: {metric}, successes {attempt.successes}, failures {sum(failures)} ({counts}) for node(s) {names}"


def connected(group: Group, instance: Instance) -> bool:
    """Whether the group is connected to every network that the instance needs."""
    return all(network is None or network in group.networks for network in instance.networks)


def choose_group(
    cluster: Cluster,
    instance: Instance,
    search: Search,
    *,
    allowed: Sequence[int] | None = None,
    separate_network_messages: bool = True,
) -> GroupAnswer:
    """Let `search` try every group that has nodes, or only the `allowed` ones, and take the best.

    Preferred groups come before those of last resort, then the metric decides; of equal groups the later one wins.
    Unallocable groups are tried and reported, but never chosen.
    """
    groups, nodes = cluster.groups, cluster.nodes
    members: dict[int, list[int]] = {}
    for index, node in nodes.items():
        members.setdefault(node.facts.group, []).append(index)
    numbers = [index for index in groups if index in members]
    if allowed is not None:
        numbers = [index for index in numbers if index in set(allowed)]
    messages: dict[int, str] = {}
    if separate_network_messages:
        apart = [number for number in numbers if not connected(groups[number], instance)]
        messages = {number: _not_connected(groups[number], instance) for number in apart}
    valid: list[tuple[int, Attempt]] = []
    for number in [number for number in numbers if number not in messages]:
        group = groups[number]
        if not connected(group, instance):
            messages[number] = f"Group {group.name}: error The {_not_connected(group, instance)}"
            continue
        try:
            attempt = search(nodes, cluster.instances, members[number])
        except NoCandidatesError as error:
            messages[number] = f"Group {group.name}: error {error}"
            continue
        messages[number] = f"Group {group.name} ({group.alloc_policy.value}): {describe(attempt, nodes)}"
        if attempt.solution is not None and group.alloc_policy is not AllocPolicy.UNALLOCABLE:
            valid.append((number, attempt))
    best = _best(groups, valid)
    if best is None:
        return GroupAnswer(None, tuple(messages.values()), None, messages)
    number, attempt = best
    heading = f"Selected group: {groups[number].name}"
    return GroupAnswer(attempt.solution, (heading, *messages.values()), number, messages)


def one_group(cluster: Cluster, name: str, instance: Instance, search: Search) -> GroupAnswer:
    """Try the only group with this name or uuid; only its nodes and the instances on them count.

    Raises RequestError if there is none, or it is not connected to the instance's networks or has no usable node.
    """
    found = [group for group in cluster.groups.values() if name in {group.name, group.uuid}]
    if len(found) != 1:
        raise RequestError(f"Wrong number of elems found with name {name}")
    group = found[0]
    if not connected(group, instance):
        raise RequestError(f"The {_not_connected(group, instance)}")
    scope = {index: node for index, node in cluster.nodes.items() if node.facts.group == group.index}
    residents = {key: item for key, item in cluster.instances.items() if item.primary in scope}
    try:
        attempt = search(scope, residents, list(scope))
    except NoCandidatesError as error:
        raise RequestError(str(error)) from None
    message = f"Group {group.name} ({group.alloc_policy.value}): {describe(attempt, cluster.nodes)}"
    return GroupAnswer(attempt.solution, (message,), group.index, {group.index: message})


def _not_connected(group: Group, instance: Instance) -> str:
    return f"group {group.name} is not connected to a network required by instance {instance.name}"


def _best(groups: Mapping[int, Group], valid: list[tuple[int, Attempt]]) -> tuple[int, Attempt] | None:
    """Return the best by preference, then by metric; of equal groups the later one wins (htools, Cluster)."""
    for policy in (AllocPolicy.PREFERRED, AllocPolicy.LAST_RESORT):
        same = [(item, item[1].solution) for item in reversed(valid) if groups[item[0]].alloc_policy is policy]
        known = [(item, solution) for item, solution in same if solution is not None]
        if known and all(solution.lost is None for _, solution in known):
            return sorted_by_score(known, lambda pair: pair[1].score)[0][0]
        if known:
            return min(known, key=lambda pair: pair[1].metric)[0]
    return None


@dataclass(frozen=True, slots=True)
class MultiAnswer:
    """The result for each instance of a multi-allocate request, and the state after it."""

    placed: tuple[tuple[Instance, Placement], ...]
    failed: tuple[tuple[Instance, str], ...]
    after: Cluster


def allocate(cluster: Cluster, wanted: Wanted, options: RequestOptions) -> GroupAnswer:
    """Place one instance. An answer without a placement is a failure; other failures raise RequestError."""
    search, dedicated = search_for(cluster, wanted, options)
    return answer(cluster, wanted, search, dedicated=dedicated)


def allocate_many(cluster: Cluster, wanted: Sequence[Wanted], options: RequestOptions) -> MultiAnswer:
    """Place instances one after the other. Raises RequestError if the whole request fails."""
    from gpolicy.allocator.dedicated_nodes import is_dedicated, search_dedicated  # noqa: PLC0415 - only what is needed

    dedicated = is_dedicated(cluster, [item.group_name for item in wanted])
    table = dict(cluster.instances)
    state = replace(cluster, instances=table)
    placed, failed = [], []
    for item in wanted:
        # on dedicated nodes htools solves each request for one group on the initial state
        anew = dedicated and item.group_name is not None
        solved_on = cluster if anew else state
        search = partial(search_dedicated if dedicated else search_ordinary, item, options)
        found = answer(solved_on, item, search, dedicated=dedicated)
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
        nodes = {
            index: changed.get(index, node)
            for index, node in solved_on.nodes.items()
            if not narrow or node.facts.group == found.group
        }
        table[number] = found.placement.instance
        state = replace(state, nodes=nodes)
    return MultiAnswer(tuple(placed), tuple(failed), state)


def allocate_secondary(cluster: Cluster, index: int, options: RequestOptions) -> tuple[Placement, str]:
    """Find a secondary for an instance that becomes a mirrored one; return the placement and a message.

    Raises RequestError.
    """
    nodes, instances = cluster.nodes, cluster.instances
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


def search_for(cluster: Cluster, wanted: Wanted, options: RequestOptions) -> tuple[Search, bool]:
    """Return what tries `wanted` on nodes, and whether it does so by the dedicated metric instead of the score."""
    from gpolicy.allocator.dedicated_nodes import is_dedicated, search_dedicated  # noqa: PLC0415 - only what is needed

    dedicated = is_dedicated(cluster, [wanted.group_name])
    return partial(search_dedicated if dedicated else search_ordinary, wanted, options), dedicated


def answer(cluster: Cluster, wanted: Wanted, search: Search, *, dedicated: bool) -> GroupAnswer:
    """Answer by `search`, in the group that is asked for or in the best one. Raises RequestError."""
    if wanted.group_name is None:
        return choose_group(cluster, wanted.instance, search, separate_network_messages=not dedicated)
    return one_group(cluster, wanted.group_name, wanted.instance, search)
