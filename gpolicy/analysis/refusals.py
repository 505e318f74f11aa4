"""Why a node or pair of nodes refuses an instance, in the policy's terms and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.cluster_data import Instance, InstancePolicy, SpecPair
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate, FailReason
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.node import Node
from gpolicy.allocator.node_changes import (
    add_primary,
    add_secondary,
    remove_primary,
    remove_secondary,
    spindle_use_after,
)
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.binding import (
    OF_POLICY,
    Cause,
    primary_cause,
    primary_refusal,
    secondary_cause,
)
from gpolicy.ganeti.parameters import spec_distance
from gpolicy.ganeti.units import compared_sizes, exact_size, rough_size
from gpolicy.ganeti.vocabulary import SPEC_SIZES
from gpolicy.printable import count

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
    if found is None:
        return None
    reason, cause = found
    detail = _primary_detail(node, instance, cause)
    return Refusal(reason, cause, detail if cause in OF_POLICY else f"{node.facts.name}: {detail}")


def as_secondary(node: Node, instance: Instance, primary: int) -> Refusal | None:
    """Return why `node` refuses `instance`, whose primary is node `primary`, as a secondary; None if it does not."""
    reason = add_secondary(node, instance, primary)
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
        if isinstance(add_secondary(other, instance, instance.primary, force=force), FailReason):
            return _on_secondary(other, instance, instance.primary, reason)
        return _on_primary(remove_primary(old, instance), instance, reason)
    taken = other if move.target != NO_NODE else remove_secondary(other, instance)
    if isinstance(add_primary(taken, instance, force=force or old.facts.offline), FailReason):
        return _on_primary(taken, instance, reason)
    return _on_secondary(remove_primary(old, instance), instance, instance.secondary, reason)


def _on_primary(node: Node, instance: Instance, reason: FailReason) -> Refusal:
    cause = primary_cause(node, instance, reason)
    return Refusal(reason, cause, f"{node.facts.name}: {_primary_detail(node, instance, cause)}")


def _on_secondary(node: Node, instance: Instance, primary: int, reason: FailReason) -> Refusal:
    cause = secondary_cause(node, instance, reason)
    return Refusal(reason, cause, f"{node.facts.name}: {_secondary_detail(node, instance, cause, primary)}")


def bounds_detail(policy: InstancePolicy, instance: Instance, *, exclusive: bool) -> str:
    """Return the bounds of the nearest pair that the instance breaks, each with the value and the range."""
    pairs = policy.minmax
    if not pairs:
        return "no pair"
    number = min(range(len(pairs)), key=lambda place: pair_distance(pairs[place], instance, exclusive=exclusive))
    found = []
    for name, value, low, high in _compared(pairs[number], instance, exclusive=exclusive):
        shown = exact_size if name in SPEC_SIZES else str
        if value is None:
            found.append(f"{name} unknown ({shown(low)} to {shown(high)})")
        elif not low <= value <= high:
            found.append(f"{name} {shown(value)} ({shown(low)} to {shown(high)})")
    return f"{', '.join(dict.fromkeys(found))} (pair {number + 1} of {len(pairs)})"


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
            after = spindle_use_after(node, instance, use, 1)
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
