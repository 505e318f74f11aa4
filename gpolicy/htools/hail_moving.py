"""hail's requests about existing instances: relocate, node-evacuate, change-group and allocate-secondary."""

from __future__ import annotations

from gpolicy.allocator.enumerations import NO_NODE
from gpolicy.allocator.evacuation import (
    EvacuationMode,
    EvacuationResult,
    evacuate_nodes,
    relocate,
)
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import named
from gpolicy.htools.hail_requests import HailAnswer, names_of
from gpolicy.htools.haskell_text import shown_argument, shown_ints
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.request_options import RequestOptions
    from gpolicy.htools.hail_requests import HailRequest
    from gpolicy.htools.json_fields import Fields, Json


@dataclass(frozen=True, slots=True)
class RelocateRequest:
    """Move an instance off the nodes `leaving` (indices)."""

    existing: tuple[int]
    required_nodes: int
    leaving: tuple[int, ...]
    group_names: None = None

    def shown(self, document: Mapping[str, Json]) -> str:  # noqa: ARG002
        """Return it as Haskell shows it."""
        return f"Relocate {self.existing[0]} {shown_argument(self.required_nodes)} {shown_ints(self.leaving)}"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose the new secondary, or the new node of an instance on shared storage."""
        done, new = relocate(
            cluster.nodes,
            cluster.instances,
            self.existing[0],
            self.required_nodes,
            self.leaving,
            force=options.ignore_soft_errors,
        )
        instances = {**cluster.instances, self.existing[0]: done.instance}
        return HailAnswer("success", list(names_of(cluster.nodes, (new,))), done.nodes, instances)


@dataclass(frozen=True, slots=True)
class EvacuateRequest:
    """Move instances away from their nodes."""

    existing: tuple[int, ...]
    mode: EvacuationMode
    group_names: None = None

    def shown(self, document: Mapping[str, Json]) -> str:  # noqa: ARG002
        """Return it as Haskell shows it."""
        return f"NodeEvacuate {shown_ints(self.existing)} Change{self.mode.name.capitalize()}"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose new nodes within the group of each instance."""
        force = options.ignore_soft_errors
        return _moved(cluster, evacuate_nodes(cluster.nodes, cluster.instances, self.mode, self.existing, force=force))


@dataclass(frozen=True, slots=True)
class ChangeGroupRequest:
    """Move instances to other groups."""

    existing: tuple[int, ...]
    targets: tuple[int, ...]
    group_names: None = None

    def shown(self, document: Mapping[str, Json]) -> str:  # noqa: ARG002
        """Return it as Haskell shows it."""
        return f"ChangeGroup {shown_ints(self.existing)} {shown_ints(self.targets)}"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose a group and nodes for each instance."""
        from gpolicy.allocator.group_change import change_group  # noqa: PLC0415 - only what is needed
        from gpolicy.htools.haskell_records import shown_groups  # noqa: PLC0415

        result = change_group(
            cluster.groups,
            cluster.nodes,
            cluster.instances,
            self.existing,
            self.targets,
            options,
            show_groups=shown_groups,
        )
        return _moved(cluster, result)


@dataclass(frozen=True, slots=True)
class SecondaryRequest:
    """Find a secondary node for an instance."""

    existing: tuple[int]
    group_names: None = None

    def shown(self, document: Mapping[str, Json]) -> str:  # noqa: ARG002
        """Return it as Haskell shows it."""
        return f"AllocateSecondary {self.existing[0]}"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose the secondary node."""
        from gpolicy.allocator.requests import allocate_secondary  # noqa: PLC0415 - only what is needed

        nodes, instances = cluster.nodes, cluster.instances
        placement, info = allocate_secondary(nodes, instances, self.existing[0], options)
        return HailAnswer(
            info,
            names_of(nodes, placement.nodes)[1],
            {**nodes, **{node.index: node for node in placement.changed}},
            {**instances, self.existing[0]: placement.instance},
        )


def parse_moving(kind: str, fields: Fields, cluster: Cluster) -> HailRequest:
    """Read a request of one of the four kinds."""
    if kind == "relocate":
        index = _exact(cluster, fields.text("name"))
        count = fields.whole("required_nodes")
        return RelocateRequest((index,), count, _nodes(cluster, fields.texts("relocate_from")))
    if kind == "allocate-secondary":
        return SecondaryRequest((_exact(cluster, fields.text("name")),))
    instances = _instances(cluster, fields.texts("instances"))
    if kind == "node-evacuate":
        return EvacuateRequest(instances, fields.get("evac_mode", _mode))
    return ChangeGroupRequest(instances, _groups(cluster, fields.texts("target_groups")))


def _moved(cluster: Cluster, result: EvacuationResult) -> HailAnswer:
    nodes = cluster.nodes
    info = f"{len(result.failed)} instances failed to move and {len(result.moved)} were moved successfully"
    moved = [
        [instance.name, cluster.groups[group].name, names_of(nodes, where)]
        for instance, group, where, _ in result.moved
    ]
    failed = [[instance.name, text] for instance, text in result.failed]
    jobs = [[_opcode(move, nodes) for move in moves] for _, _, _, moves in result.moved]
    return HailAnswer(info, [moved, failed, jobs], result.nodes, result.instances)


def _opcode(move: InstanceMove, nodes: Mapping[int, Node]) -> dict[str, object]:
    """Return the opcode of one move, with its keys in Ganeti's order (htools, Cluster: `iMoveToJob`)."""
    name = move.instance.name
    target = {} if move.target == NO_NODE else {"target_node": nodes[move.target].facts.name}
    if move.kind is MoveKind.REPLACE_SECONDARY:
        return {
            "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
            "instance_name": name,
            "early_release": False,
            "ignore_ipolicy": False,
            "mode": "replace_new_secondary",
            "disks": [],
            "remote_node": target["target_node"],
        }
    if move.instance.forthcoming:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": name,
            "shutdown_timeout": 120,
            "ignore_consistency": False,
            **target,
            "ignore_ipolicy": False,
            "cleanup": False,
        }
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": name,
        **target,
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }


def _exact(cluster: Cluster, name: str) -> int:
    for index, instance in cluster.instances.items():
        if instance.name == name:
            return index
    raise InputError(f"Unknown instance '{name}'")


def _find(names: Iterable[str], things: Iterable[tuple[int, str, str]]) -> tuple[int, ...]:
    """Return the index of each of `names` among things with an index and two names each."""
    table: dict[str, list[int]] = {}
    for index, *own in things:
        for name in set(own):
            table.setdefault(name, []).append(index)
    indices = []
    for name in names:
        found = table.get(name, [])
        if len(found) != 1:
            raise InputError(f"Wrong number of elems found with name {name}")
        indices.append(found[0])
    return tuple(indices)


def _nodes(cluster: Cluster, names: Iterable[str]) -> tuple[int, ...]:
    return _find(names, ((index, node.facts.name, node.facts.alias) for index, node in cluster.nodes.items()))


def _instances(cluster: Cluster, names: Iterable[str]) -> tuple[int, ...]:
    suffix = cluster.common_suffix
    things = ((index, item.name, item.name.removesuffix(suffix)) for index, item in cluster.instances.items())
    return _find(names, things)


def _groups(cluster: Cluster, names: Iterable[str]) -> tuple[int, ...]:
    return _find(names, ((group.index, group.name, group.uuid) for group in cluster.groups.values()))


def _mode(value: Json) -> EvacuationMode:
    if not isinstance(value, str):
        raise InputError("Can't parse value for 'EvacMode': Unable to read String")
    return named(EvacuationMode, value, "EvacMode")
