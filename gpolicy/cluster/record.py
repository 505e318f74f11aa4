"""Typed access to the fields of a JSON object, and the bounds of untrusted input."""

from __future__ import annotations

from enum import StrEnum

from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import ClassVar, Final, NoReturn, TypeVar

    from gpolicy.ganeti.vocabulary import Value

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
LARGEST_NUMBER = 2**63  # the limit of Ganeti's own daemons


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
        if abs(value) >= LARGEST_NUMBER:
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
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) >= LARGEST_NUMBER:
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
