"""Putting the parts of a cluster together after any source has read them, and checking that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from gpolicy.cluster.record import Record
from gpolicy.cluster.state import ClusterState, Group, Identity, Instance, Node
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Level, Values
from gpolicy.ganeti.values import fill


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
