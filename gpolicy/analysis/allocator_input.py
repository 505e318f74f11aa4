"""Converting the observed cluster to the allocator's input; what cannot be counted of a cluster, and the part that can.

The result is what htools itself loads (`hspace -L`, `-m`, `-t`), from any source. One thing differs from its remote API
backend on purpose: `cpu_speed` is that of the node parameters (htools reads it on the master and from text, not over
RAPI). Tags are sorted: no decision depends on their order.

A group is not known where one of its nodes does not answer or shows too little, and where htools cannot read one of
its instances. The other groups are counted without it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from gpolicy.allocator import cluster_data as allocator_data
from gpolicy.allocator.cluster_data import NO_NODE, Disk, DiskTemplate, Instance, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.configured_resources import NodeResources, configured_cluster
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.cluster.state import ClusterState, LiveGroup, LiveInstance, LiveNode, Resources
from gpolicy.errors import GpolicyError, about
from gpolicy.ganeti.releases import n1_by_unallocated
from gpolicy.ganeti.vocabulary import DRBD_METADATA, SPEC_PARAMETERS, Value, Values
from gpolicy.printable import count, named, some

KVM_NODE_MEMORY: Final = 4096
"""MiB that hspace assumes for the node itself on KVM clusters (the default of its `--static-kvm-node-memory`)."""
MIXED: Final = "mixed"
"""Ganeti's word for the template of an instance with disks of several templates."""
LOCAL: Final = frozenset(template.value for template in DiskTemplate if template.local)
"""The templates whose disks take space on their nodes."""
_GROUP_DIGITS = re.compile(r"(\d+)")
_Listed = TypeVar("_Listed", LiveGroup, LiveNode, LiveInstance)


def cluster_data(state: ClusterState) -> ClusterData:
    """Return `state` as the allocator's input, indices in the order in which Ganeti lists the objects.

    Figures that nodes do not show are 0 (`gpolicy.analysis.basis` says what takes their place), and an instance whose
    status is not shown counts by its admin_state. Raise GpolicyError for an instance that htools cannot read
    (`why_unreadable`).
    """
    groups, nodes, instances = _in_order(state.groups), _in_order(state.nodes), _in_order(state.instances)
    group_index = {group.name: index for index, group in enumerate(groups)}
    node_index = {node.name: index for index, node in enumerate(nodes)}
    hypervisors = state.cluster.own.get(("enabled_hypervisors",))
    return ClusterData(
        groups=tuple(_make_group(index, group) for index, group in enumerate(groups)),
        nodes=tuple(_make_node(index, node, group_index, state) for index, node in enumerate(nodes)),
        instances=tuple(_instance(index, instance, node_index) for index, instance in enumerate(instances)),
        tags=tuple(sorted(state.cluster.tags)),
        policy=policy_of(state.cluster.own, "cluster"),
        hypervisor=str(hypervisors[0]) if isinstance(hypervisors, list) and hypervisors else None,
        n1_by_unallocated=n1_by_unallocated(state.release),
    )


def merged(
    data: ClusterData, resources: Mapping[str, NodeResources], kvm_node_memory: int = KVM_NODE_MEMORY
) -> Cluster:
    """Return `data` as hspace loads it, with the declared resources of the nodes that are in `resources`.

    hail's `kvm_node_memory` is the cluster's (`HailParameters.static_kvm_node_memory`).
    """
    if not resources:
        return merge(data, static_kvm_node_memory=kvm_node_memory)
    if data.hypervisor == "kvm" and kvm_node_memory > 0:  # only nodes without declared memory get this number
        declared = {name for name, item in resources.items() if item.hypervisor}
        nodes = (node if node.name in declared else replace(node, node_memory=kvm_node_memory) for node in data.nodes)
        data = replace(data, nodes=tuple(nodes))
    return configured_cluster(data, resources)


def policy_of(values: Values, where: str) -> InstancePolicy:
    """Return the instance policy among effective `values`, or Ganeti's built-in one if there is none.

    Raise GpolicyError, which begins with `where`, when a part of it is missing.
    """
    if not any(path[0] == "ipolicy" for path in values):
        return allocator_data.DEFAULT_POLICY
    pairs = values.get(("ipolicy", "minmax"))
    templates = values.get(("ipolicy", "disk-templates"))
    std = {path[2]: value for path, value in values.items() if path[:2] == ("ipolicy", "std") and len(path) == 3}
    if not isinstance(pairs, list) or not isinstance(templates, list):
        raise GpolicyError(f"{where}: its instance policy has no `minmax` or no `disk-templates`")
    return InstancePolicy(
        minmax=tuple(_make_pair(pair, where) for pair in pairs),
        std=_make_spec(std, where),
        templates=tuple(_read_template(str(name), where) for name in templates),
        vcpu_ratio=_ratio(values, "vcpu-ratio", where),
        spindle_ratio=_ratio(values, "spindle-ratio", where),
    )


