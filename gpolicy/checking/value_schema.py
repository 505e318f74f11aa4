"""What of values JSON Schemas (draft 7) of strangers forbid, told by a process with limits.

The keywords are those of the Rule kind's own schema (`schemas/rule.json`), which the document conforms to.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.cluster.process import after, end, start
from gpolicy.errors import UnreachableError
from gpolicy.policy.conformance import Schema
from gpolicy.policy.source_file import Pointer

SECONDS: Final = 5
"""Of processor time that one schema may take; 500 values add one."""
MOST_SECONDS: Final = 20
"""Of processor time that all schemas of one policy may take, with what is made of their breaches."""
BREACHES_A_SECOND: Final = 1000
_PATIENCE: Final = 60  # seconds of the clock, and ten for one of processor time
_PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; import gpolicy.checking.schema_worker as w; w.serve()"
_workers: dict[tuple[int, int], subprocess.Popen[bytes]] = {}
"""The process that judges for each process and thread of gpolicy, to its end."""

SCHEMAS: Final = ("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else")
REFERENCE: Final = "#/definitions/"
_PLAINER: Final = "write a plainer one"
# bool comes before int, which it is, too
_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
_DEFINE: Final = "write it below `definitions` of the schema"


@dataclass(frozen=True, slots=True)
class Breach:
    """A part of a value, at `path`, that a keyword of the schema with this argument forbids."""

    path: Pointer
    keyword: str
    argument: Any
    value: Any


SchemaMistake = tuple[Pointer, str, str]
"""A place in a schema, what is wrong there so that the schema is useless, and what to do."""
Judgement = tuple[list[SchemaMistake], list[tuple[int, Breach]]]
"""What is wrong with a schema, or else what breaks it, each with the number of its value."""


def never_is(kind: str, constant: Any) -> str:
    """Return what to write in place of a constant that no value of a kind is; nothing if a value may be it."""
    if kind in ("", _kind_of(constant) or kind):
        return ""
    with suppress(ValueError):
        if isinstance(constant, str) and _kind_of(json.loads(constant)) == kind:
            return f"write {constant} without quotes"
    return f"write {kind}"


def _kind_of(value: Any) -> str:
    """Return what kind of value one is, as house_rules.toml calls it; nothing for null."""
    return next((word for form, word in _KINDS.items() if isinstance(value, form)), "")


def children(schema: Schema) -> Iterator[tuple[Pointer, Any]]:
    """Yield the schemas directly inside one, with their places."""
    yield from (((keyword,), schema[keyword]) for keyword in SCHEMAS if keyword in schema)
    for keyword in ("properties", "patternProperties", "definitions"):
        yield from (((keyword, name), below) for name, below in schema.get(keyword, {}).items())
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from (((keyword, index), below) for index, below in enumerate(schema.get(keyword, ())))


def _inside(schema: Any, place: Pointer = ()) -> Iterator[tuple[Pointer, Schema]]:
    """Yield a schema and all in it, with their places."""
    if isinstance(schema, dict):
        yield place, schema
        for step, below in children(schema):
            yield from _inside(below, (*place, *step))


def judge(values: Sequence[Any], questions: Iterable[tuple[Schema, Sequence[int]]]) -> Iterator[Judgement]:
    """Yield what is wrong with each schema, or with the values of these numbers, until all are too much together."""
    left: float = MOST_SECONDS
    told = None
    for schema, numbers in questions:
        known, patterns = schema.get("definitions", {}), list[tuple[Pointer, str]]()
        mistakes, breaches = list[SchemaMistake](), list[tuple[int, Breach]]()
        for place, found in _inside(schema):
            patterns += [((*place, "pattern"), found["pattern"])] if "pattern" in found else []
            patterns += [((*place, "patternProperties", text), text) for text in found.get("patternProperties", ())]
            if (name := found.get("$ref", "").removeprefix(REFERENCE)) and name not in known:
                hint = f"the definitions are {', '.join(known)[:200]}" if known else _DEFINE
                mistakes.append(((*place, "$ref"), f"there is no definition {name!r}", hint))
        if not mistakes and (patterns or numbers):
            if left <= 0:
                return
            seconds, worker = SECONDS + len(numbers) // 500, _worker()
            question = {"schema": schema, "patterns": patterns, "numbers": numbers, "seconds": seconds}
            answer = _answer(worker, [question] if worker is told else [values, question], _PATIENCE + seconds * 10)
            wrong, broken, taken = answer or ([], None, seconds)
            told, left = worker, left - taken - len(broken or ()) / BREACHES_A_SECOND
            for at, text, why in wrong:
                mistakes.append((tuple(at), f"the pattern {text[:60]!r} cannot be used: {why}", _PLAINER))
            if broken is None:
                mistakes.append(((), "its schema takes too much time, memory or depth", _PLAINER))
            breaches = [(number, Breach(tuple(path), *rest)) for number, path, *rest in broken or ()]
        yield mistakes, breaches


def _answer(worker: subprocess.Popen[bytes], lines: Iterable[Any], patience: int) -> Any:
    """Return what a worker says to the last of these lines; None if that is too much: then the worker ends."""
    assert worker.stdin is not None  # noqa: S101 (is a pipe)
    assert worker.stdout is not None  # noqa: S101 (too)
    answer = b""
    try:
        with after(patience, worker.kill), suppress(OSError):
            worker.stdin.writelines(json.dumps(line).encode() + b"\n" for line in lines)
            worker.stdin.flush()
            answer = worker.stdout.readline()
    finally:
        if not answer.endswith(b"\n"):
            end(worker)
    return json.loads(answer) if answer.endswith(b"\n") else None


def _worker() -> subprocess.Popen[bytes]:
    """Return the process that judges for this thread. Raise UnreachableError if it cannot begin."""
    here = os.getpid(), threading.get_ident()
    if here not in _workers or _workers[here].poll() is not None:
        argv = [sys.executable, "-I", "-c", _PROGRAM, *filter(None, sys.path)]
        worker = start(argv, {}, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if worker.stdout is None or not worker.stdout.readline():
            end(worker)
            raise UnreachableError("the process that judges by house rules cannot begin")
        _workers[here] = worker
    return _workers[here]


@atexit.register
def _end_all() -> None:
    for worker in _workers.values():
        end(worker)
