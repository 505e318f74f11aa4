"""All orders in which a tiny cluster can be upgraded or rebooted by live migration, without a copy of any disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.cluster.state import ClusterState
from gpolicy.what_if.load import elsewhere
from tests.evacuate.waves_replayed import ON_NODES, crowds, faults, homeless, places, runs

Placement = tuple[tuple[str, ...], ...]


def upgradable(state: ClusterState) -> ClusterState:
    """Return the cluster with all of its nodes tagged old, and a direction to new ones."""
    tags = state.cluster.tags | {"htools:migration:hv", "htools:allowmigration:hv:old::hv:new"}
    nodes = {name: replace(node, tags=node.tags | {"hv:old"}) for name, node in state.nodes.items()}
    return replace(state, cluster=replace(state.cluster, tags=tags), nodes=nodes)


class EveryOrder:
    """The states that safe live moves and upgrades of empty nodes reach."""

    def __init__(self, state: ClusterState) -> None:
        self.state, self.names = state, sorted(state.instances)
        self.known = {fault.key for fault in faults(state) if fault.kind in ON_NODES}
        self.crowded = crowds(state)
        self.home = self.placement(state)
        self.cached_at = cache(self.at)
        self.cached_is_sound = cache(self.is_sound)
        self.cached_homeless = cache(lambda placement, down: homeless(self.cached_at(placement), down))

    def placement(self, state: ClusterState) -> Placement:
        found = places(state)
        return tuple(found[name] for name in self.names)

    def at(self, placement: Placement) -> ClusterState:
        found = {name: at for name, at in zip(self.names, placement, strict=True) if places(self.state)[name] != at}
        return elsewhere(self.state, found) if found else self.state

    def is_sound(self, placement: Placement) -> bool:
        there = self.cached_at(placement)
        if any((node.resources.memory_free or 0) <= 0 for node in there.nodes.values()):
            return False
        new = {fault.key for fault in faults(there) if fault.kind in ON_NODES} - self.known
        return not new and crowds(there) <= self.crowded

    def moves(self, placement: Placement, new: frozenset[str]) -> Iterator[Placement]:
        for number, name in enumerate(self.names):
            item, at = self.state.instances[name], placement[number]
            template = DiskTemplate(item.disk_template)
            if not runs(item) or not (template is DiskTemplate.DRBD or template.externally_mirrored):
                continue
            targets = [at[::-1]] if len(at) == 2 else [(node,) for node in self.state.nodes if node != at[0]]
            for target in targets:
                if not (at[0] in new and target[0] not in new):
                    made = (*placement[:number], target, *placement[number + 1 :])
                    if self.cached_is_sound(made):
                        yield made

    def can_go(self, placement: Placement, node: str) -> bool:
        """Whether nothing that may move runs on the node, and N+1 is no worse without it."""
        left = [self.state.instances[name] for name, at in zip(self.names, placement, strict=True) if at[0] == node]
        if any(runs(item) and item.disk_template != "plain" for item in left):
            return False
        own = {name for name, at in zip(self.names, self.home, strict=True) if at[0] == node}
        allowed = self.cached_homeless(self.home, ()) | self.cached_homeless(self.home, (node,)) | own
        return self.cached_homeless(placement, (node,)) <= allowed

    def can_all_go(self, *, upgrade: bool) -> bool:
        """Whether all nodes can be upgraded, or (each from where all is at home) rebooted."""
        if not upgrade:
            return all(self._reaches(self.home, frozenset(), node) for node in self.state.nodes)
        every = frozenset(self.state.nodes)
        begin = self.home, frozenset[str]()
        seen, queue = {begin}, [begin]
        while queue:
            placement, new = queue.pop()
            if new == every:
                return True
            for node in every - new:
                if self.can_go(placement, node) and (there := (placement, new | {node})) not in seen:
                    seen.add(there)
                    queue.append(there)
            for made in self.moves(placement, new):
                if (made, new) not in seen:
                    seen.add((made, new))
                    queue.append((made, new))
        return False

    def _reaches(self, placement: Placement, new: frozenset[str], node: str) -> bool:
        seen, queue = {placement}, [placement]
        while queue:
            here = queue.pop()
            if self.can_go(here, node):
                return True
            for made in self.moves(here, new):
                if made not in seen:
                    seen.add(made)
                    queue.append(made)
        return False
