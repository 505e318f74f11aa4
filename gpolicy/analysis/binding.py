"""Why no more instances fit, in the policy's terms; why nodes refuse one, in numbers; what is stranded.

The allocator gives htools' reasons, and some have several causes: `FailMem` stands for used memory and for memory that
is reserved for a failover; `FailDisk` for disk, for the spindle ratio and for a template that the policy does not list.
Here the refused candidates are checked again to tell these apart.

Stranded resources are those left on the online nodes after a tiered run and then as many instances as fit at the
minimum of each pair (with one disk; pairs without memory are skipped). Then not even the smallest instance of any pair
fits, so no allowed instance can use the rest. Room that must stay free for N+1 counts as stranded, but memory that DRBD
reserves does not (it is not free). All instances have the same template.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from math import floor, isfinite
from typing import Final

from gpolicy.allocator import node_changes
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, InstancePolicy, Node, SpecPair
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.placement import Candidates, Nodes, SingleCandidates
from gpolicy.allocator.policy_check import check_ipolicy, check_pair
from gpolicy.data import read_data
from gpolicy.ganeti.amounts import compared_sizes, exact_size, rough_size
from gpolicy.ganeti.parameters import spec_distance
from gpolicy.ganeti.vocabulary import SPEC_SIZES
from gpolicy.printable import count

MOST_CANDIDATES: Final = 20_000
"""The greatest number of candidates that are checked again: enough to tell causes apart, and fast."""


class Cause(Enum):
    """The binding resource or limit, by its key, which is short and stable: of a parameter it is Ganeti's path."""

    MEMORY = "memory"
    RESERVE = "n1-reserve"
    DISK = "disk"
    SPINDLE_RATIO = "ipolicy.spindle-ratio"
    TEMPLATE = "ipolicy.disk-templates"
    VCPU_RATIO = "ipolicy.vcpu-ratio"
    REDUNDANCY = "n1-capacity"
    BROKEN = "n1-broken"
    TAGS = "exclusion-tags"
    MIGRATION = "migration-tags"
    SPINDLES = "spindles"
    TOO_FEW_SPINDLES = "too-few-spindles"
    ONLY_PLAIN = "plain-with-exclusive-storage"
    SHARED_STORAGE = "spindles-on-shared-storage"
    BOUNDS = "ipolicy.minmax"
    NO_NODES = "nodes"
    CLOSED = "alloc_policy"
    NO_TEMPLATE = "enabled-disk-templates"
    NODE_FAILURES = "max_node_failures"
    CPUS_AFTER_FAILURE = "cpus_after_failure"
    OVERSUBSCRIPTION = "oversubscription"
    ALLOCATOR = "default_iallocator_params"
    NOTHING = "nothing"

    @property
    def key(self) -> str:
        """The value: the cause in reports."""
        return self.value

    @property
    def sentence(self) -> str:
        """What the cause is, in words."""
        return str(read_data("words.toml")["causes"][self.value])


