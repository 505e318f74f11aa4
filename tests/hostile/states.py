"""Hostile clusters: config.data, snapshots, htools text, requests, plans and journals, by a size in bytes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CLUSTERS: Final = ROOT / "tests" / "data" / "clusters"

Bytes = Callable[[int], bytes]

DEEP: Final[dict[str, Bytes]] = {
    "lists": lambda size: b"[" * size,
    "lists closed": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "mappings": lambda size: b'{"a":' * (size // 5),
    "mappings closed": lambda size: b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6),
    "mappings in a row": lambda size: b"[" + b"{}," * (size // 3) + b"{}]",
    "mappings without a list": lambda size: b"{}," * (size // 3),
    "lists in a row": lambda size: b"[" + b"[]," * (size // 3) + b"[]]",
    "digits": lambda size: b"9" * size,
    "digits behind a point": lambda size: b"0." + b"9" * size,
    "an exponent": lambda size: b"1e" + b"9" * size,
    "numbers of 5,000 digits": lambda size: b"[" + b",".join([b"9" * 5000] * max(1, size // 5000)) + b"]",
    "numbers of 4,000 digits": lambda size: b"[" + b",".join([b"9" * 4000] * max(1, size // 4000)) + b"]",
    "words that are no numbers": lambda size: b"[" + b"NaN," * (size // 4) + b"1]",
    "quotes": lambda size: b'"' * size,
    "escapes": lambda size: b'"' + b"\\u0041" * (size // 6) + b'"',
    "surrogates": lambda size: b'"' + b"\\ud800" * (size // 6) + b'"',
    "blanks": lambda size: b" " * size,
    "one key": lambda size: b"{" + b'"a":1,' * (size // 6) + b'"a":1}',
    "keys": lambda size: b"{" + b",".join(b'"k%d":1' % n for n in range(size // 10)) + b"}",
    "null bytes": lambda size: b"\0" * size,
    "bytes": lambda size: b"\xff" * size,
    "a long line": lambda size: b"a" * size,
    "lines": lambda size: b"\n" * size,
    "bars": lambda size: b"|" * size,
    "lines of bars": lambda size: b"|||||||||\n" * (size // 10),
    "commas": lambda size: b"," * size,
    "blank lines and words": lambda size: b"a|b|c|d\n\n" * (size // 9),
}
"""Input that is not a cluster."""


@cache
def _config() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((CLUSTERS / "full" / "config.data").read_bytes())
    return value


@cache
def _snapshot() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_bytes())
    return value


def _filled(whole: dict[str, Any], path: tuple[str, ...], size: int, item: Callable[[int], Any] | None = None) -> bytes:
    """Return `whole` with as many copies of the first entry at `path` as the size allows, or of `item`."""
    whole = copy.deepcopy(whole)
    holder: Any = whole
    for step in path[:-1]:
        holder = holder.setdefault(step, {})
    entries = holder.get(path[-1])
    first = next(iter(entries.values() if isinstance(entries, dict) else entries), None) if entries else None
    made: list[Any] = []
    length = 0
    while length < size:
        made.append(item(len(made)) if item else _renamed(first, len(made)))
        length += len(json.dumps(made[-1])) + 8
    if isinstance(entries, list) or item:
        holder[path[-1]] = made
    else:
        for number, value in enumerate(made):
            holder[path[-1]][value.get("uuid", f"x{number}.example.org")] = value
    return json.dumps(whole).encode()


def _renamed(value: Any, number: int) -> Any:
    value = copy.deepcopy(value)
    if isinstance(value, dict):
        for key in ("name", "uuid"):
            if key in value:
                value[key] = f"x{number}.example.org"
    return value


def _pair(number: int) -> dict[str, Any]:
    low = {"memory-size": number + 1, "cpu-count": 1, "disk-size": 1, "disk-count": 1, "nic-count": 1, "spindle-use": 1}
    return {"min": low, "max": {key: value + 1000 for key, value in low.items()}}


CONFIGS: Final[dict[str, Bytes]] = {
    "nodes": lambda size: _filled(_config(), ("nodes",), size),
    "instances": lambda size: _filled(_config(), ("instances",), size),
    "groups": lambda size: _filled(_config(), ("nodegroups",), size),
    "disks": lambda size: _filled(_config(), ("disks",), size),
    "tags": lambda size: _filled(_config(), ("cluster", "tags"), size, lambda n: f"htools:iextags:t{n}"),
    "pairs": lambda size: _filled(_config(), ("cluster", "ipolicy", "minmax"), size, _pair),
    "user ids": lambda size: _filled(_config(), ("cluster", "uid_pool"), size, lambda n: [n, n + 1]),
    "reserved volumes": lambda size: _filled(_config(), ("cluster", "reserved_lvs"), size, lambda n: f"(a+)+{n}$"),
    "unknown parameters": lambda size: json.dumps(
        {**_config(), "cluster": {**_config()["cluster"], "hvparams": {f"h{n}": {"a": 1} for n in range(size // 20)}}}
    ).encode(),
    "unknown keys": lambda size: json.dumps({**_config(), **{f"k{n}": [n] for n in range(size // 14)}}).encode(),
    "a long name": lambda size: json.dumps(
        {**_config(), "cluster": {**_config()["cluster"], "cluster_name": "x" * size}}
    ).encode(),
}


def _tagged(size: int) -> bytes:
    whole = copy.deepcopy(_snapshot())
    whole["cluster"]["tags"] = [f"htools:iextags:s{n}:" for n in range(size // 60)]
    whole["instances"]["web1.example.org"]["tags"] = [f"s{n}:x" for n in range(size // 30)]
    whole["instances"]["web2.example.org"]["tags"] = [f"s{n}:x" for n in range(size // 60)]
    return json.dumps(whole).encode()


def _domains(size: int) -> bytes:
    whole = copy.deepcopy(_snapshot())
    whole["cluster"]["tags"] = [
        f"htools:{kind}:r{n}" for n in range(size // 160) for kind in ("nlocation", "migration")
    ]
    for node in whole["nodes"].values():
        node["tags"] = [f"r{n}:x" for n in range(size // 160)]
    return json.dumps(whole).encode()


SNAPSHOTS: Final[dict[str, Bytes]] = {
    "nodes": lambda size: _filled(_snapshot(), ("nodes",), size),
    "instances": lambda size: _filled(_snapshot(), ("instances",), size),
    "groups": lambda size: _filled(_snapshot(), ("groups",), size),
    "tags": lambda size: _filled(_snapshot(), ("cluster", "tags"), size, lambda n: f"htools:iextags:t{n}"),
    "node tags": lambda size: _filled(
        _snapshot(), ("nodes", "node1.example.org", "tags"), size, lambda n: f"rack:t{n}"
    ),
    "exclusion and instance tags": _tagged,
    "pairs": lambda size: _filled(_snapshot(), ("cluster", "own", "ipolicy", "minmax"), size, _pair),
    "pairs of a group": lambda size: _filled(
        _snapshot(), ("groups", "dedicated", "own", "ipolicy", "minmax"), size, _pair
    ),
    "disks": lambda size: _filled(
        _snapshot(),
        ("instances", "web1.example.org", "disks"),
        size,
        lambda n: {"size": 1024 + n, "template": "drbd", "spindles": None},
    ),
    "notes": lambda size: _filled(_snapshot(), ("notes",), size, lambda n: f"note {n}"),
    "unreadable": lambda size: _filled(
        _snapshot(), ("unreadable",), size, lambda n: {"object": f"o{n}", "path": ["a"], "reason": "x"}
    ),
    "domains of nodes": _domains,
}


def _numbers(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _numbers(below, (*place, key))
    elif isinstance(value, list):
        for number, below in enumerate(value[:1]):
            yield from _numbers(below, (*place, number))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


ABSURD: Final[tuple[Any, ...]] = (
    2**62, 2**63, -1, -(2**62), 0, 1e308, -1e308, 1e-308, 99999, 100_001, 2**31, 10**400, "1", None, 0.5, True,
)  # fmt: skip


def absurd_snapshots() -> Iterator[tuple[str, bytes]]:
    """Yield the snapshot of the example with each of its numbers, one of a kind, replaced by absurd ones."""
    whole = _snapshot()
    seen: set[tuple[Any, ...]] = set()
    for place in _numbers(whole):
        kind = tuple(
            "*" if place[0] in ("nodes", "instances", "groups") and n == 1 else step for n, step in enumerate(place)
        )
        if kind in seen or "identity" in kind:
            continue
        seen.add(kind)
        for value in ABSURD:
            changed = copy.deepcopy(whole)
            holder: Any = changed
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = value
            yield f"{'.'.join(map(str, place))} = {value!r:.20}", json.dumps(changed).encode()


# --- htools' text ---------------------------------------------------------------------------------------------------


@cache
def _text() -> list[list[str]]:
    text = (CLUSTERS / "full" / "htools.data").read_text(encoding="utf-8")
    return [section.split("\n") for section in text.rstrip("\n").split("\n\n")]


def _section(place: int, size: int) -> bytes:
    sections = [list(section) for section in _text()]
    line = sections[place][0].split("|")
    number = 0
    while sum(map(len, sections[place])) < size and number < size:
        count = max(1, size // (len("|".join(line)) + 6))
        sections[place] += [
            "|".join(
                [
                    f"x{number + n}",
                    *([f"uuid{number + n}"] if place == 0 else [line[1]] if len(line) > 1 else []),
                    *line[2:],
                ]
            )
            for n in range(count)
        ]
        number += count
    return ("\n\n".join("\n".join(section) for section in sections) + "\n").encode()


def _cell(place: int, column: int, cell: str) -> bytes:
    sections = [list(section) for section in _text()]
    line = sections[place][0].split("|")
    line[column] = cell
    sections[place][0] = "|".join(line)
    return ("\n\n".join("\n".join(section) for section in sections) + "\n").encode()


def _long_cell(place: int, column: int, letters: str, size: int) -> bytes:
    return _cell(place, column, letters * (size // len(letters)))


TEXTS: Final[dict[str, Bytes]] = {
    "groups": lambda size: _section(0, size),
    "nodes": lambda size: _section(1, size),
    "instances": lambda size: _section(2, size),
    "tags": lambda size: _section(3, size),
    "policies": lambda size: _section(4, size),
    **{
        f"{what} {name}": partial(_long_cell, place, column, letters)
        for what, place, column in (
            ("a group's policy:", 0, 2),
            ("a group's tags:", 0, 3),
            ("a node's memory:", 1, 1),
            ("a node's tags:", 1, 9),
            ("an instance's memory:", 2, 1),
            ("an instance's status:", 2, 4),
            ("an instance's tags:", 2, 8),
            ("a policy's std:", 4, 1),
            ("a policy's pairs:", 4, 2),
            ("a policy's templates:", 4, 3),
            ("a policy's ratio:", 4, 4),
        )
        for name, letters in (
            ("digits", "9"),
            ("commas", "1,"),
            ("semicolons", "1,1,1,1,1,1;"),
            ("tabs", "\t"),
            ("letters", "a"),
            ("newlines", "\r"),
            ("dots", "1."),
        )
    },
}


def absurd_texts() -> Iterator[tuple[str, bytes]]:
    """Yield htools' text of a cluster with each of its cells replaced by absurd ones."""
    for place, section in enumerate(_text()):
        for column in range(len(section[0].split("|"))):
            for cell in (
                "9" * 5000,
                "-1",
                "1e308",
                "NaN",
                "Infinity",
                str(2**62),
                str(2**64),
                "0",
                "0.5",
                "1e-320",
                "100001",
                "",
                "Y",
                "-9" * 40,
            ):
                yield f"section {place} column {column} = {cell:.12}", _cell(place, column, cell)
