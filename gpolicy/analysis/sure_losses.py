"""Sets of nodes whose loss at once is surely absorbed, told without following each loss to its end (`losses.lose`).

Of 199 nodes there are 19,701 pairs, and most of them have nothing to do with one another. A node is easy where its
mirrored instances fail over to nodes that lack nothing but maybe memory, and every other instance of it is taken by so
many nodes that whatever the rest of a set does, one is left. A set of easy nodes is absorbed if each target has the
memory for all of its fail-overs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.losses import needs_only_memory, obstacles

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.node import Node

Nodes = Mapping[int, "Node"]


class SureLosses:
    """What is known of the sets of at most `most` of `nodes`, which are those of one group."""

    def __init__(self, nodes: Nodes, instances: Mapping[int, Instance], most: int) -> None:
        counts = sorted((len(node.primaries) for node in nodes.values()), reverse=True)
        self._enough = sum(counts[:most]) + most  # each resident of a set changes one node, and the set itself is gone
        self._free = {index: node.unallocated_memory for index, node in nodes.items()}
        self._needs = {index: self._needs_of(nodes, instances, index) for index in nodes}

    def absorb(self, lost: Sequence[int]) -> bool:
        """Whether the loss of `lost` at once leaves no instance without a home: a sure yes, or not known."""
        total: dict[int, int] = {}
        for index in lost:
            needs = self._needs[index]
            if needs is None:
                return False
            for target, memory in needs.items():
                total[target] = total.get(target, 0) + memory
        return all(memory < self._free[target] or target in lost for target, memory in total.items())

    def _needs_of(self, nodes: Nodes, instances: Mapping[int, Instance], lost: int) -> dict[int, int] | None:
        """Return the memory (MiB) that fail-overs from a node take, by target; None where it is not easy."""
        node = nodes[lost]
        others = [index for index in nodes if index != lost]
        needs: dict[int, int] = {}
        for number in node.primaries:
            instance = instances[number]
            if instance.template is not DiskTemplate.DRBD:
                taking = (True for obstacle in obstacles(nodes, instance, others) if obstacle is None)
                if sum(islice(taking, self._enough)) < self._enough:
                    return None
            elif needs_only_memory(nodes, instance, node):
                memory = instance.memory if instance.uses_memory else 0
                needs[instance.secondary] = needs.get(instance.secondary, 0) + memory
            else:
                return None
        return needs
