"""Checking every number of an observed cluster against the bounds in `gpolicy.ganeti.number_bounds`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NoReturn

from gpolicy.cluster.record import shown
from gpolicy.cluster.state import ClusterState, Instance, Node, Resources
from gpolicy.errors import InputError
from gpolicy.ganeti.number_bounds import BOUNDED_FAMILIES, BOUNDS
from gpolicy.ganeti.parameter import Value, Values

_OF_INSTANCE: Final = ("minmem", "maxmem", "vcpus", "spindle_use", "oper_ram", "nic_count")
_OF_DISK: Final = ("size", "spindles")
_OF_VOLUME: Final = ("size", "free", "used")


def check_numbers(state: ClusterState, where: str) -> None:
    """Raise InputError, which begins with `where`, if the state has a number that no cluster can have."""
    _check_values(state.cluster.own, f"{where}: cluster")
    for group in state.groups.values():
        _check_values(group.own, f"{where}: group {shown(group.name)}")
        _check_values(group.effective, f"{where}: group {shown(group.name)}")
    for node in state.nodes.values():
        _check_node(node, f"{where}: node {shown(node.name)}")
    for instance in state.instances.values():
        _check_instance(instance, f"{where}: instance {shown(instance.name)}")


def _check_node(node: Node, where: str) -> None:
    _check_values(node.own, where)
    for name in Resources.__slots__:
        number = getattr(node.resources, name)
        if _is_refused(name, number):
            _refuse(where, name, name, number)
    for name in ("disk", "spindles"):
        total, free = getattr(node.resources, f"{name}_total"), getattr(node.resources, f"{name}_free")
        if None not in (total, free) and free > total + 1:  # figures are rounded
            raise InputError(
                f"{where}: {name}_free is {free}, but {name}_total {total}", hint="correct it at its source"
            )
    for volume in node.physical_volumes or ():
        for name in _OF_VOLUME:
            number = getattr(volume, name)
            if _is_refused(name, number):
                _refuse(f"{where}: physical volume {shown(volume.name)}", name, name, number)
        if volume.free > volume.size + 1:  # LVM's figures are rounded
            message = f"physical volume {shown(volume.name)} has {volume.free} MiB free of {volume.size} MiB"
            raise InputError(f"{where}: {message}", hint="correct it at its source")
    listed = Counter(volume.name for volume in node.physical_volumes or ())
    # LVM calls each volume that is gone "[unknown]"
    twice = next((name for name, times in listed.items() if times > 1 and "unknown" not in name), None)
    if twice is not None:
        raise InputError(f"{where}: physical volume {shown(twice)} is listed twice", hint="correct it at its source")
    if "" in listed:
        raise InputError(f"{where}: a physical volume has no name", hint="correct it at its source")


def _check_instance(instance: Instance, where: str) -> None:
    for name in _OF_INSTANCE:
        number = getattr(instance, name)
        if _is_refused(name, number):
            _refuse(where, name, name, number)
    for place, disk in enumerate((*instance.disks, instance.summed_disk)):
        for name in _OF_DISK:
            number = None if disk is None else getattr(disk, name)
            if _is_refused(name, number):
                which = f"disk {place}" if place < len(instance.disks) else "all disks"
                _refuse(where, f"{name} of {which}", name, number)


def _check_values(values: Values, where: str) -> None:
    for path, value in values.items():
        if path[0] not in BOUNDED_FAMILIES:
            continue
        if path == ("ipolicy", "minmax"):
            for title, name, number in _spec_numbers(value):
                if _is_refused(name, number):
                    _refuse(where, f"ipolicy.minmax: {title}: {name}", name, number)
        elif _is_refused(path[-1], value):
            _refuse(where, ".".join(map(shown, path)), path[-1], value)


def _spec_numbers(pairs: Value) -> Iterator[tuple[str, str, Value]]:
    for place, pair in enumerate(pairs if isinstance(pairs, list) else [], start=1):
        for end, spec in (pair if isinstance(pair, dict) else {}).items():
            for name, number in (spec if isinstance(spec, dict) else {}).items():
                yield f"{end} of pair {place}", name, number


def _is_refused(name: str, number: Value) -> bool:
    """Return whether `number`, if it is one, is outside the bound of `name`, if there is one."""
    if not isinstance(number, int | float) or isinstance(number, bool):
        return False
    bound = BOUNDS.get(name)
    return bound is not None and bound.refusal(number) != ""


def _refuse(where: str, field: str, name: str, number: Value) -> NoReturn:
    """Refuse a number that the message calls `field`."""
    assert isinstance(number, int | float)  # noqa: S101 - others are not refused
    bound = BOUNDS[name]
    unit = f" {bound.unit}" if bound.unit else ""
    message = f"{where}: {field} is {shown(str(number))}{unit}: {bound.refusal(number)}"
    raise InputError(message, hint="correct it at its source: computing with such a number would not end")
