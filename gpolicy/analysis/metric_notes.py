"""Where the metric of a placement is another than one may think: the cluster score, or lost allocations."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.allocator.cluster_data import Disk
from gpolicy.allocator.cluster_score import WEIGHTS
from gpolicy.allocator.dedicated_nodes import allocation_vector, biggest_first, sample_instances
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node import Node
from gpolicy.analysis.wanted_instance import PlaceRequest


def metric_notes(cluster: Cluster, request: PlaceRequest, nodes: tuple[str, ...], *, dedicated: bool) -> list[str]:
    """Return what is to be said of the metric of an answer with these nodes; `dedicated`: it is lost allocations."""
    if not dedicated and request.group is not None:
        return [f"the score is that of group {request.group}"] if nodes and len(cluster.groups) > 1 else []
    if not dedicated:
        return _score_on_dedicated(cluster)
    if request.weights != WEIGHTS:
        return ["the weights do not count here: the metric is lost allocations, not the cluster score"]
    chosen = (node for node in cluster.nodes.values() if node.facts.name in nodes[:1])
    return [note for node in chosen for note in _ignored_spindles(node)]


def _score_on_dedicated(cluster: Cluster) -> list[str]:
    """Return a note if some groups have exclusive storage and others not: hail then uses the score for all."""
    exclusive: dict[str, bool] = {}
    for node in cluster.nodes.values():
        group = cluster.groups[node.facts.group]
        if group.alloc_policy is not AllocPolicy.UNALLOCABLE:
            exclusive[group.name] = exclusive.get(group.name, True) and node.facts.exclusive
    named = [name for name, every in exclusive.items() if every]
    if not named:
        return []
    note = (
        "hail goes by the cluster score here, not by lost allocations, since not all groups have exclusive storage"
        f" (only {', '.join(named)}); name a group: group={named[0]}"
    )
    return [note]


def _ignored_spindles(node: Node) -> list[str]:
    """Return a note if lost allocations count sizes for which a node has too few spindles: hail does not look."""
    policy, samples = node.facts.policy, sample_instances(node.facts.policy)
    if any(item.memory <= 0 and item.disk <= 0 and item.vcpus <= 0 for item in samples):
        return []
    specs = [policy.minmax[place].min for place in biggest_first(policy)]
    disks = [(Disk(spec.disk_size, spec.spindle_use),) for spec in specs]
    real = [replace(item, disks=disk) for item, disk in zip(samples, disks, strict=True)]
    counted, true = allocation_vector(node, samples), allocation_vector(node, real)
    if counted == true:
        return []
    shown, enough = (", ".join(map(str, vector)) for vector in (counted, true))
    note = (
        f"lost allocations do not count spindles (as hail's): on {node.facts.name} they count room for {shown} of the"
        f" sizes, and its spindles are enough for {enough}"
    )
    return [note]
