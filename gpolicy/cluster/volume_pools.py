"""The physical volumes of nodes: the pools of a node by volume group, and reading the volumes of a cluster.

Ganeti lists the volumes of all groups and does not say which volume is in which; the terms of a policy do. Without
terms all volumes count as the cluster's own group. Sizes are MiB (design document "partitioned Ganeti", "Exclusive use
of disks").

They are read on request only: Ganeti runs jobs for it, which wait for the nodes' locks. `gnt-node list-storage` asks
all nodes in one job; the remote API starts one job for each node, and requires a user with a password. Both also answer
under exclusive storage, where Ganeti 3.0 gives no other figure of a node's storage (seen on a real 3.0.2 cluster).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from gpolicy.cluster.assembly import check_numbers
from gpolicy.cluster.json_input import decode_text
from gpolicy.cluster.record import JOB_RUNS, Record, job_number, kind_of, shown
from gpolicy.cluster.state import ClusterState, LiveGroup, LiveNode, PhysicalVolume
from gpolicy.cluster.terms import VolumeSize, VolumeTerms, is_empty
from gpolicy.errors import GpolicyError, InputError, UnreachableError
from gpolicy.ganeti.vocabulary import Value
from gpolicy.printable import some

if TYPE_CHECKING:
    from gpolicy.cluster.master import Master
    from gpolicy.cluster.rapi_client import Client


GANETIS: Final = VolumeTerms()


class VolumesFrom(Enum):
    """Where the sizes of physical volumes are known from."""

    MEASURED = "measured"
    PROMISED = "promised"  # the `hardware` of the policy
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePool:
    """The volumes of one volume group on a node.

    Under exclusive storage Ganeti counts only the `allocatable` ones, whole and empty, each as the smallest less margin
    and reserve.
    """

    volumes: tuple[PhysicalVolume, ...] = ()
    terms: VolumeTerms = GANETIS

    @property
    def allocatable(self) -> tuple[PhysicalVolume, ...]:
        """The volumes that LVM may use: the spindles."""
        return tuple(volume for volume in self.volumes if volume.allocatable)

    @property
    def count(self) -> int:
        """How many spindles there are."""
        return len(self.allocatable)

    @property
    def smallest(self) -> int | None:
        """The size of the smallest spindle; None without any."""
        return min((volume.size for volume in self.allocatable), default=None)

    @property
    def largest(self) -> int | None:
        """The size of the largest spindle; None without any."""
        return max((volume.size for volume in self.allocatable), default=None)

    @property
    def volume_size(self) -> VolumeSize | None:
        """How each spindle counts; None without any."""
        return None if self.smallest is None else self.terms.volume_size(self.smallest)

    @property
    def usable(self) -> int:
        """How much of each spindle counts; 0 without any."""
        return self.volume_size.usable if self.volume_size else 0

    @property
    def empty(self) -> tuple[PhysicalVolume, ...]:
        """The spindles on which disks can be made."""
        return tuple(volume for volume in self.allocatable if is_empty(volume.size, volume.free))

    @property
    def partly_used(self) -> tuple[PhysicalVolume, ...]:
        """The spindles of which something is free, but not all: that part is lost under exclusive storage."""
        return tuple(volume for volume in self.allocatable if volume.free and not is_empty(volume.size, volume.free))

    @property
    def differs(self) -> bool:
        """Whether the sizes of its spindles are too different to count as equal."""
        return self.terms.sizes_differ(self.smallest or 0, self.largest or 0)

    @property
    def size(self) -> int:
        """The size of the volume group: of all volumes, allocatable or not."""
        return sum(volume.size for volume in self.volumes)

    @property
    def free(self) -> int:
        """What is free in the volume group without exclusive storage."""
        return sum(volume.free for volume in self.volumes)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePools:
    """The pools of a node: of the cluster's `own` volume group, of `others` by name, and volumes in none."""

    own: VolumePool
    others: Mapping[str, VolumePool] = field(default_factory=dict)
    excluded: tuple[PhysicalVolume, ...] = ()


