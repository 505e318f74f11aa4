"""The smallest physical volume of a group, which is what Ganeti counts disks in under exclusive storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpolicy.errors import GpolicyError, UsageError, about
from gpolicy.ganeti.volume_arithmetic import sizes_differ, usable_size

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


def smallest_volume(state: ClusterState, names: Sequence[str], given: int | None, notes: list[str]) -> int:
    """Return the size (MiB) of the smallest physical volume of the nodes `names`; `given` wins over what is measured.

    Where the state does not show volumes one by one, those of a node are taken as equal, which is added to `notes`.
    Raise GpolicyError where it shows nothing of them.
    """
    if given is not None:
        return given
    volumes = [volume.size for name in names for volume in state.nodes[name].physical_volumes or ()]
    if volumes and all(state.nodes[name].physical_volumes for name in names):
        _judge(min(volumes), max(volumes), notes)
        return min(volumes)
    sizes = []
    for name in names:
        measured = state.nodes[name].resources
        if not measured.spindles_total or not measured.disk_total:
            raise GpolicyError(
                about(state.address, f"not known: the physical volumes of {name}"),
                hint="say how large the smallest is: --pv-size 1T (and see `gpolicy explain exclusive-storage-reads`)",
            )
        sizes.append(measured.disk_total // measured.spindles_total)
    notes.append(
        f"physical volumes taken as equal on each node: disk / spindles, at least {min(sizes)} MiB (--pv-size if not)"
    )
    _judge(min(sizes), max(sizes), notes)
    return min(sizes)


def _judge(smallest: int, largest: int, notes: list[str]) -> None:
    if sizes_differ(smallest, largest):
        notes.append(
            f"physical volumes of {smallest} and {largest} MiB are too different for one group with exclusive storage:"
            " Ganeti calls that an error; all are counted as the smallest"
        )


def usable_volume(smallest: int) -> int:
    """Return how much of each volume disks can use. Raise UsageError if that is nothing."""
    usable = usable_size(smallest)
    if usable < 1:
        raise UsageError(f"a physical volume of {smallest} MiB holds nothing", hint="--pv-size takes MiB, or 1T")
    return usable
