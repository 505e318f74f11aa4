"""The request part of an iallocator document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.allocator.merge import Cluster, desired_tags, exclusion_tags
from gpolicy.allocator.requests import Wanted
from gpolicy.errors import InputError
from gpolicy.htools.iallocator import Document, parse_instance
from gpolicy.htools.json_fields import Fields, Json, as_list, as_text, as_texts, plain_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpolicy.allocator.model import Group, Instance

PREFIX = "invalid request dict: "


@dataclass(frozen=True, slots=True)
class AllocateRequest:
    """Place one new instance."""

    wanted: Wanted
    restriction: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class RelocateRequest:
    """Move an instance off the nodes `leaving` (indices)."""

    instance: int
    required_nodes: int
    leaving: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EvacuateRequest:
    """Move instances away from their nodes."""

    instances: tuple[int, ...]
    mode: EvacuationMode


@dataclass(frozen=True, slots=True)
class ChangeGroupRequest:
    """Move instances to other groups."""

    instances: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MultiAllocateRequest:
    """Place several new instances."""

    wanted: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class SecondaryRequest:
    """Find a secondary node for an instance."""

    instance: int


Request = (
    AllocateRequest | RelocateRequest | EvacuateRequest | ChangeGroupRequest | MultiAllocateRequest | SecondaryRequest
)


def parse_request(document: Document, cluster: Cluster) -> Request:
    """Read the request; names are resolved in `cluster`, which is the document's own, merged."""
    fields = Fields(document.request, PREFIX)
    kind = fields.text("type")
    match kind:
        case "allocate":
            name = fields.text("name")
            count = fields.integer("required_nodes")
            instance = _new_instance(name, document.request, cluster)
            group_name = fields.optional("group_name", as_text, None)
            restriction = fields.optional("restrict-to-nodes", as_texts, None)
            return AllocateRequest(Wanted(instance, count, group_name), restriction)
        case "relocate":
            index = _exact(cluster, fields.text("name"))
            count = fields.integer("required_nodes")
            names = fields.texts("relocate_from")
            return RelocateRequest(index, count, tuple(_node(cluster, name) for name in names))
        case "node-evacuate":
            instances = tuple(_instance(cluster, name) for name in fields.texts("instances"))
            return EvacuateRequest(instances, fields.get("evac_mode", _mode))
        case "change-group":
            instances = tuple(_instance(cluster, name) for name in fields.texts("instances"))
            groups = list(cluster.groups.values())
            targets = tuple(_group(groups, name) for name in fields.texts("target_groups"))
            return ChangeGroupRequest(instances, targets)
        case "multi-allocate":
            return MultiAllocateRequest(_multi(fields, cluster))
        case "allocate-secondary":
            return SecondaryRequest(_exact(cluster, fields.text("name")))
    raise InputError(f"Invalid request type '{kind}'")


def _multi(fields: Fields, cluster: Cluster) -> tuple[Wanted, ...]:
    entries = fields.get("instances", _objects)
    wanted = []
    for entry in entries:
        own = Fields(entry, PREFIX)
        name = own.text("name")
        group_name = fields.optional("group_name", as_text, None)
        count = own.integer("required_nodes")
        wanted.append(Wanted(_new_instance(name, entry, cluster), count, group_name))
    return tuple(wanted)


def _objects(value: Json) -> list[dict[str, Json]]:
    objects = []
    for item in as_list(value):
        if not isinstance(item, dict):
            raise InputError("Unable to read JSObject")
        objects.append(plain_object(item))
    return objects


def _new_instance(name: str, values: dict[str, Json], cluster: Cluster) -> Instance:
    instance = parse_instance(-1, name, values)
    return replace(
        instance,
        exclusion_tags=exclusion_tags(cluster.tags, instance.tags),
        desired_tags=desired_tags(cluster.tags, instance.tags),
    )


def _exact(cluster: Cluster, name: str) -> int:
    for index, instance in cluster.instances.items():
        if instance.name == name:
            return index
    raise InputError(f"Unknown instance '{name}'")


def _alias(cluster: Cluster, name: str) -> str:
    return name.removesuffix(cluster.common_suffix) if cluster.common_suffix else name


def _instance(cluster: Cluster, name: str) -> int:
    found = [
        index
        for index, instance in cluster.instances.items()
        if name in {instance.name, _alias(cluster, instance.name)}
    ]
    return _only(found, name)


def _node(cluster: Cluster, name: str) -> int:
    found = [index for index, node in cluster.nodes.items() if name in {node.facts.name, node.facts.alias}]
    return _only(found, name)


def _group(groups: Sequence[Group], name: str) -> int:
    return _only([group.index for group in groups if name in {group.name, group.uuid}], name)


def _only(found: list[int], name: str) -> int:
    if len(found) != 1:
        raise InputError(f"Wrong number of elems found with name {name}")
    return found[0]


def _mode(value: Json) -> EvacuationMode:
    if not isinstance(value, str):
        raise InputError("Can't parse value for 'EvacMode': Unable to read String")
    try:
        return EvacuationMode(value)
    except ValueError:
        raise InputError(f'Invalid string value for type EvacMode: "{value}"') from None
