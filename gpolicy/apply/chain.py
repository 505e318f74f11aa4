"""Lines of JSON that form a chain: each ends with a checksum over itself and the checksum of the line before it.

A line that is lost, changed or out of order breaks the chain. A last line that was cut short (the machine went down
while it was written) says nothing: the run that comes next ends it with a remark and begins behind it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Value

BEGIN: Final = "begin"
"""The event with which each run begins, in every journal."""

DISTRUSTED: Final = "gpolicy does not trust it: move it away, look at the cluster, and make a fresh plan"
"""The hint for a journal that cannot be believed."""

_CHECKSUM: Final = re.compile(rb', "chain": "([0-9a-f]{64})"\}$')
_CUT_SHORT: Final = b" (cut short)"  # ends a line that was not written to its end; no event ends like this


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """Where a chain goes on: behind `ending`, which ends a line that was cut short, and from `checksum`."""

    ending: bytes = b""
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """The events of a journal, at least one, and where it goes on."""

    events: tuple[Record, ...]
    end: ChainEnd


def event_line(name: StrEnum, fields: Mapping[str, Value], before: str) -> tuple[bytes, str]:
    """Return an event as one line, and its checksum; `before` is that of the line before it, empty for the first."""
    text = json.dumps({"event": name.value, **fields}, ensure_ascii=True, allow_nan=False).encode()
    checksum = _checksum(text, before)
    return text[:-1] + f', "chain": "{checksum}"}}\n'.encode(), checksum


def _checksum(text: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()


def read_chain(data: bytes, where: str, right_format: Callable[[Record], None]) -> Chain:
    """Return the events in the content of a journal.

    Raise InputError, which begins with `where`, for one that is damaged, empty, or begins with another event than
    `BEGIN`; `right_format` raises it for a journal of another format.
    """
    events: list[Record] = []
    checksum, ending = "", b""
    cut_short = False
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        place = f"{where}:{number}"
        if line.endswith(_CUT_SHORT):
            cut_short = True
            continue
        event = _event(line, checksum, place, None if events else right_format)
        if event is None or (cut_short and event.fields.get("event") != BEGIN):
            raise _damaged(place)
        cut_short = False
        events.append(event)
        checksum = event.text("chain")
    if rest:
        place = f"{where}:{len(lines) + 1}"
        event = _event(rest, checksum, place, None if events else right_format)
        if event is not None:  # only the end of the line is missing
            events.append(event)
            checksum, ending = event.text("chain"), b"\n"
        elif _event(rest[:-1], checksum, place, None) is not None:
            raise _damaged(place)
        else:
            ending = _CUT_SHORT + b"\n"
    if not events:
        raise InputError(f"{where}: holds no event of a journal", hint=DISTRUSTED)
    if events[0].fields.get("event") != BEGIN:
        raise InputError(f"{where}:1: a journal should begin with the event {BEGIN}")
    return Chain(tuple(events), ChainEnd(ending, checksum))


def is_before_begin(data: bytes) -> bool:
    """Return whether the content of a journal ends within its first event: what this announces has not begun."""
    start = f'{{"event": "{BEGIN}", '.encode()
    is_cut = data.startswith(start) or start.startswith(data)
    return is_cut and b"\n" not in data and not any(_event(line, "", "", None) for line in (data, data[:-1]))


def _damaged(place: str) -> InputError:
    return InputError(
        f"{place}: the journal is damaged: this line was changed, or lines before it are lost or out of order",
        hint=DISTRUSTED,
    )


def _event(line: bytes, before: str, place: str, right_format: Callable[[Record], None] | None) -> Record | None:
    """Return the event in a line; None for one that is not as it was written behind the lines before it."""
    found = _CHECKSUM.search(line)
    try:
        event = Record.of(parse_json(line, place), place)
    except InputError:
        return None
    if right_format is not None and event.fields.get("event") == BEGIN:
        right_format(event)
    if found is None or found[1].decode() != _checksum(line[: found.start()] + b"}", before):
        return None
    return event
