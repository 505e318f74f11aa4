"""Placement on dedicated nodes: lose as few of the big slots as possible (hail only).

Source: Ganeti design document "dedicated allocation". Used where every relevant node has exclusive
storage. Instead of the cluster score, a placement is judged by how many instances of each of the
policy's minimal sizes would no longer fit on the node, the biggest size first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_data import Group, Instance, Policy
from gpolicy.allocator.engines import compiled_dedicated
from gpolicy.allocator.enumerations import AllocPolicy, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import add_primary, add_secondary
from gpolicy.allocator.placement import (
    Attempt,
    Placement,
    SingleCandidates,
    candidates_among,
    count_failures,
)
from gpolicy.allocator.policy_check import check_policy
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.allocator.group_choice import RequestOptions
    from gpolicy.allocator.placement import Candidates
    from gpolicy.allocator.redundancy import Instances

Nodes = Mapping[int, Node]


def is_dedicated(groups: Mapping[int, Group], nodes: Nodes, group_name: str | None) -> bool:
    """Whether the dedicated metric applies: every node of every relevant group is exclusive.

    Relevant is the group of that name, or without a name every group that is not unallocable.
    """
    relevant = {
        group.index
        for group in groups.values()
        if (group.name == group_name if group_name is not None else group.alloc_policy is not AllocPolicy.UNALLOCABLE)
    }
    return all(node.facts.exclusive for node in nodes.values() if node.facts.group in relevant)


def sample_instances(policy: Policy) -> list[Instance]:
    """Return one plain instance per minimal spec, the biggest disk first.

    They have no disk list, hence use no spindles.
    """
    specs = sorted((pair.min for pair in policy.minmax), key=lambda spec: -spec.disk_size)
    return [
        Instance(
            index=-1,
            name="sample",
            memory=spec.memory,
            disk=spec.disk_size,
            disks=(),
            vcpus=spec.cpus,
            status=InstanceStatus.RUNNING,
            template=DiskTemplate.PLAIN,
            auto_balance=False,
        )
        for spec in specs
    ]


def allocation_vector(node: Node, samples: Sequence[Instance]) -> tuple[int, ...]:
    """Return how many instances of each sample size fit on the node, one size at a time."""
    return tuple(_how_many(node, sample) for sample in samples)


def search_dedicated(
    nodes: Nodes,
    _instances: Instances,
    instance: Instance,
    count: int,
    members: Sequence[int],
    options: RequestOptions,
) -> Attempt:
    """Try `instance` on `members` and take the smallest loss, then the least disk left."""
    candidates = candidates_among(nodes, members, count, options.restriction)
    scope = {index: nodes[index] for index in members}
    found = compiled_dedicated(scope, instance, candidates, force=options.ignore_soft_errors)
    if found is None:
        return _search_all(nodes, instance, candidates, options)
    failures, successes, best = found
    if not best:
        return Attempt(failures, successes, None)
    primary, *others = (nodes[index] for index in best)
    trial = _try_pair(primary, others[0], instance, options) if others else _try_single(primary, instance, options)
    if isinstance(trial, FailReason):
        raise AssertionError(f"the engine and the node model disagree: {trial.title}")  # noqa: TRY004 - no wrong type
    return Attempt(failures, successes, trial)


def _search_all(nodes: Nodes, instance: Instance, candidates: Candidates, options: RequestOptions) -> Attempt:
    """Try every candidate, one by one: the law."""
    trials: list[Placement | FailReason] = []
    if isinstance(candidates, SingleCandidates):
        trials = [_try_single(nodes[target], instance, options) for target in candidates.nodes]
    else:
        trials = [
            _try_pair(nodes[primary], nodes[other], instance, options)
            for primary, others in candidates.pairs
            for other in others
        ]
    best: Placement | None = None
    successes = 0
    for trial in trials:
        if isinstance(trial, Placement):
            successes += 1
            if best is None or not _smaller(best, trial):
                best = trial
    failures = count_failures([trial for trial in trials if isinstance(trial, FailReason)])
    return Attempt(failures, successes, best)


def _how_many(node: Node, sample: Instance) -> int:
    if sample.memory <= 0 and sample.disk <= 0 and sample.vcpus <= 0:
        raise InputError(
            "a policy's min spec has neither memory nor disk nor cpus, so any number of them fits on a node"
        )
    count = 0
    while True:
        after = add_primary(node, sample)
        if isinstance(after, FailReason):
            return count
        node = after
        count += 1


def _loss(before: Node, after: Node) -> tuple[int, ...]:
    samples = sample_instances(before.facts.policy)
    then, now = allocation_vector(before, samples), allocation_vector(after, samples)
    return tuple(a - b for a, b in zip(then, now, strict=True))


def _try_single(node: Node, instance: Instance, options: RequestOptions) -> Placement | FailReason:
    refused = check_policy(node.facts.policy, instance, exclusive=node.facts.exclusive)
    if refused is not None:
        return refused
    new = add_primary(node, instance, force=options.ignore_soft_errors)
    if isinstance(new, FailReason):
        return new
    placed = replace(instance, primary=node.index)
    return Placement((new,), placed, 0.0, lost=_loss(node, new), disk_left=new.free_disk)


def _try_pair(primary: Node, secondary: Node, instance: Instance, options: RequestOptions) -> Placement | FailReason:
    new = _try_single(primary, instance, options)
    if isinstance(new, FailReason):
        return new
    (new_primary,) = new.changed
    new_secondary = add_secondary(secondary, instance, primary.index)
    if isinstance(new_secondary, FailReason):
        return new_secondary
    samples = sample_instances(primary.facts.policy)
    then, now = allocation_vector(secondary, samples), allocation_vector(new_secondary, samples)
    lost = tuple(loss + a - b for loss, a, b in zip(new.lost or (), then, now, strict=True))
    placed = replace(instance, primary=primary.index, secondary=secondary.index)
    disk = new.disk_left + new_secondary.free_disk
    return Placement((new_primary, new_secondary), placed, 0.0, lost=lost, disk_left=disk)


def _smaller(left: Placement, right: Placement) -> bool:
    return (left.lost or (), left.disk_left) < (right.lost or (), right.disk_left)
