"""hail: reads an iallocator document (htools, Backend/IAlloc) and answers its request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from gpolicy.allocator import cluster_data
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.allocator.request_options import NotGrantedError, RequestOptions
from gpolicy.errors import InputError
from gpolicy.ganeti.releases import RELEASE_PATH
from gpolicy.htools import backends, json_fields
from gpolicy.htools.json_fields import Fields, Json, as_list, plain_object
from gpolicy.htools.program_options import Options
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class IallocatorDocument:
    """A parsed document: the request's object, the cluster, and the objects of its instances."""

    request: dict[str, Json]
    cluster: ClusterData
    instances: dict[str, Json]


def parse_document(text: str) -> IallocatorDocument:
    """Read an iallocator document. Raises InputError with htools' own text."""
    value = json_fields.parse_json("input IAllocator message", text)
    if not isinstance(value, dict):
        raise InputError("Parsing input IAllocator message: Unable to read JSObject")
    fields = Fields("invalid iallocator message: ", value)
    request = fields.record("request").fields
    groups = _each(_group_of_request, fields.record("nodegroups"))
    nodes = _each(_node_of_request, fields.record("nodes"), {group.uuid: group.index for group in groups})
    entries = fields.record("instances")
    instances = _each(parse_instance, entries, {node.name: node.index for node in nodes})
    tags = fields.texts("cluster_tags")
    hypervisors = fields.get(
        "enabled_hypervisors", lambda names: [json_fields.as_hypervisor(name) for name in as_list(names)]
    )
    return IallocatorDocument(
        request,
        ClusterData(groups, nodes, instances, tags=tags, hypervisor=hypervisors[0] if hypervisors else None),
        entries.fields,
    )


def _each(read: Callable[..., Item], entries: Fields, *more: Mapping[str, int]) -> tuple[Item, ...]:
    """Return what `read` makes of each entry, from its number, its name and its object."""
    return tuple(read(index, name, entry, *more) for index, (name, entry) in enumerate(entries.fields.items()))


def parse_instance(index: int, name: str, entry: Json, nodes: Mapping[str, int] | None = None) -> cluster_data.Instance:
    """Read the fields that an instance entry and an allocation request have in common.

    With `nodes`, the index of each by name, it is on some of them, which are read last, as in htools.
    """
    values = plain_object(entry)
    fields = Fields(f"invalid data for instance '{name}': ", values)
    disk = fields.whole("disk_space_total")
    disk_fields = [Fields(fields.where, plain_object(entry)) for entry in _array(fields.get("disks"))]
    sizes = [entry.whole("size") for entry in disk_fields]
    spindles = [entry.whole_or_none("spindles") for entry in disk_fields]
    return cluster_data.Instance(
        index=index,
        name=name,
        disk=disk,
        disks=tuple(map(cluster_data.Disk, sizes, spindles)),
        memory=fields.whole("memory"),
        vcpus=fields.whole("vcpus"),
        tags=fields.texts("tags"),
        template=fields.get("disk_template", json_fields.as_disk_template),
        spindle_use=fields.whole("spindle_use"),
        networks=tuple([_network(name, plain_object(nic)) for nic in _array(fields.get("nics"))]),
        status=cluster_data.BY_ADMIN_STATE.get(str(values.get("admin_state")), cluster_data.InstanceStatus.RUNNING),
        forthcoming=values.get("forthcoming") is True,
        **({} if nodes is None else _nodes_of_instance(name, values, nodes)),
    )


def _group_of_request(index: int, uuid: str, entry: Json) -> cluster_data.Group:
    fields = Fields(f"invalid data for group '{uuid}': ", plain_object(entry))
    name = fields.text("name")
    policy = fields.get("alloc_policy", json_fields.as_alloc_policy)
    networks = fields.texts("networks")
    ipolicy = fields.get("ipolicy", json_fields.as_policy)
    return cluster_data.Group(index, name, uuid, policy, fields.texts("tags"), networks, ipolicy)


