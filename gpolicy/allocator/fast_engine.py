"""The engine that gives the reference's answers without doing its work node by node.

Failures are counted from arrays, scores are computed only where something succeeds, and nothing is
computed twice in one state. What the arrays cannot represent (NaN, forthcoming instances) is handed to
the reference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.array_redundancy import ArrayRedundancy, SizeTable
from gpolicy.allocator.array_score import ArrayStatistics, array_statistics
from gpolicy.allocator.arrays import HUGE, NodeArrays
from gpolicy.allocator.kinds import DiskTemplate, FailReason
from gpolicy.allocator.outcomes import boundaries, candidates_mask, policy_codes
from gpolicy.allocator.pair_trial import PairTrial
from gpolicy.allocator.placement import Attempt, Candidates, Placement, SingleCandidates, try_allocate
from gpolicy.allocator.redundancy import redundancy_predicate, settled
from gpolicy.allocator.single_trial import SingleTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.redundancy import CapacityRules


class FastEngine:
    """Attempts on one cluster and one list of candidates; keeps arrays of the state last seen."""

    def __init__(
        self,
        candidates: Candidates,
        rules: CapacityRules,
        nodes: Mapping[int, Node],
        instances: Mapping[int, Instance],
        *,
        force: bool = False,
    ) -> None:
        self.candidates, self.rules, self.force = candidates, rules, force
        self.arrays = NodeArrays(nodes, instances)
        self.redundancy = ArrayRedundancy(self.arrays, rules)
        self._shadow: ArrayRedundancy | None = None
        self.single = isinstance(candidates, SingleCandidates)
        if isinstance(candidates, SingleCandidates):
            self.primaries = self.secondaries = candidates_mask(self.arrays, candidates.nodes)
        else:
            self.primaries = candidates_mask(self.arrays, candidates.primaries)
            self.secondaries = candidates_mask(self.arrays, candidates.secondaries)
        self._memo: dict[tuple[object, ...], Attempt] = {}
        self._fits: dict[tuple[object, ...], tuple[bool, tuple[int, ...]]] = {}
        self._may_fit: dict[tuple[object, ...], bool] = {}
        self._memo_version = -1
        self._stats: tuple[int, ArrayStatistics | None] = (-1, None)
        self._sizes: tuple[int, SizeTable | None] = (-1, None)

    def attempt(
        self,
        nodes: Mapping[int, Node],
        instances: Mapping[int, Instance],
        instance: Instance,
        *,
        checked: bool,
    ) -> Attempt:
        """Try to place `instance` once (`gpolicy.allocator.placement.try_allocate`)."""
        self.follow(nodes, instances)
        shape = (shape_of(instance), instance.index, len(instances), checked)
        known = self._memo.get(shape)
        if known is None:
            with np.errstate(all="ignore"):
                known = self._compute(nodes, instances, instance, checked=checked)
            self._memo[shape] = known
        if known.solution is None or known.solution.instance.name == instance.name:
            return known
        placed = replace(known.solution.instance, name=instance.name)
        return replace(known, solution=replace(known.solution, instance=placed))

    def redundant(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> bool:
        """Whether the state survives the loss of any one node."""
        self.follow(nodes, instances)
        with np.errstate(all="ignore"):
            return self.redundancy.redundant(nodes, instances)

    def follow(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
        """Bring the arrays in step with the state; forget what was known of another one."""
        self.arrays.sync(nodes, instances)
        if self._memo_version != self.arrays.version:
            self._memo.clear()
            self._fits.clear()
            self._may_fit.clear()
            self._memo_version = self.arrays.version

    def placed(self, nodes: Mapping[int, Node], placement: Placement) -> None:
        """Follow the commitment of a placement that leads to the state `nodes`."""
        self.arrays.placed(nodes, placement.changed, placement.instance)

    def handles(self, instance: Instance) -> bool:
        """Whether the arrays can represent the instance's sizes."""
        sizes = (instance.memory, instance.disk, instance.vcpus, instance.spindle_use)
        return all(0 <= size < HUGE for size in (*sizes, *(disk.size for disk in instance.disks))) and all(
            0 <= (disk.spindles or 0) < HUGE for disk in instance.disks
        )

    def fits(self, instance: Instance) -> tuple[bool, tuple[int, ...]]:
        """Return whether any candidate takes `instance` in the state last followed, and the failures."""
        key = shape_of(instance)
        known = self._fits.get(key)
        if known is None:
            with np.errstate(all="ignore"):
                trial = self._trial(instance)
            known = self._fits[key] = (trial.successes > 0, trial.failures)
        return known

    def may_fit(self, instance: Instance, free: frozenset[FailReason]) -> bool:
        """Like `fits`, with policies that have no limits on the resources in `free`."""
        key = (*shape_of(instance), free)
        known = self._may_fit.get(key)
        if known is None:
            with np.errstate(all="ignore"):
                known = self._trial(instance, free).successes > 0
            self._may_fit[key] = known
        return known

    def surely_breaks(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance], instance: Instance) -> bool:
        """Whether N+1 is broken for good by every possible placement of a single-node instance."""
        self.follow(nodes, instances)
        with np.errstate(all="ignore"):
            trial = self._trial(instance)
            if not isinstance(trial, SingleTrial):
                return False
            broken = self._size_table(instances).sure_to_break(self.redundancy, trial.demand, trial.rows)
        return bool(broken.all())

    def steps_until_change(self, instance: Instance, reason: FailReason, unit: int) -> int:
        """Return how many shrinks by `reason` lead to the first instance with other outcomes."""
        if len(instance.disks) != 1 or instance.disks[0].size != instance.disk:
            return 1
        mirrored = instance.template is DiskTemplate.DRBD
        numbers = boundaries(self.arrays, reason, mirrored=mirrored)
        if numbers is None:
            return 1
        value = instance.memory if reason is FailReason.MEM else instance.disk
        below = numbers[numbers <= value]
        start = int(below.max()) if len(below) else -HUGE
        for policy, _ in self.arrays.policies:
            for pair in policy.minmax:
                limits = (
                    (pair.min.memory, pair.max.memory + 1)
                    if reason is FailReason.MEM
                    else (pair.min.disk_size, pair.max.disk_size + 1)
                )
                start = max([start, *(limit for limit in limits if limit <= value)])
        return (value - start) // unit + 1

    def _trial(self, instance: Instance, free: frozenset[FailReason] = frozenset()) -> SingleTrial | PairTrial:
        policy = policy_codes(self.arrays, instance, free)
        if self.single:
            return SingleTrial(self.arrays, self.primaries, instance, policy, force=self.force)
        return PairTrial(self.arrays, self.primaries, self.secondaries, instance, policy, force=self.force)

    def _compute(
        self,
        nodes: Mapping[int, Node],
        instances: Mapping[int, Instance],
        instance: Instance,
        *,
        checked: bool,
    ) -> Attempt:
        answer: Attempt | None = None
        if not instance.forthcoming and self.handles(instance):
            trial = self._trial(instance)
            if not trial.successes:
                return Attempt(trial.failures, 0, None)
            stats = self._statistics()
            if stats.finite:
                answer = self._choose_checked(trial, stats, nodes, instances) if checked else trial.choose(stats)
        if answer is not None:
            return answer
        predicate = redundancy_predicate(nodes, instances, self.rules) if checked else None
        return try_allocate(nodes, instance, self.candidates, force=self.force, predicate=predicate)

    def _statistics(self) -> ArrayStatistics:
        version, stats = self._stats
        if stats is None or version != self.arrays.version:
            stats = array_statistics(self.arrays)
            self._stats = (self.arrays.version, stats)
        return stats

    def _choose_checked(
        self,
        trial: SingleTrial | PairTrial,
        stats: ArrayStatistics,
        nodes: Mapping[int, Node],
        instances: Mapping[int, Instance],
    ) -> Attempt | None:
        number = len(instances)

        def accepted(placement: Placement) -> bool:
            state = dict(nodes)
            for node in placement.changed:
                state[node.index] = settled(node, number)
            table = dict(instances)
            table[number] = placement.instance
            return self._shadow_of(nodes, instances).redundant_after(state, table)

        arrays = self.arrays
        if isinstance(trial, SingleTrial):
            broken = self._size_table(instances).sure_to_break(self.redundancy, trial.demand, trial.rows)
            return trial.choose_checked(stats, broken, accepted)
        if self.redundancy.all_mirrored(instances):
            memory = trial.demand.used_memory
            left = arrays.unallocated - memory
            allowed = arrays.moving + memory < arrays.unallocated[None, :]
            allowed &= (arrays.most_moving < left)[:, None]
            if not self.redundancy.mirrored_fits():
                allowed[:] = False
            return trial.choose_redundant(stats, allowed)
        return trial.choose_checked(stats, accepted)

    def _size_table(self, instances: Mapping[int, Instance]) -> SizeTable:
        version, table = self._sizes
        if table is None or version != self.arrays.version:
            table = SizeTable(self.arrays, instances)
            self._sizes = (self.arrays.version, table)
        return table

    def _shadow_of(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> ArrayRedundancy:
        if self._shadow is None:
            self._shadow = ArrayRedundancy(NodeArrays(nodes, instances), self.rules)
        return self._shadow


def shape_of(instance: Instance) -> tuple[object, ...]:
    """Return everything about an instance that decides where it can go."""
    return (
        instance.memory,
        instance.disk,
        instance.disks,
        instance.vcpus,
        instance.template,
        instance.spindle_use,
        instance.status,
        instance.auto_balance,
        instance.forthcoming,
        instance.exclusion_tags,
        instance.desired_tags,
        instance.location_score,
        instance.load,
    )
