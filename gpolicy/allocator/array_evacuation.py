"""The evacuation of many nodes at once, where all instances to be kept running are plain copies.

Every node is emptied on its own, from the same state; step k of all evacuations places the k-th
instance of each node. Evacuations that surely succeed whatever the choices are not followed further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator import array_score as at
from gpolicy.allocator.array_score import BOTH, PRIMARY_ONLY, WEIGHTS, array_statistics
from gpolicy.allocator.kinds import DiskTemplate
from gpolicy.allocator.outcomes import OK, policy_codes
from gpolicy.allocator.score import COMPONENTS, Aggregate
from gpolicy.allocator.single_search import MARGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.arrays import Bools, Floats, Ints, NodeArrays
    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node

_CELLS = 1 << 15
"""Nodes times evacuations that are followed together."""
_EVERY = 4
"""After so many steps it is asked again which evacuations surely succeed."""
_MEMORY, _USED, _DISK, _SPINDLES, _CPUS, _USE, _LOCAL, _LOCATION, _KIND, _TAKEN = range(10)
_LOADS = (at.CPU_LOAD, at.MEMORY_LOAD, at.DISK_LOAD, at.NET_LOAD)
_FULL = (*PRIMARY_ONLY.tolist(), *BOTH.tolist())
_SHORT = (at.FREE_MEMORY, at.FREE_DISK, at.CPU, at.SPINDLES, at.CPU_LOAD)
_TWINS = [at.FORTH_MEMORY, at.FORTH_DISK, at.FORTH_CPU, at.FORTH_SPINDLES]
_ORIGINALS = [at.FREE_MEMORY, at.FREE_DISK, at.CPU, at.SPINDLES]
_STANDS_FOR = {
    **dict(zip(_TWINS, _ORIGINALS, strict=True)),
    at.MEMORY_LOAD: at.CPU_LOAD,
    at.DISK_LOAD: at.CPU_LOAD,
    at.NET_LOAD: at.CPU_LOAD,
}
_FAR = np.int64(2**60)


class Residents:
    """The primaries of one node in the order in which they are evacuated.

    `table` has a row of numbers per instance, `loads` its utilisation, `before` what those before it
    take (memory, disk, spindles), `lasts` the places of the last instance of each size.
    """

    def __init__(self, node: Node, rows: list[tuple[tuple[int, ...], tuple[float, ...]]], *, alike: bool) -> None:
        self.node, self.alike = node, alike
        ordered = sorted(rows, key=lambda row: -row[0][_MEMORY])
        self.table = np.array([row[0] for row in ordered], dtype=np.int64).reshape(-1, _TAKEN + 1)
        self.loads = np.array([row[1] for row in ordered], dtype=np.float64).reshape(-1, 4)
        taken = self.table[:, [_USED, _DISK, _TAKEN]]
        self.before = np.concatenate([np.zeros((1, 3), dtype=np.int64), np.cumsum(taken, axis=0)])
        self.lasts = sorted({row[0][_USED : _SPINDLES + 1]: place for place, row in enumerate(ordered)}.values())
        self.risky = bool(((self.table[:, _LOCAL] != 0) & (self.table[:, _DISK] <= 0)).any())


class Evacuations:
    """Evacuations of the nodes of one cluster; keeps what it knows of nodes that stay the same."""

    def __init__(self, arrays: NodeArrays) -> None:
        self.arrays = arrays
        self._residents: dict[int, Residents] = {}
        self._known: dict[int, tuple[Instance, tuple[tuple[int, ...], tuple[float, ...]]] | None] = {}
        self._kinds: dict[tuple[object, ...], int] = {}
        self._allowed: list[Bools] = []
        self._may_go = arrays.group[:, None] == arrays.group[None, :]
        np.fill_diagonal(self._may_go, val=False)

    def all_possible(self, rows: Ints, instances: Mapping[int, Instance]) -> bool | None:
        """Return whether each node of `rows` can be evacuated; None where this cannot tell."""
        residents = []
        for row in rows.tolist():
            found = self._of(row, instances)
            if found is None:
                return None
            if len(found.table):
                residents.append((row, found))
        residents.sort(key=lambda item: -len(item[1].table))
        per_turn = max(1, _CELLS // len(self.arrays.nodes))
        for start in range(0, len(residents), per_turn):
            verdict = _Turn(self, residents[start : start + per_turn]).run()
            if verdict is not True:
                return verdict
        return True

    def may_go(self, rows: Ints) -> Bools:
        """Return the table of nodes (one column per evacuated node of `rows`) that instances may go to."""
        table: Bools = self._may_go[:, rows]
        return table

    def allowed(self, kinds: Ints) -> Bools:
        """Return the verdicts of all nodes' policies on instances of `kinds`, one column each."""
        return np.stack([self._allowed[kind] for kind in kinds.tolist()], axis=1)

    def _of(self, row: int, instances: Mapping[int, Instance]) -> Residents | None:
        node = self.arrays.nodes[row]
        known = self._residents.get(row)
        if known is not None and known.node is node:
            return known
        rows = []
        alike = True
        for number in node.primaries:
            instance = instances[number]
            facts = self._facts(number, instance)
            if facts is None:
                return None
            rows.append(facts)
            load = instance.load
            alike = alike and instance.uses_memory and load[0] == load[1] == load[2] == load[3]
        known = self._residents[row] = Residents(node, rows, alike=alike)
        return known

    def _facts(self, number: int, instance: Instance) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        known = self._known.get(number)
        if known is not None and known[0] is instance:
            return known[1]
        template = instance.template
        spindles = instance.total_spindles
        if (
            template is DiskTemplate.DRBD
            or template.movable_foreign
            or instance.forthcoming
            or instance.exclusion_tags
            or instance.desired_tags
            or (spindles is None and self.arrays.any_exclusive)
            or min(instance.memory, instance.disk, instance.vcpus, instance.spindle_use, spindles or 0) < 0
        ):
            return None
        local = template.local
        facts = (
            instance.memory,
            instance.memory if instance.uses_memory else 0,
            instance.disk if local else 0,
            (spindles or 0) if local else 0,
            instance.vcpus if instance.online else 0,
            instance.spindle_use if local else 0,
            int(local),
            instance.location_score,
            self._kind(instance),
            spindles or 0,
        )
        answer = facts, instance.load
        self._known[number] = (instance, answer)
        return answer

    def _kind(self, instance: Instance) -> int:
        key = (instance.memory, instance.disks, instance.vcpus, instance.spindle_use, instance.template)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = len(self._allowed)
            self._allowed.append(policy_codes(self.arrays, instance) == OK)
        return kind


