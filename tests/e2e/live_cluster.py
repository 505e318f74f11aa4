"""The real cluster of this run: how tests reach it, and gpolicy's own command line beside it."""

from __future__ import annotations

import ctypes
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpolicy.cli.running import run as run_gpolicy
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState

ROOT: Final = Path(__file__).resolve().parents[2]
RGN: Final = Path(__file__).parent / "cluster" / "rgn"
MASTER_ADDRESS: Final = "10.99.0.11"
RAPI_USER: Final = ("tool", "tool")
_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of gpolicy ended with and said."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster that `rgn` has brought up. `base` and `handles` are its RGN_BASE and RGN_RUN.

    `settings` are further variables for `rgn`, where it differs from the usual one; `master` its master's address.
    """

    base: Path
    handles: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    master: str = MASTER_ADDRESS

    # --- the cluster ---------------------------------------------------------------------------------------------

    def rgn(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the tool that brought the cluster up."""
        done = subprocess.run(
            [RGN, *map(str, arguments)],
            env={**os.environ, "RGN_BASE": str(self.base), "RGN_RUN": str(self.handles), **self.settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert not check or done.returncode == 0, f"rgn {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def ganeti(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of Ganeti's commands as on the master."""
        done = subprocess.run(
            command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def environment(self) -> dict[str, str]:
        """Return the environment in which Ganeti's commands (and gpolicy's `local:`) mean this cluster's master."""
        return {
            **os.environ,
            "GANETI_ROOTDIR": str(self.root("node1")),
            "GANETI_HOSTNAME": "node1",
            "LC_ALL": "C.UTF-8",
            "PATH": f"{self.base}/warm/bin:{os.environ['PATH'].removeprefix(f'{self.base}/warm/bin:')}",
        }

    def root(self, node: str) -> Path:
        """Return the virtual root of a node."""
        return self.base / "v" / node

    @property
    def config_file(self) -> Path:
        """The master's config.data."""
        return self.root("node1") / "var/lib/ganeti/config.data"

    def config(self) -> dict[str, Any]:
        """Return the master's configuration as it is on disk."""
        read: dict[str, Any] = json.loads(self.config_file.read_bytes())
        return read

    @property
    def kept(self) -> Path:
        """The configuration of the fresh cluster with its instances."""
        return self.base / "kept.config.data"

    def rewind(self) -> None:
        """Put the fresh cluster's configuration back, unless it is there (less serial numbers and times)."""
        if differing(content(json.loads(self.kept.read_bytes())), content(self.config())):
            self.rgn("rewind", self.kept)

    # --- gpolicy -------------------------------------------------------------------------------------------------

    @property
    def rapi(self) -> str:
        """The address of the remote API."""
        return f"rapi://{self.master}"

    @property
    def ssh(self) -> str:
        """The address of the master over ssh."""
        return f"ssh://root@{self.master}{self.config_file}"

    @property
    def certificate(self) -> Path:
        """The certificate that the remote API shows, without its key."""
        return self.base / "rapi-certificate.pem"

    @property
    def sources(self) -> dict[str, str]:
        """Every kind of source that shows this cluster as it is now."""
        return {"config": f"config:{self.config_file}", "local": "local:", "rapi": self.rapi}

    def state(self, source: str = "config") -> ClusterState:
        """Return the cluster's state as one of the sources shows it."""
        return read_state(self.sources[source], SourceOptions(rapi_ca=self.certificate))

    def rapi_options(self, address: str) -> list[str]:
        """Return what gpolicy needs to know to trust the remote API."""
        return ["--rapi-ca", str(self.certificate)] if address.startswith("rapi:") else []


def gpolicy(*arguments: str | Path) -> Run:
    """Run gpolicy in this process. Its environment is that of the master (`entered`)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_gpolicy([str(argument) for argument in arguments])
    return Run(code, out.getvalue(), err.getvalue())


def gpolicy_process(*arguments: str | Path, before: Sequence[str] = (), cwd: Path = ROOT) -> subprocess.Popen[str]:
    """Start gpolicy as a process of its own, with pipes; `before` is a program that ends by becoming gpolicy."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "gpolicy", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def entered(cluster: LiveCluster) -> Iterator[None]:
    """Enter the cluster's network, and set the environment in which `local:` is its master.

    Only this thread enters the network, with its child processes and new threads.
    """
    environment = {
        **cluster.environment(),
        "GPOLICY_RAPI_USER": RAPI_USER[0],
        "GPOLICY_RAPI_PASSWORD": RAPI_USER[1],
        "NO_COLOR": "1",
    }
    before = {name: os.environ.get(name) for name in environment}
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    holder = (cluster.handles / "node1.pid").read_text().strip()
    there = os.open(f"/proc/{holder}/ns/net", os.O_RDONLY)
    os.environ.update(environment)
    try:
        _set_network(there)
        yield
        _set_network(own)
    finally:
        os.close(own)
        os.close(there)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _set_network(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


_VOLATILE: Final = re.compile("serial_no|[cm]time")


def content(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without what every write changes: serial numbers and times.

    Empty containers are left out, since Ganeti leaves them behind (T49), and tags are sorted, since Ganeti shuffles
    them. A group that was removed and made again has another UUID, so groups are named by name.
    """
    names = {uuid: f"group {group['name']}" for uuid, group in config["nodegroups"].items()}

    def cleaned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            below = {str(names.get(name, name)): cleaned(item, name) for name, item in value.items()}
            kept = {name: item for name, item in below.items() if not _VOLATILE.fullmatch(name)}
            return {name: item for name, item in kept.items() if item not in ({}, [])}
        if isinstance(value, list):
            items = [cleaned(item) for item in value]
            return sorted(items) if key == "tags" else items
        return names.get(value, value) if isinstance(value, str) else value

    whole: dict[str, Any] = cleaned(config)
    return whole


def differing(one: Any, other: Any, where: str = "") -> list[str]:
    """Return where two configurations differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            line
            for key in sorted(one.keys() | other.keys())
            for line in differing(one.get(key, "absent"), other.get(key, "absent"), f"{where}/{key}")
        ]
    return [] if one == other and type(one) is type(other) else [f"{where}: {one!r} / {other!r}"]
