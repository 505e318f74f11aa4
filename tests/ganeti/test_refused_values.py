"""Check reports every value that Ganeti's own commands refuse (hypervisor parameters have their own test)."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path as FilePath
from typing import Any, Final

import pytest

from gpolicy.findings import Severity
from gpolicy.ganeti.parameters import known_in, parameters_of
from gpolicy.ganeti.vocabulary import Level, Parameter, Path, Type
from gpolicy.policy.loading import load_policy
from tests.ganeti.real_ganeti import RefusedError, needs_ganeti, real_ganeti
from tests.mistakes import find_mistakes
from tests.strategies import document

pytestmark = needs_ganeti

WORDS: Final = (
    *("", "x", "default", "inherit", "none", "a b", "/a", "a/b", "a,b", "-x", "1", "hail", "drbd", "kvm"),
    *("routed", "preferred", "userspace", "http:/x", "aa:00:00", "AA:00:00", "zz:00:00", "aa:00", "x" * 300),
)
NUMBERS: Final = (-1, 0, 1, 8, 22, 64, 129, 65535, 65536, 2**31)
LISTS: Final[tuple[list[str], ...]] = (
    *([], [""], ["x"], ["gzip"], ["gzip", "x y"], ["gzip", "a/b"], ["gzip", "-x"], ["gzip", "none"], ["gzip", "a.b"]),
    *(["plain"], ["drbd", "plain"], ["plain", "plain"], ["kvm"], ["kvm", "x"], ["["]),
)
ASKED: Final[dict[Type, tuple[Any, ...]]] = {
    **dict.fromkeys((Type.STRING, Type.CHOICE), WORDS),
    **dict.fromkeys((Type.INT, Type.MIB, Type.SIZE), NUMBERS),
    Type.FLOAT: (-1.0, 0, 0.5, 1e-9, 1e9),
    Type.BOOL: (True, False),
    **dict.fromkeys((Type.LIST, Type.SET), LISTS),
    Type.DICT: ({}, {"a": "b"}, {"a b": "c"}, {"a": ""}, {"": "x"}, {"-a": "b"}, {"a": None}, {"no_a": None}),
    Type.UID_RANGES: ([], ["1-2"], ["2-1"], ["1-5", "3-8"], ["5", "5"], ["0-4294967295"], ["4294967296"]),
}
BY_OTHERS: Final[dict[Path, str]] = {
    ("enabled_disk_templates",): "the templates that the ipolicy allows",
    ("volume_group_name",): "LVM templates that are enabled",
    ("drbd_usermode_helper",): "DRBD that is enabled",
    ("master_netmask",): "the IP version of the cluster",
    **{("ipolicy", "std", name): "the specs" for name in ("memory-size", "cpu-count", "disk-size", "disk-count")},
    **{("ipolicy", "std", name): "the specs" for name in ("nic-count", "spindle-use")},
}
"""Parameters of which Ganeti refuses values for the sake of others, of which a policy may say nothing; and which.

Rules find these where both are known."""
OTHERS: Final[dict[Path, dict[Path, Any]]] = {("nicparams", "link"): {("nicparams", "mode"): "bridged"}}
"""What Ganeti's built-in values say of another parameter, and the policy of the test must say itself."""


def asked() -> list[tuple[Level, Parameter]]:
    """Return the parameters to ask about; hv_state is the same for each hypervisor."""
    return [
        (level, parameter)
        for level in Level
        for parameter in parameters_of(level)
        if known_in(parameter, "3.0") and parameter.type in ASKED and parameter.family != "hvparams"
        if parameter.family != "hv_state" or parameter.path[1] == "kvm"
    ]


def takes(level: Level, parameter: Parameter, path: Path, value: Any) -> bool:
    """Return whether Ganeti's own code takes the value, by the one route that every such value can go."""
    request: dict[str, Any]
    if path == ("compression_tools",):
        request = {"argv": ["gnt-cluster", "modify", f"--compression-tools={','.join(value)}"]}
        if not value:
            return True  # a reset; nothing is refused
    else:
        if parameter.type is Type.UID_RANGES:
            value = [[int(end) for end in (f"{item}-{item}" if "-" not in item else item).split("-")] for item in value]
        body = document("", None, {(parameter.opcode or path[0], *path[1:]): value})
        kept = {key: below for key, below in body.items() if key not in ("gpolicy", "kind")}
        url = {Level.CLUSTER: "/2/modify", Level.GROUP: "/2/groups/g/modify", Level.NODE: "/2/nodes/n/modify"}[level]
        method = "POST" if level is Level.NODE else "PUT"
        request = {"rapi": {"method": method, "path": url, "body": kept}}
    try:
        real_ganeti().ask({**request, "own": {}})
    except RefusedError:
        return False
    return True


def is_told(level: Level, path: Path, value: Any, directory: FilePath) -> bool:
    """Return whether check has an error or a warning about a policy with the value."""
    kind = {Level.CLUSTER: "Cluster", Level.GROUP: "NodeGroup", Level.NODE: "NodeSet"}[level]
    more = {"nodes": ["n"]} if level is Level.NODE else {}
    made = document(kind, "c.example.org", {**OTHERS.get(path, {}), path: value}, **more)
    file = directory / "policy.yaml"
    file.write_text(json.dumps(made), encoding="utf-8")
    found = find_mistakes(load_policy(file), today=date(2026, 6, 15))
    return any(finding.severity in (Severity.ERROR, Severity.WARNING) for finding in found)


@pytest.mark.parametrize(("level", "parameter"), asked(), ids=lambda item: getattr(item, "name", str(item)))
def test_refusals_of_ganeti_are_explained(level: Level, parameter: Parameter, tmp_path: FilePath) -> None:
    path = tuple("xenvg" if key == "*" else key for key in parameter.path)
    refused = [value for value in ASKED[parameter.type] if not takes(level, parameter, path, value)]
    untold = [value for value in refused if not is_told(level, path, value, tmp_path)]
    if path in BY_OTHERS:
        assert untold  # else the list of exceptions says more than is true
    else:
        assert untold == []


def test_ganeti_refused_something() -> None:
    link = next(item for level, item in asked() if item.path == ("nicparams", "link"))
    assert not takes(Level.CLUSTER, link, link.path, "")
    assert takes(Level.CLUSTER, link, link.path, "br0")
