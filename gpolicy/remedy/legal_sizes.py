"""The nearest size that the policy allows, for instances whose size it does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, Disk, FailReason
from gpolicy.allocator.instance_moves import Moved
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.analysis.place_report import nearest_within
from gpolicy.analysis.violations import AllowedSizes, ParameterBreach, PolicyViolation, distance, verdict_on
from gpolicy.cluster.state import LiveInstance
from gpolicy.ganeti.amounts import SIZE_STEP_MIB, round_size
from gpolicy.ganeti.commands import Command, call
from gpolicy.ganeti.vocabulary import SPEC_SIZES, Value
from gpolicy.remedy.faults import Layout, shortage

_BACKEND: Final = {"maxmem": "M", "minmem": "M", "vcpus": "", "spindle_use": ""}
"""The parameters of an instance's size, with their units on the command line."""
_FIXED: Final = {
    "disk-templates": "no size cures a disk template: `gnt-instance modify -t` changes it while the instance is down",
    "spindles": "Ganeti does not record spindles of disks that exist: only new disks have some",
    "disk-count": "it would need another number of disks",
    "nic-count": "it would need another number of network interfaces",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCure:
    """An instance whose size violates the policy: the commands that make it legal, or why none do.

    `violation` names the size that the commands lead to, with its breaches; where none do, the one that
    Ganeti names.
    """

    instance: str
    violation: PolicyViolation
    commands: tuple[Command, ...] = ()
    back: tuple[Command, ...] = ()
    reason: str = ""


def size_cure(
    observed: LiveInstance, violation: PolicyViolation, policy: AllowedSizes, layout: Layout
) -> tuple[SizeCure, Layout]:
    """Return the nearest legal size of an instance that its nodes can hold, and the layout with it."""
    exclusive = violation.exclusive_storage
    reasons: list[tuple[float, str]] = []
    sizes = []
    for number, (pair, name) in enumerate(zip(policy.pairs, policy.names, strict=True), start=1):
        alone = replace(policy, pairs=(pair,), names=(name,))
        found = verdict_on(observed, alone, exclusive=exclusive, memory=observed.maxmem).violation or violation
        far = distance(found.breaches)
        if refused := next(filter(None, (_why_not(breach, exclusive=exclusive) for breach in found.breaches)), None):
            reasons.append((far, refused))
        elif wanted := _changed(observed, found.breaches, *pair):
            sizes.append((far, replace(found, pair=number), wanted))
        else:
            reasons.append((far, "no value within the size is a multiple of 4M"))
    for _, aim, wanted in sorted(sizes, key=lambda item: item[0]):
        after = _with_size(layout, observed, wanted)
        if isinstance(after, Layout):
            commands, back = list(_commands(observed, wanted)), list(_commands(wanted, observed))
            return SizeCure(instance=observed.name, violation=aim, commands=tuple(commands), back=tuple(back)), after
        reasons.append((0, after))
    reason = min(reasons, key=lambda item: item[0])[1] if reasons else "the policy has no size"
    return SizeCure(instance=observed.name, violation=violation, reason=reason), layout


def _why_not(breach: ParameterBreach, *, exclusive: bool) -> str:
    if breach.parameter in _FIXED:
        return _FIXED[breach.parameter]
    if breach.parameter == "disk-size" and (breach.beyond or 0) > 0:
        return f"disk {breach.disk} is too large, and Ganeti does not shrink disks"
    return _FIXED["spindles"] if breach.parameter == "spindle-use" and exclusive else ""


def _changed(
    item: LiveInstance, breaches: tuple[ParameterBreach, ...], low: Mapping[str, int], high: Mapping[str, int]
) -> LiveInstance | None:
    """Return the instance with the values within a size that are nearest to its own; None if there are none."""
    new = item
    for breach in breaches:
        name, value = breach.parameter, int(breach.value or 0)
        least, most = low.get(name, value), high.get(name, value)
        nearest = nearest_within(value, least, most, SIZE_STEP_MIB if name in SPEC_SIZES else 1)
        if not least <= nearest <= most:
            return None
        if name == "memory-size":
            lowest = min(round_size(low.get(name, 0)), nearest)
            minmem = nearest if item.minmem == item.maxmem else max(min(item.minmem, nearest), lowest)
            new = replace(new, maxmem=nearest, minmem=minmem)
        elif name == "cpu-count":
            new = replace(new, vcpus=nearest)
        elif name == "spindle-use":
            new = replace(new, spindle_use=nearest)
        elif breach.disk is not None:
            disks = (*new.disks[: breach.disk], replace(new.disks[breach.disk], size=nearest))
            new = replace(new, disks=(*disks, *new.disks[breach.disk + 1 :]))
    return new


def _commands(old: LiveInstance, new: LiveInstance) -> Iterator[Command]:
    names = [name for name in _BACKEND if getattr(new, name) != getattr(old, name)]
    body: dict[str, Value]
    if names:
        words = ",".join(f"{name}={getattr(new, name)}{_BACKEND[name]}" for name in names)
        body = {"beparams": {name: getattr(new, name) for name in names}}
        whole = round_size(new.maxmem) == new.maxmem and round_size(new.minmem) == new.minmem
        argv = ("gnt-instance", "modify", "-B", words, new.name) if whole else None
        yield Command(argv, call("PUT", ("instances", new.name, "modify"), body))
    for number, (was, now) in enumerate(zip(old.disks, new.disks, strict=True)):
        if now.size > was.size:
            body = {"amount": now.size, "absolute": True}
            request = call("POST", ("instances", new.name, "disk", str(number), "grow"), body)
            words_of_disk = (new.name, str(number), f"{now.size}M")
            yield Command(("gnt-instance", "grow-disk", "--absolute", *words_of_disk), request)


def _with_size(layout: Layout, observed: LiveInstance, wanted: LiveInstance) -> Layout | str:
    old = next(item for item in layout.instances.values() if item.name == observed.name)
    grown = sum(disk.size for disk in wanted.disks) - sum(disk.size for disk in observed.disks)
    new = replace(old, memory=wanted.maxmem, vcpus=wanted.vcpus, spindle_use=wanted.spindle_use)
    if grown:
        disks = tuple(Disk(disk.size, disk.spindles) for disk in wanted.disks)
        new = replace(new, disk=old.disk + grown, disks=disks)
    smaller = new.memory <= old.memory and new.vcpus <= old.vcpus and new.spindle_use <= old.spindle_use and not grown
    found = {old.primary: add_primary(remove_primary(layout.nodes[old.primary], old), new, force=smaller)}
    if old.secondary != NO_NODE:
        left = remove_secondary(layout.nodes[old.secondary], old)
        found[old.secondary] = add_secondary(left, new, old.primary, force=smaller)
    changed = {index: node for index, node in found.items() if not isinstance(node, FailReason)}
    if (full := next((index for index in found if index not in changed), None)) is not None:
        return f"{layout.nodes[full].facts.name} cannot hold its next legal size"
    after = layout.after(Moved(changed, new))
    if smaller:
        return after  # no loss takes more room than before
    worse = any(shortage(node) > shortage(layout.nodes[index]) for index, node in changed.items())
    worse = worse or len(after.homeless) > len(layout.homeless)
    return "with its next legal size, the loss of a node could not be absorbed" if worse else after
