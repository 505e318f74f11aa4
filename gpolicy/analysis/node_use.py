"""What takes the memory of nodes, as the allocator counts it: for the picture of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.cluster.state import ClusterState, LiveNode


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node, its instances, memory and disk (MiB). A total of 0: its figures are not known.

    Of the memory, `own` is what the node itself and other programs keep, `used` what instances use, and `reserved` what
    N+1 keeps for the loss of another node. `tiled`: all instances are of one size. `state` is empty for an ordinary
    node.
    """

    name: str
    group: str
    total: int
    own: int
    used: int
    reserved: int
    instances: int
    state: str = ""
    disk_used: int = 0
    disk_total: int = 0
    tiled: bool = False

    @property
    def free(self) -> int:
        """The memory for more instances."""
        return max(0, self.total - self.own - self.used - self.reserved)

    @property
    def short(self) -> int:
        """The memory that is missing for all of it."""
        return max(0, self.own + self.used + self.reserved - self.total) if self.total else 0


def node_uses(state: ClusterState, nodes: Iterable[Node], group: str | None = None) -> tuple[NodeUse, ...]:
    """Return the `nodes` of the allocator; in `group`, or as the state has them, with those that it does not know."""
    found = {node.facts.name: _use(node, state.nodes.get(node.facts.name), group) for node in nodes}
    if group is None:
        runs = Counter(item.primary_node for item in state.instances.values())
        for name, node in state.nodes.items():
            found.setdefault(name, NodeUse(name, node.group, 0, 0, 0, 0, runs[name], _word(node)))
    return tuple(found.values())


def _use(node: Node, observed: LiveNode | None, group: str | None) -> NodeUse:
    total, disk = max(0, truncate(node.facts.total_memory)), max(0, truncate(node.facts.total_disk))
    used = node.instance_memory
    return NodeUse(
        name=node.facts.name,
        group=group or (observed.group if observed else ""),
        total=total,
        own=max(0, total - node.unallocated_memory - used),
        used=used,
        reserved=node.reserved_memory,
        instances=len(node.primaries),
        state=_word(observed) if observed else "",
        disk_used=max(0, disk - node.free_disk),
        disk_total=disk,
    )


def _word(node: LiveNode) -> str:
    return "offline" if node.offline else "drained" if node.drained else "master" if node.master else ""
