"""Typed access to JSON objects, with the error texts of Ganeti's JSON module."""

from __future__ import annotations

import json
from collections.abc import Callable

from gpolicy.allocator.cluster_data import AllocPolicy, DiskTemplate, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.ghc_numbers import shown_strings
from gpolicy.cluster.record import Record, refuse_too_many_values
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import named, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import Enum
    from typing import Any, Final, NoReturn, TypeVar

    Item = TypeVar("Item")
    Member = TypeVar("Member", bound=Enum)
    Json = Any
    """A value as `json.loads` returns it."""
else:
    Json = object

_SMALL = 2**62
"""Integers below this need no rounding or wrapping."""

_TYPES: Final = {"text": "String", "a list of text": "String", "true or false": "Bool", "a list": "list"}
"""What Haskell calls the types of a `Record`."""

_HYPERVISORS: Final = {"kvm", "xen-pvm", "xen-hvm", "chroot", "lxc", "fake"}


def parse_json(what: str, text: str) -> Json:
    """Parse `text`; `what` names the document in the error."""

    def refuse(token: str) -> NoReturn:
        raise InputError(f"Parsing {what}: Malformed JSON: invalid token in this context {token}")

    refuse_too_many_values(text, f"Parsing {what}")
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
    if rest := stripped[end:].strip():
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


def _reader(kind: type[Item], refusal: str) -> Callable[[Json], Item]:
    """Return what returns a value of this kind, and refuses all others with these words."""

    def read(value: Json) -> Item:
        if not isinstance(value, kind):
            raise InputError(refusal)
        return value

    return read


as_text = _reader(str, "Unable to read String")
as_object = _reader(dict, "Unable to read JSObject")
as_list = _reader(list, "Unable to read list")
plain_object = _reader(dict, "not an object")
"""An object, where htools' message has no context."""


def as_texts(value: Json) -> tuple[str, ...]:
    """Return a list of strings."""
    return tuple(as_text(item) for item in as_list(value))


class Fields(Record):
    """A record as htools reads it: with its messages (`where` is their beginning, word for word) and its numbers.

    Lists and mappings must not be absent.
    """

    __slots__ = ()
    absent_is_empty = False

    def refuse(self, key: str, wanted: str, found: str = "") -> NoReturn:
        """Raise InputError: the field is missing, or not `wanted`."""
        if key not in self.fields:
            raise InputError(f"{self.where}key '{key}' not found, object contains only {shown_strings(self.fields)}")
        raise InputError(f"{self.where}key '{key}': {f'Unable to read {_TYPES[wanted]}' if wanted else found}")

    def get(self, key: str, convert: Callable[[Json], Any] = lambda value: value) -> Any:
        """Return the converted value. Raises InputError if it is missing or of the wrong type."""
        if key not in self.fields:
            self.refuse(key, "")
        try:
            return convert(self.fields[key])
        except InputError as error:
            self.refuse(key, "", str(error))

    def optional(self, key: str, convert: Callable[[Json], Any], default: Any) -> Any:
        """Return the converted value, `default` if it is missing or null; messages lack the beginning."""
        return default if self.fields.get(key) is None else Fields("", self.fields).get(key, convert)

    def whole(self, key: str) -> int:
        """Return a number as htools reads an Int."""
        found = self.fields.get(key)
        if type(found) is int and -_SMALL < found < _SMALL:
            return found  # the common case
        value: int = self.get(key, as_int)
        return value

    def number(self, key: str) -> float:
        """Return a double."""
        value: float = self.get(key, as_float)
        return value

    def record(self, key: str) -> Fields:
        """Return an object; messages about its fields begin as those about this one's."""
        return Fields(self.where, self.get(key, as_object))


def _text_for(who: str) -> Callable[[Json], str]:
    return _reader(str, f"Can't parse value for '{who}': Unable to read String")


class _Nested(Fields):
    """An object inside a policy: values of a wrong type are reported as values that cannot be parsed."""

    __slots__ = ()

    def refuse(self, key: str, wanted: str, found: str = "") -> NoReturn:
        if found:
            raise InputError(f"Can't parse value for '{key}': {found}")
        super().refuse(key, wanted)


def as_named(kind: type[Member], name: str) -> Callable[[Json], Member]:
    """Return what reads a member of `kind`, which htools calls `name`."""
    read = _text_for(name)
    return lambda value: named(kind, value if type(value) is str else read(value), name)


as_disk_template = as_named(DiskTemplate, "DiskTemplate")
as_alloc_policy = as_named(AllocPolicy, "AllocPolicy")


def as_hypervisor(value: Json) -> str:
    """Return the name of a hypervisor."""
    name = _text_for("Hypervisor")(value)
    if name not in _HYPERVISORS:
        raise InputError(f'Invalid string value for type Hypervisor: "{name}"')
    return name


def as_policy(value: Json) -> InstancePolicy:
    """Return an instance policy in Ganeti's JSON form."""
    fields = _Nested("", as_object(value))
    return InstancePolicy(
        minmax=fields.get("minmax", _as_pairs),
        std=fields.get("std", _as_spec),
        templates=fields.get("disk-templates", lambda names: tuple(as_disk_template(name) for name in as_list(names))),
        vcpu_ratio=fields.get("vcpu-ratio", as_float),
        spindle_ratio=fields.get("spindle-ratio", as_float),
    )


def _as_pairs(value: Json) -> tuple[SpecPair, ...]:
    pairs = [_Nested("", as_object(item)) for item in as_list(value)]
    return tuple(SpecPair(min=pair.get("min", _as_spec), max=pair.get("max", _as_spec)) for pair in pairs)


def _as_spec(value: Json) -> Spec:
    fields = _Nested("", as_object(value))
    names = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
    return Spec(*(fields.get(name, as_int) for name in names))