class _Turn:
    """Some evacuations that are followed together, those with most instances first."""

    def __init__(self, owner: Evacuations, residents: list[tuple[int, Residents]]) -> None:
        arrays = self.arrays = owner.arrays
        self.owner = owner
        self.residents = [found for _, found in residents]
        self.rows = np.array([row for row, _ in residents], dtype=np.int64)
        self.may_go = owner.may_go(self.rows)
        count = len(residents)
        self.state = np.stack(
            [
                arrays.unallocated,
                arrays.disk,
                arrays.free_spindles,
                arrays.cpus,
                arrays.forth_memory,
                arrays.forth_disk,
                arrays.forth_spindles,
                arrays.forth_cpus,
            ]
        )[:, :, None].repeat(count, axis=2)
        self.use = np.stack([arrays.spindle_use, arrays.forth_spindle_use])[:, :, None].repeat(count, axis=2)
        self.instances = arrays.instances[:, None].repeat(count, axis=1)
        self.short = self._short()
        self.columns = _SHORT if self.short else _FULL
        values = arrays.values
        self.values = np.ascontiguousarray(values[:, self.columns].T)[:, :, None].repeat(count, axis=2)
        self.n1 = values[:, at.N1_COUNT][:, None].repeat(count, axis=1)
        self.location = np.zeros(count)

    def _short(self) -> bool:
        """Whether the second book says the same as the first one, and all loads are the same."""
        arrays = self.arrays
        values = arrays.values
        return (
            all(found.alike for found in self.residents)
            and np.array_equal(self.state[:4], self.state[4:])
            and np.array_equal(arrays.spindle_use, arrays.forth_spindle_use)
            and np.array_equal(values[:, _TWINS], values[:, _ORIGINALS])
            and all(np.array_equal(values[:, load], values[:, at.CPU_LOAD]) for load in _LOADS)
        )

    def run(self) -> bool | None:
        self.stats = array_statistics(self.arrays)
        if not self.stats.finite:
            return None
        self.n1_sums = np.full(len(self.rows), self.stats.sums[at.N1_COUNT])
        step = 0
        while True:
            keep = np.array([len(found.table) > step for found in self.residents], dtype=bool)
            if step % _EVERY == 0:
                keep &= ~self._surely_possible(step, keep)
            if not keep.all():
                self._keep(keep)
            if not len(self.rows):
                return True
            verdict = self._place(step)
            if verdict is not True:
                return verdict
            step += 1

    def _keep(self, keep: Bools) -> None:
        self.residents = [found for found, kept in zip(self.residents, keep.tolist(), strict=True) if kept]
        self.rows, self.may_go = self.rows[keep], self.may_go[:, keep]
        self.state, self.use = self.state[:, :, keep], self.use[:, :, keep]
        self.values, self.n1 = self.values[:, :, keep], self.n1[:, keep]
        self.instances, self.location, self.n1_sums = self.instances[:, keep], self.location[keep], self.n1_sums[keep]

    def _surely_possible(self, step: int, active: Bools) -> Bools:
        """Return which evacuations find a node for each instance left, wherever the ones before it go.

        A node refuses an instance only after what was placed there before has used up memory, disk or
        spindles. If the shares of all that is placed, needed to block every node in some resource, add
        up to more than there is, one node must be left.
        """
        arrays = self.arrays
        sure = np.zeros(len(self.residents), dtype=bool)
        asked: list[tuple[int, int]] = []
        for place, found in enumerate(self.residents):
            if active[place] and not found.risky:
                sure[place] = True
                asked.extend((place, last) for last in found.lasts if last >= step)
        if not asked:
            return sure
        of = np.array([place for place, _ in asked], dtype=np.int64)
        sizes = np.array([self.residents[place].table[last] for place, last in asked], dtype=np.int64)
        placed = np.array(
            [self.residents[place].before[last] - self.residents[place].before[step] for place, last in asked],
            dtype=np.int64,
        )
        room = self.state[:3][:, :, of]
        spindles = np.where(arrays.exclusive[:, None], room[2], _FAR)
        usable = self.may_go[:, of] & (room[0] > 0)
        policy = self.owner.allowed(sizes[:, _KIND])
        least = np.full(usable.shape, np.inf)
        resources = np.zeros(len(of))
        blocked = np.zeros(usable.shape, dtype=bool)
        for place, (free, size, local) in enumerate(
            ((room[0] - 1, _USED, False), (room[1] - 1, _DISK, True), (spindles, _SPINDLES, True))
        ):
            needed = free - sizes[:, size] + 1
            blocking = usable & (needed <= placed[:, place])
            if local:
                blocking &= sizes[:, _LOCAL] != 0
            share = np.maximum(needed, 0) / np.maximum(placed[:, place], 1)
            least = np.where(blocking, np.minimum(least, share), least)
            resources += blocking.any(axis=0)
            blocked |= blocking
        total = np.where(usable, least, 0.0).sum(axis=0)
        fine = (usable & ~blocked).any(axis=0) | (total > resources * (1 + 1e-9))
        fine &= usable.any(axis=0) & (policy | ~self.may_go[:, of]).all(axis=0)
        sure[of[~fine]] = False
        return sure

    def _place(self, step: int) -> bool | None:
        """Place one instance of each evacuation; False if one of them finds no node."""
        arrays = self.arrays
        table = np.array([found.table[step] for found in self.residents], dtype=np.int64).T
        loads = np.array([found.loads[step] for found in self.residents]).T
        new_state, new_use = self._after(table)
        accepts = self.may_go & self.owner.allowed(table[_KIND]) & (new_state[0] > 0)
        local = table[_LOCAL] != 0
        accepts &= ~local | (new_state[1] > 0)
        if arrays.any_exclusive:
            accepts &= ~local | ~arrays.exclusive[:, None] | (new_state[2] >= 0)
        if not accepts.any(axis=0).all():
            return False
        if accepts[~arrays.online].any():
            return None
        new = self._new_values(new_state, new_use, loads)
        n1 = np.where(new_state[0] <= arrays.reserved[:, None], self.instances + 1.0, 0.0)
        if not np.isfinite(new[:, accepts]).all():
            return None
        chosen = self._choose(accepts, new, n1, table[_LOCATION])
        columns = np.arange(len(self.rows))
        self.n1_sums += n1[chosen, columns] - self.n1[chosen, columns]
        self.location += table[_LOCATION]
        self.state[:, chosen, columns] = new_state[:, chosen, columns]
        self.use[:, chosen, columns] = new_use[:, chosen, columns]
        self.values[:, chosen, columns] = new[:, chosen, columns]
        self.n1[chosen, columns] = n1[chosen, columns]
        self.instances[chosen, columns] += 1.0
        return True

    def _after(self, table: Ints) -> tuple[Ints, Floats]:
        """Return what every node would have left with the instance of `table` (a column per evacuation)."""
        memory, used, space, spindles = (-table[place] for place in (_MEMORY, _USED, _DISK, _TAKEN))
        cpus = table[_CPUS]
        change = np.stack([used, space, spindles, cpus, memory, space, spindles, cpus])
        return self.state + change[:, None, :], self.use + table[_USE]

    def _new_values(self, state: Ints, use: Floats, loads: Floats) -> Floats:
        """Return the values of the changed components (`array_score.values_with_primary`)."""
        arrays = self.arrays
        new = np.empty_like(self.values)
        place_of = {component: place for place, component in enumerate(self.columns)}
        for book, columns in enumerate((_ORIGINALS, _TWINS)):
            if book and self.short:
                break
            memory, disk, cpu, spindle_use = (place_of[column] for column in columns)
            free, space, spindles, cpus = state[4 * book : 4 * book + 4]
            new[memory] = free / arrays.total_memory[:, None]
            new[disk] = self._disk_ratio(space, spindles)
            new[cpu] = cpus / arrays.total_cpus[:, None] / arrays.speed[:, None]
            used = np.where(arrays.exclusive[:, None], 0.0, use[book]) if arrays.any_exclusive else use[book]
            new[spindle_use] = used / arrays.high_spindles[:, None]
        for load, component in enumerate(_LOADS):
            place = place_of.get(component)
            if place is not None:
                new[place] = self.values[place] + loads[load]
        return new

    def _disk_ratio(self, disk: Ints, spindles: Ints) -> Floats:
        arrays = self.arrays
        by_space = np.where(arrays.total_disk[:, None] == 0, 1.0, disk / arrays.total_disk[:, None])
        if not arrays.any_exclusive:
            return by_space
        by_spindles = np.where(arrays.spindles[:, None] == 0, 1.0, spindles / arrays.spindles[:, None])
        return np.where(arrays.exclusive[:, None], by_spindles, by_space)

    def _choose(self, accepts: Bools, new: Floats, n1: Floats, location: Ints) -> Ints:
        """Return the best node of each evacuation, the last one of equals."""
        count = self.stats.count
        online = self.arrays.online_rows
        inside = self.values if len(online) == self.values.shape[1] else self.values[:, online]
        mean = inside.sum(axis=1) / count
        distance = inside - mean[:, None, :]
        variance = np.einsum("ijk,ijk->ik", distance, distance) / count
        far, near_mean = new - mean[:, None, :], self.values - mean[:, None, :]
        change = far - near_mean
        after = variance[:, None, :] + (change * (far + near_mean)) / count - (change / count) ** 2
        np.maximum(after, 0.0, out=after)
        np.sqrt(after, out=after)
        weights = np.zeros(len(self.columns))
        for component in _FULL:
            weights[self._place_of(component)] += WEIGHTS[component]
        estimate = np.einsum("i,ijk->jk", weights, after) + (n1 - self.n1)
        estimate[~accepts] = np.inf
        least = estimate.min(axis=0)
        size = 1.0 + np.abs(least) + np.abs(self.n1_sums)
        near = estimate <= least + MARGIN * size
        chosen = np.asarray(estimate.argmin(axis=0))
        several = near.sum(axis=0) > 1
        if not several.any():
            return chosen
        nodes, which = np.nonzero(near & several)
        scores = self._exact(nodes, which, new, n1, location)
        order = np.lexsort((-nodes, scores, which))
        turn, first = np.unique(which[order], return_index=True)
        chosen[turn] = nodes[order[first]]
        return chosen

    def _exact(self, nodes: Ints, which: Ints, new: Floats, n1: Floats, location: Ints) -> Floats:
        """Return the scores of placing the instance of the evacuations `which` on `nodes`."""
        stats, online = self.stats, self.arrays.online_rows
        table = self.values[:, :, which]
        table[:, nodes, np.arange(len(which))] = new[:, nodes, which]
        if len(online) != table.shape[1]:
            table = table[:, online]
        mean = np.add.accumulate(table, axis=1)[:, -1] / stats.count
        table -= mean[:, None, :]
        table *= table
        roots = np.sqrt(np.add.accumulate(table, axis=1)[:, -1] / stats.count)
        score = np.zeros(len(which))
        for place, component in enumerate(COMPONENTS):
            weight = WEIGHTS[place]
            if component.aggregate is Aggregate.DEVIATION:
                if place in _FULL:
                    score += weight * roots[self._place_of(place)]
                else:
                    score += weight * np.sqrt(stats.variances[place])
            elif place == at.N1_COUNT:
                score += weight * (self.n1_sums[which] + (n1[nodes, which] - self.n1[nodes, which]))
            elif place == at.LOCATION:
                score += weight * (stats.sums[place] + (self.location[which] + location[which]))
            elif component.aggregate is Aggregate.TAG_MAP:
                score += weight * stats.exclusions
            else:
                score += weight * stats.sums[place]
        return score

    def _place_of(self, component: int) -> int:
        return self.columns.index(_STANDS_FOR.get(component, component) if self.short else component)
