"""The global N+1 test over arrays: sure answers where arithmetic gives one, else the reference test.

Whether a node can be evacuated depends, in the reference, on where a greedy choice puts its instances.
Often that does not matter: there is no room whatever the choice, or there is room whatever it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.array_score import array_statistics
from gpolicy.allocator.arrays import NodeArrays
from gpolicy.allocator.kinds import DiskTemplate
from gpolicy.allocator.outcomes import policy_codes
from gpolicy.allocator.policy_check import check_policy
from gpolicy.allocator.redundancy import can_evacuate
from gpolicy.allocator.single_trial import SingleTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.arrays import Bools, Ints
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.outcomes import Demand
    from gpolicy.allocator.redundancy import CapacityRules

_UNLIMITED = np.int64(2**40)


class ArrayRedundancy:
    """The N+1 test of the state that `arrays` are in step with."""

    def __init__(self, arrays: NodeArrays, rules: CapacityRules) -> None:
        self.arrays, self.rules = arrays, rules
        facts = [node.facts for node in arrays.nodes if node is not None]
        self.examined = np.array(
            [
                not (rules.skip_offline and fact.offline) and fact.group not in rules.ignored_groups
                for fact in facts
            ],
            dtype=bool,
        )
        self.restricted_moves = any(fact.migration_tags for fact in facts)
        self._verdicts: dict[tuple[object, ...], bool] = {}
        self._copier: NodeArrays | None = None
        self._checked: tuple[Mapping[int, Instance], bool] | None = None

    def redundant(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> bool:
        """Whether each examined node can be evacuated."""
        sure = self.sure_mirrored(instances)
        if sure is not None:
            return sure
        unsure = []
        for row in np.flatnonzero(self.examined):
            verdict = self._evacuation(int(row), instances)
            if verdict is False:
                return False
            if verdict is None:
                unsure.append(self.arrays.keys[row])
        return all(self._simulate(nodes, instances, key) for key in unsure)

    def _simulate(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance], key: int) -> bool:
        """Go through the evacuation of one node step by step."""
        residents = [instances[number] for number in nodes[key].primaries]
        copied = not any(
            item.template is DiskTemplate.DRBD or item.template.movable_foreign or item.forthcoming
            for item in residents
        )
        if not copied:
            return can_evacuate(nodes, instances, key)
        if self._copier is None:
            self._copier = NodeArrays(nodes, instances)
        arrays = self._copier
        arrays.sync(nodes, instances)
        state = dict(nodes)
        row = arrays.row_of[key]
        escape = arrays.group == arrays.group[row]
        escape[row] = False
        for instance in sorted(residents, key=lambda item: -item.memory):
            trial = SingleTrial(arrays, escape, instance, policy_codes(arrays, instance), force=True)
            if not trial.successes:
                return False
            stats = array_statistics(arrays)
            attempt = trial.choose(stats) if stats.finite else None
            if attempt is None:
                return can_evacuate(nodes, instances, key)
            assert attempt.solution is not None
            arrays.placed(state, attempt.solution.changed, attempt.solution.instance)
        return True

    def redundant_after(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> bool:
        """Bring the arrays to another state and test that one."""
        self.arrays.sync(nodes, instances)
        return self.redundant(nodes, instances)

    def all_mirrored(self, instances: Mapping[int, Instance]) -> bool:
        """Whether the closed form for mirrored instances applies to `instances`."""
        return (
            not self.restricted_moves
            and not self.arrays.any_exclusive
            and bool((self.arrays.unallocated > 0).all())
            and bool((self.arrays.disk > 0).all())
            and bool(self.examined.all())
            and self._only_mirrored(instances)
        )

    def sure_mirrored(self, instances: Mapping[int, Instance]) -> bool | None:
        """Answer for a cluster of mirrored instances only: all of a node's fail-overs must fit."""
        if not self.all_mirrored(instances):
            return None
        return bool((self.arrays.most_moving < self.arrays.unallocated).all())

    def _only_mirrored(self, instances: Mapping[int, Instance]) -> bool:
        if self._checked is not None and self._checked[0] is instances:
            return self._checked[1]
        answer = all(
            instance.template is DiskTemplate.DRBD
            and not instance.forthcoming
            and instance.primary in self.arrays.row_of
            and instance.secondary in self.arrays.row_of
            for instance in instances.values()
        )
        self._checked = (instances, answer)
        return answer

    def _evacuation(self, row: int, instances: Mapping[int, Instance]) -> bool | None:
        """Return whether the node can be evacuated, None where only the reference can tell."""
        arrays = self.arrays
        node = arrays.nodes[row]
        assert node is not None
        residents = [instances[number] for number in node.primaries]
        if not residents:
            return True
        if self.restricted_moves or any(item.template is DiskTemplate.DRBD for item in residents):
            return None
        escape = (arrays.group == arrays.group[row]) & (np.arange(len(arrays.nodes)) != row)
        escape_rows = np.flatnonzero(escape)
        if not len(escape_rows) or not self._policies_allow(residents, escape_rows):
            return False if not len(escape_rows) else None
        if arrays.any_exclusive and any(item.total_spindles is None for item in residents):
            return None
        return self._room(residents, escape_rows)

    def _room(self, residents: list[Instance], escape: Ints) -> bool | None:
        """Compare demand and room: False and True are sure, None is not."""
        arrays = self.arrays
        memory, disk = arrays.unallocated[escape], arrays.disk[escape]
        if any(item.template.local and item.disk <= 0 for item in residents):
            return None
        spindles = np.where(arrays.exclusive[escape], arrays.free_spindles[escape], _UNLIMITED)
        sizes = {_size(item) for item in residents}
        if memory.min() <= 0:
            # such a node takes nothing, whatever its disk
            keep = memory > 0
            memory, disk, spindles = memory[keep], disk[keep], spindles[keep]
        for size in sizes:
            count = sum(1 for item in residents if all(a >= b for a, b in zip(_size(item), size, strict=True)))
            if count > int(_copies(memory, disk, spindles, size, size).sum()):
                return False
        # instances on foreign storage need no free spindles, but take them away all the same
        largest = (
            max(size[0] for size in sizes),
            max(size[1] for size in sizes),
            max(item.total_spindles or 0 for item in residents),
        )
        if int(_copies(memory, disk, spindles, largest, largest).sum()) >= len(residents):
            return True
        return None

    def _policies_allow(self, residents: list[Instance], escape: Ints) -> bool:
        for instance in residents:
            if instance.template.movable_foreign:
                continue
            for flag in {bool(value) for value in self.arrays.exclusive[escape]}:
                if not self._allowed(instance, int(escape[0]), exclusive=flag):
                    return False
        return True

    def _allowed(self, instance: Instance, row: int, *, exclusive: bool) -> bool:
        node = self.arrays.nodes[row]
        assert node is not None
        policy = node.facts.policy
        key = (
            id(policy),
            exclusive,
            instance.memory,
            instance.disks,
            instance.vcpus,
            instance.spindle_use,
            instance.template,
        )
        if key not in self._verdicts:
            self._verdicts[key] = check_policy(policy, instance, exclusive=exclusive) is None
        return self._verdicts[key]


