"""The JSON Schemas of what gpolicy writes, from the shapes of its JSON, and from types and docstrings of the values.

What keys mean is in `output_texts.toml`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache, reduce
from itertools import chain, pairwise
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from gpolicy.ganeti.vocabulary import Value
from gpolicy.json_values import LENGTH, Checked, Document, Many, Maybe, Shape, fields_of

Schema = dict[str, Any]

_NULL: Final = {"type": "null"}
_SCALARS: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_OBVIOUS: Final = {
    "group": "Name of the group.",
    "instance": "Name of the instance.",
    "name": "Its name.",
    "node": "Name of the node.",
    "primary_node": "Its primary node.",
}
"""What names of attributes mean where nothing else says it."""
TEXTS: Final = tomllib.loads(Path(__file__).with_name("output_texts.toml").read_text(encoding="utf-8"))
LATER: Final = TEXTS.pop("later")


def output_schema(document: Document) -> Schema:
    """Return the schema of a document."""
    writer = _Writer(document.title)
    parts = [[writer.part_schema(part) for part in choices] for choices in document.parts]
    either = [{"required": part["required"]} for choices in parts if len(choices) > 1 for part in choices]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": document.title,
        "description": TEXTS["documents"][document.title],
        "type": "object",
        "properties": {name: value for part in chain(*parts) for name, value in part["properties"].items()},
        "required": [name for choices in parts if len(choices) == 1 for name in choices[0]["required"]],
        **({"anyOf": either} if either else {}),
        "definitions": writer.definitions,
    }


def line_schema(document: Document) -> Schema:
    """Return the schema of one line of a journal: what each has, and the fields of its event."""
    writer = _Writer(document.title)
    (line,), events = document.parts
    whole = writer.part_schema(line)
    branches = []
    for event in events:
        branch = writer.part_schema(event)
        name = {"const": event.name, "description": whole["properties"]["event"]["description"]}
        branch["properties"] = {"event": name, **branch["properties"]}
        branches.append({key: value for key, value in branch.items() if key != "type"})
    whole["properties"]["event"] |= {"enum": [event.name for event in events]}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": document.title,
        "description": TEXTS["documents"][document.title],
        **whole,
        "oneOf": branches,
        "definitions": writer.definitions,
    }


class _Writer:
    """Writes the schemas of shapes in a document; those that have a name become definitions."""

    def __init__(self, title: str) -> None:
        self._title, self._later = title, {**LATER, **LATER.get(title, {})}
        self.definitions: dict[str, Schema] = {}
        self._places: list[tuple[str, str]] = []
        """Where the text of a key may stand: the table of texts, and what is before the key there."""

    def part_schema(self, shape: Shape) -> Schema:
        """Return the schema of a part of the document."""
        self._places = [(self._title, "")]
        return self.object_schema(shape)

    def object_schema(self, shape: Shape, alias: Any = None) -> Schema:
        """Return the schema of an object; `alias` is its type where that has parameters."""
        places = [*self._places, *((base.__name__, "") for base in shape.kind.__mro__)]
        properties: dict[str, Schema] = {}
        required: list[str] = []
        whole: list[Schema] = []
        later = self._later.get(shape.kind.__name__, "").split()
        for name, key in shape.keys.items():
            self._places = places if key.inline else [(table, f"{above}{name}.") for table, above in places]
            if key.inline and isinstance(key.form, Maybe):
                inner = self.object_schema(key.form.form)
                properties |= {name: _or_null(value) for name, value in inner["properties"].items()}
                required += [name for name in inner["required"] if name not in later]
            elif key.inline and key.form.name and not key.sparse:
                whole.append(self._reference(key.form))
            elif key.inline:
                inner = self.object_schema(key.form)
                properties |= inner["properties"]
                required += [name for name in inner["required"] if name not in later and not key.sparse]
            else:
                kind, doc = None, ""
                if isinstance(key.of, str) and shape.kind not in (dict, tuple):
                    kind, doc = _attribute(alias or shape.kind, key.of or name)
                if key.sparse and kind is not None:
                    kind = reduce(or_, (item for item in get_args(kind) if item is not NoneType))
                found = self._form(kind, key.form, shape.forms)
                told = next((text for table, above in places if (text := TEXTS.get(table, {}).get(above + name))), "")
                text = (doc or told if shape.documented else told or doc) or _OBVIOUS.get(name, "")
                if not text and "$ref" not in found:
                    raise ValueError(f"output_texts.toml does not say what {name} of {shape.kind.__name__} means")
                properties[name] = {**found, "description": text} if text else found
                required += [] if key.sparse or name in later else [name]
        text = TEXTS["definitions"].get(shape.name, "")
        text = _first_words(inspect.getdoc(shape.kind) or "") if shape.documented else text
        described = {"description": text} if text else {}
        kind = {} if whole else {"type": "object"}
        others = {"allOf": whole} if whole else {}
        return {**kind, **described, "properties": properties, "required": required, **others}

    def _form(self, kind: Any, form: Any, forms: Mapping[type, Any]) -> Schema:
        """Return the schema of a value of a type. `form` is the whole where there is no type, else what is inside."""
        if form is LENGTH:
            return form
        match form:
            case Many(inner, least):
                found = {"type": "array", "items": self._form(None, inner, forms)}
                return {**found, "minItems": least} if least else found
            case Maybe(inner, nothing):
                found = self._form(None, inner, forms)
                return _or_null(found) if nothing == _NULL else {"anyOf": [nothing, found]}
            case Checked(form=inner):
                return self._form(kind, inner, forms)
            case Shape() | dict() | None:
                return self._typed(kind, form, forms)
        return self._typed(form, None, forms)

    def _typed(self, kind: Any, form: Shape | Schema | None, forms: Mapping[type, Any]) -> Schema:
        origin, inside = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType) and NoneType in inside and kind != Value:
            others = reduce(or_, (item for item in inside if item is not NoneType))
            return _or_null(self._typed(others, form, forms))
        if origin is tuple and inside[-1] is not Ellipsis:
            items = [self._typed(item, form, forms) for item in inside]
            return {"type": "array", "items": items, "minItems": len(items), "maxItems": len(items)}
        if origin in (tuple, list):
            return {"type": "array", "items": self._typed(inside[0], form, forms)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self._typed(inside[1], form, forms)}
        if isinstance(form, Shape):
            return self._reference(form)
        return self._scalar(kind, forms) if form is None else form

    def _scalar(self, kind: Any, forms: Mapping[type, Any]) -> Schema:
        if kind == Value:
            return {}
        if get_origin(kind) is UnionType:
            return {"type": [_SCALARS[item] for item in get_args(kind)]}
        if get_origin(kind) is Literal:
            return {"enum": list(get_args(kind))}
        plain: Any = get_origin(kind) or kind
        if hasattr(plain, "__dataclass_fields__"):
            shape = forms.get(plain) or fields_of(plain, forms=forms)
            return self._reference(shape) if plain is kind else self.object_schema(shape, kind)
        if issubclass(plain, Enum):
            return {"enum": [member.value for member in plain]}
        return {"type": _SCALARS[plain]}

    def _reference(self, shape: Shape) -> Schema:
        if not shape.name:
            return self.object_schema(shape)
        if shape.name not in self.definitions:
            self.definitions[shape.name] = {}  # which it may refer to
            self.definitions[shape.name] |= self.object_schema(shape)
        return {"$ref": f"#/definitions/{shape.name}"}


def _or_null(schema: Schema) -> Schema:
    match schema:
        case {"type": str(kind), **others} if kind != "object":
            return {"type": [kind, "null"], **others}
        case {"type": list(kinds), **others}:
            return {"type": [*kinds, "null"], **others}
    return {"anyOf": [_NULL, schema]}


def _attribute(kind: Any, path: str) -> tuple[Any, str]:
    """Return the type of an attribute (dotted: of an attribute of another) of a class, and what its docstring says."""
    doc = ""
    for name in path.split("."):
        kind, own = _own_attribute(kind, name)
        doc = own or doc
    return kind, doc


def _own_attribute(kind: Any, name: str) -> tuple[Any, str]:
    for base in (get_origin(kind) or kind).__mro__:
        member = vars(base).get(name)
        function = getattr(member, "fget", None) or getattr(member, "func", None)
        written = function.__annotations__["return"] if function else vars(base).get("__annotations__", {}).get(name)
        if written is None:
            continue
        found = eval(written, vars(sys.modules[base.__module__])) if isinstance(written, str) else written  # noqa: S307
        if get_args(kind) and getattr(found, "__parameters__", ()):
            found = found[get_args(kind)]
        return found, _first_words(function.__doc__ or "") if function else attribute_texts(base).get(name, "")
    raise AttributeError(f"{kind} has no attribute {name}")


@cache
def attribute_texts(kind: type) -> dict[str, str]:
    """Return what the docstrings of the attributes of a class say, in one line each."""
    try:
        (node,) = ast.parse(inspect.getsource(kind)).body
    except OSError:
        return {}
    return dict(_documented(node))


def _documented(node: Any) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(node.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(text))):
                yield name, _first_words(text)


def _first_words(docstring: str) -> str:
    """Return the first paragraph of a docstring in one line, in the words of JSON."""
    return re.sub(r"\bNone\b", "null", " ".join(docstring.partition("\n\n")[0].split()))