BY_REASON: Final = {
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
"""The cause that each reason of htools stands for first."""
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
    """Return why `instance` does not fit on `nodes`, given how often each reason occurred (one at least).

    Nodes whose policy never allows the instance count only where there are no others.
    """
    found = [(reason, counts[reason]) for reason in sorted(FailReason, key=lambda r: -counts[r]) if counts[reason]]
    seen: dict[FailReason, Counter[Cause]] = {}
    if found[0][0] in _SEVERAL_CAUSES:
        for reason, cause, weight in islice(_causes(nodes, instance, candidates), MOST_CANDIDATES):
            seen.setdefault(reason, Counter())[cause] += weight
    by_reason = [seen.get(reason) or Counter({BY_REASON[reason]: count}) for reason, count in found]
    of_nodes = (Counter({cause: causes[cause] for cause in causes if cause not in OF_POLICY}) for causes in by_reason)
    cause = next(filter(None, of_nodes), by_reason[0]).most_common(1)[0][0]
    return Binding(cause, found[0][0].title, tuple((reason.title, count) for reason, count in found))


def _causes(
    nodes: Mapping[int, Node], instance: Instance, candidates: Candidates
) -> Iterator[tuple[FailReason, Cause, int]]:
    """Yield reasons and causes of refused candidates, with the number of candidates of each."""
    if isinstance(candidates, SingleCandidates):
        for index in candidates.nodes:
            if found := primary_refusal(nodes[index], instance):
                yield *found, 1
        return
    for primary, members in candidates.members:
        others = [other for other in members if other != primary]
        if found := primary_refusal(nodes[primary], instance):
            yield *found, len(others)
            continue
        for other in others:
            reason = node_changes.add_secondary(nodes[other], instance, primary)
            if isinstance(reason, FailReason):
                yield reason, secondary_cause(nodes[other], instance, reason), 1


def primary_refusal(node: Node, instance: Instance, *, force: bool = False) -> tuple[FailReason, Cause] | None:
    """Return why `node` refuses the instance as a primary. The checks are in the allocator's order.

    `force` ignores soft limits (`--ignore-soft-errors`).
    """
    refused = policy_refusal(node.facts.policy, instance, exclusive=node.facts.exclusive)
    if refused is not None:
        return refused
    reason = node_changes.add_primary(node, instance, force=force)
    return (reason, primary_cause(node, instance, reason)) if isinstance(reason, FailReason) else None


def primary_cause(node: Node, instance: Instance, reason: FailReason) -> Cause:
    """Return the cause of the allocator's `reason` against `instance` on `node` as a primary."""
    if reason is FailReason.MEM:
        used = instance.memory if instance.uses_memory else 0
        free = node.unallocated_memory - used
        return Cause.RESERVE if 0 < free <= node.reserved_memory else Cause.MEMORY
    return _disk_cause(node, instance) if reason is FailReason.DISK else BY_REASON[reason]


def policy_refusal(policy: InstancePolicy, instance: Instance, *, exclusive: bool) -> tuple[FailReason, Cause] | None:
    """Return why `policy` forbids the instance: by its bounds, or else by its templates."""
    verdict = check_ipolicy(policy, instance, exclusive=exclusive)
    if verdict is None:
        return None
    pairs = policy.minmax
    inside = not pairs or any(check_pair(pair, instance, exclusive=exclusive) is None for pair in pairs)
    return verdict, Cause.TEMPLATE if inside else Cause.BOUNDS


def secondary_cause(node: Node, instance: Instance, reason: FailReason) -> Cause:
    """Return the cause of the allocator's `reason` against `instance` on `node` as a secondary."""
    if reason is FailReason.MEM:
        needed = instance.memory if instance.needs_secondary_memory else 0
        return Cause.MEMORY if needed >= node.unallocated_memory else Cause.RESERVE
    return _disk_cause(node, instance) if reason is FailReason.DISK else BY_REASON[reason]


def _disk_cause(node: Node, instance: Instance) -> Cause:
    """Return whether the node lacks disk or exceeds the spindle ratio."""
    facts = node.facts
    for disk, use in ((node.free_disk, node.instance_spindles), (node.forth_free_disk, node.forth_instance_spindles)):
        left = disk - instance.disk
        if left <= 0 or left < facts.low_disk:
            return Cause.DISK
        if node_changes.spindle_use_after(node, instance, use, 1) > facts.high_spindles:
            return Cause.SPINDLE_RATIO
    return Cause.DISK


UNKNOWN_SPINDLES: Final = "spindle-use unknown"
"""How a refusal says that the disks of the instance have no number of spindles."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """htools' reason, its cause by the policy key, and the numbers (MiB, CPUs, spindles) in one phrase.

    The phrase begins with the node's name if the reason is the node and not only the policy.
    """

    reason: FailReason
    cause: Cause
    detail: str


def as_primary(node: Node, instance: Instance, *, force: bool = False) -> Refusal | None:
    """Return why `node` refuses `instance` as a primary, None if it does not. `force` ignores soft limits."""
    found = primary_refusal(node, instance, force=force)
    return None if found is None else _on_primary(node, instance, *found)


def as_secondary(node: Node, instance: Instance, primary: int) -> Refusal | None:
    """Return why `node` refuses `instance`, whose primary is node `primary`, as a secondary; None if it does not."""
    reason = node_changes.add_secondary(node, instance, primary)
    return _on_secondary(node, instance, primary, reason) if isinstance(reason, FailReason) else None


def of_move(nodes: Nodes, move: InstanceMove, reason: FailReason, *, force: bool) -> Refusal:
    """Return why an existing instance cannot move so in the state `nodes`, given the allocator's `reason`.

    `force` is that of the move.
    """
    instance = move.instance
    old, other = nodes[instance.primary], nodes[instance.secondary if move.target == NO_NODE else move.target]
    if reason is FailReason.MIG:
        return Refusal(reason, Cause.MIGRATION, f"from {old.facts.name} to {other.facts.name}")
    if move.kind is MoveKind.REPLACE_SECONDARY:
        force = force or nodes[instance.secondary].facts.offline
        if isinstance(node_changes.add_secondary(other, instance, instance.primary, force=force), FailReason):
            return _on_secondary(other, instance, instance.primary, reason)
        left = node_changes.remove_primary(old, instance)
        return _on_primary(left, instance, reason, primary_cause(left, instance, reason))
    taken = other if move.target != NO_NODE else node_changes.remove_secondary(other, instance)
    if isinstance(node_changes.add_primary(taken, instance, force=force or old.facts.offline), FailReason):
        return _on_primary(taken, instance, reason, primary_cause(taken, instance, reason))
    return _on_secondary(node_changes.remove_primary(old, instance), instance, instance.secondary, reason)


def _on_primary(node: Node, instance: Instance, reason: FailReason, cause: Cause) -> Refusal:
    detail = _primary_detail(node, instance, cause)
    return Refusal(reason, cause, detail if cause in OF_POLICY else f"{node.facts.name}: {detail}")


def _on_secondary(node: Node, instance: Instance, primary: int, reason: FailReason) -> Refusal:
    cause = secondary_cause(node, instance, reason)
    return Refusal(reason, cause, f"{node.facts.name}: {_secondary_detail(node, instance, cause, primary)}")


def bounds_detail(policy: InstancePolicy, instance: Instance, *, exclusive: bool) -> str:
    """Return the bounds of the nearest pair that the instance breaks, each with the value and the range."""
    pairs = policy.minmax
    number = min(range(len(pairs)), key=lambda place: pair_distance(pairs[place], instance, exclusive=exclusive))
    found = []
    for name, value, low, high in _compared(pairs[number], instance, exclusive=exclusive):
        shown = exact_size if name in SPEC_SIZES else str
        if value is None:
            found.append(f"{name} unknown ({shown(low)} to {shown(high)})")
        elif not low <= value <= high:
            found.append(f"{name} {shown(value)} ({shown(low)} to {shown(high)})")
    return f"{', '.join(dict.fromkeys(found))} (size {number + 1} of {len(pairs)})"


def pair_distance(pair: SpecPair, instance: Instance, *, exclusive: bool) -> float:
    """Return how far the instance lies outside the pair."""
    compared = _compared(pair, instance, exclusive=exclusive)
    return spec_distance((value, low, high) for _, value, low, high in compared if value is not None)


def _compared(pair: SpecPair, instance: Instance, *, exclusive: bool) -> list[tuple[str, int | None, int, int]]:
    """Return the values of the instance that a pair bounds (None: unknown), each with its name and range."""
    spindles = instance.total_spindles if exclusive else instance.spindle_use
    sizes = sorted(disk.size for disk in instance.disks)
    has_disks = instance.template is not DiskTemplate.DISKLESS
    return [
        ("memory-size", instance.memory, pair.min.memory, pair.max.memory),
        *(("disk-size", size, pair.min.disk_size, pair.max.disk_size) for size in sizes),
        ("cpu-count", instance.vcpus, pair.min.cpus, pair.max.cpus),
        ("spindle-use", spindles, pair.min.spindle_use, pair.max.spindle_use),
        *([("disk-count", len(instance.disks), pair.min.disk_count, pair.max.disk_count)] if has_disks else []),
    ]


def _primary_detail(node: Node, instance: Instance, cause: Cause) -> str:
    facts = node.facts
    memory = instance.memory if instance.uses_memory else 0
    match cause:
        case Cause.MEMORY:
            return short_of(node, "memory", memory, min(node.unallocated_memory, node.forth_free_memory))
        case Cause.RESERVE:
            wanted, free, kept = compared_sizes(memory, node.unallocated_memory, node.reserved_memory)
            return f"{wanted} memory wanted, {free} free, of which {kept} are reserved for failovers"
        case Cause.VCPU_RATIO:
            used = max(node.used_cpus, node.forth_used_cpus) + (instance.vcpus if instance.online else 0)
            ratio = divide(used, facts.total_cpus)
            return (
                f"{count(used, 'virtual CPU')} on {facts.total_cpus:g} CPUs: {ratio:.4g}, allowed {facts.vcpu_ratio:g}"
            )
        case Cause.TAGS:
            return f"has {', '.join(tag for tag in instance.exclusion_tags if tag in node.exclusion_tags)} already"
        case Cause.BOUNDS:
            return bounds_detail(facts.policy, instance, exclusive=facts.exclusive)
        case Cause.TEMPLATE:
            allowed = ", ".join(template.value for template in facts.policy.templates) or "none"
            return f"{instance.template.value} wanted, allowed: {allowed}"
    return _storage_detail(node, instance, cause)


def _secondary_detail(node: Node, instance: Instance, cause: Cause, primary: int) -> str:
    memory = instance.memory if instance.needs_secondary_memory else 0
    match cause:
        case Cause.MEMORY:
            return short_of(node, "memory for a failover", memory, min(node.unallocated_memory, node.forth_free_memory))
        case Cause.RESERVE:
            to_keep = max(node.reserved_memory, node.peers.get(primary, 0) + memory)
            kept, free = compared_sizes(to_keep, node.unallocated_memory)
            return f"would have to reserve {kept} memory for failovers, {free} free"
    return _storage_detail(node, instance, cause)


def _storage_detail(node: Node, instance: Instance, cause: Cause) -> str:
    facts = node.facts
    match cause:
        case Cause.DISK:
            text = short_of(node, "disk", instance.disk, min(node.free_disk, node.forth_free_disk))
            return f"{text}, {rough_size(facts.low_disk)} must stay free" if facts.low_disk else text
        case Cause.SPINDLE_RATIO:
            use = max(node.instance_spindles, node.forth_instance_spindles)
            after = node_changes.spindle_use_after(node, instance, use, 1)
            return f"spindle use {after:g}, allowed {facts.high_spindles:g}"
        case Cause.SPINDLES:
            wanted = instance.total_spindles
            if wanted is None:
                return "the spindles of its disks are not given"
            return f"{count(wanted, 'spindle')} wanted, {min(node.free_spindles, node.forth_free_spindles)} free"
    return cause.sentence


def short_of(node: Node, what: str, wanted: int, free: int) -> str:
    """Return that `node` has too little of something (MiB)."""
    if node.facts.offline:
        return f"offline or drained, so none of its {what.split(maxsplit=1)[0]} counts as free"
    rest = ", of which 1M must stay free" if wanted == free else ""
    shown_wanted, shown_free = compared_sizes(wanted, free)
    return f"{shown_wanted} {what} wanted, {shown_free} free{rest}"


@dataclass(frozen=True, slots=True)
class Room:
    """The sum of the resources of online nodes for instances."""

    memory: int
    disk: int
    cpus: int
    spindles: int | None
    spindle_use: int | None


@dataclass(frozen=True, slots=True)
class Stranded:
    """What online nodes have for instances, summed."""

    free: Room
    left: Room


def room(nodes: Iterable[Node]) -> Room:
    """Return the free resources of the online ones of `nodes`."""
    online = [node for node in nodes if not node.facts.offline]
    exclusive = [node for node in online if node.facts.exclusive]
    ordinary = [node for node in online if not node.facts.exclusive]
    return Room(
        memory=sum(node.available_memory for node in online),
        disk=sum(node.available_disk for node in online),
        cpus=sum(node.available_cpus for node in online),
        spindles=sum(max(0, node.free_spindles) for node in exclusive) if exclusive else None,
        spindle_use=sum(_spindle_use(node) for node in ordinary) if ordinary or not online else None,
    )


def _spindle_use(node: Node) -> int:
    left = node.facts.high_spindles - node.instance_spindles
    return max(0, floor(left)) if isfinite(left) else 0
