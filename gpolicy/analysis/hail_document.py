"""The cluster as hail reads it from the document that Ganeti gives to its allocator."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpolicy.allocator.cluster_data import ClusterData, NodeData
from gpolicy.allocator.enumerations import InstanceStatus
from gpolicy.allocator.merge import Cluster
from gpolicy.analysis.allocator_input import merged
from gpolicy.analysis.basis import Settled, settle
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.hail_options import ALLOCATOR_PARAMETERS, HailParameters, hail_parameters
from gpolicy.ganeti.parameters import as_word
from gpolicy.printable import clipped

_LONGEST: Final = 72
_BY_ADMIN_STATE: Final = {"down": InstanceStatus.STATUS_DOWN, "offline": InstanceStatus.STATUS_OFFLINE}


def hails_cluster(state: ClusterState, *, declared: bool = False) -> tuple[Settled, Cluster]:
    """Return what is known of `state` as settled, and as hail loads it; `declared` is that of `settle`."""
    settled = settle(state, declared=declared)
    data = as_hail_reads(settled.state, settled.data)
    return settled, merged(data, settled.resources, settled.hail.static_kvm_node_memory)


def as_hail_reads(state: ClusterState, data: ClusterData) -> ClusterData:
    """Return `data` as hail reads it from an allocator request of Ganeti.

    There an instance with admin state up counts as running with its maxmem, every instance is balanced, there is no CPU
    speed, and a node that is offline or not VM capable has no resources.
    """
    instances = []
    for instance in data.instances:
        observed = state.instances[instance.name]
        status = _BY_ADMIN_STATE.get(observed.admin_state, InstanceStatus.RUNNING)
        instances.append(replace(instance, status=status, memory=observed.maxmem, auto_balance=True))
    nodes = []
    for node in data.nodes:
        live = state.nodes[node.name].is_measured
        spindles = 0 if node.exclusive_storage else node.spindles
        off = NodeData(node.index, node.name, node.group, node_cpus=0, offline=True, spindles=spindles)
        off = replace(off, exclusive_storage=node.exclusive_storage, tags=node.tags)
        nodes.append(replace(node, cpu_speed=1.0) if live else off)
    return replace(data, nodes=tuple(nodes), instances=tuple(instances))


def not_tried(state: ClusterState) -> list[str]:
    """Return why nodes are not candidates, for each."""
    notes = []
    for node in state.nodes.values():
        why = "offline" if node.offline else "drained" if node.drained else "" if node.vm_capable else "not vm_capable"
        if why:
            notes.append(f"{node.name} is {why}: not tried")
    return notes


def without_parameters(state: ClusterState) -> ClusterState | None:
    """Return `state` without the cluster's parameters for hail; None if none of them changes what hail does."""
    own = {path: value for path, value in state.cluster.own.items() if path != ALLOCATOR_PARAMETERS}
    if hail_parameters(state.cluster.own.get(ALLOCATOR_PARAMETERS)) == HailParameters():
        return None
    return replace(state, cluster=replace(state.cluster, own=own))


def decisive(state: ClusterState, otherwise: str) -> tuple[str, ...]:
    """Return what to say of the parameters: `otherwise` is what hail would do without them, empty for the same."""
    stored = state.cluster.own.get(ALLOCATOR_PARAMETERS)
    given = stored if isinstance(stored, dict) else {}
    words = clipped(", ".join(n if value is None else f"{n}={as_word(value)}" for n, value in given.items()), _LONGEST)
    changed = [f"default_iallocator_params ({words}) decide this: without them {otherwise}"] if otherwise else []
    loads = "hail also weighs the CPU load that monitoring daemons report (mond), which is not known here"
    return (*changed, *([loads] if hail_parameters(stored).monitored else []))
