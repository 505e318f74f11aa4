"""Add an instance to a node and remove it, with all checks and derived values.

The order of the checks decides the reported reason, and the order of the operations the last bit of the ratios.
Ordinary additions keep the limits of the policy and N+1; forced ones fail only without memory, disk or spindles.
"""

from __future__ import annotations

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance, Load, Node, NodeData
from gpolicy.allocator.ghc_numbers import divide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Key = TypeVar("Key")
    Result = TypeVar("Result")


def add_primary(node: Node, instance: Instance, *, force: bool = False) -> Node | FailReason:
    """Return `node` with `instance` as a new primary, or the first reason against it."""
    forth = _forth_primary_reason(node, instance) if not force else None
    if instance.forthcoming:
        return forth if forth is not None else _count_primary(node.copy(), instance, 1)
    facts, local = node.facts, instance.template.local
    memory = node.instance_memory + (instance.memory if instance.uses_memory else 0)
    unallocated = node.unallocated_memory - (memory - node.instance_memory)
    disk = node.free_disk - instance.disk if local else node.free_disk
    spindles = spindles_after(node, instance, node.free_spindles)
    spindle_use = spindle_use_after(node, instance, node.instance_spindles, 1)
    cpus = node.used_cpus + (instance.vcpus if instance.online else 0)
    cpu_ratio = divide(cpus, facts.total_cpus)
    fails_n1 = unallocated <= node.reserved_memory
    short = FailReason.MEM if unallocated <= 0 else None
    if short is None and local:
        short = _short_of_disk(facts, disk, spindles, spindle_use, force=force)
    if short is not None:
        return short
    if not force:
        if fails_n1 and not node.fails_n1:
            return FailReason.MEM
        if facts.vcpu_ratio >= 0 and facts.vcpu_ratio < cpu_ratio:
            return FailReason.CPU
        if any(tag in node.exclusion_tags for tag in instance.exclusion_tags):
            return FailReason.TAGS
        if forth is not None:
            return forth
    new = node.copy()
    new.primaries = (instance.index, *node.primaries)
    new.instance_memory = memory
    new.free_disk = disk
    new.fails_n1 = fails_n1
    new.ratio_memory = node.memory_ratio(unallocated)
    new.ratio_disk = facts.disk_ratio(spindles, disk)
    new.used_cpus = cpus
    new.ratio_cpu = cpu_ratio
    new.load = add_load(node.load, instance.load)
    new.instance_spindles = spindle_use
    new.free_spindles = spindles
    new.location_score = node.location_score + instance.location_score + desired_misses(node, instance)
    new.location_exclusions = with_counts(node.location_exclusions, exclusion_keys(node, instance), 1)
    return _count_primary(new, instance, 1)


def lacks_memory(node: Node, instance: Instance) -> bool:
    """Whether `add_primary` refuses the instance for lack of memory, even forced: a fraction of the time."""
    return instance.uses_memory and not instance.forthcoming and node.unallocated_memory <= instance.memory


def add_secondary(
    node: Node, instance: Instance, primary: int, *, force: bool = False, ignore_disk: bool = False
) -> Node | FailReason:
    """Return `node` with `instance`, whose primary node is `primary`, as a new secondary, or a reason."""
    forth = _forth_secondary_reason(node, instance) if not force else None
    if instance.forthcoming:
        return forth if forth is not None else _count_secondary(node.copy(), instance, 1)
    facts = node.facts
    needed = instance.memory if instance.needs_secondary_memory else 0
    peer_memory = node.peers.get(primary, 0) + needed
    disk = node.free_disk - instance.disk
    spindles = spindles_after(node, instance, node.free_spindles)
    spindle_use = spindle_use_after(node, instance, node.instance_spindles, 1)
    reserved = max(node.reserved_memory, peer_memory)
    unallocated = node.unallocated_memory
    fails_n1 = unallocated <= reserved
    if instance.template is not DiskTemplate.DRBD:
        return FailReason.DISK
    short = _short_of_disk(facts, disk, spindles, spindle_use, force=force, ignore_disk=ignore_disk)
    if short is not None:
        return short
    if not force:
        if needed >= unallocated or (fails_n1 and not node.fails_n1):
            return FailReason.MEM
        if forth is not None:
            return forth
    new = node.copy()
    new.secondaries = (instance.index, *node.secondaries)
    new.free_disk = disk
    new.peers = {key: value for key, value in node.peers.items() if key != primary}
    new.peers[primary] = peer_memory
    new.fails_n1 = fails_n1
    new.reserved_memory = reserved
    new.ratio_reserved = node.memory_ratio(reserved)
    new.ratio_disk = facts.disk_ratio(spindles, disk)
    new.load = add_disk_load(node.load, instance.load)
    new.instance_spindles = spindle_use
    new.free_spindles = spindles
    return _count_secondary(new, instance, 1)