def _node_of_request(index: int, name: str, entry: Json, groups: Mapping[str, int]) -> cluster_data.NodeData:
    fields = Fields(f"invalid data for node '{name}': ", plain_object(entry))
    tags = fields.optional("tags", json_fields.as_texts, ())
    offline, drained = fields.flag("offline"), fields.flag("drained")
    vm_capable = fields.flag("vm_capable", default=True)
    uuid = fields.text("group")
    if uuid not in groups:
        raise InputError(f"Unknown group '{uuid}' for node {name}")
    parameters = Fields(fields.where, plain_object(fields.get("ndparams")))
    exclusive = parameters.flag("exclusive_storage")
    live = vm_capable and not offline
    spindles = (fields.whole("total_spindles") if live else 0) if exclusive else 0
    free_spindles = fields.whole("free_spindles") if live else 0
    if not exclusive:
        spindles = parameters.whole("spindle_count")
    storage: dict[str, Any] = {"spindles": spindles, "free_spindles": free_spindles, "exclusive": exclusive}
    if not live:
        return cluster_data.NodeData(index, name, groups[uuid], node_cpus=0, offline=True, tags=tags, **storage)
    return cluster_data.NodeData(
        index,
        name,
        groups[uuid],
        total_memory=fields.number("total_memory"),
        node_memory=fields.whole("reserved_memory"),
        free_memory=fields.whole("free_memory"),
        total_disk=fields.number("total_disk"),
        free_disk=fields.whole("free_disk"),
        total_cpus=fields.number("total_cpus"),
        node_cpus=fields.whole("reserved_cpus"),
        offline=drained,
        tags=tags,
        **storage,
    )


def _nodes_of_instance(instance: str, values: dict[str, Json], nodes: Mapping[str, int]) -> dict[str, Any]:
    names = Fields("", values).items("nodes")
    if not names:
        raise InputError(f"empty node list for instance {instance}")
    indices = []
    for node in names[:2]:
        if not isinstance(node, str):
            raise InputError("Wrong JSON type")
        if node not in nodes:
            raise InputError(f"Unknown node '{node}' for instance {instance}")
        indices.append(nodes[node])
    return {"primary": indices[0], "secondary": indices[1] if len(indices) > 1 else cluster_data.NO_NODE}


def _network(instance: str, values: dict[str, Json]) -> str | None:
    fields = Fields("", values)
    _, _, mode, _, _, network = map(fields.text_or_none, ("mac", "ip", "mode", "link", "bridge", "network"))
    if mode is not None and mode not in {"bridged", "routed", "openvswitch"}:
        raise InputError(f"invalid NIC mode in instance {instance}")
    return network


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise InputError(f"Invalid input, expected array but got {json.dumps(value, separators=(',', ':'))}")
    return value


PREFIX = "invalid request dict: "


@dataclass(frozen=True, slots=True)
class HailAnswer:
    """The content of stdout, and the state of the cluster after the request."""

    info: str
    result: list[object] | str
    after: Cluster


@dataclass(frozen=True, slots=True)
class HailRequest:
    """A request of any kind about the instances `existing`, names resolved to indices.

    `shown` returns it as Haskell shows it (`-v`), `answer` returns hail's answer, or raises RequestError if the request
    cannot be granted. `group_names`: the requested group of each new instance, None for any group; None if the request
    places nothing.
    """

    existing: tuple[int, ...]
    shown: Callable[[], str]
    answer: Callable[[Cluster, RequestOptions], HailAnswer]
    group_names: tuple[str | None, ...] | None = None


def run(options: Options, *arguments: str) -> None:
    """Answer the request in the file that the arguments name. Raises InputError."""
    cluster, request = _load(options, arguments)
    sys.stderr.write(backends.node_status("Initial cluster", cluster.nodes, options))
    backends.save_cluster(options, "pre-ialloc", "before iallocator run", cluster)
    rules = RequestOptions(
        capacity_checks=not options.no_capacity_checks,
        ignore_soft_errors=options.ignore_soft_errors,
        restriction=frozenset(options.restrict_allocation_to) if options.restrict_allocation_to is not None else None,
    )
    try:
        answer = request.answer(cluster, rules)
        success, after = True, answer.after
        info, result = f"Request successful: {answer.info}", answer.result
    except NotGrantedError as error:
        success, after = False, cluster
        info, result = f"Request failed: {error}", []
    sys.stderr.write(backends.node_status("Final cluster", after.nodes, options))
    line = {"success": success, "info": info, "result": result}
    sys.stdout.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    backends.save_cluster(options, "post-ialloc", "after iallocator run", after)