def why_unreadable(instance: LiveInstance) -> str | None:
    """Return why htools cannot read an instance; None if it can."""
    try:
        _read_template(instance.disk_template, f"instance {instance.name}")
        _status(instance)
    except GpolicyError as error:
        return error.message
    return None


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key for names in Ganeti's order: node2 before node10."""
    parts = _GROUP_DIGITS.split(name)
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]


def _in_order(objects: Mapping[str, _Listed]) -> list[_Listed]:
    listed = list(objects.values())
    if all(item.position is not None for item in listed):
        return sorted(listed, key=lambda item: item.position or 0)
    return sorted(listed, key=lambda item: natural_key(item.name))


def missing_figures(node: LiveNode, state: ClusterState) -> tuple[str, ...]:
    """Return the figures that a node does not show, in words. An offline node needs none.

    A node without any memory does not show it: the score of the cluster would be no number.
    """
    if not node.is_measured:
        return ()
    measured = node.resources
    found = []
    if not measured.memory_total or None in (measured.memory_node, measured.memory_free):
        found.append("memory")
    if None in (measured.disk_total, measured.disk_free) and _uses_own_disk(node, state):
        found.append("disk")
    if measured.cpu_total is None:
        found.append("CPUs")
    if state.has_exclusive_storage(node) and measured.spindles_total is None:
        found.append("spindles")
    return tuple(found)


def _uses_own_disk(node: LiveNode, state: ClusterState) -> bool:
    """Return whether instances may have disks in the node's volume group; without one Ganeti measures no disk."""
    enabled = state.cluster.own.get(("enabled_disk_templates",))
    allowed = state.groups[node.group].effective.get(("ipolicy", "disk-templates"))
    local = {"plain", "drbd"}
    return all(not isinstance(names, list) or local & {str(name) for name in names} for names in (enabled, allowed))


def _make_group(index: int, group: LiveGroup) -> allocator_data.Group:
    policy = group.effective.get(("alloc_policy",), allocator_data.AllocPolicy.PREFERRED.value)
    if policy not in [item.value for item in allocator_data.AllocPolicy]:
        raise GpolicyError(f"group {group.name}: there is no alloc_policy {policy!r}")
    return allocator_data.Group(
        index=index,
        name=group.name,
        uuid=group.identity.uuid or group.name,
        alloc_policy=allocator_data.AllocPolicy(str(policy)),
        tags=tuple(sorted(group.tags)),
        networks=group.networks,
        policy=policy_of(group.effective, f"group {group.name}"),
    )


def _make_node(index: int, node: LiveNode, groups: Mapping[str, int], state: ClusterState) -> allocator_data.NodeData:
    measured, exclusive = node.resources, state.has_exclusive_storage(node)
    silent = measured.memory_total is None  # offline or without instances: all zero, as in htools
    count, speed = (state.in_force(node, ("ndparams", name)) for name in ("spindle_count", "cpu_speed"))
    total = measured.spindles_total if exclusive else count if isinstance(count, int) else 1
    return allocator_data.NodeData(
        index=index,
        name=node.name,
        group=groups[node.group],
        total_memory=float(measured.memory_total or 0),
        node_memory=measured.memory_node or 0,
        free_memory=measured.memory_free or 0,
        total_disk=float(measured.disk_total or 0),
        free_disk=measured.disk_free or 0,
        total_cpus=float(measured.cpu_total or 0),
        node_cpus=0 if silent else measured.cpu_node or 0,
        offline=not node.is_usable,
        master=node.master and not silent,
        spindles=total or 0,
        free_spindles=(measured.spindles_free or 0) if exclusive else 0,
        exclusive=exclusive,
        tags=tuple(sorted(node.tags)),
        cpu_speed=float(speed) if isinstance(speed, int | float) else 1.0,
    )


def _instance(index: int, instance: LiveInstance, nodes: Mapping[str, int]) -> Instance:
    disk, disks = disks_of(instance)
    return Instance(
        index=index,
        name=instance.name,
        memory=instance.maxmem if instance.oper_ram is None else instance.oper_ram,
        disk=disk,
        disks=disks,
        vcpus=instance.vcpus,
        status=_status(instance),
        template=_read_template(instance.disk_template, f"instance {instance.name}"),
        primary=nodes[instance.primary_node],
        secondary=nodes[instance.secondary_nodes[0]] if instance.secondary_nodes else NO_NODE,
        auto_balance=instance.auto_balance,
        spindle_use=instance.spindle_use,
        tags=tuple(sorted(instance.tags)),
        forthcoming=instance.forthcoming,
    )


