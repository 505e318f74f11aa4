"""What would make a group accept instances again that takes none, since it cannot absorb the loss of a node."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import ClusterData, Instance
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.place_instead import nearest_allowed

_MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Cure:
    """Instances with other sizes, in words, and how many instances of each pair and of the standard size then fit."""

    changes: tuple[str, ...]
    fits: tuple[int, ...]
    standard: int


def find_cure(counted: CountedCluster) -> Cure | None:
    """Return the fewest legal sizes after which the group takes instances; None if none are found.

    An instance whose size the policy forbids finds no new home (htools, GlobalN1.hs): at a size that it allows, it may.
    """
    changes: list[str] = []
    while (loss := counted.loss) is not None:
        item = next(one for one in counted.data.instances if one.name == loss.homeless.instance)
        exclusive = any(node.exclusive_storage for node in counted.data.nodes)
        legal = nearest_allowed(item, counted.policy, exclusive=exclusive)
        if loss.homeless.key != Cause.BOUNDS.key or legal is None or len(changes) == _MOST_CHANGES:
            return None
        new, words = legal
        changes.append(f"{item.name} at {words}")
        counted = replace(counted, data=_with(counted.data, item, new))
    fits = tuple(counted.fit_pair(pair).fits for pair in counted.policy.minmax)
    standard = counted.standard(counted.policy.std, counted.policy.std.spindle_use).fits
    return Cure(tuple(changes), fits, standard) if changes and (standard or any(fits)) else None


def _with(data: ClusterData, old: Instance, new: Instance) -> ClusterData:
    """Return `data` with another size of an instance, and the memory that it gives back free on its node."""
    freed = old.memory - new.memory if old.uses_memory else 0
    nodes = tuple(
        replace(node, free_memory=node.free_memory + freed) if node.index == old.primary else node
        for node in data.nodes
    )
    instances = tuple(new if one.index == old.index else one for one in data.instances)
    return replace(data, nodes=nodes, instances=instances)
