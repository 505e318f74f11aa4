"""The cluster as hail reads it from Ganeti's document, and allocators that place instances one by one as hail does.

Each instance has the N+1 test and the limits of the policy. hail goes by lost allocations, without N+1, where all nodes
have exclusive storage (design document "dedicated allocation"), and takes a group of last resort only when no preferred
one takes the instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import groupby

from gpolicy.allocator import cluster_data, placement
from gpolicy.allocator.compiled_allocation import Budget, limited_allocator, memory_left
from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.merge import Cluster, ClusterData
from gpolicy.allocator.placement import Nodes
from gpolicy.allocator.redundancy import CapacityRules, Instances, numbered, redundancy_predicate
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator, ReferenceEngine
from gpolicy.allocator.requests import try_each_dedicated
from gpolicy.analysis.allocator_input import merged
from gpolicy.analysis.basis import Settled, settle
from gpolicy.analysis.wanted_instance import enabled_templates
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS, HailParameters, hail_parameters
from gpolicy.ganeti.parameters import as_word
from gpolicy.printable import clipped

_LONGEST = 72
_REPORTED = {cluster_data.DiskTemplate.DRBD, cluster_data.DiskTemplate.PLAIN, cluster_data.DiskTemplate.FILE}
"""Templates on whose storage Ganeti reports."""


def hails_cluster(state: ClusterState, *, resource_model: bool = False, asked: bool = True) -> tuple[Settled, Cluster]:
    """Return what is known of `state` as settled, and as hail loads it to move instances.

    `resource_model` is that of `settle`. When hail is `asked`, Ganeti reports the storage of the template that is
    enabled first; else disk is what it is.
    """
    settled = settle(state, resource_model=resource_model)
    data = as_hail_reads(settled.state, settled.data)
    cluster = merged(data, settled.resources, settled.hail.static_kvm_node_memory)
    first = next(iter(enabled_templates(state) or ()), None) if asked else None
    return settled, replace(cluster, nodes=as_reported(cluster.nodes, first))


def reports_disk(template: cluster_data.DiskTemplate | None) -> bool:
    """Whether Ganeti tells hail of the nodes' disk in a request for instances of `template`.

    It does not for storage that it cannot ask (Ganeti, masterd/iallocator.py, checked with 3.0 and 3.1). Then hail
    finds no new node for a mirrored or plain instance whose node is lost.
    """
    return template is None or template in _REPORTED


def no_disk_words(template: cluster_data.DiskTemplate | None) -> str:
    """Return what to say where the loss of a node is not absorbed for want of disk; empty where disk is reported."""
    return "" if reports_disk(template) or template is None else f"; Ganeti tells hail of no disk for {template.value}"


def as_reported(nodes: Nodes, template: cluster_data.DiskTemplate | None) -> Nodes:
    """Return `nodes` as hail loads them from a request for instances of `template`."""
    return nodes if reports_disk(template) else {index: _without_disk(node) for index, node in nodes.items()}


def _without_disk(node: cluster_data.Node) -> cluster_data.Node:
    new = node.with_facts(replace(node.facts, total_disk=0.0, free_disk=0, low_disk=0))
    new.free_disk, new.forth_free_disk = 0, node.forth_free_disk - node.free_disk
    new.ratio_disk = new.facts.disk_ratio(new.free_spindles, 0)
    new.forth_ratio_disk = new.facts.disk_ratio(new.forth_free_spindles, new.forth_free_disk)
    return new


def as_hail_reads(state: ClusterState, data: ClusterData) -> ClusterData:
    """Return `data` as hail reads it from an allocator request of Ganeti.

    There an instance with admin state up counts as running with its maxmem, every instance is balanced, there is no CPU
    speed, and a node that is offline or not VM capable has no resources.
    """
    instances = []
    for instance in data.instances:
        observed = state.instances[instance.name]
        status = cluster_data.BY_ADMIN_STATE.get(observed.admin_state, cluster_data.InstanceStatus.RUNNING)
        instances.append(replace(instance, status=status, memory=observed.maxmem, auto_balance=True))
    nodes = []
    for node in data.nodes:
        live = state.nodes[node.name].is_measured
        spindles = 0 if node.exclusive else node.spindles
        off = cluster_data.NodeData(node.index, node.name, node.group, node_cpus=0, offline=True, spindles=spindles)
        off = replace(off, exclusive=node.exclusive, tags=node.tags)
        nodes.append(replace(node, cpu_speed=1.0) if live else off)
    return replace(data, nodes=tuple(nodes), instances=tuple(instances))


def not_tried(state: ClusterState) -> list[str]:
    """Return why nodes are not candidates, for each."""
    unusable = [node for node in state.nodes.values() if not node.is_usable]
    return [f"{node.name} is {node.why_unusable}: not tried" for node in unusable]


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


_STEPS_OF_PLACEMENT = 2000
"""Of one by lost allocations, which the engine does not do."""


def rules_of(limits: Limits, *, tests: bool) -> CapacityRules:
    """Return the allocator's rules for `limits`; where they say nothing of failures, hail `tests` one or none."""
    failures = limits.max_node_failures
    if failures is None:
        failures = 1 if tests or limits.cpus_after_failure else 0
    cpus = limits.cpus_after_failure is True
    return CapacityRules(failures=failures, cpus=cpus, oversubscription=limits.oversubscription)