def _load(options: Options, arguments: Sequence[str]) -> tuple[Cluster, HailRequest]:
    if not arguments:
        raise InputError("This program needs an input file.")
    if len(arguments) > 1:
        raise InputError("Only one argument is accepted (the input file)")
    if options.mond and not options.ignore_dynu:
        raise InputError("--mond: gpolicy does not query monitoring daemons")
    document, installed = parse_document(backends.read_input(arguments[0])), _installed_release()
    # without another source of the cluster, the original ignores --ignore-dynu
    static = options.static_kvm_node_memory
    cluster = merge(backends.under_release(document.cluster, installed), static_kvm_node_memory=static)
    request = parse_request(document, cluster)
    if options.verbosity > 0:
        sys.stderr.write(backends.warnings(cluster))
    shown: IallocatorDocument | None = document
    if options.text_data is not None or options.simulate:
        cluster, shown = backends.load_cluster(options, installed=installed), None
        if options.verbosity > 0:
            sys.stderr.write(backends.warnings(cluster))
        if missing := [index for index in request.existing if index not in cluster.instances]:
            raise InputError(
                f"the request is about instance number {missing[0]} of its own document, which the cluster read"
                " from the other source does not have"
            )
    if options.verbosity > 1:
        _show(request, cluster, shown, options)
    return cluster, request


def _installed_release() -> str | None:
    """Return the release of Ganeti on this node; None where none is installed."""
    try:
        return backends.read_file(f"{os.environ.get('GANETI_ROOTDIR', '')}{RELEASE_PATH}").strip() or None
    except InputError:
        return None


def _show(request: HailRequest, cluster: Cluster, document: IallocatorDocument | None, options: Options) -> None:
    """Show on stderr the request (`-v`), the cluster (`-v -v`), and the kind of the search.

    `document` is that of the cluster, None if it is from another source.
    """
    sys.stderr.write(f"Received request: {request.shown()}\n")
    if options.verbosity > 2:
        from gpolicy.htools.haskell_records import shown_cluster  # noqa: PLC0415 - only what is needed

        hypervisor, entries = (document.cluster.hypervisor, document.instances) if document else (None, {})
        sys.stderr.write(f"Received cluster data: {shown_cluster(cluster, hypervisor, entries)}\n")
    if request.group_names is None:
        return
    from gpolicy.allocator.requests import is_dedicated  # noqa: PLC0415 - only what is needed

    if is_dedicated(cluster, request.group_names):
        sys.stderr.write("Allocation on a dedicated cluster; using lost-allocations metrics.\n")


def names_of(nodes: Mapping[int, cluster_data.Node], indices: Sequence[int]) -> list[str]:
    """Return the names of the nodes at `indices`."""
    return [nodes[index].facts.name for index in indices]


def parse_request(document: IallocatorDocument, cluster: Cluster) -> HailRequest:
    """Read the request; names are resolved in `cluster`, the document's own cluster."""
    fields = Fields(PREFIX, document.request)
    kind = fields.text("type")
    if kind in {"allocate", "multi-allocate"}:
        from gpolicy.htools.hail_placing import parse_placing  # noqa: PLC0415 - only what is needed

        return parse_placing(kind, fields, cluster)
    if kind in {"relocate", "node-evacuate", "change-group", "allocate-secondary"}:
        from gpolicy.htools.hail_moving import parse_moving  # noqa: PLC0415 - only what is needed

        return parse_moving(kind, fields, cluster)
    raise InputError(f"Invalid request type '{kind}'")