def remove_primary(node: Node, instance: Instance) -> Node:
    """Return `node` without its primary `instance`."""
    new = node.copy()
    if not instance.forthcoming:
        _leave(new, node, instance)
        new.primaries = without_first(node.primaries, instance.index)
        new.instance_memory = node.instance_memory - (instance.memory if instance.uses_memory else 0)
        new.used_cpus = node.used_cpus - (instance.vcpus if instance.online else 0)
        new.fails_n1 = new.unallocated_memory <= node.reserved_memory
        new.ratio_memory = node.memory_ratio(new.unallocated_memory)
        new.ratio_cpu = divide(new.used_cpus, node.facts.total_cpus)
        new.load = add_load(node.load, instance.load, -1)
        new.location_score = node.location_score - instance.location_score - desired_misses(node, instance)
        new.location_exclusions = with_counts(node.location_exclusions, exclusion_keys(node, instance), -1)
    return _count_primary(new, instance, -1)


def remove_secondary(node: Node, instance: Instance) -> Node:
    """Return `node` without its secondary `instance` (whose primary is `instance.primary`)."""
    new = node.copy()
    if not instance.forthcoming:
        _leave(new, node, instance)
        new.secondaries = without_first(node.secondaries, instance.index)
        old_peer = node.peers.get(instance.primary, 0)
        peer = old_peer - (instance.memory if instance.needs_secondary_memory else 0)
        new.peers = {key: value for key, value in node.peers.items() if key != instance.primary}
        if peer > 0:
            new.peers[instance.primary] = peer
        if old_peer >= node.reserved_memory:
            new.reserved_memory = max(new.peers.values(), default=0)
        new.fails_n1 = node.unallocated_memory <= new.reserved_memory
        new.ratio_reserved = node.memory_ratio(new.reserved_memory)
        new.load = add_disk_load(node.load, instance.load, -1)
    return _count_secondary(new, instance, -1)


def _leave(new: Node, node: Node, instance: Instance) -> None:
    """Give `new` the disk and the spindles of `node` without `instance`."""
    new.free_disk = node.free_disk + (instance.disk if instance.template.local else 0)
    new.free_spindles = spindles_after(node, instance, node.free_spindles, -1)
    new.instance_spindles = spindle_use_after(node, instance, node.instance_spindles, -1)
    new.ratio_disk = node.facts.disk_ratio(new.free_spindles, new.free_disk)


def keeps_vcpu_ratio(node: Node, instance: Instance) -> bool:
    """Whether `node` keeps its vcpu-ratio with `instance` as a new primary; one that uses no CPU breaks none."""
    cpus = instance.vcpus if instance.online and not instance.forthcoming else 0
    return cpus <= 0 or not 0 <= node.facts.vcpu_ratio < divide(node.used_cpus + cpus, node.facts.total_cpus)


def accepted(result: Result | FailReason) -> Result:
    """Return the changed node of an addition, or what else must be possible."""
    if isinstance(result, FailReason):
        raise AssertionError(  # noqa: TRY004 - no wrong type, but two engines that disagree
            f"the engine and the node model disagree: {result.title}"
        )
    return result


def spindles_after(node: Node, instance: Instance, free: int, sign: int = 1) -> int:
    """Free spindles with `instance` added (sign 1) or removed (-1).

    If its own number is unknown, added it makes them -1 (which fails), and removed it changes nothing.
    """
    if not node.facts.exclusive:
        return 0
    total = instance.total_spindles
    if total is None:
        return -1 if sign > 0 else free
    return free - sign * total


def spindle_use_after(node: Node, instance: Instance, used: float, sign: int) -> float:
    """Spindle use of the node's instances with `instance` added (sign 1) or removed (sign -1)."""
    if node.facts.exclusive:
        return 0.0
    return used + sign * instance.spindle_use if instance.template.local else used


def desired_misses(node: Node, instance: Instance) -> int:
    """The number of the instance's desired locations that the node lacks."""
    desired = instance.desired_tags
    return len(desired) - len(desired & node.facts.location_tags)


