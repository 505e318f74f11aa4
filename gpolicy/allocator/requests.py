"""hail's answers to allocation requests (one instance, many, a secondary), and its choice of a group, with reasons.

Where every relevant node has exclusive storage, instances are placed as on dedicated nodes: hail loses as few slots for
big instances as possible. Instead of the cluster score, a placement is judged by the number of instances of each
minimal size of the policy that no longer fit on the node, the biggest size first. Source: Ganeti design document
"dedicated allocation".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gpolicy.allocator import cluster_data, placement
from gpolicy.allocator.engines import compiled_dedicated, find_placement
from gpolicy.allocator.ghc_numbers import fixed, sorted_by_score
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node_changes import accepted, add_primary, add_secondary, remove_primary
from gpolicy.allocator.placement import Attempt, Nodes, Placement
from gpolicy.allocator.redundancy import CapacityRules, Instances, numbered
from gpolicy.allocator.request_options import NotGrantedError, RequestOptions
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Wanted:
    """An instance to place on `count` nodes (1 or 2), in any group or in the one of `group_name`."""

    instance: cluster_data.Instance
    count: int
    group_name: str | None = None


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The placement, None if there is none, and messages about it: all of hail's, and those on each group by index."""

    placement: Placement | None
    messages: tuple[str, ...]
    group: int | None
    on_groups: Mapping[int, str]


TryInstance = Callable[[Nodes, Instances, Sequence[int]], Attempt]
"""Tries a wanted instance: scope of the scores, instances, candidate nodes."""


def search_ordinary(
    wanted: Wanted, options: RequestOptions, nodes: Nodes, instances: Instances, members: Sequence[int]
) -> Attempt:
    """Try `wanted` on `members`, scored over all of `nodes`."""
    failures, force = int(options.capacity_checks), options.ignore_soft_errors
    rules = CapacityRules(failures=failures, weights=options.weights, force=force)
    candidates = placement.candidates_among(nodes, members, wanted.count, options.restriction)
    return find_placement(nodes, instances, wanted.instance, candidates, rules)


def describe(attempt: Attempt, nodes: Nodes) -> str:
    """Describe the result of an attempt, in htools' words."""
    failures = attempt.failures
    counts = ", ".join(f"{reason.title}: {failures[reason]}" for reason in cluster_data.FailReason if failures[reason])
    if attempt.solution is None:
        return f"No valid allocation solutions, failure reasons: {counts or 'unknown reasons'}"
    names = "/".join(nodes[index].facts.name for index in attempt.solution.nodes)
    lost, left = attempt.solution.lost, attempt.solution.disk_left
    metric = fixed(attempt.solution.score, 8) if lost is None else f"([{','.join(map(str, lost))}],{left})"
    return f"score: {metric}, successes {attempt.successes}, failures {sum(failures)} ({counts}) for node(s) {names}"


def connected(group: cluster_data.Group, instance: cluster_data.Instance) -> bool:
    """Whether the group is connected to every network that the instance needs."""
    return all(network is None or network in group.networks for network in instance.networks)


