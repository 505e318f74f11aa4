"""What becomes of an instance on every node at once: the first reason against it, as arrays.

The same checks in the same order as `gpolicy.allocator.node_changes`, written backwards: later checks
are filled in first, earlier ones overwrite them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.arrays import HUGE
from gpolicy.allocator.kinds import DiskTemplate, FailReason
from gpolicy.allocator.model import Policy, Spec, SpecPair
from gpolicy.allocator.policy_check import check_policy

if TYPE_CHECKING:
    from gpolicy.allocator.arrays import Bools, Ints, NodeArrays
    from gpolicy.allocator.model import Instance

OK = len(FailReason)
"""Code of a node that takes the instance."""
_MEM, _DISK, _CPU = int(FailReason.MEM), int(FailReason.DISK), int(FailReason.CPU)
_SPINDLES = int(FailReason.SPINDLES)


@dataclass(frozen=True, slots=True)
class Demand:
    """What an instance needs, as the checks need it (MiB)."""

    memory: int
    used_memory: int
    kept_memory: int
    disk: int
    cpus: int
    spindles: int | None
    spindle_use: int
    local: bool
    mirrored: bool

    @staticmethod
    def of(instance: Instance) -> Demand:
        """Return the demand of `instance`."""
        return Demand(
            memory=instance.memory,
            used_memory=instance.memory if instance.uses_memory else 0,
            kept_memory=instance.memory if instance.needs_secondary_memory else 0,
            disk=instance.disk,
            cpus=instance.vcpus if instance.online else 0,
            spindles=instance.total_spindles,
            spindle_use=instance.spindle_use,
            local=instance.template.local,
            mirrored=instance.template is DiskTemplate.DRBD,
        )


def spindles_left(arrays: NodeArrays, free: Ints, demand: Demand) -> Ints:
    """Return free spindles after adding; negative where it does not fit."""
    if not arrays.any_exclusive:
        return np.zeros_like(free)
    left = free - demand.spindles if demand.spindles is not None else np.full_like(free, -1)
    return np.where(arrays.exclusive, left, 0)


def policy_codes(arrays: NodeArrays, instance: Instance, free: frozenset[FailReason] = frozenset()) -> Ints:
    """Return the verdict of each node's policy, its bounds on the resources in `free` taken away."""
    codes = np.empty(len(arrays.policies), dtype=np.int64)
    for place, (policy, exclusive) in enumerate(arrays.policies):
        asked = without_limits(policy, free) if free else policy
        verdict = check_policy(asked, instance, exclusive=exclusive)
        codes[place] = OK if verdict is None else int(verdict)
    result: Ints = codes[arrays.policy_of]
    return result


def without_limits(policy: Policy, free: frozenset[FailReason]) -> Policy:
    """Return `policy` with the bounds on the resources in `free` taken away."""

    def opened(spec: Spec, bound: int) -> Spec:
        return replace(
            spec,
            memory=bound if FailReason.MEM in free else spec.memory,
            disk_size=bound if FailReason.DISK in free else spec.disk_size,
            cpus=bound if FailReason.CPU in free else spec.cpus,
            spindle_use=bound if FailReason.SPINDLES in free else spec.spindle_use,
        )

    pairs = tuple(SpecPair(opened(pair.min, -HUGE), opened(pair.max, HUGE)) for pair in policy.minmax)
    return replace(policy, minmax=pairs)


def primary_codes(arrays: NodeArrays, instance: Instance, demand: Demand, policy: Ints, *, force: bool) -> Ints:
    """Return for each node the first reason against `instance` as a primary, or OK."""
    codes = np.full(len(arrays.nodes), OK, dtype=np.int64)
    if not force:
        _forth_primary(arrays, demand, codes)
        if instance.exclusion_tags:
            tags = instance.exclusion_tags
            clash = [any(tag in node.exclusion_tags for tag in tags) for node in arrays.nodes]
            codes[np.array(clash, dtype=bool)] = int(FailReason.TAGS)
        ratio = (arrays.cpus + demand.cpus) / arrays.total_cpus
        codes[(arrays.vcpu_ratio >= 0) & (arrays.vcpu_ratio < ratio)] = _CPU
    free = arrays.unallocated - demand.used_memory
    if not force:
        codes[(free <= arrays.reserved) & ~arrays.fails] = _MEM
    if demand.local:
        disk = arrays.disk - demand.disk
        if not force:
            codes[~arrays.exclusive & (arrays.spindle_use + demand.spindle_use > arrays.high_spindles)] = _DISK
            codes[arrays.exclusive & (arrays.high_spindles < 0)] = _DISK
        if arrays.any_exclusive:
            codes[spindles_left(arrays, arrays.free_spindles, demand) < 0] = _SPINDLES
        codes[(disk <= 0) if force else (disk <= 0) | (disk < arrays.low_disk)] = _DISK
    codes[free <= 0] = _MEM
    refused = policy != OK
    codes[refused] = policy[refused]
    return codes


