"""Measurements of nodes, as the remote API and `gnt-node list` show them."""

from __future__ import annotations

from typing import Final

from gpolicy.cluster.record import Record
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.printable import some

NODE_FIELDS: Final = {
    "mtotal": "memory_total",
    "mnode": "memory_node",
    "mfree": "memory_free",
    "dtotal": "disk_total",
    "dfree": "disk_free",
    "ctotal": "cpu_total",
    "cnos": "cpu_node",
    "sptotal": "spindles_total",
    "spfree": "spindles_free",
}
"""Ganeti's names of the live fields of a node, and ours."""

NO_RUN_TIME: Final = (
    "no live data: this source shows neither measurements of nodes (memory, disk, CPUs) nor whether instances run"
)


def resources(node: Record) -> Resources:
    """Return the live fields of a node; Ganeti sends null for missing ones."""
    return Resources(**{ours: node.whole_or_none(ganetis) for ganetis, ours in NODE_FIELDS.items()})


def missing_notes(state: ClusterState) -> tuple[str, ...]:
    """Return notes on nodes that should have sent measurements and did not.

    The node daemon of Ganeti 3.0.2 fails when it measures a volume group under exclusive storage (it compares a number
    with text), and then sends no figures of memory either.
    """
    asked = [node for node in state.nodes.values() if node.is_measured]
    silent = [node for node in asked if None in (node.resources.memory_total, node.resources.disk_total)]
    if not silent:
        return ()
    notes = [f"no live data from {some([node.name for node in silent])}: their free memory and disk are unknown"]
    key = ("ndparams", "exclusive_storage")
    exclusive = [node.name for node in silent if state.effective_of_node(node).get(key) is True]
    if exclusive:
        names = some(exclusive)
        notes.append(f"exclusive_storage is on for {names}: the node daemon of Ganeti 3.0 cannot measure such a node")
    return tuple(notes)
