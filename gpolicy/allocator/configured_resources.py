"""Configured node resources instead of measured free memory and disk.

Source: Ganeti design document "Resource model". There a node's resources are part of the configuration (`hv_state`,
`disk_state`), and free resources follow from them:

    memory free = mem_total - sum of the instances - mem_node - mem_hv
    disk free   = disk_total - sum of the instances - disk_overhead

They are put in the place of measured ones, so that all else is counted as htools counts it: with declared values equal
to the measured ones every number is the same. A stopped instance keeps its resources; only an `ADMIN_offline` one
releases memory and CPUs. htools itself uses measured values, so `configured_cluster` replaces the merge
(`gpolicy.allocator.merge`) for this model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import Instance, InstanceStatus, Node, NodeData
from gpolicy.allocator.merge import Cluster, ClusterData, merge

_STOPPED = frozenset({InstanceStatus.STATUS_DOWN, InstanceStatus.USER_DOWN, InstanceStatus.ERROR_DOWN})


@dataclass(frozen=True, slots=True)
class NodeResources:
    """The configured resources of one node, by Ganeti's names (MiB, cores); None: what is measured counts.

    Of `hypervisor` (hv_state), `mem_node` is the memory of the node itself, `mem_hv` that of the hypervisor, which
    htools finds as unaccounted. `cpu_node` are the cores of the node itself; as in htools each of them counts as one
    virtual CPU in use. Of `disk` (disk_state), `disk_reserved` is the space that must stay free, `disk_overhead` the
    space of other volumes.
    """

    hypervisor: Mapping[str, int] | None = None
    disk: Mapping[str, int] | None = None


def configured_cluster(data: ClusterData, resources: Mapping[str, NodeResources]) -> Cluster:
    """Return `data` merged, with the configured resources of the named nodes; other nodes keep the measured ones."""
    cluster = merge(with_configured_resources(data, resources))
    nodes = {
        index: _settled(node, resources[node.facts.name], cluster.instances) if node.facts.name in resources else node
        for index, node in cluster.nodes.items()
    }
    return replace(cluster, nodes=nodes)


def with_configured_resources(data: ClusterData, resources: Mapping[str, NodeResources]) -> ClusterData:
    """Return `data` with the configured resources of the named nodes; other nodes keep the measured ones.

    The result is the input of a merge, which lacks part of the model; `configured_cluster` adds it.
    """
    configured = {
        node.index for node in data.nodes if node.name in resources and resources[node.name].hypervisor is not None
    }
    # instances reserve memory by their configuration, not by whether they run
    instances = tuple(
        replace(item, status=InstanceStatus.RUNNING) if item.primary in configured and item.status in _STOPPED else item
        for item in data.instances
    )
    nodes = tuple(
        _configured(node, resources[node.name], instances) if node.name in resources else node for node in data.nodes
    )
    return replace(data, nodes=nodes, instances=instances)


def _settled(node: Node, own: NodeResources, instances: Mapping[int, Instance]) -> Node:
    """Return a merged node that keeps `disk_reserved` free and counts the memory of ADMIN_offline instances as free.

    The values with forthcoming instances (`forth_*`) subtract the memory of all instances that do not run.
    """
    new = node.copy()
    if own.disk is not None and own.disk["disk_reserved"] > node.facts.low_disk:
        new.facts = replace(node.facts, low_disk=own.disk["disk_reserved"])
    if own.hypervisor is None:
        return new
    here = (instances[number] for number in node.primaries)
    new.forth_free_memory += sum(item.memory for item in here if not item.online)
    new.forth_ratio_memory = new.memory_ratio(new.forth_free_memory)
    return new


def _configured(node: NodeData, own: NodeResources, instances: tuple[Instance, ...]) -> NodeData:
    if own.hypervisor is not None:
        given = own.hypervisor
        used = sum(item.memory for item in instances if item.primary == node.index and item.uses_memory)
        node = replace(
            node,
            total_memory=float(given["mem_total"]),
            node_memory=given["mem_node"],
            free_memory=given["mem_total"] - given["mem_node"] - given["mem_hv"] - used,
            total_cpus=float(given["cpu_total"]),
            node_cpus=given["cpu_node"],
        )
    if own.disk is not None:
        here = (item for item in instances if node.index in {item.primary, item.secondary})
        used = sum(item.disk for item in here if item.template.local and not item.forthcoming)
        free = own.disk["disk_total"] - own.disk["disk_overhead"] - used
        node = replace(node, total_disk=float(own.disk["disk_total"]), free_disk=free)
    return node