def _forth_primary(arrays: NodeArrays, demand: Demand, codes: Ints) -> None:
    ratio = (arrays.forth_cpus + demand.cpus) / arrays.total_cpus
    codes[(arrays.vcpu_ratio >= 0) & (arrays.vcpu_ratio < ratio)] = _CPU
    if demand.local:
        use = arrays.forth_spindle_use + demand.spindle_use
        codes[~arrays.exclusive & (use > arrays.high_spindles)] = _DISK
        codes[arrays.exclusive & (arrays.high_spindles < 0)] = _DISK
        if arrays.any_exclusive:
            codes[spindles_left(arrays, arrays.forth_spindles, demand) < 0] = _SPINDLES
        disk = arrays.forth_disk - demand.disk
        codes[(disk <= 0) | (disk < arrays.low_disk)] = _DISK
    codes[arrays.forth_memory - demand.memory <= 0] = _MEM


@dataclass(frozen=True, slots=True)
class SecondaryCodes:
    """Outcomes as a secondary, first for a primary that the node keeps no memory for yet.

    `before` are the verdicts of the checks before the reservation is looked at, `after` those of the
    ones after it; `codes` is all of them together.
    """

    before: Ints
    after: Ints
    codes: Ints
    reserved: Ints


def secondary_codes(arrays: NodeArrays, demand: Demand) -> SecondaryCodes:
    """Return for each node the first reason against a mirrored instance as a secondary."""
    count = len(arrays.nodes)
    after = np.full(count, OK, dtype=np.int64)
    before = np.full(count, OK, dtype=np.int64)
    after[demand.kept_memory >= arrays.forth_memory] = _MEM
    use = arrays.forth_spindle_use + demand.spindle_use
    after[~arrays.exclusive & (use > arrays.high_spindles)] = _DISK
    before[demand.kept_memory >= arrays.unallocated] = _MEM
    before[~arrays.exclusive & (arrays.spindle_use + demand.spindle_use > arrays.high_spindles)] = _DISK
    for codes, free_spindles, free_disk in (
        (after, arrays.forth_spindles, arrays.forth_disk),
        (before, arrays.free_spindles, arrays.disk),
    ):
        codes[arrays.exclusive & (arrays.high_spindles < 0)] = _DISK
        if arrays.any_exclusive:
            codes[spindles_left(arrays, free_spindles, demand) < 0] = _SPINDLES
        disk = free_disk - demand.disk
        codes[(disk <= 0) | (disk < arrays.low_disk)] = _DISK
    reserved = np.maximum(arrays.reserved, demand.kept_memory)
    codes = after.copy()
    codes[(arrays.unallocated <= reserved) & ~arrays.fails] = _MEM
    refused = before != OK
    codes[refused] = before[refused]
    return SecondaryCodes(before, after, codes, reserved)


def known_peer_codes(
    arrays: NodeArrays, demand: Demand, secondary: SecondaryCodes, primaries: Ints, secondaries: Ints
) -> tuple[Ints, Ints]:
    """Return the outcomes of the given pairs, and the reservation that each would lead to."""
    peers = arrays.peers[primaries, secondaries] + demand.kept_memory
    reserved = np.maximum(arrays.reserved[secondaries], peers)
    codes = secondary.after[secondaries]
    codes[(arrays.unallocated[secondaries] <= reserved) & ~arrays.fails[secondaries]] = _MEM
    before = secondary.before[secondaries]
    refused = before != OK
    codes[refused] = before[refused]
    return codes, reserved


def boundaries(arrays: NodeArrays, reason: FailReason, *, mirrored: bool) -> Ints | None:
    """Return the demands at which an outcome changes when only memory (or disk) varies.

    Every check compares the demand with one of these numbers (`demand >= number`), so outcomes are the
    same for all demands between two of them. None for a resource that is not handled this way.
    """
    if reason is FailReason.MEM:
        numbers = [arrays.unallocated, arrays.unallocated - arrays.reserved, arrays.forth_memory]
        if mirrored:
            _, secondaries, memory = arrays.peer_pairs()
            numbers.append(arrays.unallocated[secondaries] - memory)
        return np.concatenate(numbers)
    if reason is FailReason.DISK:
        low = arrays.low_disk - 1
        return np.concatenate([arrays.disk, arrays.disk - low, arrays.forth_disk, arrays.forth_disk - low])
    return None


def candidates_mask(arrays: NodeArrays, keys: tuple[int, ...]) -> Bools:
    """Return which rows belong to the nodes `keys`."""
    mask = np.zeros(len(arrays.nodes), dtype=bool)
    mask[[arrays.row_of[key] for key in keys]] = True
    return mask
