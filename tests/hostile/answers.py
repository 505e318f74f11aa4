"""Hostile answers of programs and servers, plans, journals and command lines; each maker takes a size in bytes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from tests.hostile import sound_inputs, states
from tests.hostile.policies import listed

Files = dict[str, Any]
Maker = Callable[[int], Files]

FULL: Final = states.CLUSTERS / "full"

# --- gnt-* programs -------------------------------------------------------------------------------------------------

PROGRAMS: Final = ("gnt-node", "gnt-instance")
LISTS: Final = {"gnt-node": "node-list.txt", "gnt-instance": "instance-list.txt"}
MASTER: Final = {"PATH": "HOME/bin:/usr/bin:/bin", "GANETI_ROOTDIR": "HOME/root"}
"""The environment in which `local:` asks the programs in `bin`."""


def _said(program: str, says: Callable[[int, str], str], size: int) -> Files:
    """Return a master's files, with `program` saying what `says` makes of a recorded line."""
    files: Files = {"root/var/lib/ganeti/config.data": (FULL / "config.data").read_bytes()}
    for name in PROGRAMS:
        recorded = (FULL / LISTS[name]).read_text(encoding="utf-8")
        files[f"{name}.txt"] = says(size, recorded.splitlines()[0]) if name == program else recorded
        files[f"bin/{name}"] = f'#!/bin/sh\nexec /bin/cat "${{0%/bin/*}}/{name}.txt"\n'
    return files


