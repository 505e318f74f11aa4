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
        facts = [node.facts for node in arrays.nodes]
        self.examined = np.array(
            [not (rules.skip_offline and fact.offline) and fact.group not in rules.ignored_groups for fact in facts],
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
        if not arrays.online[escape].all():
            return can_evacuate(nodes, instances, key)  # the scores over arrays are of online nodes only
        for instance in sorted(residents, key=lambda item: -item.memory):
            trial = SingleTrial(arrays, escape, instance, policy_codes(arrays, instance), force=True)
            if not trial.successes:
                return False
            stats = array_statistics(arrays)
            attempt = trial.choose(stats) if stats.finite else None
            if attempt is None or attempt.solution is None:
                return can_evacuate(nodes, instances, key)
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
            and bool(self.examined.all())
            and self._only_mirrored(instances)
        )

    def sure_mirrored(self, instances: Mapping[int, Instance]) -> bool | None:
        """Answer for a cluster of mirrored instances only: all of a node's fail-overs must fit."""
        if not self.all_mirrored(instances):
            return None
        return self.mirrored_fits()

    def mirrored_fits(self) -> bool:
        """Whether all fail-overs of each node fit, where `all_mirrored` holds."""
        arrays = self.arrays
        takes = (arrays.most_moving < arrays.unallocated) & (arrays.unallocated > 0) & (arrays.disk > 0)
        leaves = (arrays.disk > 0) | ~arrays.online
        return bool(takes[arrays.has_secondaries].all()) and bool(leaves[arrays.has_primaries].all())

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
        if memory.size and _room_in_any_order(residents, memory, disk, spindles):
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


def _copies(memory: Ints, disk: Ints, spindles: Ints, size: tuple[int, ...], step: tuple[int, ...]) -> Ints:
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


def _room_in_any_order(residents: list[Instance], memory: Ints, disk: Ints, spindles: Ints) -> bool:
    """Whether each instance surely finds a node, wherever the ones before it have gone.

    A node refuses an instance only after what was placed there before has used up memory, disk or
    spindles. If the shares of all that was placed, needed to block every node in some resource, add up to
    more than there was, one node must be left.
    """
    # the order in which the reference goes: moves as listed, then copies by size
    moved = [item for item in residents if item.template.movable_foreign]
    copied = [item for item in residents if not item.template.movable_foreign]
    placed = np.zeros(3, dtype=np.int64)
    room = np.stack([memory - 1, disk - 1, spindles])
    for instance in moved + sorted(copied, key=lambda item: -item.memory):
        size = np.array(_size(instance), dtype=np.int64)
        asked = np.array([True, instance.template.local, instance.template.local])
        # a node is blocked once more than this is placed on it
        needed = room - size[:, None] + 1
        blocking = asked[:, None] & (needed <= placed[:, None])
        if not (blocking.any(axis=0)).all():
            placed += _taken(instance)
            continue
        share = np.where(blocking, np.maximum(needed, 0) / np.maximum(placed, 1)[:, None], np.inf)
        resources = int(blocking.any(axis=1).sum())
        if not float(share.min(axis=0).sum()) > resources * (1 + 1e-9):
            return False
        placed += _taken(instance)
    return True


def _taken(instance: Instance) -> Ints:
    """Return what an instance takes away; foreign storage costs spindles as well, though not needed."""
    memory, disk, _ = _size(instance)
    return np.array([memory, disk, instance.total_spindles or 0], dtype=np.int64)


class SizeTable:
    """How many instances of each size every node would have to send elsewhere, in one state.

    `sizes` has a row (memory, disk, spindles) per distinct size; `counts` and `copies` a row per size and
    a column per node: how many of its instances are at least that big, and how many of that size it
    has room for.
    """

    def __init__(self, arrays: NodeArrays, instances: Mapping[int, Instance]) -> None:
        self.arrays = arrays
        found = [
            (row, *_size(instances[number]))
            for row, node in enumerate(arrays.nodes)
            for number in node.primaries
            if instances[number].template is not DiskTemplate.DRBD
        ]
        table = np.array(found, dtype=np.int64).reshape(-1, 4)
        self._rows, self._of_instance = table[:, 0], table[:, 1:]
        self.sizes = np.unique(self._of_instance, axis=0)
        self.counts = self._count(self.sizes)
        self._spindles = np.where(arrays.exclusive, arrays.free_spindles, _UNLIMITED)
        self.copies = self._copies(self.sizes, (0, 0, 0))

    def sure_to_break(self, redundancy: ArrayRedundancy, demand: Demand, rows: Ints) -> Bools:
        """Return for each of `rows` whether an instance placed there surely breaks N+1, for good.

        The reason is one that further placements cannot mend: too little room for one node's instances.
        """
        wanted = (
            demand.used_memory,
            demand.disk if demand.local else 0,
            (demand.spindles or 0) if demand.local else 0,
        )
        sizes, counts, copies = self.sizes, self.counts, self.copies
        if not (sizes == wanted).all(axis=1).any():
            own = np.array([wanted], dtype=np.int64)
            sizes = np.concatenate([sizes, own])
            counts = np.concatenate([counts, self._count(own)])
            copies = np.concatenate([copies, self._copies(own, (0, 0, 0))])
        lost = copies - self._copies(sizes, wanted)
        covered: Bools = np.asarray((np.array(wanted) >= sizes).all(axis=1))
        more = covered.astype(np.int64)[:, None]
        broken = np.zeros(len(rows), dtype=bool)
        groups = self.arrays.group
        for group in np.unique(groups[rows]).tolist():
            inside = groups == group
            examined = np.flatnonzero(inside & redundancy.examined)
            if not len(examined):
                continue
            slack = copies[:, inside].sum(axis=1)[:, None] - copies - counts
            mine = groups[rows] == group
            targets = rows[mine]
            among = slack[:, examined]
            first = among.argmin(axis=1)
            least: Ints = np.asarray(among[np.arange(len(sizes)), first])
            among[np.arange(len(sizes)), first] = _UNLIMITED
            second = np.asarray(among.min(axis=1))[:, None]
            others = np.where(examined[first][:, None] == targets[None, :], second, least[:, None])
            fails = others - lost[:, targets] < 0
            fails |= (slack[:, targets] - more < 0) & redundancy.examined[targets][None, :]
            broken[mine] = fails.any(axis=0)
        return broken

    def _count(self, sizes: Ints) -> Ints:
        count = len(self.arrays.nodes)
        result = np.zeros((len(sizes), count), dtype=np.int64)
        for place, size in enumerate(sizes):
            big = (self._of_instance >= size).all(axis=1)
            result[place] = np.bincount(self._rows[big], minlength=count)
        return result

    def _copies(self, sizes: Ints, taken: tuple[int, int, int]) -> Ints:
        arrays = self.arrays
        room = (
            arrays.unallocated - taken[0] - 1,
            arrays.disk - taken[1] - 1,
            np.where(arrays.exclusive, self._spindles - taken[2], _UNLIMITED),
        )
        fits = np.full((len(sizes), len(arrays.nodes)), 2**20, dtype=np.int64)
        for place in range(3):
            size = sizes[:, place][:, None]
            fits = np.where(
                size > 0, np.minimum(fits, np.maximum(0, room[place][None, :]) // np.maximum(1, size)), fits
            )
        return np.where(arrays.unallocated[None, :] - taken[0] <= 0, 0, fits)