def volume_pools(volumes: Iterable[PhysicalVolume], terms: VolumeTerms, own_group: str | None) -> VolumePools:
    """Return the pools that `volumes` make up under `terms`; `own_group` is the name of the cluster's volume group.

    A volume that is both excluded and assigned is excluded; of several groups it is in the first.
    """
    members: dict[str | None, list[PhysicalVolume]] = {own_group: [], **{name: [] for name in terms.volume_groups}}
    excluded = []
    for volume in volumes:
        if matches(volume.name, terms.exclude):
            excluded.append(volume)
        else:
            named = (name for name, patterns in terms.volume_groups.items() if matches(volume.name, patterns))
            members[next(named, own_group)].append(volume)
    pools = {name: VolumePool(volumes=tuple(found), terms=terms) for name, found in members.items()}
    own = pools.pop(own_group)
    others = {name: pool for name, pool in pools.items() if name is not None}
    return VolumePools(own=own, others=others, excluded=tuple(excluded))


def pools_of(state: ClusterState, node: LiveNode) -> VolumePools | None:
    """Return the pools of `node` under the terms of its group; None if its volumes were not read."""
    if node.physical_volumes is None:
        return None
    return volume_pools(node.physical_volumes, state.terms_of(node.group).volumes, own_group(state))


def own_group(state: ClusterState) -> str | None:
    """Return the name of the cluster's volume group; None if it has none, or the source does not show it."""
    name = state.cluster.own.get(("volume_group_name",))
    return name if isinstance(name, str) and name else None