def _cells(letters: str) -> Callable[[int, str], str]:
    """Return what fills the second cell of a line with a long text."""

    def says(size: int, line: str) -> str:
        name, _, *rest = line.split("|")
        return "|".join([name, letters * (size // len(letters)), *rest]) + "\n"

    return says


SAID: Final[dict[str, Callable[[int, str], str]]] = {
    "lines": lambda size, line: f"{line}\n" * (size // len(line)),
    "lines that differ": lambda size, line: "".join(f"n{number}{line}\n" for number in range(size // len(line))),
    "columns": lambda size, line: line + "|" * size + "\n",
    "breaks": lambda size, _: "\n" * size,
    "odd breaks": lambda size, _: "\u2028\r\x85" * (size // 6),
    "no break": lambda size, _: "a" * size,
    "digits": _cells("9"),
    "signs": _cells("-"),
    "blanks": _cells(" "),
}

LOCAL: Final[dict[str, Maker]] = {
    f"{program}: {what}": partial(_said, program, says) for program in PROGRAMS for what, says in SAID.items()
}

# --- the remote API -------------------------------------------------------------------------------------------------


def _deep(size: int) -> Any:
    value: Any = []
    for _ in range(min(size, 900)):
        value = [value]
    return value


def _grown(answer: Any, grow: Callable[[Any], Any]) -> Any:
    """Return an answer whose record, or whose records, are grown."""
    return [grow(record) for record in answer[:1]] if isinstance(answer, list) else grow(answer)


def _with_values(size: int, make: Callable[[int, Any], Any], answer: Any) -> Any:
    return _grown(answer, lambda record: {key: make(size // len(record), value) for key, value in record.items()})


def _of_same_type(size: int, value: Any) -> Any:
    """Return a value of the same type, and as large as the size allows."""
    match value:
        case bool() | None:
            return value
        case int():
            return int("9" * min(size, 4000))
        case str():
            return value + "a" * size
        case list():
            return (value or ["a"]) * max(1, size // max(3, len(json.dumps(value))))
        case dict():
            return {**value, **{f"k{number}": 1 for number in range(size // 12)}}
        case _:
            return 1e308


ANSWERS: Final[dict[str, Callable[[int, Any], Any]]] = {
    "records": lambda size, answer: (
        answer[:1] * (size // len(json.dumps(answer[0]))) if isinstance(answer, list) else answer
    ),
    "records that differ": lambda size, answer: (
        [
            {**answer[0], "name": f"x{number}", "uuid": f"u{number}"}
            for number in range(size // len(json.dumps(answer[0])))
        ]
        if isinstance(answer, list)
        else answer
    ),
    "large values": lambda size, answer: _with_values(size, _of_same_type, answer),
    "deep values": lambda size, answer: _with_values(size, lambda some, _: _deep(some), answer),
    "long names": lambda size, answer: _grown(answer, lambda record: {**record, "name": "a" * size}),
    "keys": lambda size, answer: _grown(
        answer, lambda record: {**record, **{f"k{number}": [] for number in range(size // 12)}}
    ),
    "lists": lambda size, _: [[] for _ in range(size // 3)],
    "a number": lambda _, __: 10**4000,
    "a text": lambda size, _: "a" * size,
}

# --- plans and journals ---------------------------------------------------------------------------------------------


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each place of a tree, once for the entries of a list, with its value."""
    if place:
        yield place, value
    if isinstance(value, dict):
        for key, below in list(value.items())[:40]:
            yield from _places(below, (*place, key))
    elif isinstance(value, list) and value:
        yield from _places(value[0], (*place, 0))


def grown_plans(size: int, part: int, parts: int) -> Iterator[bytes]:
    """Yield a plan with one of its values grown, and with one deep, for a part of the values."""
    whole = sound_inputs.plans()[0]
    for place, value in itertools.islice(_places(json.loads(whole)), part, None, parts):
        for new in (_of_same_type(size, value), _deep(size)):
            plan = json.loads(whole)
            holder: Any = plan
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = new
            yield json.dumps(plan).encode()


def journals(size: int) -> Iterator[bytes]:
    """Yield journals of many events of one kind, each line with a right checksum, and ones that are none."""

    def step(event: str, number: int) -> dict[str, Any]:
        return {
            "step": str(number) if event == "step-started" else "1", "mark": f"gpolicy-{number}", "job": number,
            "text": "a", "done": [], "serials": {}, "outcome": "failed",
        }  # fmt: skip

    for event in sound_inputs.event_names():
        yield b"".join(sound_inputs.journal_of((event, step(event, number)) for number in range(size // 240)))
    for part in (b"a", b"[", b"\n", b" (cut short)\n", b'{"event": ', b', "chain": "', b"\\"):
        yield part * (size // len(part)) + b"\n"


# --- tests of a policy ----------------------------------------------------------------------------------------------

_ON: Final = '    "on": {simulate: {nodes: %s, memory: %s, disk: %s, cpus: %s}}\n'
_HEAD: Final = "gpolicy: v1\nkind: Test\ntests:\n"


def _tests(on: str, asked: str) -> Maker:
    return lambda _: {"policy/policy.yaml": f"{_HEAD}  - name: t\n{on}{asked}"}


_CAPACITY: Final = "    capacity: {}\n    expect: {standard: 1}\n"
_SIZE: Final = "{memory-size: 1G, cpu-count: 1, disks: [1G], disk-template: drbd}"
_PLACE: Final = f"    place: {_SIZE}\n    expect: {{refused: false}}\n"
_LOSS: Final = "    redundancy: {failures: %s}\n    expect: {failing: []}\n"
TESTS: Final[dict[str, Maker]] = {
    "many tests": lambda size: {
        "policy/policy.yaml": listed(
            _HEAD, f"  - name: t%d\n{_ON % (3, '64G', '1T', 16)}{_PLACE}", size
        )
    },
    "many tests of capacity": lambda size: {
        "policy/policy.yaml": listed(
            _HEAD, f"  - name: t%d\n{_ON % (3, '64G', '1T', 16)}{_CAPACITY}", size
        )
    },
    **{
        f"{asked} on {nodes} nodes of {memory}, {cpus} CPUs": _tests(_ON % (nodes, memory, disk, cpus), text)
        for asked, text in (
            ("capacity", _CAPACITY), ("place", _PLACE), ("losses", _LOSS % 1), ("all losses", _LOSS % 99999),
        )
        for nodes, memory, disk, cpus in (
            (10_000, "64G", "1T", 16),
            (99_999_999_999, "64G", "1T", 16),
            (400, "1P", "1E", 8192),
            (3, "1024T", "1000000T", 8192),
            (3, "99999999999999T", "1T", 16),
        )
    },
}  # fmt: skip

# --- command lines --------------------------------------------------------------------------------------------------

LINES: Final[dict[str, tuple[str, ...]]] = {
    f"{' '.join(command)} {what}": (*command[:-1], command[-1] + text)
    for command in (
        ("capacity", "-s", "sim:"),
        ("place", "-s", "sim:p,3,2t,64g,16,4", ""),
        ("htools", "hspace", "--simulate="),
        ("htools", "hspace", "--simulate=p,3,2t,64g,16", "-l"),
        ("htools", "hspace", "--simulate=p,3,2t,64g,16", "--tiered-alloc="),
        ("htools", "hspace", "--simulate=p,3,2t,64g,16", "--max-cpu="),
    )
    for what, text in (
        ("digits", "9" * 100_000),
        ("commas", "," * 100_000),
        ("semicolons", "p,1,1,1,1;" * 10_000),
        ("tabs", "\t" * 100_000 + "x"),
        ("size and tabs", "p,1,1" + "\t" * 100_000 + "x"),
        ("many nodes", "p,60,2t,64g,16,4"),
        ("large nodes", "p,2,99999t,99999t,8192,9999"),
        ("words", "memory=" + "1" * 100_000),
        ("disks", "disk=" + "1G," * 30_000),
        ("minus", "-1"),
        ("a large number", str(2**62)),
    )
}