def _status(instance: LiveInstance) -> allocator_data.InstanceStatus:
    shown = instance.status
    try:
        found = allocator_data.BY_ADMIN_STATE[instance.admin_state]
        return found if shown is None else allocator_data.InstanceStatus(shown)
    except (ValueError, KeyError) as error:
        status = instance.admin_state if isinstance(error, KeyError) else shown
        raise GpolicyError(f"instance {instance.name}: no such status: {status!r}") from None


def disks_of(instance: LiveInstance) -> tuple[int, tuple[Disk, ...]]:
    """Return the space that an instance takes on each of its nodes (Ganeti's `disk_usage`), and its disks."""
    if instance.summed_disk is not None:
        summed = instance.summed_disk
        return summed.size, (Disk(summed.size, summed.spindles),)
    disks = tuple(Disk(disk.size, disk.spindles) for disk in instance.disks)
    if instance.disk_template == MIXED:  # the local ones, as far as the source says which they are
        local = [disk for disk in instance.disks if disk.template in LOCAL]
        return sum(charged_space(DiskTemplate(disk.template), [disk.size]) for disk in local), disks
    template = _read_template(instance.disk_template, f"instance {instance.name}")
    return charged_space(template, [disk.size for disk in disks]), disks


def charged_space(template: DiskTemplate, sizes: Iterable[int]) -> int:
    """Return the MiB that disks of these sizes take on each node of an instance (Ganeti's `disk_usage`)."""
    if template in (DiskTemplate.DISKLESS, DiskTemplate.BLOCK):
        return 0
    extra = DRBD_METADATA if template is DiskTemplate.DRBD else 0
    return sum(size + extra for size in sizes)


def _read_template(name: str, where: str) -> DiskTemplate:
    try:
        return DiskTemplate(name)
    except ValueError:
        what = f": no such disk template: {name!r}"
        if name == MIXED:
            what = " has disks of several templates, which htools cannot read"
        raise GpolicyError(f"{where}{what}") from None


def _make_pair(pair: Value, where: str) -> SpecPair:
    if not isinstance(pair, dict):
        raise GpolicyError(f"{where}: `minmax` should hold sizes, each with min and max")
    return SpecPair(_make_spec(pair.get("min"), where), _make_spec(pair.get("max"), where))


def _make_spec(spec: Value, where: str) -> Spec:
    numbers = [spec.get(name) for name in SPEC_PARAMETERS] if isinstance(spec, dict) else [None]
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) != len(SPEC_PARAMETERS):
        raise GpolicyError(f"{where}: a size of its instance policy lacks one of {', '.join(SPEC_PARAMETERS)}")
    return Spec(*whole)


def _ratio(values: Values, name: str, where: str) -> float:
    value = values.get(("ipolicy", name))
    if not isinstance(value, int | float):
        raise GpolicyError(f"{where}: its instance policy has no {name}")
    return float(value)


