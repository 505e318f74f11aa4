"""What all sources do once they have read the parts of a cluster: put them together, and see that they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from gpolicy.cluster.json_input import Record
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
    """Give the objects with their position, for a source that lists them in an order that means something."""
    for position, item in enumerate(objects):
        yield replace(item, position=position)


def by_name(objects: Iterable[_T], where: str) -> dict[str, _T]:
    """Return the objects by name. Raise InputError when two have the same."""
    named: dict[str, _T] = {}
    for item in objects:
        if item.name in named:
            raise InputError(f"{where}: {item.name!r} is there twice")
        named[item.name] = item
    return dict(sorted(named.items()))


def identity(record: Record) -> Identity:
    """Return uuid, serial number and modification time (seconds since 1970) of an object of Ganeti's."""
    return Identity(
        uuid=record.text_or_none("uuid"),
        serial_no=record.whole_or_none("serial_no"),
        mtime=record.number_or_none("mtime"),
    )


def filled_group(name: str, own: Values, cluster: Values, record: Record) -> Group:
    """Return a group with its effective values filled from those of the cluster."""
    effective = fill(own, cluster, Level.GROUP)
    return Group(name=name, own=own, effective=effective, tags=record.tags(), identity=identity(record))


def check_references(state: ClusterState, where: str) -> None:
    """Raise InputError if a node is in no group, or an instance on no node, that the state has."""
    for node in state.nodes.values():
        if node.group not in state.groups:
            raise InputError(f"{where}: node {node.name!r} is in a group that is not there: {node.group!r}")
    for instance in state.instances.values():
        for name in (instance.primary_node, *instance.secondary_nodes):
            if name not in state.nodes:
                raise InputError(f"{where}: instance {instance.name!r} is on a node that is not there: {name!r}")
