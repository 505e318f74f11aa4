"""RAPI requests: method, path with query, and JSON body.

Ganeti's RAPI daemon matches the path as it comes: it decodes no percent sign in it, and takes only letters,
digits, `_`, `.` and `-` in a name. An object with another name can be addressed by its UUID, or not at all.
Query arguments are decoded, and so a tag may hold any character of its grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from gpolicy.ganeti.expressible import DEFAULT_WORD, Assignments, Reset
from gpolicy.ganeti.parameter import Path, Value
from gpolicy.ganeti.parameters import parameter_at, position
from gpolicy.ganeti.values import unflatten

_ADDRESSABLE: Final = re.compile(r"[A-Za-z0-9_.-]+")
_REASON: Final = 100  # what carrying a plan out adds to the query: a mark to find the job by
_LONGEST_PATH: Final = 8192 - len("DELETE  HTTP/1.1\r\n") - _REASON  # the daemon refuses a longer start line


@dataclass(frozen=True, slots=True)
class RapiCall:
    """One request to RAPI. `path` holds the query; `body` is sent as application/json, or not at all if None."""

    method: str
    path: str
    body: Value = None


def call(method: str, path: Iterable[str], body: Value = None, *, tags: Iterable[str] = ()) -> RapiCall | None:
    """Return the request for `/2/…`, or None if RAPI cannot address the object or take so long a request."""
    parts = list(path)
    if any(not _ADDRESSABLE.fullmatch(part) or part in {".", ".."} for part in parts):
        return None
    query = "&".join(f"tag={quote(tag, safe='')}" for tag in tags)
    address = "/".join(("/2", *parts)) + (f"?{query}" if query else "")
    return RapiCall(method, address, body) if len(address) <= _LONGEST_PATH else None


def fields(assignments: Assignments) -> dict[str, Value]:
    """Return checked assignments as fields of the opcode: nested, by the names under which they are written."""
    ordered = sorted(assignments.items(), key=lambda item: position(item[0]))
    tree = unflatten({path: _json(path, value) for path, value in ordered})
    return {_field(name): value for name, value in tree.items()}


def _json(path: Path, value: Value | Reset) -> Value:
    if not isinstance(value, Reset):
        return value
    return [DEFAULT_WORD] if path == ("ipolicy", "disk-templates") else DEFAULT_WORD


def _field(name: str) -> str:
    """Return the opcode's name of a cluster parameter: `volume_group_name` is written as `vg_name`."""
    parameter = parameter_at((name,))
    return parameter.opcode or name if parameter is not None else name
