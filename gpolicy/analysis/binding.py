"""Why no more instances fit, in the policy's terms.

The allocator gives htools' reasons, and some have several causes: `FailMem` stands for used memory and for memory that
is reserved for a failover; `FailDisk` for disk, for the spindle ratio and for a template that the policy does not list.
Here the refused candidates are checked again to tell these apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy
from gpolicy.allocator.enumerations import FailReason
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import add_primary, add_secondary, spindle_use_after
from gpolicy.allocator.placement import Candidates, SingleCandidates
from gpolicy.allocator.policy_check import check_pair, check_policy

MOST_CANDIDATES: Final = 20_000
"""The greatest number of candidates that are checked again: enough to tell causes apart, and fast."""


class Explained(Enum):
    """A member with a key for reports and an explanation.

    Written as `MEMBER = (key, explanation)`; the key is short and stable.
    """

    key: str
    sentence: str

    def __init__(self, key: str, sentence: str) -> None:
        self.key = key
        self.sentence = sentence


class Cause(Explained):
    """The binding resource or limit. The key of a parameter is Ganeti's path."""

    MEMORY = ("memory", "free memory of the nodes")
    RESERVE = ("n1-reserve", "memory that a node reserves to take over the instances that it mirrors")
    DISK = ("disk", "free disk of the nodes")
    SPINDLE_RATIO = ("ipolicy.spindle-ratio", "spindles in use for each spindle of a node")
    TEMPLATE = ("ipolicy.disk-templates", "the policy does not allow the disk template")
    VCPU_RATIO = ("ipolicy.vcpu-ratio", "virtual CPUs for each CPU of a node")
    REDUNDANCY = ("n1-capacity", "with one more instance, the loss of a node could not be absorbed")
    BROKEN = ("n1-broken", "the loss of a node cannot be absorbed even now, so nothing may be added")
    TAGS = ("exclusion-tags", "an instance with the same exclusion tag is there already")
    MIGRATION = ("migration-tags", "migration tags that forbid moves between the nodes")
    SPINDLES = ("spindles", "free spindles of the nodes (exclusive storage)")
    TOO_FEW_SPINDLES = (
        "too-few-spindles",
        "Ganeti makes no disk with fewer spindles than the physical volumes that its size takes",
    )
    ONLY_PLAIN = ("plain-with-exclusive-storage", "Ganeti makes only plain instances on nodes with exclusive storage")
    SHARED_STORAGE = ("spindles-on-shared-storage", "Ganeti takes spindles of a disk only with exclusive storage")
    BOUNDS = ("ipolicy.minmax", "no spec pair of the policy allows the size")
    NO_NODES = ("nodes", "too few online nodes")
    CLOSED = ("alloc_policy", "the group is unallocable: it takes no instances")
    NO_TEMPLATE = ("enabled-disk-templates", "no enabled disk template is allowed by the policy")
    NODE_FAILURES = (
        "max_node_failures",
        "with one more instance, the loss of that many nodes at once could not be absorbed",
    )
    CPUS_AFTER_FAILURE = (
        "cpus_after_failure",
        "with one more instance, the nodes that take over after a loss could not keep their vcpu-ratio",
    )
    OVERSUBSCRIPTION = ("oversubscription", "the sum of the maximum memory of all instances on a node")
    ALLOCATOR = ("default_iallocator_params", "the parameters of the cluster make hail refuse every request")
    NOTHING = ("nothing", "no attempt was made")


_BY_REASON: Final = {
    FailReason.MEM: Cause.MEMORY,
    FailReason.DISK: Cause.DISK,
    FailReason.CPU: Cause.VCPU_RATIO,
    FailReason.N1: Cause.REDUNDANCY,
    FailReason.TAGS: Cause.TAGS,
    FailReason.MIG: Cause.MIGRATION,
    FailReason.DISK_COUNT: Cause.BOUNDS,
    FailReason.SPINDLES: Cause.SPINDLES,
    FailReason.INTERNAL: Cause.NOTHING,
}
_SEVERAL_CAUSES: Final = (FailReason.MEM, FailReason.DISK, FailReason.CPU, FailReason.SPINDLES)
OF_POLICY: Final = (Cause.BOUNDS, Cause.TEMPLATE)
"""Causes that are the same on every node of a group, however empty the node is."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Why one more instance does not fit.

    `reason` is htools' name of the most frequent failure (None if there is none), `failures` are all reasons with the
    number of candidates, most frequent first, as hspace counts them. `detail` gives numbers where htools has no name.
    """

    cause: Cause
    reason: str | None = None
    failures: tuple[tuple[str, int], ...] = ()
    detail: str | None = None


