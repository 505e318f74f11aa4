"""Putting the parts of a cluster together after any source has read them, and checking that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from gpolicy.cluster.record import Record
from gpolicy.cluster.state import ClusterState, Group, Identity, Instance, Node, Resources
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Level, Values
from gpolicy.ganeti.values import fill
from gpolicy.printable import some


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=_Named)


_Listed = TypeVar("_Listed", Group, Node, Instance)


def numbered(objects: Iterable[_Listed]) -> Iterator[_Listed]:
    """Yield the objects with their position, for a source whose order matters."""
    for position, item in enumerate(objects):
        yield replace(item, position=position)


def by_name(objects: Iterable[_T], where: str) -> dict[str, _T]:
    """Return the objects by name. Raise InputError when two have the same name."""
    named: dict[str, _T] = {}
    for item in objects:
        if item.name in named:
            raise InputError(f"{where}: {item.name!r} occurs twice")
        named[item.name] = item
    return dict(sorted(named.items()))


def identity(record: Record) -> Identity:
    """Return uuid, serial number and modification time (seconds since 1970) of an object of Ganeti."""
    return Identity(
        uuid=record.text_or_none("uuid"),
        serial_no=record.whole_or_none("serial_no"),
        mtime=record.number_or_none("mtime"),
    )


def filled_group(name: str, own: Values, cluster: Values, record: Record) -> Group:
    """Return a group with its effective values filled from those of the cluster."""
    effective = fill(own, cluster, Level.GROUP)
    return Group(name=name, own=own, effective=effective, tags=record.tags(), identity=identity(record))


def instance_of(record: Record, beparams: Record, **more: Any) -> Instance:
    """Return an instance with its backend parameters; `more` are its nodes, its disks, and what else a source has."""
    return Instance(
        name=record.name("name"),
        minmem=beparams.whole("minmem"),
        maxmem=beparams.whole("maxmem"),
        vcpus=beparams.whole("vcpus"),
        spindle_use=beparams.whole("spindle_use"),
        auto_balance=beparams.flag("auto_balance"),
        always_failover=beparams.flag_or_none("always_failover"),
        admin_state=record.text("admin_state"),
        hypervisor=record.text_or_none("hypervisor"),
        tags=record.tags(),
        identity=identity(record),
        forthcoming=record.flag("forthcoming", default=False),
        **more,
    )


def check_references(state: ClusterState, where: str) -> None:
    """Raise InputError if a node names an unknown group, or an instance an unknown node."""
    for node in state.nodes.values():
        if node.group not in state.groups:
            raise InputError(f"{where}: node {node.name!r} is in an unknown group: {node.group!r}")
    for instance in state.instances.values():
        if instance.primary_node in instance.secondary_nodes:  # the allocator would not end
            raise InputError(f"{where}: instance {instance.name!r} has its primary node as secondary node, too")
        for name in (instance.primary_node, *instance.secondary_nodes):
            if name not in state.nodes:
                raise InputError(f"{where}: instance {instance.name!r} is on an unknown node: {name!r}")


NODE_FIELDS: Final = {
    "mtotal": "memory_total",
    "mnode": "memory_node",
    "mfree": "memory_free",
    "dtotal": "disk_total",
    "dfree": "disk_free",
    "ctotal": "cpu_total",
    "cnos": "cpu_node",
    "sptotal": "spindles_total",
    "spfree": "spindles_free",
}
"""Ganeti's names of the live fields of a node, and ours."""

NO_RUN_TIME: Final = (
    "no live data: this source shows neither measurements of nodes (memory, disk, CPUs) nor whether instances run"
)


def resources(node: Record) -> Resources:
    """Return the live fields of a node; Ganeti sends null for missing ones."""
    return Resources(**{ours: node.whole_or_none(ganetis) for ganetis, ours in NODE_FIELDS.items()})


def missing_notes(state: ClusterState) -> tuple[str, ...]:
    """Return notes on nodes that should have sent measurements and did not.

    The node daemon of Ganeti 3.0.2 fails when it measures a volume group under exclusive storage (it compares a number
    with text), and then sends no figures of memory either.
    """
    asked = [node for node in state.nodes.values() if node.is_measured]
    silent = [node for node in asked if None in (node.resources.memory_total, node.resources.disk_total)]
    if not silent:
        return ()
    notes = [f"no live data from {some([node.name for node in silent])}: their free memory and disk are unknown"]
    key = ("ndparams", "exclusive_storage")
    exclusive = [node.name for node in silent if state.effective_of_node(node).get(key) is True]
    if exclusive:
        names = some(exclusive)
        notes.append(f"exclusive_storage is on for {names}: the node daemon of Ganeti 3.0 cannot measure such a node")
    return tuple(notes)
