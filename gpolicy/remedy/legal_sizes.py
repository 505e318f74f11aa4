"""The nearest size that the policy allows, for instances whose size it does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import Disk
from gpolicy.allocator.enumerations import NO_NODE, FailReason
from gpolicy.allocator.instance_moves import Moved
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.analysis.violations import AllowedSizes, ParameterBreach, PolicyViolation, verdict_on
from gpolicy.cluster.state import Instance
from gpolicy.remedy.commands import Command
from gpolicy.remedy.faults import Layout, shortage

_FIXED: Final = {
    "disk-templates": "no size cures a disk template: `gnt-instance modify -t` changes it while the instance is down",
    "spindles": "Ganeti does not record spindles of disks that exist: only new disks have some",
    "disk-count": "it would need another number of disks",
    "nic-count": "it would need another number of network interfaces",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCure:
    """An instance whose size violates the policy: the commands that make it legal, or why none do."""

    instance: str
    violation: PolicyViolation
    commands: tuple[Command, ...] = ()
    back: tuple[Command, ...] = ()
    reason: str = ""


def size_cure(
    observed: Instance, violation: PolicyViolation, policy: AllowedSizes, layout: Layout
) -> tuple[SizeCure, Layout]:
    """Return the nearest legal size of an instance that its nodes can hold, and the layout with it."""
    exclusive = violation.exclusive_storage
    reasons, sizes = [], []
    for number in range(len(policy.pairs)):
        alone = replace(policy, pairs=(policy.pairs[number],), names=(None,))
        found = verdict_on(observed, alone, exclusive=exclusive, memory=observed.maxmem).violation
        breaches = found.breaches if found else ()
        refused = next(filter(None, (_why_not(breach, exclusive=exclusive) for breach in breaches)), None)
        if refused is not None:
            reasons.append((len(breaches), refused))
        else:
            low, high = policy.pairs[number]
            sizes.append((_distance(breaches), number, _changed(observed, breaches, low, high)))
    for _, _, wanted in sorted(sizes, key=lambda item: item[:2]):
        after = _with_size(layout, observed, wanted)
        if isinstance(after, Layout):
            commands, back = list(_commands(observed, wanted)), list(_commands(wanted, observed))
            cure = SizeCure(instance=observed.name, violation=violation, commands=tuple(commands), back=tuple(back))
            return cure, after
        reasons.append((0, after))
    reason = min(reasons, key=lambda item: item[0])[1] if reasons else "the policy has no spec pair"
    return SizeCure(instance=observed.name, violation=violation, reason=reason), layout


def _why_not(breach: ParameterBreach, *, exclusive: bool) -> str:
    """Return why no command ends a breach; empty if one does."""
    if breach.parameter in _FIXED:
        return _FIXED[breach.parameter]
    if breach.parameter == "disk-size" and (breach.beyond or 0) > 0:
        return f"disk {breach.disk} is too large, and Ganeti does not shrink disks"
    if breach.parameter == "spindle-use" and exclusive:
        return _FIXED["spindles"]
    return ""


def _distance(breaches: tuple[ParameterBreach, ...]) -> tuple[int, float]:
    """Return how many values change, and by how much, each as a share of itself."""
    changes = [abs(breach.beyond or 0) / max(int(breach.value or 0), 1) for breach in breaches]
    return len(changes), sum(changes)


def _changed(
    item: Instance, breaches: tuple[ParameterBreach, ...], low: Mapping[str, int], high: Mapping[str, int]
) -> Instance:
    """Return the instance with the values within a spec pair that are nearest to its own."""
    new = item
    for breach in breaches:
        name, value = breach.parameter, int(breach.value or 0)
        nearest = min(max(value, low.get(name, value)), high.get(name, value))
        if name == "memory-size":
            least = min(low.get(name, 0), nearest)
            minmem = nearest if item.minmem == item.maxmem else max(min(item.minmem, nearest), least)
            new = replace(new, maxmem=nearest, minmem=minmem)
        elif name == "cpu-count":
            new = replace(new, vcpus=nearest)
        elif name == "spindle-use":
            new = replace(new, spindle_use=nearest)
        elif breach.disk is not None:
            disks = (*new.disks[: breach.disk], replace(new.disks[breach.disk], size=nearest))
            new = replace(new, disks=(*disks, *new.disks[breach.disk + 1 :]))
    return new


def _commands(old: Instance, new: Instance) -> Iterator[Command]:
    words = [
        f"{name}={getattr(new, name)}{unit}"
        for name, unit in (("maxmem", "M"), ("minmem", "M"), ("vcpus", ""), ("spindle_use", ""))
        if getattr(new, name) != getattr(old, name)
    ]
    if words:
        yield "gnt-instance", "modify", "-B", ",".join(words), new.name
    for number, (was, now) in enumerate(zip(old.disks, new.disks, strict=True)):
        if now.size > was.size:
            yield "gnt-instance", "grow-disk", "--absolute", new.name, str(number), f"{now.size}M"


def _with_size(layout: Layout, observed: Instance, wanted: Instance) -> Layout | str:
    """Return the layout with an instance of another size, or why its nodes cannot hold it."""
    old = next(item for item in layout.instances.values() if item.name == observed.name)
    grown = sum(disk.size for disk in wanted.disks) - sum(disk.size for disk in observed.disks)
    new = replace(
        old,
        memory=wanted.maxmem,
        vcpus=wanted.vcpus,
        spindle_use=wanted.spindle_use,
        disk=old.disk + grown,
        disks=old.disks if not grown else tuple(Disk(disk.size, disk.spindles) for disk in wanted.disks),
    )
    smaller = new.memory <= old.memory and new.vcpus <= old.vcpus and new.spindle_use <= old.spindle_use and not grown
    changed = {}
    primary = add_primary(remove_primary(layout.nodes[old.primary], old), new, force=smaller)
    if isinstance(primary, FailReason):
        return f"{layout.nodes[old.primary].facts.name} cannot hold its next legal size"
    changed[old.primary] = primary
    if old.secondary != NO_NODE:
        left = remove_secondary(layout.nodes[old.secondary], old)
        secondary = add_secondary(left, new, old.primary, force=smaller)
        if isinstance(secondary, FailReason):
            return f"{layout.nodes[old.secondary].facts.name} cannot hold its next legal size"
        changed[old.secondary] = secondary
    after = layout.after(Moved(changed, new))
    worse = any(shortage(node) > shortage(layout.nodes[index]) for index, node in changed.items())
    worse = worse or len(after.homeless) > len(layout.homeless)
    return "with its next legal size, the loss of a node could not be absorbed" if worse else after