def _size(instance: Instance) -> tuple[int, int, int]:
    """Return memory, disk and spindles that the instance takes where it is started."""
    return (
        instance.memory if instance.uses_memory else 0,
        instance.disk if instance.template.local else 0,
        (instance.total_spindles or 0) if instance.template.local else 0,
    )


def _copies(
    memory: Ints, disk: Ints, spindles: Ints, size: tuple[int, ...], step: tuple[int, ...]
) -> Ints:
    """Return how many instances of `size` fit on each node: one more than 0 must be left of each.

    For spindles nothing needs to be left.
    """
    fits = np.full(len(memory), _UNLIMITED)
    if step[0] > 0:
        fits = np.minimum(fits, np.maximum(0, (memory - 1) // step[0]))
    if step[1] > 0:
        fits = np.minimum(fits, np.maximum(0, (disk - 1) // step[1]))
    if step[2] > 0:
        fits = np.minimum(fits, np.maximum(0, spindles // step[2]))
    if size[1] > 0:
        fits = np.where(disk <= 0, 0, fits)
    return np.minimum(fits, _UNLIMITED)


def sure_to_break(
    arrays: NodeArrays,
    redundancy: ArrayRedundancy,
    instances: Mapping[int, Instance],
    demand: Demand,
    rows: Ints,
) -> Bools:
    """Return for each of `rows` whether an instance placed there surely breaks N+1, now and for good.

    The reason is one that further placements cannot mend: too little room for one node's instances.
    """
    broken = np.zeros(len(rows), dtype=bool)
    wanted = (
        demand.used_memory,
        demand.disk if demand.local else 0,
        (demand.spindles or 0) if demand.local else 0,
    )
    members = [
        [_size(instances[number]) for number in node.primaries if instances[number].template is not DiskTemplate.DRBD]
        if node is not None
        else []
        for node in arrays.nodes
    ]
    sizes = {size for row in members for size in row} | {wanted}
    spindles = np.where(arrays.exclusive, arrays.free_spindles, _UNLIMITED)
    spindles_after = np.where(arrays.exclusive, arrays.free_spindles - wanted[2], _UNLIMITED)
    limit = np.int64(2**30)
    for size in sizes:
        if size[0] <= 0:
            continue
        count = np.array(
            [sum(1 for item in row if all(a >= b for a, b in zip(item, size, strict=True))) for row in members],
            dtype=np.int64,
        )
        copies = np.minimum(limit, _copies(arrays.unallocated, arrays.disk, spindles, size, size))
        after = np.minimum(
            limit,
            _copies(
                arrays.unallocated - wanted[0], arrays.disk - wanted[1], spindles_after, size, size
            ),
        )
        more = 1 if all(a >= b for a, b in zip(wanted, size, strict=True)) else 0
        for group in range(arrays.group_count):
            inside = np.flatnonzero((arrays.group == group) & redundancy.examined)
            if not len(inside):
                continue
            total = int(copies[arrays.group == group].sum())
            slack = total - copies - count
            mine = arrays.group[rows] == group
            targets = rows[mine]
            if not len(targets):
                continue
            lost = (copies - after)[targets]
            order = inside[np.argsort(slack[inside], kind="stable")[:2]]
            least = slack[order[0]]
            second = slack[order[1]] if len(order) > 1 else limit
            others = np.where(targets == order[0], second, least)
            own = slack[targets] - more
            own = np.where(redundancy.examined[targets], own, 0)
            broken[mine] |= (others - lost < 0) | (own < 0)
    return broken
