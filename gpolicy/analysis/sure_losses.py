"""Finding sets of nodes whose loss is surely absorbed without simulating it (`losses.lose`).

199 nodes make 19,701 pairs, and the nodes of most pairs do not affect one another. A node is easy if its mirrored
instances fail over to nodes that can only lack memory or CPUs, and each of its other instances has so many possible
nodes that one remains for any set of lost nodes. A set of easy nodes is absorbed if each target has the memory, and the
CPUs where they count, for all of its fail-overs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import islice

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.node import Node
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.losses import needs_only_memory, obstacles


class SureLosses:
    """Answers about sets of at most `most` of `nodes`, the nodes of one group; `cpus` as in `losses.lose`."""

    def __init__(self, nodes: Nodes, instances: Mapping[int, Instance], most: int, *, cpus: bool = True) -> None:
        counts = sorted((len(node.primaries) for node in nodes.values()), reverse=True)
        self._enough = sum(counts[:most]) + most  # each resident of a set changes one node, and the set itself is lost
        self._nodes, self._instances, self._cpus = nodes, instances, cpus
        self._online = frozenset(index for index, node in nodes.items() if not node.facts.offline)
        self._known: dict[int, dict[int, tuple[int, int]] | None] = {}
        self._takers: dict[Hashable, tuple[int, ...]] = {}

    def absorb(self, lost: Sequence[int]) -> bool:
        """Whether losing `lost` at once surely leaves no instance without a new node; False if unsure."""
        if len(lost) >= len(self._online) and self._online.issubset(lost):  # none is left to take over
            return False
        total: dict[int, tuple[int, int]] = {}
        for index in lost:
            if index not in self._known:
                self._known[index] = self._needs_of(index)
            needs = self._known[index]
            if needs is None:
                return False
            for target, (memory, cpus) in needs.items():
                before = total.get(target, (0, 0))
                total[target] = before[0] + memory, before[1] + cpus
        return all(target in lost or self._takes(self._nodes[target], *needs) for target, needs in total.items())

    def strains_nothing(self, lost: int) -> bool:
        """Whether losing one node is surely absorbed within the policy: within exclusion tags, and CPUs if `cpus`."""
        if not self.absorb((lost,)):
            return False
        moved = (self._instances[number] for number in self._nodes[lost].primaries)
        mirrored = (instance for instance in moved if instance.template is DiskTemplate.DRBD)
        tags = [(instance.secondary, tag) for instance in mirrored for tag in instance.exclusion_tags]
        return len(set(tags)) == len(tags) and not any(tag in self._nodes[one].exclusion_tags for one, tag in tags)

    def _takes(self, node: Node, memory: int, cpus: int) -> bool:
        too_many = 0 <= node.facts.vcpu_ratio < divide(node.used_cpus + cpus, node.facts.total_cpus)
        return memory < node.unallocated_memory and not (self._cpus and cpus and too_many)

    def _needs_of(self, lost: int) -> dict[int, tuple[int, int]] | None:
        """Return the memory (MiB) and CPUs that fail-overs from a node take, by target; None if it is not easy."""
        node = self._nodes[lost]
        needs: dict[int, tuple[int, int]] = {}
        for number in node.primaries:
            instance = self._instances[number]
            if instance.template is not DiskTemplate.DRBD:
                if sum(index != lost for index in self._takers_of(instance)) < self._enough:
                    return None
            elif needs_only_memory(self._nodes, instance, node) and instance.vcpus >= 0:
                memory, cpus = needs.get(instance.secondary, (0, 0))
                memory += instance.memory if instance.uses_memory else 0
                needs[instance.secondary] = memory, cpus + (instance.vcpus if instance.online else 0)
            else:
                return None
        return needs

    def _takers_of(self, instance: Instance) -> tuple[int, ...]:
        """Return nodes that take an instance that is not mirrored, or a copy of it: one more than are enough."""
        source = instance.primary if instance.template.movable_foreign else NO_NODE
        size = (instance.memory, instance.disk, instance.disks, instance.vcpus, instance.spindle_use, instance.nics)
        kind = (instance.template, instance.status, instance.forthcoming, instance.ignores_policy)
        key = (source, size, kind)
        if key not in self._takers:
            others = [index for index in self._nodes if index != source]
            found = zip(others, obstacles(self._nodes, instance, others, cpus=self._cpus), strict=True)
            taking = (index for index, obstacle in found if obstacle is None)
            self._takers[key] = tuple(islice(taking, self._enough + 1))
        return self._takers[key]
