"""Small clusters for the allocator's tests."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.allocator.cluster_data import (
    Disk,
    DiskTemplate,
    Group,
    Instance,
    InstancePolicy,
    InstanceStatus,
    NodeData,
    Spec,
    SpecPair,
)
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator

GIB = 1024


def spec(memory: int, cpus: int, disk: int, *, spindles: int = 1, count: int = 1) -> Spec:
    return Spec(memory, cpus, disk, count, 1, spindles)


def policy(*pairs: SpecPair, templates: tuple[DiskTemplate, ...] = tuple(DiskTemplate)) -> InstancePolicy:
    return InstancePolicy(pairs, pairs[0].min, templates, vcpu_ratio=4.0, spindle_ratio=32.0)


def instance(memory: int, disk: int, cpus: int, template: DiskTemplate, **more: object) -> Instance:
    base = Instance(
        index=-1,
        name="new",
        memory=memory,
        disk=disk,
        disks=(Disk(disk, 1),),
        vcpus=cpus,
        status=InstanceStatus.RUNNING,
        template=template,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def cluster(
    nodes: list[NodeData],
    instances: list[Instance] | None = None,
    *,
    tags: tuple[str, ...] = (),
    group_policy: InstancePolicy | None = None,
) -> Cluster:
    group = Group(0, "default", "uuid-0")
    if group_policy is not None:
        group = replace(group, policy=group_policy)
    return merge(ClusterData((group,), tuple(nodes), tuple(instances or ()), tags=tags))


def node(index: int, memory: int, disk: int, cpus: float = 16.0, **more: object) -> NodeData:
    base = NodeData(
        index=index,
        name=f"node{index}",
        group=0,
        total_memory=float(memory),
        node_memory=0,
        free_memory=memory,
        total_disk=float(disk),
        free_disk=disk,
        total_cpus=cpus,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def allocator(where: Cluster, count: int, *, checks: bool = True, reference: bool = False) -> Allocator:
    candidates = candidate_nodes(where.groups, where.nodes, count)
    made = CompiledAllocator(candidates, CapacityRules(), capacity_checks=checks)
    return law_of(made) if reference else made


def law_of(made: Allocator) -> Allocator:
    """Return the law in place of the engine."""
    return Allocator(made.engine, made.capacity_checks, made.each)


def start(where: Cluster) -> AllocationState:
    return AllocationState(where.nodes, where.instances)
