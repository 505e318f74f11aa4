"""The nodes of a state as arrays, kept in step with the `Node` objects.

Row i is the i-th node in index order. Whatever a `Node` knows is copied from it, never recomputed, so
the arrays hold the very same doubles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpolicy.allocator.score import COMPONENTS, node_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpolicy.allocator.model import Instance, Policy
    from gpolicy.allocator.node import Node

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

HUGE = 2**50
"""Quantities beyond this are left to the reference engine."""


class NodeArrays:
    """Arrays over all nodes of a cluster; `sync` brings them to a given state.

    `values` has one row per node and one column per score component. `peers[p, s]` is the memory (MiB)
    that node s keeps for the failure of node p, `moving[p, s]` the memory of p's running mirrored
    primaries whose secondary is s, `most_moving` its maximum over p.
    """

    def __init__(  # noqa: PLR0915 - one line per array
        self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]
    ) -> None:
        self.nodes = list(nodes.values())
        count = len(self.nodes)
        facts = [node.facts for node in self.nodes]
        self.keys = list(nodes)
        self.row_of = {key: row for row, key in enumerate(self.keys)}
        self.online = np.array([not fact.offline for fact in facts], dtype=bool)
        self.online_rows = np.flatnonzero(self.online)
        self.exclusive = np.array([fact.exclusive for fact in facts], dtype=bool)
        self.any_exclusive = bool(self.exclusive.any())
        self.total_memory = np.array([fact.total_memory for fact in facts], dtype=np.float64)
        self.total_disk = np.array([fact.total_disk for fact in facts], dtype=np.float64)
        self.total_cpus = np.array([fact.total_cpus for fact in facts], dtype=np.float64)
        self.speed = np.array([fact.cpu_speed for fact in facts], dtype=np.float64)
        self.spindles = np.array([fact.spindles for fact in facts], dtype=np.float64)
        self.high_spindles = np.array([fact.high_spindles for fact in facts], dtype=np.float64)
        self.vcpu_ratio = np.array([fact.vcpu_ratio for fact in facts], dtype=np.float64)
        self.low_disk = np.array([fact.low_disk for fact in facts], dtype=np.int64)
        self.policies: list[tuple[Policy, bool]] = []
        numbers: dict[tuple[int, bool], int] = {}
        self.policy_of = np.zeros(count, dtype=np.int64)
        for row, fact in enumerate(facts):
            key = (id(fact.policy), fact.exclusive)
            if key not in numbers:
                numbers[key] = len(self.policies)
                self.policies.append((fact.policy, fact.exclusive))
            self.policy_of[row] = numbers[key]
        groups = sorted({fact.group for fact in facts})
        self.group = np.array([groups.index(fact.group) for fact in facts], dtype=np.int64)
        self.group_count = len(groups)
        # an offline component is counted over offline nodes only, which no new instance touches
        self.values = np.zeros((count, len(COMPONENTS)), dtype=np.float64)
        for name in [
            "unallocated",
            "reserved",
            "forth_memory",
            "disk",
            "forth_disk",
            "free_spindles",
            "forth_spindles",
            "cpus",
            "forth_cpus",
        ]:
            setattr(self, name, np.zeros(count, dtype=np.int64))
        self.unallocated: Ints
        self.reserved: Ints
        self.forth_memory: Ints
        self.disk: Ints
        self.forth_disk: Ints
        self.free_spindles: Ints
        self.forth_spindles: Ints
        self.cpus: Ints
        self.forth_cpus: Ints
        self.spindle_use = np.zeros(count, dtype=np.float64)
        self.forth_spindle_use = np.zeros(count, dtype=np.float64)
        self.fails = np.zeros(count, dtype=bool)
        self.instances = np.zeros(count, dtype=np.float64)
        self.has_primaries = np.zeros(count, dtype=bool)
        self.has_secondaries = np.zeros(count, dtype=bool)
        self.peers = np.zeros((count, count), dtype=np.int64)
        self.moving = np.zeros((count, count), dtype=np.int64)
        self.most_moving = np.zeros(count, dtype=np.int64)
        self.version = 0
        self._in_step: Mapping[int, Node] | None = None
        self._peer_slots: dict[tuple[int, int], int] = {}
        self._peer_table = np.zeros((3, 64), dtype=np.int64)
        self.location_tags = [fact.location_tags for fact in facts]
        self.any_location = any(self.location_tags)
        for row, node in enumerate(self.nodes):
            self._set_row(row, node, {})
            self._set_moving(row, node, instances)
        np.max(self.moving, axis=0, initial=0, out=self.most_moving)
        self._in_step = nodes

    def sync(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
        """Bring every row in step with `nodes`; cheap where they are the same objects."""
        if nodes is self._in_step:
            return
        self._in_step = nodes
        stale = [
            (row, node)
            for row, (node, known) in enumerate(zip(nodes.values(), self.nodes, strict=True))
            if node is not known
        ]
        if not stale:
            return
        self.version += 1
        for row, node in stale:
            self._set_row(row, node, self.nodes[row].peers)
        for row, node in stale:
            self._set_moving(row, node, instances)
        np.max(self.moving, axis=0, initial=0, out=self.most_moving)

    def placed(self, nodes: Mapping[int, Node], changed: tuple[Node, ...], instance: Instance) -> None:
        """Follow one placement: `changed` are its primary and, for a mirrored one, its secondary.

        `nodes` is the state after it, which the arrays are in step with from now on.
        """
        self._in_step = nodes
        self.version += 1
        rows = [self.row_of[node.facts.index] for node in changed]
        for row, node in zip(rows, changed, strict=True):
            self._set_row(row, node, self.nodes[row].peers)
        if len(rows) == 2 and instance.uses_memory:
            primary, secondary = rows
            self.moving[primary, secondary] += instance.memory
            self.most_moving[secondary] = max(self.most_moving[secondary], self.moving[primary, secondary])

    def peer_pairs(self) -> tuple[Ints, Ints, Ints]:
        """Return primary rows, secondary rows and memory (MiB) of all pairs with a reservation.

        Some of them may have a reservation of 0.
        """
        table = self._peer_table[:, : len(self._peer_slots)]
        return table[0], table[1], table[2]

    def _set_row(self, row: int, node: Node, peers: dict[int, int]) -> None:
        """Copy what `node` knows; `peers` are the reservations that the row has shown so far."""
        self.nodes[row] = node
        self.values[row] = node_values(node)
        self.unallocated[row] = node.unallocated_memory
        self.reserved[row] = node.reserved_memory
        self.forth_memory[row] = node.forth_free_memory
        self.disk[row] = node.free_disk
        self.forth_disk[row] = node.forth_free_disk
        self.free_spindles[row] = node.free_spindles
        self.forth_spindles[row] = node.forth_free_spindles
        self.cpus[row] = node.used_cpus
        self.forth_cpus[row] = node.forth_used_cpus
        self.spindle_use[row] = node.instance_spindles
        self.forth_spindle_use[row] = node.forth_instance_spindles
        self.fails[row] = node.fails_n1
        self.instances[row] = len(node.primaries) + len(node.secondaries)
        self.has_primaries[row] = bool(node.primaries)
        self.has_secondaries[row] = bool(node.secondaries)
        if peers is not node.peers:
            self._set_peers(row, peers, node.peers)

    def _set_peers(self, row: int, before: dict[int, int], after: dict[int, int]) -> None:
        for key in before:
            if key not in after and key in self.row_of:
                self._set_peer(self.row_of[key], row, 0)
        for key, memory in after.items():
            if before.get(key) != memory and key in self.row_of:
                self._set_peer(self.row_of[key], row, memory)

    def _set_peer(self, peer: int, row: int, memory: int) -> None:
        self.peers[peer, row] = memory
        slot = self._peer_slots.get((peer, row))
        if slot is None:
            slot = self._peer_slots[peer, row] = len(self._peer_slots)
            if slot == self._peer_table.shape[1]:
                self._peer_table = np.concatenate([self._peer_table, self._peer_table], axis=1)
        self._peer_table[:, slot] = peer, row, memory

    def _set_moving(self, row: int, node: Node, instances: Mapping[int, Instance]) -> None:
        self.moving[row] = 0
        for number in node.primaries:
            instance = instances.get(number)
            if instance is None or not instance.uses_memory:
                continue
            secondary = self.row_of.get(instance.secondary)
            if secondary is not None:
                self.moving[row, secondary] += instance.memory
