"""Physical volumes of nodes. Read on request only: Ganeti runs jobs for it, which wait for the nodes' locks.

`gnt-node list-storage` asks all nodes in one job; the remote API starts one job for each node, and requires a user with
a password. Both also answer under exclusive storage, where Ganeti 3.0 gives no other figure of a node's storage (seen
on a real 3.0.2 cluster). The volumes are those of all volume groups; Ganeti does not say which volume belongs to which
group.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from gpolicy.cluster.assembly import check_numbers
from gpolicy.cluster.json_input import decode_text
from gpolicy.cluster.record import JOB_RUNS, Record, job_number, kind_of, shown
from gpolicy.cluster.state import ClusterState, PhysicalVolume
from gpolicy.errors import GpolicyError, InputError, UnreachableError
from gpolicy.ganeti.parameter import Value
from gpolicy.printable import some

if TYPE_CHECKING:
    from gpolicy.cluster.master import Master
    from gpolicy.cluster.rapi_client import Client

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
                return _noted(
                    state, "physical volumes are not known: the remote API shows them to users with a password"
                )
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
    nodes = {
        name: replace(node, physical_volumes=tuple(sorted(found[name], key=lambda item: item.name)) or None)
        if name in found
        else node
        for name, node in state.nodes.items()
    }
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
    node, name, size, used, free, allocatable = cells
    if not all(cell.isascii() and cell.isdigit() and len(cell) < 19 for cell in (size, used, free)):
        raise InputError(f"gnt-node list-storage: sizes should be whole numbers, in: {shown(line)}")
    return node, PhysicalVolume(
        name=name, size=int(size), used=int(used), free=int(free), allocatable=allocatable == "Y"
    )


def _volumes_of_job(client: Client, job: int, node: str, until: float) -> list[PhysicalVolume]:
    """Wait for a job and return what it found."""
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