def binding(nodes: Mapping[int, Node], instance: Instance, candidates: Candidates, counts: tuple[int, ...]) -> Binding:
    """Return why `instance` does not fit on `nodes`, given how often each reason occurred.

    Nodes whose policy never allows the instance count only where there are no others.
    """
    found = [(reason, counts[reason]) for reason in sorted(FailReason, key=lambda r: -counts[r]) if counts[reason]]
    if not found:
        return Binding(Cause.NOTHING)
    seen: dict[FailReason, Counter[Cause]] = {}
    if found[0][0] in _SEVERAL_CAUSES:
        for reason, cause, weight in islice(_causes(nodes, instance, candidates), MOST_CANDIDATES):
            seen.setdefault(reason, Counter())[cause] += weight
    by_reason = [seen.get(reason) or Counter({_BY_REASON[reason]: count}) for reason, count in found]
    of_nodes = (Counter({cause: causes[cause] for cause in causes if cause not in OF_POLICY}) for causes in by_reason)
    cause = next(filter(None, of_nodes), by_reason[0]).most_common(1)[0][0]
    return Binding(cause, found[0][0].title, tuple((reason.title, count) for reason, count in found))


def _causes(
    nodes: Mapping[int, Node], instance: Instance, candidates: Candidates
) -> Iterator[tuple[FailReason, Cause, int]]:
    """Yield reasons and causes of refused candidates, with the number of candidates of each."""
    if isinstance(candidates, SingleCandidates):
        for index in candidates.nodes:
            found = primary_refusal(nodes[index], instance)
            if found:
                yield *found, 1
        return
    for primary, members in candidates.members:
        others = [other for other in members if other != primary]
        found = primary_refusal(nodes[primary], instance)
        if found:
            yield *found, len(others)
            continue
        for other in others:
            reason = add_secondary(nodes[other], instance, primary)
            if isinstance(reason, FailReason):
                yield reason, secondary_cause(nodes[other], instance, reason), 1


def primary_refusal(node: Node, instance: Instance, *, force: bool = False) -> tuple[FailReason, Cause] | None:
    """Return why `node` refuses the instance as a primary. The checks are in the allocator's order.

    `force` ignores soft limits (`--ignore-soft-errors`).
    """
    facts = node.facts
    verdict = check_policy(facts.policy, instance, exclusive=facts.exclusive)
    if verdict is not None:
        inside = accepts(facts.policy, instance, exclusive=facts.exclusive)
        return verdict, Cause.TEMPLATE if inside else Cause.BOUNDS
    reason = add_primary(node, instance, force=force)
    return (reason, primary_cause(node, instance, reason)) if isinstance(reason, FailReason) else None


def primary_cause(node: Node, instance: Instance, reason: FailReason) -> Cause:
    """Return the cause of the allocator's `reason` against `instance` on `node` as a primary."""
    if reason is FailReason.MEM:
        used = instance.memory if instance.uses_memory else 0
        free = node.unallocated_memory - used
        return Cause.RESERVE if 0 < free <= node.reserved_memory else Cause.MEMORY
    return _disk_cause(node, instance) if reason is FailReason.DISK else _BY_REASON[reason]


def accepts(policy: InstancePolicy, instance: Instance, *, exclusive: bool) -> bool:
    """Return whether some pair allows the instance, without its template."""
    return not policy.minmax or any(check_pair(pair, instance, exclusive=exclusive) is None for pair in policy.minmax)


def secondary_cause(node: Node, instance: Instance, reason: FailReason) -> Cause:
    """Return the cause of the allocator's `reason` against `instance` on `node` as a secondary."""
    if reason is FailReason.MEM:
        needed = instance.memory if instance.needs_secondary_memory else 0
        return Cause.MEMORY if needed >= node.unallocated_memory else Cause.RESERVE
    return _disk_cause(node, instance) if reason is FailReason.DISK else _BY_REASON[reason]


def _disk_cause(node: Node, instance: Instance) -> Cause:
    """Return whether the node lacks disk or exceeds the spindle ratio."""
    facts = node.facts
    for disk, use in ((node.free_disk, node.instance_spindles), (node.forth_free_disk, node.forth_instance_spindles)):
        left = disk - instance.disk
        if left <= 0 or left < facts.low_disk:
            return Cause.DISK
        if spindle_use_after(node, instance, use, 1) > facts.high_spindles:
            return Cause.SPINDLE_RATIO
    return Cause.DISK
