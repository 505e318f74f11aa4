"""Nodes for which htools' arithmetic has no number: those without a spindle."""

from __future__ import annotations

from gpolicy.cluster.state import ClusterState


def nodes_without_spindles(state: ClusterState) -> list[str]:
    """Return the online nodes whose spindle_count is 0 or less, and is read: not so under exclusive storage.

    htools divides the spindles in use by it. The cluster's score is then no number (NaN), no placement is better than
    another, and the allocator counts by its literal and slow way, with the same result as htools.
    """
    found = []
    for node in state.nodes.values():
        count = state.in_force(node, ("ndparams", "spindle_count"))
        exclusive = state.in_force(node, ("ndparams", "exclusive_storage")) is True
        if isinstance(count, int) and count <= 0 and not exclusive and not node.offline:
            found.append(node.name)
    return sorted(found)
