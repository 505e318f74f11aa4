"""Ganeti's own parsers and logical units, in one long-lived process of the system's Python."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path as FilePath
from typing import IO, Any, Final, cast

import pytest

from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.parameters import flatten, parameter_at, unflatten
from gpolicy.ganeti.releases import DEFAULT_VERSION
from gpolicy.ganeti.vocabulary import Path, Value, Values

TREES: Final = sorted(FilePath("/usr/share/ganeti").glob("3.*/ganeti/client/gnt_cluster.py"))
RELEASE: Final = TREES[-1].parents[2].name if TREES else DEFAULT_VERSION
"""The release of the Ganeti that is installed here."""

needs_ganeti: Final = [
    pytest.mark.ganeti,
    pytest.mark.skipif(not TREES, reason="Debian's package ganeti is not installed (no /usr/share/ganeti/3.*)"),
]

COUNTS: Final[Counter[str]] = Counter()
"""How many requests of each kind were answered in this run."""

_FAMILIES: Final = ("ipolicy", "diskparams", "ndparams", "hv_state", "disk_state", "beparams", "hvparams", "nicparams")
_READ_NAMES: Final = {
    "vg_name": "volume_group_name",
    "drbd_helper": "drbd_usermode_helper",
    "hv_state_static": "hv_state",
    "disk_state_static": "disk_state",
}


class RefusedError(Exception):
    """Ganeti refused a command."""


class RealGaneti:
    """The process, and questions to it."""

    def __init__(self) -> None:
        script = FilePath(__file__).with_name("real_parser.py")
        # A clean environment: GNT_* variables may hold default arguments, and PYTHON* ones other modules.
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(script), str(TREES[-1].parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        atexit.register(self.close)

    def close(self) -> None:
        """End the process that this object started."""
        cast("IO[str]", self.process.stdin).close()
        self.process.wait(timeout=10)
        cast("IO[str]", self.process.stdout).close()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer; raise RefusedError if Ganeti raised something."""
        sent, received = cast("IO[str]", self.process.stdin), cast("IO[str]", self.process.stdout)
        sent.write(json.dumps(request) + "\n")
        sent.flush()
        line = received.readline()
        assert line, "the process with Ganeti's modules has ended"
        COUNTS[next(kind for kind in ("argv", "rapi", "hypervisor", "starts", "tag") if kind in request)] += 1
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer

    def parse(self, argv: tuple[str, ...] | None) -> dict[str, Any]:
        """Return the fields of the opcode that a command submits."""
        assert argv is not None
        return comparable(self.ask({"argv": argv})["op"]["fields"])

    def receive(self, call: RapiCall | None) -> dict[str, Any]:
        """Return the fields of the opcode that a RAPI request submits."""
        assert call is not None
        return comparable(self.ask({"rapi": asdict(call)})["op"]["fields"])

    def takes(self, hypervisor: str, values: Mapping[str, Any]) -> bool:
        """Return whether a hypervisor's own checks take values beside the defaults of its other parameters."""
        try:
            self.ask({"hypervisor": hypervisor, "values": dict(values)})
        except RefusedError as refused:
            if str(refused).startswith(("HypervisorError", "TypeEnforcementError")):
                return False
            raise
        return True

    def store(self, command: tuple[str, ...] | RapiCall, own: Mapping[Path, Value]) -> tuple[Values, Values]:
        """Return an object's values before and after a job, when it starts with `own`."""
        key, content = ("rapi", asdict(command)) if isinstance(command, RapiCall) else ("argv", list(command))
        answer = self.ask({key: content, "own": stored_form(own)})
        return values_of(answer["before"]), values_of(answer["stored"])


@cache
def real_ganeti() -> RealGaneti:
    """Return the one process of this run."""
    return RealGaneti()


def comparable(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an opcode's fields without what differs by route alone.

    RAPI leaves out what the command line sends empty, names no cluster in tag jobs, and signs with another reason.
    """
    ignored = {"reason", "dry_run", "debug_level", "comment", "priority", "depends"}
    kept = {name: value for name, value in fields.items() if name not in ignored}
    kept = {name: None if name in _EMPTY_IS_ABSENT and not value else value for name, value in kept.items()}
    if kept["OP_ID"].startswith("OP_TAGS"):
        kept["name"] = kept["name"] or None
    return {name: value for name, value in kept.items() if value is not None}


_EMPTY_IS_ABSENT: Final = {*_FAMILIES, "enabled_data_collectors", "data_collector_interval"}


def values_of(tree: Mapping[str, Any]) -> Values:
    """Return the policy values in an opcode or in an object of Ganeti's configuration, by path."""
    renamed = {_READ_NAMES.get(name, name): value for name, value in tree.items() if value is not None}
    for family in ("beparams", "nicparams"):
        renamed[family] = renamed.get(family, {}).get("default", renamed.get(family, {}))
    for name, collector in renamed.pop("data_collectors", {}).items():
        renamed.setdefault("enabled_data_collectors", {})[name] = collector["active"]
        renamed.setdefault("data_collector_interval", {})[name] = collector["interval"]
    return {path: value for path, value in flatten(renamed).items() if parameter_at(path) is not None}


def stored_form(own: Mapping[Path, Value]) -> dict[str, Value]:
    """Return own values as an object of Ganeti's configuration has them."""
    tree = unflatten(own)
    for state in ("hv_state", "disk_state"):
        if state in tree:
            tree[f"{state}_static"] = tree.pop(state)
    return tree