def separate_metavg(state: ClusterState, group: LiveGroup) -> str | None:
    """Return the volume group of the metadata of a group's DRBD disks; None if it is the cluster's own.

    None also where no DRBD disk can be: without the template, or with exclusive storage.
    """
    metavg, own = group.effective.get(("diskparams", "drbd", "metavg")), own_group(state)
    if not isinstance(metavg, str) or not metavg or own is None or metavg == own:
        return None
    lists = (state.cluster.own.get(("enabled_disk_templates",)), group.effective.get(("ipolicy", "disk-templates")))
    possible = all(not isinstance(names, list) or "drbd" in names for names in lists)
    exclusive = any(state.has_exclusive_storage(node) for node in state.nodes_of(group.name))
    return metavg if possible and not exclusive else None


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a volume of this name matches one of the names or globs."""
    return any(fnmatchcase(name, pattern) or name == pattern for pattern in patterns)


COLUMNS: Final = ("name", "size", "used", "free", "allocatable")

NOT_FROM_HERE: Final = (
    "physical volumes cannot be read from this source: use local:, ssh:// or rapi://, or a snapshot made there with"
    " --physical-volumes"
)

_SEPARATOR = "|"
_PAUSES = (0.1, 0.2, 0.5, 1.0)  # seconds between questions about a job, the last one again and again


def from_master(state: ClusterState, master: Master) -> ClusterState:
    """Return `state` with the physical volumes that `gnt-node list-storage` shows; a note tells of failures."""
    argv = ["gnt-node", "list-storage", "--no-headers", "--units=m", f"--separator={_SEPARATOR}"]
    try:
        output = master.run([*argv, "--storage-type=lvm-pv", "-o", ",".join(("node", *COLUMNS))])
        if output.code:
            reason = output.complaint or f"exit code {output.code}"
            raise UnreachableError(f"gnt-node list-storage failed: {shown(reason)}")
        found: dict[str, list[PhysicalVolume]] = {}
        for line in decode_text(output.stdout, "gnt-node list-storage").splitlines():
            node, volume = _volume_of_line(line)
            found.setdefault(node, []).append(volume)
    except GpolicyError as error:
        return _noted(state, f"physical volumes are not known: {error.message}")
    return _with_volumes(state, found)


def from_rapi(state: ClusterState, client: Client, *, seconds: float) -> ClusterState:
    """Return `state` with the physical volumes that the remote API gives within `seconds`; a note tells of failures."""
    until = time.monotonic() + seconds
    try:
        jobs: dict[str, int] = {}
        for name in (node.name for node in state.nodes.values() if node.is_measured):
            path = f"/2/nodes/{quote(name, safe='')}/storage?storage_type=lvm-pv&output_fields={','.join(COLUMNS)}"
            job = client.get_if_allowed(path, until=until)
            if job is None:
                raise UnreachableError("the remote API shows them to users with a password")
            if (number := job_number(job)) is None:
                where = f"storage of node {shown(name)}"
                raise InputError(f"{where}: should be the number of a job, but is {kind_of(job)}")
            jobs[name] = number
        found = {name: _volumes_of_job(client, job, name, until) for name, job in jobs.items()}
    except GpolicyError as error:
        return _noted(state, f"physical volumes are not known: {error.message}")
    return _with_volumes(state, {name: volumes for name, volumes in found.items() if volumes})


def _with_volumes(state: ClusterState, found: Mapping[str, Sequence[PhysicalVolume]]) -> ClusterState:
    """Return `state` with the volumes of each node. A node without any may have none, or may not have answered."""
    nodes = dict(state.nodes)
    for name in nodes.keys() & found.keys():
        volumes = tuple(sorted(found[name], key=lambda item: item.name))
        nodes[name] = replace(nodes[name], physical_volumes=volumes or None)
    state = replace(state, nodes=nodes)
    check_numbers(state, state.source)
    silent = [node.name for node in state.nodes.values() if node.is_measured and node.name not in found]
    return _noted(state, f"no physical volumes are known for {some(silent)}") if silent else state


def _noted(state: ClusterState, note: str) -> ClusterState:
    return replace(state, notes=(*state.notes, note))


def _volume_of_line(line: str) -> tuple[str, PhysicalVolume]:
    cells = line.split(_SEPARATOR)
    if len(cells) != len(COLUMNS) + 1:
        raise InputError(f"gnt-node list-storage: {len(cells)} columns, not {len(COLUMNS) + 1}, in: {shown(line)}")
    node, name, *sizes, allocatable = cells
    if not all(cell.isascii() and cell.isdigit() and len(cell) < 19 for cell in sizes):
        raise InputError(f"gnt-node list-storage: sizes should be whole numbers, in: {shown(line)}")
    size, used, free = map(int, sizes)
    return node, PhysicalVolume(name=name, size=size, used=used, free=free, allocatable=allocatable == "Y")


def _volumes_of_job(client: Client, job: int, node: str, until: float) -> list[PhysicalVolume]:
    asked = 0
    while True:
        answer = Record.of(client.get(f"/2/jobs/{job}", until=until), f"job {job}")
        status = answer.text("status")
        if status == "success":
            rows = answer.items("opresult")
            return [_volume_of_row(row, node) for row in (rows[0] if rows and isinstance(rows[0], list) else [])]
        if status not in JOB_RUNS:
            raise UnreachableError(f"job {job}, which asked node {shown(node)} for its storage, ended: {shown(status)}")
        pause = _PAUSES[min(asked, len(_PAUSES) - 1)]
        if time.monotonic() + pause >= until:
            raise UnreachableError(f"job {job}, which asks node {shown(node)} for its storage, did not end in time")
        time.sleep(pause)
        asked += 1


def _volume_of_row(row: Value, node: str) -> PhysicalVolume:
    where = f"storage of node {shown(node)}"
    if not isinstance(row, list) or len(row) != len(COLUMNS):
        raise InputError(f"{where}: should be rows of {', '.join(COLUMNS)}")
    fields = Record(where, dict(zip(COLUMNS, row, strict=True)))
    return PhysicalVolume(
        name=fields.name("name"),
        size=fields.whole("size"),
        used=fields.whole("used"),
        free=fields.whole("free"),
        allocatable=fields.flag("allocatable"),
    )
