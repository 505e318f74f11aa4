"""Typed access to JSON objects, with the error texts of Ganeti's JSON module."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from gpolicy.allocator.cluster_data import Policy, Spec, SpecPair
from gpolicy.errors import InputError
from gpolicy.htools.haskell_text import shown_strings
from gpolicy.htools.text_values import alloc_policy, disk_template, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpolicy.allocator.enumerations import AllocPolicy, DiskTemplate

_SMALL = 2**62
"""Integers below this need no rounding or wrapping."""

Json = Any
"""A value as `json.loads` returns it."""


def parse_json(what: str, text: str) -> Json:
    """Parse `text`; `what` names the document in the error."""

    def refuse(token: str) -> NoReturn:
        raise InputError(f"Parsing {what}: Malformed JSON: invalid token in this context {token}")

    stripped = text.lstrip()
    if not stripped.startswith(("{", "[")):
        raise InputError(f"Parsing {what}: Invalid JSON: a JSON text a serialized object or array at the top level.")
    try:
        value, end = json.JSONDecoder(parse_constant=refuse).raw_decode(stripped)
    except json.JSONDecodeError as error:
        # our own text: the original shows the rest of the document here
        raise InputError(f"Parsing {what}: Malformed JSON: {error}") from None
    except (RecursionError, ValueError):
        raise InputError(f"Parsing {what}: Malformed JSON: too deep, or a number too long") from None
    rest = stripped[end:].strip()
    if rest:
        raise InputError(f"Parsing {what}: Invalid tokens at end of JSON string: {json.dumps(rest)}")
    return value


def as_int(value: Json) -> int:
    """Return a number as htools reads an Int: rounded half to even, 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("Unable to read Int")
    return wrapped(round(value)) if value == value and abs(value) != float("inf") else 0  # noqa: PLR0124


def as_float(value: Json) -> float:
    """Return a number as a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError("Unable to read Double")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def as_text(value: Json) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise InputError("Unable to read String")
    return value


def as_bool(value: Json) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise InputError("Unable to read Bool")
    return value


def as_object(value: Json) -> dict[str, Json]:
    """Return an object."""
    if not isinstance(value, dict):
        raise InputError("Unable to read JSObject")
    return value


def as_list(value: Json) -> list[Json]:
    """Return a list."""
    if not isinstance(value, list):
        raise InputError("Unable to read list")
    return value


def as_texts(value: Json) -> tuple[str, ...]:
    """Return a list of strings."""
    return tuple(as_text(item) for item in as_list(value))


def plain_object(value: Json) -> dict[str, Json]:
    """Return an object, where htools' message has no context."""
    if not isinstance(value, dict):
        raise InputError("not an object")
    return value


class Fields(NamedTuple):
    """An object whose values are read one by one; `prefix` begins every message."""

    values: dict[str, Json]
    prefix: str = ""

    def get(self, key: str, convert: Callable[[Json], Any]) -> Any:
        """Return the converted value. Raises InputError if it is missing or of the wrong type."""
        if key not in self.values:
            raise InputError(f"{self.prefix}key '{key}' not found, object contains only {shown_strings(self.values)}")
        try:
            return convert(self.values[key])
        except InputError as error:
            raise InputError(f"{self.prefix}key '{key}': {error}") from None

    def optional(self, key: str, convert: Callable[[Json], Any], default: Any) -> Any:
        """Return the converted value, `default` if it is missing or null; messages lack the prefix."""
        value = self.values.get(key)
        if value is None:
            return default
        try:
            return convert(value)
        except InputError as error:
            raise InputError(f"key '{key}': {error}") from None

    def optional_text(self, key: str) -> str | None:
        """Return a string, None if it is missing or null."""
        found = self.values.get(key)
        value: str | None = found if found is None or type(found) is str else self.optional(key, as_text, None)
        return value

    def text(self, key: str) -> str:
        """Return a string."""
        found = self.values.get(key)
        value: str = found if type(found) is str else self.get(key, as_text)
        return value

    def integer(self, key: str) -> int:
        """Return an integer."""
        found = self.values.get(key)
        if type(found) is int and -_SMALL < found < _SMALL:
            return found  # the common case
        value: int = self.get(key, as_int)
        return value

    def number(self, key: str) -> float:
        """Return a double."""
        found = self.values.get(key)
        value: float = found if type(found) is float else self.get(key, as_float)
        return value

    def boolean(self, key: str) -> bool:
        """Return a truth value."""
        found = self.values.get(key)
        value: bool = found if found is True or found is False else self.get(key, as_bool)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        if self.values.get(key) == []:
            return ()
        value: tuple[str, ...] = self.get(key, as_texts)
        return value

    def object(self, key: str) -> dict[str, Json]:
        """Return an object."""
        value: dict[str, Json] = self.get(key, as_object)
        return value


def _inner(who: str, convert: Callable[[Json], Any]) -> Callable[[Json], Any]:
    def read(value: Json) -> Any:
        try:
            return convert(value)
        except InputError as error:
            raise InputError(f"Can't parse value for '{who}': {error}") from None

    return read


class _Nested(NamedTuple):
    """An object inside a policy: values of a wrong type are reported as values that cannot be parsed."""

    values: dict[str, Json]

    def get(self, key: str, convert: Callable[[Json], Any]) -> Any:
        if key not in self.values:
            raise InputError(f"key '{key}' not found, object contains only {shown_strings(self.values)}")
        return _inner(key, convert)(self.values[key])


def as_disk_template(value: Json) -> DiskTemplate:
    """Return a disk template."""
    return disk_template(value if type(value) is str else _inner("DiskTemplate", as_text)(value))


def as_alloc_policy(value: Json) -> AllocPolicy:
    """Return an allocation policy."""
    text: str = _inner("AllocPolicy", as_text)(value)
    return alloc_policy(text)


def as_policy(value: Json) -> Policy:
    """Return an instance policy in Ganeti's JSON form."""
    fields = _Nested(as_object(value))
    return Policy(
        minmax=fields.get("minmax", _pairs),
        std=fields.get("std", _spec),
        templates=fields.get("disk-templates", lambda names: tuple(as_disk_template(name) for name in as_list(names))),
        vcpu_ratio=fields.get("vcpu-ratio", as_float),
        spindle_ratio=fields.get("spindle-ratio", as_float),
    )


def _pairs(value: Json) -> tuple[SpecPair, ...]:
    pairs = [_Nested(as_object(item)) for item in as_list(value)]
    return tuple(SpecPair(min=pair.get("min", _spec), max=pair.get("max", _spec)) for pair in pairs)


def _spec(value: Json) -> Spec:
    fields = _Nested(as_object(value))
    return Spec(
        memory=fields.get("memory-size", as_int),
        cpus=fields.get("cpu-count", as_int),
        disk_size=fields.get("disk-size", as_int),
        disk_count=fields.get("disk-count", as_int),
        nic_count=fields.get("nic-count", as_int),
        spindle_use=fields.get("spindle-use", as_int),
    )
