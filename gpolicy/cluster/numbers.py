"""Every number of an observed cluster against what a cluster can have (`gpolicy.ganeti.bounds`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.cluster.json_input import shown
from gpolicy.cluster.state import ClusterState, Instance, Node, Resources
from gpolicy.errors import InputError
from gpolicy.ganeti.bounds import BOUNDED_FAMILIES, BOUNDS
from gpolicy.ganeti.parameter import Value, Values

_MEASURED: Final = tuple((name, BOUNDS[name]) for name in Resources.__slots__)
_OF_INSTANCE: Final = tuple(
    (name, BOUNDS[name]) for name in ("minmem", "maxmem", "vcpus", "spindle_use", "oper_ram", "nic_count")
)


def check_numbers(state: ClusterState, where: str) -> None:
    """Raise InputError, which begins with `where`, if the state has a number that no cluster can have."""
    _check_values(state.cluster.own, f"{where}: cluster")
    for group in state.groups.values():
        _check_values(group.own, f"{where}: group {group.name}")
        _check_values(group.effective, f"{where}: group {group.name}")
    for node in state.nodes.values():
        _check_node(node, f"{where}: node {node.name}")
    for instance in state.instances.values():
        _check_instance(instance, f"{where}: instance {instance.name}")


def _check_node(node: Node, where: str) -> None:
    _check_values(node.own, where)
    for name, bound in _MEASURED:
        number = getattr(node.resources, name)
        if number is not None and not bound.least <= number <= bound.most:
            _refuse(where, name, name, number)
    for volume in node.physical_volumes or ():
        for name in ("size", "free", "used"):
            _check(f"{where}: physical volume {volume.name}", name, name, getattr(volume, name))


def _check_instance(instance: Instance, where: str) -> None:
    for name, bound in _OF_INSTANCE:
        number = getattr(instance, name)
        if number is not None and not bound.least <= number <= bound.most:
            _refuse(where, name, name, number)
    for place, disk in enumerate(instance.disks):
        _check(where, f"size of disk {place}", "size", disk.size)
        _check(where, f"spindles of disk {place}", "spindles", disk.spindles)
    if instance.summed_disk is not None:
        _check(where, "size of all disks", "size", instance.summed_disk.size)
        _check(where, "spindles of all disks", "spindles", instance.summed_disk.spindles)


def _check_values(values: Values, where: str) -> None:
    for path, value in values.items():
        if path[0] not in BOUNDED_FAMILIES:
            continue
        if path == ("ipolicy", "minmax"):
            for title, name, number in _spec_numbers(value):
                _check(where, f"ipolicy.minmax: {title}: {name}", name, number)
        else:
            _check(where, ".".join(path), path[-1], value)


def _spec_numbers(pairs: Value) -> Iterator[tuple[str, str, Value]]:
    for place, pair in enumerate(pairs if isinstance(pairs, list) else [], start=1):
        for end, spec in (pair if isinstance(pair, dict) else {}).items():
            for name, number in (spec if isinstance(spec, dict) else {}).items():
                yield f"{end} of pair {place}", name, number


def _check(where: str, field: str, name: str, number: Value) -> None:
    """Refuse `number`, which `field` is called in the message, if it is outside the bound of `name`."""
    bound = BOUNDS.get(name)
    if bound is None or not isinstance(number, int | float) or isinstance(number, bool):
        return
    if not bound.least <= number <= bound.most:
        _refuse(where, field, name, number)


def _refuse(where: str, field: str, name: str, number: float) -> None:
    bound = BOUNDS[name]
    unit = f" {bound.unit}" if bound.unit else ""
    message = f"{where}: {field} is {shown(str(number))}{unit}: {bound.refusal(number)}"
    raise InputError(message, hint="correct it where it comes from: counting with such a number would not end")
