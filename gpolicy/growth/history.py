"""What the instances of each group used in old snapshots of a cluster.

Use adds up, unlike what fits: added nodes change what fits, and what fits is no linear count. An instance counts in the
group that its primary node has today, so a group that is renamed, or gets nodes with their instances, does not grow. An
instance that moves to another group is growth of that one.
"""

from __future__ import annotations

from calendar import timegm
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import strptime
from typing import Final, NamedTuple

from gpolicy.allocator.cluster_data import Instance
from gpolicy.analysis.basis import settle_readable
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.errors import GpolicyError
from gpolicy.fleet.choosing import snapshots_of
from gpolicy.growth.day_range import Point
from gpolicy.printable import count
from gpolicy.progress import Tell
from gpolicy.provenance import FORM

_LONGEST: Final = 182  # days back
_NAMED: Final = "%Y%m%dT%H%M%SZ"
Amounts = Counter[str]
"""What is used: memory and disk (MiB), cpus, spindles (physical volumes), spindle_use."""


class History(NamedTuple):
    """What groups used, by the day (0: now, those before are negative), and `notes` on the snapshots left out."""

    use: Mapping[float, Mapping[str, Amounts]]
    notes: tuple[str, ...]

    def points(self, group: str, resource: str) -> tuple[Point, ...]:
        """Return the use of a resource by a group, the oldest first."""
        return tuple((day, self.use[day][group][resource]) for day in sorted(self.use) if group in self.use[day])


def read_history(directory: Path, state: ClusterState, homes: Mapping[str, str], at: str, tell: Tell) -> History:
    """Return what groups used in the snapshots of a directory, and in `state`, which was read at `at`.

    `homes` are the groups of nodes. One snapshot a week is read, of half a year: more files take no more time. What
    cannot be read, or is of another cluster or later, is left out with a note.
    """
    now, use = _days(at, FORM), {0.0: _used_by_group(state, homes)}
    left_out, chosen = Counter[str](), dict[int, Path]()
    for path in snapshots_of(directory, ""):
        age = now - _days(path.stem, _NAMED)
        left_out["later than the state"] += age < 0
        if 0 <= age <= _LONGEST:
            chosen[round(age) // 7] = path  # the newest one of the week
    for number, path in enumerate(chosen.values(), 1):
        tell(f"snapshot {number} of {len(chosen)}")
        try:
            old = read_snapshot(path)
            uuids = {state.cluster.identity.uuid, old.cluster.identity.uuid} - {None}
            left_out["of another cluster"] += (is_other := len(uuids) > 1)
            if not is_other:
                use.setdefault(_days(path.stem, _NAMED) - now, _used_by_group(old, homes))
        except GpolicyError:
            left_out["unreadable"] += 1
    said = ", ".join(f"{number} {why}" for why, number in left_out.items() if number)
    none = "" if chosen else f"{directory} has no snapshots of `gpolicy snapshot --all --save DIR` until then"
    said = f"{count(left_out.total(), 'snapshot')} of {directory} left out: {said}" if said else none
    return History(use, (said,) if said else ())


def _days(text: str, form: str) -> float:
    """Return a time as days since 1970; the end of times for a name that is none."""
    try:
        return timegm(strptime(text, form)) / 86_400
    except ValueError:
        return float(10**7)


def _used_by_group(state: ClusterState, homes: Mapping[str, str]) -> dict[str, Amounts]:
    """Return what the instances of each group use; groups with instances that htools cannot read are left out."""
    data = settle_readable(state).data
    groups = {node.index: homes.get(node.name, data.groups[node.group].name) for node in data.nodes}
    nothing = dict.fromkeys(("memory", "disk", "cpus", "spindles", "spindle_use"), 0)
    found = {group: Amounts(nothing) for group in groups.values()}
    for instance in data.instances:
        found[groups[instance.primary]].update(amounts_of(instance))
    return found


def amounts_of(instance: Instance) -> Amounts:
    """Return what an instance uses as the allocator counts it, its disk on each of its nodes."""
    memory, cpus = instance.memory * instance.uses_memory, instance.vcpus * instance.online
    spindles, use = instance.total_spindles or 0, instance.spindle_use
    return Amounts(memory=memory, disk=instance.disk, cpus=cpus, spindles=spindles, spindle_use=use)