def hail_allocator(
    candidates: Sequence[placement.Candidates], rules: CapacityRules, budget: Budget, *, dedicated: bool
) -> Allocator:
    """Return the allocator for candidates, of which hail takes the later ones only where none of the first fits."""
    made = [
        _DedicatedAllocator(one, rules, budget)
        if dedicated and isinstance(one, placement.SingleCandidates)
        else limited_allocator(one, rules, budget)
        for one in candidates
    ]
    return made[0] if len(made) == 1 else _InTurn(made)


class _InTurn(Allocator):
    """Fills one part of a cluster after the other."""

    def __init__(self, parts: Sequence[Allocator]) -> None:
        super().__init__(parts[0].engine)
        self._parts = parts

    def standard(self, state: AllocationState, instance: cluster_data.Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`)."""
        first, failures = len(state.placed), placement.NO_FAILURES
        for part in self._parts:
            left = None if limit is None else limit - (len(state.placed) - first)
            state = part.standard(state, instance, left)
            failures = placement.add_counts(failures, state.failures)
        return replace(state, failures=failures)

    def tiered(self, state: AllocationState, instance: cluster_data.Instance, limit: int | None) -> AllocationState:
        """Place shrinking instances (`Allocator.tiered`)."""
        for part in self._parts:
            state = part.tiered(state, instance, limit)
        return state


class _DedicatedAllocator(Allocator):
    """Places by lost allocations: the smallest loss wins, then the least disk left, then the last node."""

    def __init__(self, candidates: placement.SingleCandidates, rules: CapacityRules, budget: Budget) -> None:
        super().__init__(ReferenceEngine(candidates, rules), capacity_checks=rules.failures > 0)
        self._candidates, self._rules, self._budget = candidates.nodes, rules, budget
        self._by_score = limited_allocator(candidates, rules, budget)

    def standard(self, state: AllocationState, instance: cluster_data.Instance, limit: int | None) -> AllocationState:
        """Place copies of `instance` (`Allocator.standard`). Only a node that has changed is tried again."""
        nodes, instances, placed = dict(state.nodes), dict(state.instances), list[cluster_data.Instance]()
        before = self._budget.left
        tried = [self._try(nodes[index], instances, instance) for index in self._candidates]
        waiting = [rank for place, trial in enumerate(tried) for rank in _ranks(place, trial)]
        heapify(waiting)
        refused = list[_Rank]()
        while waiting and len(placed) != limit:
            rank = heappop(waiting)
            place = -rank[2]
            found = tried[place]
            if isinstance(found, cluster_data.FailReason) or not self._is_redundant(nodes, instances, found):
                refused.append(rank)
                continue
            self._budget.spend(_STEPS_OF_PLACEMENT, before)
            number = len(instances)
            instances[number] = replace(found.instance, index=number, name=f"new-{len(state.placed) + len(placed)}")
            placed.append(instances[number])
            nodes[self._candidates[place]] = numbered(found.changed[0], number)
            tried[place] = self._try(nodes[self._candidates[place]], instances, instance)
            for again in (*refused, *_ranks(place, tried[place])):
                heappush(waiting, again)
            refused.clear()
        reasons = [trial for trial in tried if isinstance(trial, cluster_data.FailReason)]
        failures = placement.count_failures([*reasons, *[cluster_data.FailReason.N1] * len(refused)])
        return AllocationState(nodes, instances, (*reversed(placed), *state.placed), failures, attempted=True)

    def tiered(self, state: AllocationState, instance: cluster_data.Instance, limit: int | None) -> AllocationState:
        """Place the sizes of a tiered run by the score, in its order."""
        run = self._by_score.tiered(state, instance, limit)
        sizes = run.placed[: -len(state.placed) or None]
        alike = (replace(one, index=-1, name="", primary=cluster_data.NO_NODE) for one in reversed(sizes))
        for size, some in groupby(alike):
            state = self.standard(state, size, len(list(some)))
        return replace(state, failures=run.failures, attempted=run.attempted)

    def _try(
        self, node: cluster_data.Node, instances: Instances, instance: cluster_data.Instance
    ) -> placement.Placement | cluster_data.FailReason:
        if instance.burst > memory_left(node, instances, self._rules.oversubscription):
            return cluster_data.FailReason.MEM
        alone = placement.SingleCandidates((node.index,))
        (((_, trial),),) = try_each_dedicated({node.index: node}, instance, alone, force=self._rules.force)
        return trial

    def _is_redundant(self, nodes: placement.Nodes, instances: Instances, found: placement.Placement) -> bool:
        return not self.capacity_checks or redundancy_predicate(nodes, instances, self._rules, is_redundant)(found)


_Rank = tuple[tuple[int, ...], int, int]
"""The loss, the disk left, and the place among the candidates, below 0: of equals the last one is first."""


def _ranks(place: int, trial: placement.Placement | cluster_data.FailReason) -> list[_Rank]:
    return [] if isinstance(trial, cluster_data.FailReason) else [(trial.lost or (), trial.disk_left, -place)]


def without_nodes(candidates: placement.Candidates | None, refused: frozenset[int]) -> placement.Candidates | None:
    """Return the candidates without these nodes; None if none is left."""
    if candidates is None or not refused:
        return candidates

    def fits(index: int) -> bool:
        return index not in refused

    left = candidates.kept(fits, fits)
    if isinstance(left, placement.PairCandidates):
        left = placement.PairCandidates(tuple(item for item in left.members if len(item[1]) > 1))
    return left if left.nodes else None
