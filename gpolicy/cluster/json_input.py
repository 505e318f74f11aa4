"""Text and JSON from files, programs and servers, read with bounds; typed access to the fields of an object.

Every error is an `InputError` with the place. Input is never trusted: `Record` checks the type of each field.
"""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path

from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Value
from gpolicy.light_dataclasses import dataclass
from gpolicy.opening import OutsideError, path_meant, read_named, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import ClassVar, Final, NoReturn, TypeVar


    _Word = TypeVar("_Word", bound=StrEnum)

LARGEST_FILE: Final = 128 * 1024**2
"""Bytes: about five times the configuration of the largest known Ganeti clusters."""

MOST_VALUES: Final = 10_000_000
"""Of one text. They take up to about 1 GB; a cluster of 20,000 instances has two and a half million."""

_VALUE_ENDS: Final = ",:|[{\n"  # at least one for each value, in JSON, lines and columns

LONGEST_QUOTE: Final = 60
JOB_RUNS: Final = frozenset({"queued", "waiting", "canceling", "running"})
"""What Ganeti says of a job that has not ended."""
_LONGEST_JOB_NUMBER: Final = 18  # digits
_LARGEST_NUMBER = 2**63  # the limit of Ganeti's own daemons


def shown(text: str) -> str:
    """Return `text` fit for a message: short, on one line, without control characters."""
    cut = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"
    return cut if cut.isprintable() else repr(cut)


def refuse_too_many_values(text: str, where: str) -> None:
    """Raise InputError, which begins with `where`, if `text` may hold more than MOST_VALUES values."""
    if len(text) > MOST_VALUES and sum(map(text.count, _VALUE_ENDS)) > MOST_VALUES:
        raise InputError(f"{where}: more than {MOST_VALUES:,} values; no cluster has so many")


_KINDS: Final = {type(None): "null", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}


def kind_of(value: Value) -> str:
    """Return the name of a JSON value's type."""
    return str(value).lower() if isinstance(value, bool) else _KINDS[type(value)]


def job_number(value: Value) -> int | None:
    """Return the number of a job, which Ganeti writes as a number or as text; None for anything else."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _LONGEST_JOB_NUMBER:
        return int(text)
    return None


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object whose fields are read by type; `where` begins every message.

    The methods raise InputError when a field is missing or of another type. Those that end in `_or_none` give
    None for a field that is missing or null, and so do lists and mappings give empty ones, if `absent_is_empty`.
    """

    where: str
    fields: dict[str, Value]

    absent_is_empty: ClassVar[bool] = True

    @classmethod
    def of(cls, value: Value, where: str) -> Record:
        """Return `value` as a record."""
        if not isinstance(value, dict):
            raise InputError(f"{where}: should be a mapping, but is {kind_of(value)}")
        return cls(where, value)

    def refuse(self, key: str, wanted: str, found: str = "") -> NoReturn:
        """Raise InputError: the field is not `wanted`, but `found`, or what its type tells."""
        found = found or (f"is {kind_of(self.fields[key])}" if key in self.fields else "is missing")
        raise InputError(f"{self.where}: {key} should be {wanted}, but {found}")

    def text(self, key: str) -> str:
        """Return a field of text."""
        value = self.fields.get(key)
        if not isinstance(value, str):
            self.refuse(key, "text")
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return a field of text, or None."""
        return None if self.fields.get(key) is None else self.text(key)

    def name(self, key: str) -> str:
        """Return a field of text that is not empty."""
        value = self.text(key)
        if not value:
            raise InputError(f"{self.where}: {key} is empty")
        return value

    def whole(self, key: str) -> int:
        """Return a field that is a whole number."""
        value = self.fields.get(key)
        if isinstance(value, float) and value.is_integer():  # some writers print 4 as 4.0
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(key, "a whole number")
        if abs(value) >= _LARGEST_NUMBER:
            raise InputError(f"{self.where}: {key} is too large a number")
        return value

    def whole_or_none(self, key: str) -> int | None:
        """Return a field that is a whole number, or None."""
        return None if self.fields.get(key) is None else self.whole(key)

    def number_or_none(self, key: str) -> float | None:
        """Return a field that is a number, or None."""
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) >= _LARGEST_NUMBER:
            self.refuse(key, "a number")
        return float(value)

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        """Return a field that is true or false; `default` if it is missing or null."""
        value = self.fields.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def flag_or_none(self, key: str) -> bool | None:
        """Return a field that is true or false, or None."""
        return None if self.fields.get(key) is None else self.flag(key)

    def items(self, key: str) -> list[Value]:
        """Return a field that is a list."""
        value = self.fields.get(key)
        if value is None and self.absent_is_empty:
            return []
        if not isinstance(value, list):
            self.refuse(key, "a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a field that is a list of text."""
        found: list[str] = []
        for item in self.items(key):
            if not isinstance(item, str):
                self.refuse(key, "a list of text", f"holds {kind_of(item)}")
            found.append(item)
        return tuple(found)

    def choice(self, key: str, words: type[_Word]) -> _Word:
        """Return a field that is one of the words of an enumeration."""
        word = self.text(key)
        if word not in set(words):
            self.refuse(key, f"one of {', '.join(words)}", f"is {shown(word)!r}")
        return words(word)

    def objects(self, key: str) -> list[Record]:
        """Return a field that is a list of mappings."""
        return [Record.of(item, f"{self.where}: {key}") for item in self.items(key)]

    def tags(self) -> frozenset[str]:
        """Return the field `tags`."""
        return frozenset(self.texts("tags"))

    def record(self, key: str) -> Record:
        """Return a field that is a mapping."""
        value = self.fields.get(key)
        if value is None and not self.absent_is_empty:
            self.refuse(key, "a mapping")
        return self.of({} if value is None else value, f"{self.where}: {key}")

    def records(self, key: str) -> Iterator[tuple[str, Record]]:
        """Yield the keys and values of a field that is a mapping of mappings."""
        for name, value in self.record(key).fields.items():
            yield name, Record.of(value, f"{self.where}: {key}: {shown(name)}")