_SILENT: Final = "does not answer"
_MOST_REASONS: Final = 3
_MOST_NAMES: Final = 5
_FIGURES: Final = {"memory": "memory_total", "disk": "disk_total", "CPUs": "cpu_total", "spindles": "spindles_total"}
_DECLARE: Final = "declare what nodes have: hv_state and disk_state, or the `hardware` of the group"
_OTHER_SOURCE: Final = (
    "read the running cluster (local:, ssh://, rapi:// for all but spindles) or a snapshot of it; or"
    f" {_DECLARE} (with --resource-model they count before what is measured)"
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a group cannot be counted, and what makes it known. `silent` are the nodes of which figures are missing."""

    reason: str
    way_out: str
    silent: tuple[str, ...] = ()


def groups_with_unreadable_instances(state: ClusterState) -> dict[str, Unknown]:
    """Return the groups where htools cannot read an instance that has its primary there."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, instance in state.instances.items():
        if (reason := why_unreadable(instance)) is not None:
            found.setdefault(state.nodes[instance.primary_node].group, []).append((name, reason))
    return {group: _of_instances([name for name, _ in odd], odd[0][1]) for group, odd in found.items()}


def _of_instances(names: list[str], reason: str) -> Unknown:
    more = f" (and {count(len(names) - 1, 'more instance')})" if len(names) > 1 else ""
    way_out = (
        f"hail refuses every request until it can read {some(names)}; leave the instance disks of one template"
        f" (`gnt-instance modify --disk N:remove {names[0]}`: Ganeti does not convert it), or suppose that it is gone"
        f" (`--without {','.join(names[:_MOST_NAMES])}`)"
    )
    return Unknown(f"{reason}{more}", way_out)


def groups_with_gaps(state: ClusterState, gaps: Mapping[str, tuple[str, ...]]) -> dict[str, Unknown]:
    """Return the groups of the nodes in `gaps`, which tells the missing figures of each."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, missing in gaps.items():
        found.setdefault(state.nodes[name].group, {})[name] = missing
    return {group: _of_group(state, group, missing) for group, missing in found.items()}


def _of_group(state: ClusterState, group: str, gaps: Mapping[str, tuple[str, ...]]) -> Unknown:
    some_answer = any(node.resources.memory_total is not None for node in state.nodes.values())
    silent = [name for name in gaps if some_answer and state.nodes[name].resources == Resources()]
    by_gap: dict[tuple[str, ...], list[str]] = {}
    for name, missing in gaps.items():
        by_gap.setdefault((_SILENT,) if name in silent else missing, []).append(name)
    known = [node.resources for node in state.nodes_of(group)]
    shown = {what for what, name in _FIGURES.items() if any(getattr(item, name) is not None for item in known)}
    of_the_nodes = all(name in silent or shown.issuperset(missing) for name, missing in gaps.items())
    reason = "; ".join(_sentence(names, missing) for missing, names in by_gap.items())
    way_out = _of_nodes(list(gaps), silent=bool(silent)) if of_the_nodes else _OTHER_SOURCE
    return Unknown(reason=reason, way_out=way_out, silent=tuple(gaps))


def _sentence(nodes: list[str], missing: tuple[str, ...]) -> str:
    several = len(nodes) > 1
    do = "do" if several else "does"
    if _SILENT in missing:
        return f"{some(nodes)} {do} not answer"
    figures = [what for what in missing if what in _FIGURES]
    if not figures:
        return f"{some(nodes)} {do} not show {', '.join(missing)}"
    return f"{some(nodes)} {'show' if several else 'shows'} no {', '.join(figures)}"


def _of_nodes(nodes: list[str], *, silent: bool) -> str:
    here = f"`--offline {','.join(nodes[:_MOST_NAMES])}` here"
    until = "; until then Ganeti asks no allocator" if silent else ""
    mark = f"mark it offline (`gnt-node modify --offline yes {nodes[0]}`; {here}){until}"
    return f"repair {some(nodes)}, or {mark}; or {_DECLARE}"


def not_known(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return sentences that name the groups that are not known, with the reason of each."""
    groups: dict[str, list[str]] = {}
    for group, reason in reasons.items():
        groups.setdefault(reason, []).append(group)
    said = [f"not known for {named('group', names)}: {reason}" for reason, names in groups.items()]
    more = sum(map(len, list(groups.values())[_MOST_REASONS:]))
    return (*said[:_MOST_REASONS], *([f"and not for {more} more, for other reasons"] if more else []))


def aside(unknown: Mapping[str, Unknown]) -> tuple[str, ...]:
    """Return notes on groups that are not known, and that the question is not about: hail would have to read them."""
    return tuple(f"group {name}: {item.reason}; {item.way_out}" for name, item in unknown.items())


def require(state: ClusterState, unknown: Mapping[str, Unknown], groups: Collection[str | None] = ()) -> None:
    """Raise GpolicyError if one of `groups` is not known, or no group of `state` that has nodes."""
    filled = {node.group for node in state.nodes.values()}
    wanted = {name: item for name, item in unknown.items() if name in groups}
    if not wanted and filled and filled <= unknown.keys():
        wanted = dict(unknown)
    if wanted:
        said = "; ".join(not_known({name: item.reason for name, item in wanted.items()}))
        raise GpolicyError(about(state.address, said), hint=next(iter(wanted.values())).way_out)


def without_groups(state: ClusterState, groups: Collection[str]) -> tuple[ClusterState, tuple[str, ...]]:
    """Return `state` without `groups`, and the instances that lose their secondary node with it.

    An instance with its primary in one of them is left out, too.
    """
    if not groups:
        return state, ()
    nodes = {name: node for name, node in state.nodes.items() if node.group not in groups}
    here = {name: instance for name, instance in state.instances.items() if instance.primary_node in nodes}
    split = {name: item for name, item in here.items() if not nodes.keys() >= set(item.secondary_nodes)}
    here |= {name: replace(item, secondary_nodes=()) for name, item in split.items()}
    left = {name: group for name, group in state.groups.items() if name not in groups}
    return replace(state, groups=left, nodes=nodes, instances=here), tuple(split)
