"""Common parts of our JSON reports: values as JSON types, places, the text, and shapes.

A shape is a table of keys, from which the JSON of a value follows, its schema in `schemas/output/`, and how a file of
ours is read again (`read` in `gpolicy.cluster.assembly`).
`scripts/reference/output_schemas.py` writes the schemas. What a key holds follows there from the type of the attribute,
if the table does not say it; what it means stands in `output_texts.toml` beside it, or else in the docstring of the
attribute. A dataclass without a shape has a key for each field. What `[later]` lists there, schemas do not require.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final

from gpolicy.findings import Span


def json_text(data: Mapping[str, Any]) -> str:
    """Return a report as JSON text: ASCII only, so that it is safe to print anywhere."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


Forms = Mapping[type, Callable[[Any], Any]]
_NONE: Final[Forms] = MappingProxyType({})


def plain(value: object, forms: Forms = _NONE) -> Any:
    """Return a value as JSON types. A number that is not finite is null. `forms` are those of some types."""
    if type(value) in forms:
        return forms[type(value)](value)
    if type(value) in _SCALARS:  # most values
        return value
    match value:
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case tuple() | list():
            return [plain(item, forms) for item in value]
        case Mapping():
            return {key: plain(item, forms) for key, item in value.items()}
    if not is_dataclass(value):
        return value
    return {item.name: plain(getattr(value, item.name), forms) for item in fields(value)}


COUNT: Final = {"type": "integer", "minimum": 0}
LENGTH: Final = {**COUNT}
"""How many there are in a list."""
FROM_ONE: Final = {"type": "integer", "minimum": 1}
TEXTS: Final = {"type": "array", "items": {"type": "string"}}
NOT_EMPTY: Final = {"type": "string", "minLength": 1}
ANYTHING: Final[dict[str, Any]] = {}
READY: Final[dict[str, Any]] = {}
"""Any value that is made of JSON's own types already."""
NUMBER: Final[Any] = float | None
"""A number that may be none in Python (nan, inf), and is null then."""
_SCALARS: Final = frozenset({str, int, bool, type(None)})
ReadRecord = Callable[[Any], Any] | None


@dataclass(frozen=True, slots=True)
class Many:
    """A list of what has a form, of so many at least."""

    form: Any
    least: int = 0


@dataclass(frozen=True, slots=True)
class Maybe:
    """What has a form, or null (`nothing` says what else stands there)."""

    form: Any
    nothing: Mapping[str, Any] = field(default_factory=lambda: {"type": "null"})


@dataclass(frozen=True, slots=True)
class Checked:
    """What must be as `is_right` says when it is read: in words, `wanted`.

    `form` is its form, None where its type says it. What has a form in a list is each item, or the list for `Many`.
    """

    wanted: str
    is_right: Callable[[Any], object]
    form: Any = None