def with_counts(counts: dict[Key, int], keys: tuple[Key, ...], change: int) -> dict[Key, int]:
    """Return `counts` with the counts of `keys` changed, without entries that fall to 0 or below."""
    if not keys:
        return counts
    new = dict(counts)
    for key in keys:
        value = new.get(key, 0) + change
        if value > 0:
            new[key] = value
        else:
            new.pop(key, None)
    return new


def without_first(items: tuple[int, ...], item: int) -> tuple[int, ...]:
    """Return `items` without the first `item`, if there is one."""
    if item not in items:
        return items
    place = items.index(item)
    return items[:place] + items[place + 1 :]


def add_load(load: Load, more: Load, sign: int = 1) -> Load:
    """Component-wise sum, with sign -1 difference."""
    return (load[0] + sign * more[0], load[1] + sign * more[1], load[2] + sign * more[2], load[3] + sign * more[3])


def add_disk_load(load: Load, more: Load, sign: int = 1) -> Load:
    """Sum (with sign -1 difference) of the disk component only: the load of an instance on its secondary."""
    return (load[0], load[1], load[2] + sign * more[2], load[3])


def exclusion_keys(node: Node, instance: Instance) -> tuple[tuple[str, str], ...]:
    """The pairs of the node's locations and the instance's exclusion tags."""
    locations = sorted(node.facts.location_tags) if instance.exclusion_tags else ()
    return tuple((location, tag) for location in locations for tag in instance.exclusion_tags)


def _short_of_disk(
    facts: NodeData, disk: int, spindles: int, spindle_use: float, *, force: bool = False, ignore_disk: bool = False
) -> FailReason | None:
    """Return the reason against a node that would have this left, and this spindle use; `force` ignores soft limits."""
    if (disk <= 0 and not ignore_disk) or (disk < facts.low_disk and not force):
        return FailReason.DISK
    if facts.exclusive and spindles < 0:
        return FailReason.SPINDLES
    return FailReason.DISK if spindle_use > facts.high_spindles and not force else None


def _forth_short_of_disk(node: Node, instance: Instance) -> FailReason | None:
    spindles = spindles_after(node, instance, node.forth_free_spindles)
    spindle_use = spindle_use_after(node, instance, node.forth_instance_spindles, 1)
    return _short_of_disk(node.facts, node.forth_free_disk - instance.disk, spindles, spindle_use)


def _forth_primary_reason(node: Node, instance: Instance) -> FailReason | None:
    if node.forth_free_memory - instance.memory <= 0:
        return FailReason.MEM
    short = _forth_short_of_disk(node, instance) if instance.template.local else None
    cpus = node.forth_used_cpus + (instance.vcpus if instance.online else 0)
    if short is None and 0 <= node.facts.vcpu_ratio < divide(cpus, node.facts.total_cpus):
        return FailReason.CPU
    return short


def _forth_secondary_reason(node: Node, instance: Instance) -> FailReason | None:
    if instance.template is not DiskTemplate.DRBD:
        return FailReason.DISK
    needed = instance.memory if instance.needs_secondary_memory else 0
    short = _forth_short_of_disk(node, instance)
    return FailReason.MEM if short is None and needed >= node.forth_free_memory else short


def _count_primary(new: Node, instance: Instance, sign: int) -> Node:
    """Count a primary more (sign 1) or less (-1) in tags and values with forthcoming instances; return `new`."""
    new.exclusion_tags = with_counts(new.exclusion_tags, instance.exclusion_tags, sign)
    new.forth_free_memory -= sign * instance.memory
    new.forth_used_cpus += sign * (instance.vcpus if instance.online else 0)
    new.forth_load = add_load(new.forth_load, instance.load, sign)
    new.forth_ratio_memory = new.memory_ratio(new.forth_free_memory)
    new.forth_ratio_cpu = divide(new.forth_used_cpus, new.facts.total_cpus)
    return _count_disk(new, instance, sign)


def _count_secondary(new: Node, instance: Instance, sign: int) -> Node:
    """Count a secondary more (sign 1) or less (-1) in the values with forthcoming instances; return `new`."""
    new.forth_load = add_disk_load(new.forth_load, instance.load, sign)
    return _count_disk(new, instance, sign)


def _count_disk(new: Node, instance: Instance, sign: int) -> Node:
    if instance.template.local:
        new.forth_free_disk -= sign * instance.disk
    new.forth_free_spindles = spindles_after(new, instance, new.forth_free_spindles, sign)
    new.forth_instance_spindles = spindle_use_after(new, instance, new.forth_instance_spindles, sign)
    new.forth_ratio_disk = new.facts.disk_ratio(new.forth_free_spindles, new.forth_free_disk)
    return new