_DEEPEST = 100  # levels; Ganeti's own JSON has a dozen


def read_bytes(path: Path, *, limit: int = LARGEST_FILE) -> bytes:
    """Return the content of the file. Raise InputError if it cannot be read or has more than `limit` bytes."""
    try:
        return read_named(path, limit)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint=path_meant(path)) from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, not a file") from None
    except PermissionError:
        raise InputError(f"{path}: permission denied", hint="read it as the user that owns it") from None
    except OutsideError as error:
        raise InputError(f"{path}: {error}", hint="name its target instead if you trust it") from None
    except OSError as error:
        said = "not a file name" if "\0" in str(path) else reason(error)
        raise InputError(f"{str(path)!r}: {said}") from None


def decode_text(data: bytes, where: str) -> str:
    """Return `data` as text. Raise InputError if it is binary, or has more than MOST_VALUES values."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not text (byte {error.start} is not UTF-8)") from None
    if "\0" in text:
        raise InputError(f"{where}: not text (null byte at {text.index(chr(0))})")
    refuse_too_many_values(text, where)
    return text


def parse_json(data: bytes, where: str) -> Value:
    """Return the JSON value that `data` holds. Raise InputError that begins with `where`.

    NaN, infinite numbers, numbers with thousands of digits, excessive nesting and text that cannot be printed are
    refused, and a mapping with a duplicate key: another reader may take the other value.
    """
    text = decode_text(data, where)
    if not text.strip():
        raise InputError(f"{where}: empty")
    try:
        value: Value = json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_unique)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        cut = " (is the file complete?)" if error.pos >= len(text.rstrip()) - 1 else ""
        raise InputError(f"{where}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}{cut}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError(f"{where}: holds an unpaired surrogate, which is not valid text") from None
    except ValueError as error:
        reason = str(error) if isinstance(error, _RefusedError) else "holds a number with thousands of digits"
        raise InputError(f"{where}: {reason}") from None
    if _is_deeper_than(_DEEPEST, value):
        raise InputError(f"{where}: nested too deeply")
    return value


_NESTED = frozenset({dict, list})


def _is_deeper_than(limit: int, value: Value) -> bool:
    """Return whether lists and mappings are nested in more than `limit` levels. If not, recursion is safe."""
    level = [value]
    for _ in range(limit):  # of what the parser made, each is of one of its own types
        below: list[Value] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = [item for item in below if item.__class__ in _NESTED]
        if not level:
            return False
    return True


class _RefusedError(ValueError):
    """Raised by the hooks of `json.loads`; the message says why."""


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(f"holds the key {shown(key)!r} twice in one mapping")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if text in ("NaN", "Infinity", "-Infinity"):
        raise _RefusedError(f"holds {text}, which is not a JSON number")
    if not math.isfinite(number):
        raise _RefusedError(f"holds the number {text[:LONGEST_QUOTE]}, which is too large")
    return number