def choose_group(
    cluster: Cluster,
    instance: cluster_data.Instance,
    search: TryInstance,
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
    numbers = [index for index in groups if index in members and (allowed is None or index in allowed)]
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
        except placement.NoCandidatesError as error:
            messages[number] = f"Group {group.name}: error {error}"
            continue
        messages[number] = f"Group {group.name} ({group.alloc_policy.value}): {describe(attempt, nodes)}"
        if attempt.solution is not None and group.alloc_policy is not cluster_data.AllocPolicy.UNALLOCABLE:
            valid.append((number, attempt))
    best = _best(groups, valid)
    if best is None:
        return GroupAnswer(None, tuple(messages.values()), None, messages)
    number, attempt = best
    heading = f"Selected group: {groups[number].name}"
    return GroupAnswer(attempt.solution, (heading, *messages.values()), number, messages)


def one_group(cluster: Cluster, name: str, instance: cluster_data.Instance, search: TryInstance) -> GroupAnswer:
    """Try the only group with this name or uuid; only its nodes and the instances on them count.

    Raises NotGrantedError if there is none, or it is not connected to the instance's networks or has no usable node.
    """
    found = [group for group in cluster.groups.values() if name in {group.name, group.uuid}]
    if len(found) != 1:
        raise NotGrantedError(f"Wrong number of elems found with name {name}")
    group = found[0]
    if not connected(group, instance):
        raise NotGrantedError(f"The {_not_connected(group, instance)}")
    scope = {index: node for index, node in cluster.nodes.items() if node.facts.group == group.index}
    residents = {key: item for key, item in cluster.instances.items() if item.primary in scope}
    try:
        attempt = search(scope, residents, list(scope))
    except placement.NoCandidatesError as error:
        raise NotGrantedError(str(error)) from None
    message = f"Group {group.name} ({group.alloc_policy.value}): {describe(attempt, cluster.nodes)}"
    return GroupAnswer(attempt.solution, (message,), group.index, {group.index: message})


def _not_connected(group: cluster_data.Group, instance: cluster_data.Instance) -> str:
    return f"group {group.name} is not connected to a network required by instance {instance.name}"


def _best(groups: Mapping[int, cluster_data.Group], valid: list[tuple[int, Attempt]]) -> tuple[int, Attempt] | None:
    """Return the best by preference, then by metric; of equal groups the later one wins (htools, Cluster)."""
    for policy in (cluster_data.AllocPolicy.PREFERRED, cluster_data.AllocPolicy.LAST_RESORT):
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

    placed: tuple[tuple[cluster_data.Instance, Placement], ...]
    failed: tuple[tuple[cluster_data.Instance, str], ...]
    after: Cluster


def allocate(cluster: Cluster, wanted: Wanted, options: RequestOptions) -> GroupAnswer:
    """Place one instance. An answer without a placement is a failure; other failures raise NotGrantedError."""
    search, dedicated = search_for(cluster, wanted, options)
    return answer(cluster, wanted, search, dedicated=dedicated)


def allocate_many(cluster: Cluster, wanted: Sequence[Wanted], options: RequestOptions) -> MultiAnswer:
    """Place instances one after the other. Raises NotGrantedError if the whole request fails."""
    dedicated = is_dedicated(cluster, [item.group_name for item in wanted])
    table = dict(cluster.instances)
    state = replace(cluster, instances=table)
    placed, failed = [], []
    for item in wanted:
        # on dedicated nodes htools solves each request for one group on the initial state
        solved_on = cluster if dedicated and item.group_name is not None else state
        search = partial(search_dedicated if dedicated else search_ordinary, item, options)
        found = answer(solved_on, item, search, dedicated=dedicated)
        if found.placement is None:
            if item.group_name is None:
                raise NotGrantedError(", ".join(found.messages))
            text = found.messages[0]
            failed.append((item.instance, text.partition("): ")[2] if dedicated else ", ".join(found.messages)))
            continue
        placed.append((item.instance, found.placement))
        number = len(table)
        nodes = {**solved_on.nodes, **{node.index: numbered(node, number) for node in found.placement.changed}}
        if dedicated or item.group_name is not None:
            nodes = {index: node for index, node in nodes.items() if node.facts.group == found.group}
        table[number] = found.placement.instance
        state = replace(state, nodes=nodes)
    return MultiAnswer(tuple(placed), tuple(failed), state)


def allocate_secondary(cluster: Cluster, index: int, options: RequestOptions) -> tuple[Placement, str]:
    """Find a secondary for an instance that becomes a mirrored one; return the placement and a message.

    Raises NotGrantedError.
    """
    nodes, instances = cluster.nodes, cluster.instances
    instance = instances[index]
    if instance.secondary != cluster_data.NO_NODE:
        raise NotGrantedError("Instance already has a secondary")
    primary = remove_primary(nodes[instance.primary], instance)
    state = {**nodes, instance.primary: primary}
    others = tuple(
        other for other, node in state.items() if node.facts.group == primary.facts.group and other != instance.primary
    )
    trial = replace(instance, template=cluster_data.DiskTemplate.DRBD)
    candidates = placement.PairCandidates(((instance.primary, others),))
    rules = CapacityRules(failures=int(options.capacity_checks), force=options.ignore_soft_errors)
    attempt = find_placement(state, instances, trial, candidates, rules)
    if attempt.solution is None:
        raise NotGrantedError(describe(attempt, state))
    return attempt.solution, describe(attempt, state)


def search_for(cluster: Cluster, wanted: Wanted, options: RequestOptions) -> tuple[TryInstance, bool]:
    """Return what tries `wanted` on nodes, and whether it does so by the dedicated metric instead of the score."""
    dedicated = is_dedicated(cluster, [wanted.group_name])
    return partial(search_dedicated if dedicated else search_ordinary, wanted, options), dedicated


def answer(cluster: Cluster, wanted: Wanted, search: TryInstance, *, dedicated: bool) -> GroupAnswer:
    """Answer by `search`, in the group that is asked for or in the best one. Raises NotGrantedError."""
    if wanted.group_name is None:
        return choose_group(cluster, wanted.instance, search, separate_network_messages=not dedicated)
    return one_group(cluster, wanted.group_name, wanted.instance, search)


def is_dedicated(cluster: Cluster, names: Iterable[str | None]) -> bool:
    """Whether the dedicated metric applies to requests for groups of these names: all nodes of theirs are exclusive.

    If all ask for one name, that group counts, otherwise all that are not unallocable.
    """
    asked = set(names)
    group_name = asked.pop() if len(asked) == 1 else None
    relevant = [group for group in cluster.groups.values() if group.name == group_name]
    if group_name is None:
        closed = cluster_data.AllocPolicy.UNALLOCABLE
        relevant = [group for group in cluster.groups.values() if group.alloc_policy is not closed]
    numbers = {group.index for group in relevant}
    return all(node.facts.exclusive for node in cluster.nodes.values() if node.facts.group in numbers)


def biggest_first(policy: cluster_data.InstancePolicy) -> list[int]:
    """Return the indices of the spec pairs in the order of allocation vectors: the biggest minimal disk first."""
    return sorted(range(len(policy.minmax)), key=lambda place: -policy.minmax[place].min.disk_size)


def sample_instances(policy: cluster_data.InstancePolicy) -> list[cluster_data.Instance]:
    """Return one plain instance per minimal spec, the biggest disk first.

    They have no list of disks and so use no spindles.
    """
    specs = [policy.minmax[place].min for place in biggest_first(policy)]
    plain = (cluster_data.Instance.wanted(spec, cluster_data.DiskTemplate.PLAIN, 1) for spec in specs)
    return [replace(instance, name="sample", disks=(), auto_balance=False) for instance in plain]


def allocation_vector(node: cluster_data.Node, samples: Sequence[cluster_data.Instance]) -> tuple[int, ...]:
    """Return how many instances of each sample size fit on the node, each size for itself."""
    return tuple(_how_many(node, sample) for sample in samples)


def search_dedicated(
    wanted: Wanted, options: RequestOptions, nodes: Nodes, _instances: Instances, members: Sequence[int]
) -> Attempt:
    """Try `wanted` on `members` and take the smallest loss, then the least disk left."""
    instance = wanted.instance
    candidates = placement.candidates_among(nodes, members, wanted.count, options.restriction)
    scope = {index: nodes[index] for index in members}
    found = compiled_dedicated(scope, instance, candidates, force=options.ignore_soft_errors)
    if found is None:
        return _search_all(nodes, instance, candidates, options)
    failures, successes, best = found
    if not best:
        return Attempt(failures, successes, None)
    only = placement.SingleCandidates(best) if len(best) == 1 else placement.PairCandidates(((best[0], best[1:]),))
    (((_, trial),),) = try_each_dedicated(nodes, instance, only, force=options.ignore_soft_errors)
    return Attempt(failures, successes, accepted(trial))


def _search_all(
    nodes: Nodes, instance: cluster_data.Instance, candidates: placement.Candidates, options: RequestOptions
) -> Attempt:
    """Try every candidate, one by one, as the law does."""
    tried = try_each_dedicated(nodes, instance, candidates, force=options.ignore_soft_errors)
    trials = [trial for some in tried for _, trial in some]
    failures = placement.count_failures([trial for trial in trials if isinstance(trial, cluster_data.FailReason)])
    possible = [trial for trial in reversed(trials) if isinstance(trial, Placement)]  # of equal ones the later wins
    return Attempt(failures, len(possible), min(possible, key=lambda trial: trial.metric, default=None))


def _how_many(node: cluster_data.Node, sample: cluster_data.Instance) -> int:
    """Return how many copies fit: one of all their sizes fits just where they do, one after the other."""
    if sample.memory <= 0 and sample.disk <= 0 and sample.vcpus <= 0:
        raise InputError("a policy's min spec has neither memory nor disk nor cpus, so any number fits on a node")
    fits, too_many = 0, 1
    while _fit(node, sample, too_many):
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if _fit(node, sample, middle) else (fits, middle)
    return fits


def _fit(node: cluster_data.Node, sample: cluster_data.Instance, count: int) -> bool:
    together = replace(
        sample,
        memory=count * sample.memory,
        disk=count * sample.disk,
        disks=count * sample.disks,
        vcpus=count * sample.vcpus,
        spindle_use=count * sample.spindle_use,
    )
    return not isinstance(add_primary(node, together), cluster_data.FailReason)


def try_each_dedicated(
    nodes: Nodes, instance: cluster_data.Instance, candidates: placement.Candidates, *, force: bool = False
) -> Iterator[list[placement.CandidateTrial]]:
    """Try every candidate by the dedicated metric: together those with the same primary, as in `placement.try_each`."""
    vectors: dict[tuple[int, int], tuple[int, ...]] = {}

    def lost(before: cluster_data.Node, after: cluster_data.Node, group: cluster_data.Node) -> tuple[int, ...]:
        """Return the lost allocations of a node, by the sizes in the policy of the group of the node `group`."""
        samples, key = sample_instances(group.facts.policy), (before.index, group.facts.group)
        if key not in vectors:
            vectors[key] = allocation_vector(before, samples)
        return tuple(a - b for a, b in zip(vectors[key], allocation_vector(after, samples), strict=True))

    def primary_alone(node: cluster_data.Node) -> Placement | cluster_data.FailReason:
        new = placement.with_primary(node, instance, force=force)
        if isinstance(new, cluster_data.FailReason):
            return new
        placed = replace(instance, primary=node.index)
        return Placement((new,), placed, 0.0, lost=lost(node, new, node), disk_left=new.free_disk)

    def with_secondary(
        first: Placement, primary: cluster_data.Node, secondary: cluster_data.Node
    ) -> Placement | cluster_data.FailReason:
        new = add_secondary(secondary, instance, primary.index)
        if isinstance(new, cluster_data.FailReason):
            return new
        more = lost(secondary, new, primary)
        return Placement(
            (*first.changed, new),
            replace(instance, primary=primary.index, secondary=secondary.index),
            0.0,
            lost=tuple(a + b for a, b in zip(first.lost or (), more, strict=True)),
            disk_left=first.disk_left + new.free_disk,
        )

    if isinstance(candidates, placement.SingleCandidates):
        yield [((index,), primary_alone(nodes[index])) for index in candidates.nodes]
        return
    for primary, others in candidates.pairs:
        node = nodes[primary]
        first = primary_alone(node)
        yield [
            ((primary, other), with_secondary(first, node, nodes[other]) if isinstance(first, Placement) else first)
            for other in others
        ]
