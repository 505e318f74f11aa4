"""hail's requests about existing instances: relocate, node-evacuate, change-group and allocate-secondary."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from gpolicy.allocator.cluster_data import NO_NODE, Node
from gpolicy.allocator.evacuation import EvacuationMode, EvacuationResult, change_group, evacuate_nodes, relocate
from gpolicy.allocator.ghc_numbers import shown_argument, shown_ints
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.errors import InputError
from gpolicy.htools.hail import HailAnswer, HailRequest, names_of
from gpolicy.htools.json_fields import Fields, as_named
from gpolicy.light_dataclasses import replace


def parse_moving(kind: str, fields: Fields, cluster: Cluster) -> HailRequest:
    """Read a request of one of the four kinds."""
    if kind == "relocate":
        index, count = _exact(cluster, fields.text("name")), fields.whole("required_nodes")
        facts = [node.facts for node in cluster.nodes.values()]
        leaving = _find(fields.texts("relocate_from"), ((own.index, own.name, own.alias) for own in facts))
        shown = f"Relocate {index} {shown_argument(count)} {shown_ints(leaving)}"
        return HailRequest((index,), lambda: shown, partial(_relocate, index, count, leaving))
    if kind == "allocate-secondary":
        index = _exact(cluster, fields.text("name"))
        return HailRequest((index,), lambda: f"AllocateSecondary {index}", partial(_allocate_secondary, index))
    suffix = cluster.common_suffix
    things = ((index, item.name, item.name.removesuffix(suffix)) for index, item in cluster.instances.items())
    instances = _find(fields.texts("instances"), things)
    if kind == "node-evacuate":
        mode = fields.get("evac_mode", as_named(EvacuationMode, "EvacMode"))
        shown = f"NodeEvacuate {shown_ints(instances)} Change{mode.name.capitalize()}"
        return HailRequest(instances, lambda: shown, partial(_evacuate, instances, mode))
    groups = ((group.index, group.name, group.uuid) for group in cluster.groups.values())
    targets = _find(fields.texts("target_groups"), groups)
    shown = f"ChangeGroup {shown_ints(instances)} {shown_ints(targets)}"
    return HailRequest(instances, lambda: shown, partial(_change_group, instances, targets))


def _relocate(index: int, count: int, leaving: Sequence[int], cluster: Cluster, options: RequestOptions) -> HailAnswer:
    """Choose the new secondary, or the new node of an instance on shared storage."""
    done, new = relocate(cluster, index, count, leaving, force=options.ignore_soft_errors)
    return HailAnswer("success", [*names_of(cluster.nodes, (new,))], done.after)


def _allocate_secondary(index: int, cluster: Cluster, options: RequestOptions) -> HailAnswer:
    from gpolicy.allocator.requests import allocate_secondary  # noqa: PLC0415 - only what is needed

    placement, info = allocate_secondary(cluster, index, options)
    nodes = {**cluster.nodes, **{node.index: node for node in placement.changed}}
    after = replace(cluster, nodes=nodes, instances={**cluster.instances, index: placement.instance})
    return HailAnswer(info, names_of(cluster.nodes, placement.nodes)[1], after)


def _evacuate(wanted: Sequence[int], mode: EvacuationMode, cluster: Cluster, options: RequestOptions) -> HailAnswer:
    return _moved(cluster, evacuate_nodes(cluster, mode, wanted, force=options.ignore_soft_errors))


def _change_group(
    wanted: Sequence[int], targets: Sequence[int], cluster: Cluster, options: RequestOptions
) -> HailAnswer:
    from gpolicy.htools.haskell_records import shown  # noqa: PLC0415 - only what is needed

    result = change_group(cluster, wanted, targets, options, show_groups=lambda found: shown(tuple(found)))
    return _moved(cluster, result)


def _moved(cluster: Cluster, result: EvacuationResult) -> HailAnswer:
    nodes = cluster.nodes
    moved = [
        [instance.name, cluster.groups[group].name, names_of(nodes, where)]
        for instance, group, where, _ in result.moved
    ]
    failed = [[instance.name, text] for instance, text in result.failed]
    jobs = [[_opcode(move, nodes) for move in moves] for _, _, _, moves in result.moved]
    return HailAnswer(result.words, [moved, failed, jobs], result.after)


def _opcode(move: InstanceMove, nodes: Mapping[int, Node]) -> dict[str, object]:
    """Return the opcode of one move, with its keys in Ganeti's order (htools, Cluster: `iMoveToJob`)."""
    name, same = {"instance_name": move.instance.name}, {"ignore_ipolicy": False}
    target = {} if move.target == NO_NODE else {"target_node": nodes[move.target].facts.name}
    if move.kind is MoveKind.REPLACE_SECONDARY:
        kind = {"OP_ID": "OP_INSTANCE_REPLACE_DISKS", **name, "early_release": False, **same}
        return {**kind, "mode": "replace_new_secondary", "disks": [], "remote_node": target["target_node"]}
    if move.instance.forthcoming:
        kind = {"OP_ID": "OP_INSTANCE_FAILOVER", **name, "shutdown_timeout": 120, "ignore_consistency": False}
        return {**kind, **target, **same, "cleanup": False}
    kind = {"OP_ID": "OP_INSTANCE_MIGRATE", **name, **target, "allow_runtime_changes": False, **same}
    return {**kind, "cleanup": False, "allow_failover": True, "ignore_hvversions": True}


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
