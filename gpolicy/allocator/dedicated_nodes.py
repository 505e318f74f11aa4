"""Placement on dedicated nodes: lose as few slots for big instances as possible (hail only).

Source: Ganeti design document "dedicated allocation". Used if every relevant node has exclusive storage. Instead of the
cluster score, a placement is judged by the number of instances of each minimal size of the policy that no longer fit on
the node, the biggest size first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpolicy.allocator.cluster_data import AllocPolicy, DiskTemplate, FailReason, Instance, InstancePolicy, Node
from gpolicy.allocator.engines import compiled_dedicated
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node_changes import accepted, add_primary, add_secondary
from gpolicy.allocator.placement import (
    Attempt,
    Candidates,
    Nodes,
    PairCandidates,
    Placement,
    SingleCandidates,
    Trial,
    candidates_among,
    count_failures,
    with_primary,
)
from gpolicy.allocator.redundancy import Instances
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import Wanted
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import replace


def is_dedicated(cluster: Cluster, names: Iterable[str | None]) -> bool:
    """Whether the dedicated metric applies to requests for groups of these names: all nodes of theirs are exclusive.

    If all ask for one name, that group counts, otherwise all that are not unallocable.
    """
    asked = set(names)
    group_name = asked.pop() if len(asked) == 1 else None
    relevant = {
        group.index
        for group in cluster.groups.values()
        if (group.name == group_name if group_name is not None else group.alloc_policy is not AllocPolicy.UNALLOCABLE)
    }
    return all(node.facts.exclusive for node in cluster.nodes.values() if node.facts.group in relevant)


def biggest_first(policy: InstancePolicy) -> list[int]:
    """Return the indices of the spec pairs in the order of allocation vectors: the biggest minimal disk first."""
    return sorted(range(len(policy.minmax)), key=lambda place: -policy.minmax[place].min.disk_size)


def sample_instances(policy: InstancePolicy) -> list[Instance]:
    """Return one plain instance per minimal spec, the biggest disk first.

    They have no list of disks and so use no spindles.
    """
    specs = [policy.minmax[place].min for place in biggest_first(policy)]
    plain = (Instance.wanted(spec, DiskTemplate.PLAIN, 1) for spec in specs)
    return [replace(instance, name="sample", disks=(), auto_balance=False) for instance in plain]


def allocation_vector(node: Node, samples: Sequence[Instance]) -> tuple[int, ...]:
    """Return how many instances of each sample size fit on the node, each size for itself."""
    return tuple(_how_many(node, sample) for sample in samples)


def search_dedicated(
    wanted: Wanted, options: RequestOptions, nodes: Nodes, _instances: Instances, members: Sequence[int]
) -> Attempt:
    """Try `wanted` on `members` and take the smallest loss, then the least disk left."""
    instance, candidates = wanted.instance, candidates_among(nodes, members, wanted.count, options.restriction)
    scope = {index: nodes[index] for index in members}
    found = compiled_dedicated(scope, instance, candidates, force=options.ignore_soft_errors)
    if found is None:
        return _search_all(nodes, instance, candidates, options)
    failures, successes, best = found
    if not best:
        return Attempt(failures, successes, None)
    only = SingleCandidates(best) if len(best) == 1 else PairCandidates(((best[0], best[1:]),))
    (((_, trial),),) = try_each_dedicated(nodes, instance, only, force=options.ignore_soft_errors)
    return Attempt(failures, successes, accepted(trial))


def _search_all(nodes: Nodes, instance: Instance, candidates: Candidates, options: RequestOptions) -> Attempt:
    """Try every candidate, one by one, as the law does."""
    tried = try_each_dedicated(nodes, instance, candidates, force=options.ignore_soft_errors)
    trials = [trial for some in tried for _, trial in some]
    failures = count_failures([trial for trial in trials if isinstance(trial, FailReason)])
    possible = [trial for trial in reversed(trials) if isinstance(trial, Placement)]  # of equal ones the later wins
    return Attempt(failures, len(possible), min(possible, key=lambda placement: placement.metric, default=None))


def _how_many(node: Node, sample: Instance) -> int:
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


def _fit(node: Node, sample: Instance, count: int) -> bool:
    together = replace(
        sample,
        memory=count * sample.memory,
        disk=count * sample.disk,
        disks=count * sample.disks,
        vcpus=count * sample.vcpus,
        spindle_use=count * sample.spindle_use,
    )
    return not isinstance(add_primary(node, together), FailReason)


def try_each_dedicated(
    nodes: Nodes, instance: Instance, candidates: Candidates, *, force: bool = False
) -> Iterator[list[Trial]]:
    """Try every candidate by the dedicated metric: together those with the same primary, as in `placement.try_each`."""
    vectors: dict[tuple[int, int], tuple[int, ...]] = {}

    def lost(before: Node, after: Node, group: Node) -> tuple[int, ...]:
        """Return the lost allocations of a node, by the sizes in the policy of the group of the node `group`."""
        samples, key = sample_instances(group.facts.policy), (before.index, group.facts.group)
        if key not in vectors:
            vectors[key] = allocation_vector(before, samples)
        return tuple(a - b for a, b in zip(vectors[key], allocation_vector(after, samples), strict=True))

    def primary_alone(node: Node) -> Placement | FailReason:
        new = with_primary(node, instance, force=force)
        if isinstance(new, FailReason):
            return new
        placed = replace(instance, primary=node.index)
        return Placement((new,), placed, 0.0, lost=lost(node, new, node), disk_left=new.free_disk)

    def with_secondary(first: Placement, primary: Node, secondary: Node) -> Placement | FailReason:
        new = add_secondary(secondary, instance, primary.index)
        if isinstance(new, FailReason):
            return new
        more = lost(secondary, new, primary)
        return Placement(
            (*first.changed, new),
            replace(instance, primary=primary.index, secondary=secondary.index),
            0.0,
            lost=tuple(a + b for a, b in zip(first.lost or (), more, strict=True)),
            disk_left=first.disk_left + new.free_disk,
        )

    if isinstance(candidates, SingleCandidates):
        yield [((index,), primary_alone(nodes[index])) for index in candidates.nodes]
        return
    for primary, others in candidates.pairs:
        node = nodes[primary]
        first = primary_alone(node)
        yield [
            ((primary, other), with_secondary(first, node, nodes[other]) if isinstance(first, Placement) else first)
            for other in others
        ]
