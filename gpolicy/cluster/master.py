"""The cluster as its master sees it, here (`local:`) or over ssh: config.data, and the run-time state from `gnt-*`.

config.data gives every own value; `gnt-node list` and `gnt-instance list` add what nodes measure and whether
instances run. If these two fail, a note of the state says so; the state still serves for a plan.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from gpolicy.cluster.assembly import NO_RUN_TIME, NODE_FIELDS, check_numbers, missing_notes
from gpolicy.cluster.json_input import decode_text, read_bytes
from gpolicy.cluster.process import Output, run
from gpolicy.cluster.record import LARGEST_FILE, shown
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.cluster.state_files import parse_config, with_release
from gpolicy.errors import GpolicyError, InputError, RequestError, UnreachableError, about
from gpolicy.ganeti.releases import AMBIGUOUS
from gpolicy.opening import real_path
from gpolicy.printable import one_line

CONFIG_DATA: Final = "/var/lib/ganeti/config.data"

_SEPARATOR = "|"
_NO_VALUE = frozenset({"?", "-", "*", "??", ""})  # no data, not available, node is offline, unknown field
_NODE_COLUMNS = ("name", *NODE_FIELDS)
_INSTANCE_COLUMNS = ("name", "status", "oper_state", "oper_ram")
_LARGEST_LIST = 64 * 1024**2
_LONGEST_REASON = 200
_HOST = re.compile(r"[A-Za-z0-9_.:][A-Za-z0-9_.:%-]*", re.ASCII)  # never a leading dash: ssh would read an option
_WHOLE = re.compile(r"-?[0-9]+", re.ASCII)
_MOST_DIGITS = 18  # longer numbers are not read
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@\\-]*", re.ASCII)


class Master(Protocol):
    """Where Ganeti's master is: reads its configuration and runs Ganeti's commands there."""

    @property
    def source(self) -> str:
        """The address as given."""

    def config_data(self) -> bytes:
        """Return the content of config.data."""

    def run(self, argv: Sequence[str]) -> Output:
        """Run a command to its end."""


@dataclass(frozen=True, slots=True)
class LocalMaster:
    """This machine is the master. `GANETI_ROOTDIR` in `environ` moves the file, as it does for Ganeti itself."""

    environ: Mapping[str, str]
    path: str = ""
    timeout: float = 60.0
    source: str = "local:"

    def config_data(self) -> bytes:
        """Return the content of config.data."""
        try:
            path = Path(self.path) if self.path else real_path(self.environ.get("GANETI_ROOTDIR", "") + CONFIG_DATA)
            return read_bytes(path)
        except InputError as error:
            hint = "local: reads Ganeti's configuration on its master, as root; elsewhere use ssh:// or rapi://"
            raise InputError(error.message, hint=hint) from None

    def argv(self, command: Sequence[str]) -> list[str]:
        """Return the argv that runs `command`: itself, no shell is needed."""
        return list(command)

    def run(self, argv: Sequence[str]) -> Output:
        """Run a command to its end."""
        return run(argv, environ={**self.environ, "LC_ALL": "C.UTF-8"}, seconds=self.timeout, limit=_LARGEST_LIST)


@dataclass(frozen=True, slots=True)
class SshMaster:
    """The master is reached with the system's ssh, its configuration and keys; nothing is ever asked for."""

    host: str
    environ: Mapping[str, str]
    user: str = ""
    port: int | None = None
    path: str = ""
    timeout: float = 60.0

    @property
    def source(self) -> str:
        """The address as given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ssh://{self.user + '@' if self.user else ''}{host}{f':{self.port}' if self.port else ''}{self.path}"

    def argv(self, command: Sequence[str]) -> list[str]:
        """Return the argv of ssh that runs `command` there: quoted for the remote shell, which ssh always uses.

        A connection that is dead without a word is noticed within a minute: ssh asks every 15 s, three times.
        """
        port = ["-p", str(self.port)] if self.port else []
        target = f"{self.user}@{self.host}" if self.user else self.host
        options = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", *port]
        return ["ssh", *options, "--", target, shlex.join(command)]

    def config_data(self) -> bytes:
        """Return the content of config.data."""
        path = self.path or CONFIG_DATA
        output = run(self.argv(["cat", "--", path]), environ=self.environ, seconds=self.timeout, limit=LARGEST_FILE)
        if output.code == 255:  # ssh's own failures
            raise UnreachableError(about(self.source, _last_complaint(output) or "ssh failed"))
        if output.code:
            hint = "it must be the cluster's master, and the user must be allowed to read the file (root)"
            raise UnreachableError(about(self.source, f"cannot read {path}: {_last_complaint(output)}"), hint=hint)
        return output.stdout

    def run(self, argv: Sequence[str]) -> Output:
        """Run a command to its end."""
        return run(self.argv(argv), environ=self.environ, seconds=self.timeout, limit=_LARGEST_LIST)


def parse_ssh_address(address: str, environ: Mapping[str, str], *, timeout: float = 60.0) -> SshMaster:
    """Return the master that `ssh://[user@]host[:port][/path of config.data]` names. Raise RequestError otherwise."""
    hint = "write ssh://host, ssh://root@host or ssh://root@host:22"
    try:
        parts = urlsplit(address)
        host, user, port = parts.hostname or "", parts.username or "", parts.port
        written = parts.netloc.rpartition("@")[2].removeprefix("[")
        if host.isascii():  # as it is written: a name in ssh's settings may have capital letters
            host = written[: len(host)]
    except ValueError:
        raise RequestError("ssh: not a host", hint=hint) from None
    if parts.password is not None:
        raise RequestError("ssh: the address must not contain a password", hint="ssh uses its own keys")
    if not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)) or port == 0 or parts.query or parts.fragment:
        raise RequestError(f"{address!r}: not a valid host for ssh", hint=hint)
    path = parts.path if parts.path != "/" else ""
    return SshMaster(host, environ, user=user, port=port, path=path, timeout=timeout)


def read_master(master: Master) -> ClusterState:
    """Return the state of the cluster that `master` is the master of. Raise GpolicyError if it cannot be read."""
    state = read_master_configuration(master)
    notes = [*state.notes]
    if state.software_version == AMBIGUOUS:
        with suppress(GpolicyError):
            told = master.run(["gnt-cluster", "version"]).stdout.decode(errors="replace")
            release = re.search(r"^Software version: (.*)$", told, re.MULTILINE)
            state = with_release(state, release[1]) if release else state
    try:
        measured = _table(master, "gnt-node", _NODE_COLUMNS)
    except GpolicyError as error:
        notes.append(f"no live data of nodes (memory, disk, CPUs): {error.message}")
    else:
        where = f"{master.source} gnt-node list"
        nodes = {}
        for name, node in state.nodes.items():
            row = measured.get(name, {})
            found = {ours: _whole(row, ganetis, where) for ganetis, ours in NODE_FIELDS.items()}
            nodes[name] = replace(node, resources=Resources(**found))
        state = replace(state, nodes=nodes)
        notes += missing_notes(state)
    try:
        run_time = _table(master, "gnt-instance", _INSTANCE_COLUMNS)
    except GpolicyError as error:
        notes.append(f"it is unknown whether instances run: {error.message}")
    else:
        instances = {}
        for name, instance in state.instances.items():
            row = run_time.get(name, {})
            running = {"Y": True, "N": False}.get(_cell_value(row, "oper_state") or "")
            memory = _whole(row, "oper_ram", f"{master.source} gnt-instance list")
            instances[name] = replace(instance, status=_cell_value(row, "status"), running=running, oper_ram=memory)
        state = replace(state, instances=instances)
    check_numbers(state, master.source)
    return replace(state, notes=tuple(notes))


def read_master_configuration(master: Master) -> ClusterState:
    """Return what the cluster is configured to be, without what nodes measure: no node is asked."""
    state = parse_config(master.config_data(), where=f"{master.source} config.data", source=master.source)
    return replace(state, notes=tuple(note for note in state.notes if note != NO_RUN_TIME))


def _table(master: Master, command: str, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what `command list` says: by name, by column. Raise GpolicyError if it fails or makes no sense."""
    options = ["--no-headers", "--units=m", f"--separator={_SEPARATOR}", "-o", ",".join(columns)]
    output = master.run([command, "list", *options])
    if output.code:
        raise UnreachableError(f"{command} list failed: {_last_complaint(output) or f'exit code {output.code}'}")
    rows: dict[str, dict[str, str]] = {}
    for line in decode_text(output.stdout, f"{command} list").splitlines():
        cells = line.split(_SEPARATOR)
        if len(cells) != len(columns):
            wrong = f"{len(cells)} columns, not {len(columns)}"
            raise InputError(f"{command} list: {wrong}, in: {one_line(line, _LONGEST_REASON)}")
        rows[cells[0]] = dict(zip(columns, cells, strict=True))
    return rows


def _cell_value(row: dict[str, str], column: str) -> str | None:
    cell = row.get(column, "")
    return None if cell in _NO_VALUE else cell


def _whole(row: dict[str, str], column: str, where: str) -> int | None:
    cell = _cell_value(row, column)
    if cell is None or not _WHOLE.fullmatch(cell):
        return None
    if len(cell) > _MOST_DIGITS:
        raise InputError(f"{where}: {row['name']}: {column} is {shown(cell)}: no cluster has such an amount")
    return int(cell)


def _last_complaint(output: Output) -> str:
    """Return the last thing that a program complained about, on one printable line."""
    return one_line(output.complaint, _LONGEST_REASON)
