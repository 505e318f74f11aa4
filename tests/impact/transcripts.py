"""Recorded sessions with a real 3.0.2 cluster: each command, its output, and its changes in config.data."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import parse_config

DATA = Path(__file__).resolve().parent.parent / "data"
CLUSTERS = DATA / "clusters"
TRANSCRIPTS = sorted((DATA / "transcripts").glob("transcript-*.txt"))
_COMMAND = re.compile(r"\[(\d+)\] \$ (.*)")
_CHANGE = re.compile(r"  cfg: (.*?): (.*) -> (.*)")
_WARNING = re.compile(r"WARNING: After the ipolicy change the following instances violate them: (.*)")
_VERIFY = re.compile(r"WARNING: instance ([^:]+): (.*)")
_BY_NAME = ("nodegroups", "nodes", "instances")
Flat = dict[str, str]


@dataclass(slots=True)
class Recorded:
    """One command: the cluster before and after (`flat`: JSON texts by path), and who it warned about."""

    label: str
    argv: list[str]
    before: Flat
    after: Flat = field(default_factory=dict)
    exit_code: int = -1
    warned: list[str] = field(default_factory=list)
    verified: dict[str, list[str]] = field(default_factory=dict)


def base_config() -> dict[str, Any]:
    """Return the configuration with which the sessions begin: five instances on five nodes."""
    config: dict[str, Any] = json.loads((DATA / "clusters" / "base" / "config.data").read_text(encoding="utf-8"))
    return config


def recorded_commands() -> Iterator[Recorded]:
    """Yield all commands of all sessions, each with the configuration before it."""
    base = _flat_config(base_config())
    current = dict(base)
    for path in TRANSCRIPTS:
        command: Recorded | None = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if line == "(base state restored)":
                current = dict(base)
            elif match := _COMMAND.fullmatch(line):
                command = Recorded(f"{path.stem} [{match[1]}]", _split(match[2]), dict(current))
            elif command is None:
                continue
            elif match := _CHANGE.fullmatch(line):
                _apply(current, match[1], match[2], match[3])
            elif match := _WARNING.search(line):
                command.warned += sorted(match[1].split(", "))
            elif match := _VERIFY.search(line):
                command.verified[match[1]] = separate_messages(match[2])
            elif line.startswith("  exit "):
                command.after, command.exit_code = dict(current), int(line.split()[1])
                yield command
                command = None


def separate_messages(text: str) -> list[str]:
    """Return the messages that verify puts into one line."""
    return re.split(r", (?=[a-z]+-[a-z]+(?:/\d+)? value|Disk template|Number of)", text)


def state_of(flat: Flat, *, node_parameters_of: Flat | None = None) -> ClusterState:
    """Return the state in which the cluster was, with the node parameters of cluster and groups of another one."""
    if node_parameters_of is not None:
        flat = {path: text for path, text in flat.items() if not _is_node_parameter(path)} | {
            path: text for path, text in node_parameters_of.items() if _is_node_parameter(path)
        }
    config = base_config()
    nested = _nested(flat)
    config["cluster"] |= nested["cluster"]
    for kind in ("nodegroups", "nodes"):
        config[kind] = {item["uuid"]: item for item in nested[kind].values()}
    recorded = {item["name"]: item for item in config["instances"].values()}
    config["instances"] = {
        item["uuid"]: item | {"disks": recorded[name]["disks"], "nics": recorded[name]["nics"]}
        for name, item in nested["instances"].items()
        if name in recorded  # what a session adds itself has disks that it does not show
    }
    return parse_config(json.dumps(config).encode(), where="recorded", source="config:recorded")


def _is_node_parameter(path: str) -> bool:
    return re.match(r"/cluster/ndparams/|/nodegroups/[^/]+/ndparams/", path) is not None


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _flat_config(config: dict[str, Any]) -> Flat:
    for kind in _BY_NAME:
        config[kind] = {item["name"]: item for item in config[kind].values()}
    return dict(_flatten({key: config[key] for key in ("cluster", *_BY_NAME)}, ""))


def _flatten(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key in value.keys() - {"serial_no", "mtime", "ctime"}:  # not recorded
            yield from _flatten(value[key], f"{path}/{key}")
    elif isinstance(value, list) and path.endswith(("disk-templates", "tags", "members")):
        yield path, json.dumps(sorted(value, key=str))
    else:
        yield path, json.dumps(value, sort_keys=True)


def _nested(flat: Flat) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, text in flat.items():
        below = tree
        *keys, last = path.split("/")[1:]
        for key in keys:
            below = below.setdefault(key, {})
        below[last] = json.loads(text)
    return tree


def _apply(flat: Flat, path: str, old: str, new: str) -> None:
    """Make one recorded change, after a check that the policy value before is the recorded one."""
    if path.startswith("/instances/") and path.split("/")[3] != "beparams":
        return
    have = flat.get(path, "absent")
    if path.endswith(("/group", "/uuid")) and "absent" not in (have, old) and have != old:
        for other, text in flat.items():  # groups that were there before have another UUID in each session
            if text == have:
                flat[other] = old
        have = old
    if path.split("/")[-2:][0] in ("ipolicy", "std", "ndparams") or path.endswith(("/group", "/alloc_policy")):
        assert have == old, (path, have, old)
    if new == "absent":
        flat.pop(path, None)
    else:
        flat[path] = new