_AROUND: Final = (Many, Maybe, Checked)
_DIGEST: Final = "^sha256:[0-9a-f]{64}$"
DIGEST: Final = Checked(
    "sha256: and 64 hexadecimal digits", re.compile(_DIGEST).fullmatch, {"type": "string", "pattern": _DIGEST}
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an object: what it holds.

    `form` is a `Shape`, a JSON Schema, or a type; it is what a list or a mapping holds, or what is there if it is not
    None, where the type of the attribute says that it is one. `of` is the attribute (dotted: of an attribute), if it
    has another name, a function of the value, or the place in a tuple. A `Shape` of the same type is of the value
    itself. The keys of an `inline` one stand among the others, and a `sparse` one is left out where the value is None;
    the keys of an inline `Maybe` are null there.
    """

    form: Any = None
    of: str | int | Callable[[Any], Any] = ""
    inline: bool = False
    sparse: bool = False


class Shape:
    """The keys of an object, in their order, that is made of a value of a type (`kind`).

    A shape with a `name` is a definition of each schema that it is in. `forms` are the shapes of types, for keys that
    have none. Docstrings say first what a `documented` one means. `reader` reads a value from a record of a file, where
    its keys alone do not say how.
    """

    def __init__(
        self, kind: type, name: str = "", *, documented: bool = False, forms: Forms = _NONE, reader: ReadRecord = None
    ) -> None:
        self.name, self.kind, self.documented, self.forms, self.reader = name, kind, documented, forms, reader
        self.keys: dict[str, Key] = {}

    def with_keys(self, names: str = "", /, **others: Any) -> Shape:
        """Give the shape its keys, and return it: `names` in their order, then `others` that are not among them.

        A key holds the attribute of its name, unless `others` say more: a `Key`, its form, or (a string) the attribute.
        """
        keys = {
            name: item if isinstance(item, Key) else Key(of=item) if isinstance(item, str) else Key(item)
            for name, item in others.items()
        }
        self.keys = dict.fromkeys(names.split(), Key()) | {name: self._of_itself(key) for name, key in keys.items()}
        get: Callable[[Any], Any] = itemgetter if self.kind in (dict, tuple) else attrgetter
        self._read = [
            (key, item, item.of if callable(item.of) else get(key if item.of == "" else item.of))
            for key, item in self.keys.items()
        ]
        return self

    def _of_itself(self, key: Key) -> Key:
        form = key.form.form if isinstance(key.form, Maybe) else key.form
        is_same = key.of == "" and isinstance(form, Shape) and form.kind is self.kind
        return replace(key, of=lambda value: value) if is_same else key

    def __call__(self, value: Any) -> dict[str, Any]:
        """Return a value as JSON's own types. A number that is not finite is null."""
        found: dict[str, Any] = {}
        for key, item, read in self._read:
            inside = read(value)
            written = self._to_json(inside, item.form)
            if item.inline and written is None and isinstance(item.form, Maybe):
                found |= dict.fromkeys(item.form.form.keys)
            elif item.inline:
                found |= written or {}
            elif inside is not None or not item.sparse:
                found[key] = written
        return found

    def _to_json(self, value: Any, form: Any) -> Any:
        if type(value) in _SCALARS:  # most values
            return value
        while isinstance(form, _AROUND):
            form = form.form
        if not isinstance(form, Shape):
            return value if form is READY else len(value) if form is LENGTH else plain(value, self.forms)
        if isinstance(value, form.kind):
            return form(value)
        match value:
            case tuple() | list():
                return [self._to_json(item, form) for item in value]
            case Mapping():
                return {name: self._to_json(item, form) for name, item in value.items()}
        return None


def fields_of(kind: type, *derived: str, without: Collection[str] = (), forms: Forms = _NONE, **keys: Any) -> Shape:
    """Return the shape of a dataclass with a key for each field, and for figures that follow from them."""
    names = (*(item.name for item in fields(kind) if item.name not in without), *derived)
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("_")
    return Shape(kind, name, documented=True, forms=forms).with_keys(" ".join(names), **keys)


class Document:
    """What a verb writes: the keys of several shapes, one after the other; of several together, that of the value."""

    def __init__(self, title: str, *parts: Shape | tuple[Shape, ...]) -> None:
        self.title = title
        self.parts = [(part,) if isinstance(part, Shape) else part for part in parts]

    def data(self, *values: Any) -> dict[str, Any]:
        """Return the document of the values of its parts; one value is that of all of them."""
        found: dict[str, Any] = {}
        for choices, value in zip(self.parts, values if len(values) > 1 else values * len(self.parts), strict=True):
            shape = next((part for part in choices if isinstance(value, part.kind)), choices[-1])
            found |= shape(value)
        return found


SPAN: Final = Shape(Span).with_keys(file=str, **dict.fromkeys(("line", "column", "end_line", "end_column"), FROM_ONE))
PLACE: Final = Shape(Span).with_keys(file=str, line=FROM_ONE, column=FROM_ONE)


def version_key(version: str) -> Key:
    """Return the key with the version of a document: readers take any minor one."""
    pattern = f"^{version.partition('.')[0]}\\.[0-9]+$"
    return Key({"type": "string", "pattern": pattern}, lambda _: version)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A kind of file that gpolicy writes and reads again: its `kind`, the `version` of its format, and its name.

    Messages call it `noun`. If it is `exact`, no other version is read, else each minor version that is not `unread`.
    """

    kind: str
    version: str
    noun: str
    exact: bool = False
    unread: tuple[str, ...] = ()

    @property
    def head(self) -> dict[str, Key]:
        """The keys with the version and the kind."""
        return {"format_version": version_key(self.version), "kind": Key({"const": self.kind}, lambda _: self.kind)}

    def is_kind_of(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the content of a file has this kind."""
        return bool(fields.get("kind") == self.kind)

    def reads(self, version: str) -> bool:
        """Return whether files of a version are read."""
        major, _, minor = version.partition(".")
        is_near = major == self.version.partition(".")[0] and minor not in self.unread
        return version == self.version if self.exact else is_near
