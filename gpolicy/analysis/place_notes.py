"""What is to be said of a placement beside the answer: its metric, what hail does not look at, what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from gpolicy.allocator.cluster_data import Disk, Instance, InstancePolicy
from gpolicy.allocator.cluster_score import WEIGHTS
from gpolicy.allocator.dedicated_nodes import allocation_vector, biggest_first, sample_instances
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.allocator.group_choice import GroupAnswer, Wanted
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.node import Node
from gpolicy.allocator.policy_check import check_pair, check_policy
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.wanted_instance import NEW, PlaceRequest
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.hail_options import HailParameters
from gpolicy.ganeti.volume_arithmetic import VolumeSize
from gpolicy.printable import count, named, some


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


def unpoliced(cluster: Cluster, request: PlaceRequest, instance: Instance) -> tuple[str, ...]:
    """Return what is supposed of a request that ignores the policy."""
    if not request.ignore_ipolicy:
        return ()
    policed = replace(whole_of(instance), ignores_policy=False)
    policies = {(node.facts.policy, node.facts.exclusive) for node in cluster.nodes.values()}
    allowed = all(check_policy(policy, policed, exclusive=exclusive) is None for policy, exclusive in policies)
    said = "--ignore-ipolicy: its size and disk template are not compared with the policy"
    if allowed and any(_too_many_interfaces(request, instance, item, exclusive=own) for item, own in policies):
        return (f"{said}, and neither are its {_interfaces(request)} network interfaces, which it does not allow",)
    if allowed:
        return (f"{said}, which allows them anyway",)
    said += (
        ". hail itself refuses it: Ganeti ignores the policy only where the nodes are named (gnt-instance add"
        " --ignore-ipolicy -n NODE), and does not tell an iallocator. The policy's ratios and N+1 count here; with"
        " named nodes nobody looks at them"
    )
    return (said,)


def unknown_volumes(
    cluster: Cluster, instance: Instance, nodes: tuple[str, ...], volumes: Mapping[str, VolumeSize]
) -> list[str]:
    """Return that nothing is known of the spindles of the chosen nodes, where that is so."""
    exclusive = {node.facts.name for node in cluster.nodes.values() if node.facts.exclusive}
    unknown = [name for name in nodes if name in exclusive and name not in volumes]
    if not unknown or not instance.disks:
        return []
    what = f"the size of the physical volumes of {' and '.join(unknown)} is not known"
    return [f"{what}, so the spindles of the disks are not checked; Ganeti checks them when it creates the disks"]


def left_out(pairs: int, listed: int) -> list[str]:
    """Return how many pairs of nodes the list of candidates leaves out, where it does."""
    if not pairs:
        return []
    total = f"{pairs + listed:,}"
    return [f"the answer considers all {total} pairs of nodes; the list shows {listed:,} that are likely the best"]


def objections(
    state: ClusterState, cluster: Cluster, request: PlaceRequest, instance: Instance, answer: GroupAnswer
) -> list[str]:
    """Return why Ganeti would refuse what hail chose, in what hail does not check."""
    found = []
    if request.name != NEW and request.name in state.instances:
        found.append(f"an instance {request.name} exists already: Ganeti refuses a second one of that name")
    if answer.group is None or answer.placement is None:
        return found
    group = cluster.groups[answer.group]
    exclusive = any(cluster.nodes[index].facts.exclusive for index in answer.placement.nodes)
    if not request.ignore_ipolicy and _too_many_interfaces(request, instance, group.policy, exclusive=exclusive):
        found.append(
            f"hail does not count network interfaces; Ganeti refuses {_interfaces(request)} in group {group.name}"
        )
    return found


def whole_of(instance: Instance) -> Instance:
    """Return an instance with its greatest memory, which Ganeti and its policy mean."""
    return replace(instance, memory=instance.burst, maximum_memory=None)


def _interfaces(request: PlaceRequest) -> int | None:
    return request.nic_count if request.nic_count is not None else len(request.networks) or None


def _too_many_interfaces(request: PlaceRequest, instance: Instance, policy: InstancePolicy, *, exclusive: bool) -> bool:
    """Whether every size of `policy` that allows the rest of an instance forbids the number of its interfaces."""
    nics, policed = _interfaces(request), replace(whole_of(instance), ignores_policy=False)
    pairs = [pair for pair in policy.minmax if check_pair(pair, policed, exclusive=exclusive) is None]
    return nics is not None and bool(pairs) and not any(p.min.nic_count <= nics <= p.max.nic_count for p in pairs)


def of_closed_group(cluster: Cluster, request: PlaceRequest, answer: GroupAnswer) -> list[str]:
    """Return that only a request by name gets into the chosen group, where that is so."""
    if request.group is None or answer.group is None or answer.placement is None:
        return []
    group = cluster.groups[answer.group]
    if group.alloc_policy is not AllocPolicy.UNALLOCABLE:
        return []
    return [f"group {group.name} is unallocable: it takes the instance only because the request names it"]


def why_not(
    found: list[Candidate], cluster: Cluster, wanted: Wanted, restriction: frozenset[str] | None, hail: HailParameters
) -> str:
    """Return a sentence that tells why the instance does not fit."""
    if hail.failure:
        return f"hail refuses every request, by default_iallocator_params: {hail.failure}"
    if not found:
        online = Counter(
            cluster.groups[node.facts.group].name for node in cluster.nodes.values() if not node.facts.offline
        )
        there = online[wanted.group_name] if wanted.group_name is not None else max(online.values(), default=0)
        if there < wanted.count:
            needs = f"{wanted.instance.template.value} needs {count(wanted.count, 'online node')}"
            where = "no group" if wanted.group_name is None else f"group {wanted.group_name}"
            return f"{needs}, and {where} has {'so many' if wanted.group_name is None else there or 'none'}"
        return _no_candidate(cluster, wanted, restriction, hail)
    counts = Counter(item.reason or "" for item in found)
    return f"refused by {', '.join(f'{key} ({count})' for key, count in counts.most_common())}"


def _no_candidate(cluster: Cluster, wanted: Wanted, restriction: frozenset[str] | None, hail: HailParameters) -> str:
    """Return why no candidate is left of the nodes that the request, or the cluster for all requests, names."""
    names = "the request names" if hail.restriction is None else "restrict-allocation-to names"
    nodes = [node.facts for node in cluster.nodes.values() if restriction is None or node.facts.name in restriction]
    groups = sorted({cluster.groups[facts.group].name for facts in nodes})
    needs = f"{wanted.instance.template.value} needs {count(wanted.count, 'online node')} of one group"
    if not nodes:
        return f"{needs}, and {names} no node of this cluster by its full name"
    if wanted.group_name is not None and wanted.group_name not in groups:
        return f"the named nodes are in {named('group', groups)}, not in {wanted.group_name}"
    offline = [facts.name for facts in nodes if facts.offline]
    of_them = f", of which {some(offline)} take no instance" if offline else ""
    return f"{needs}, and {names} {count(len(nodes), 'node')} in {named('group', groups)}{of_them}"
