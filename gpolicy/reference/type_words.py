"""The type of a value in words, from its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from gpolicy.ganeti.text_forms import CPUS_PER_VCPU, FORMS, PATH, PATH_OR_NOTHING, PATH_URL_OR_NOTHING
from gpolicy.ganeti.values import as_word
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, HYPERVISORS, SCORE_COMPONENTS
from gpolicy.policy.schema_expectations import REFUSALS
from gpolicy.policy.schema_parameters import (
    INHERIT,
    PATTERNS,
    TAG,
    Schema,
)
from gpolicy.printable import listed

_PATTERNS: Final = {
    **{pattern: words.type for pattern, words in PATTERNS.items()},
    TAG["pattern"]: "tag",
    **FORMS,
    PATH: "path",
    PATH_OR_NOTHING: 'path or empty (`""`)',
    PATH_URL_OR_NOTHING: 'path, URL or empty (`""`)',
    CPUS_PER_VCPU: "CPU mask",
}
_WORD_LISTS: Final = {
    REFUSALS: "binding resource",
    SCORE_COMPONENTS: "component of the cluster score",
    DISK_TEMPLATES: "disk template",
    HYPERVISORS: "hypervisor",
}
_TYPES: Final = {
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "null": "null",
    "object": "mapping",
    "array": "list",
    "string": "text",
}
TYPES: Final = (
    ("size", "`4G`, `512`, `1.5T`", "MiB as a number, or a number with M, G or T (powers of 1024)."),
    ("rate", "`60M`, `61440`", "KiB/s as a number, or a number with K, M or G."),
    ("percentage", "`5%`", "A number and a percent sign, as text."),
    ("day", "`2027-12-31`", "Year, month and day."),
    ("name", "`gold`", "Text of at most 255 characters."),
    ("tag", "`rack:r1`", "At most 128 letters, digits and . _ + * / : @ -"),
    ("range of user IDs", '`"1000-1010"`, `2000`', "First and last ID as text, or one ID."),
    ("path", "`/boot/vmlinuz`", f"{FORMS[PATH][0].upper()}{FORMS[PATH][1:].partition(' (')[0]}."),
    ("CPU mask", "`0-3,8`", f"{FORMS[CPUS_PER_VCPU][0].upper()}{FORMS[CPUS_PER_VCPU][1:]}."),
    *(
        (name, f"`{words[0]}`", f"One of {', '.join(f'`{word}`' for word in words)}.")
        for words, name in _WORD_LISTS.items()
    ),
)
"""The types that have a name: examples, and how a value is written."""

Named = Callable[[str], str]
"""From the name of a definition to the words for it."""


def type_words(schema: Schema, named: Named = str) -> str:
    """Return the type that a schema describes; `named` words the references in it."""
    if "$ref" in schema:
        return named(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return f"`{as_word(schema['const'])}`"
    if "enum" in schema:
        if words := _WORD_LISTS.get(tuple(schema["enum"])):
            return words
        return listed([f"`{as_word(word)}`" if word != "" else 'empty (`""`)' for word in schema["enum"]], "or")
    branches = [branch for key in ("anyOf", "oneOf", "allOf") for branch in schema.get(key, ())]
    if branches and "type" not in schema and not all("required" in branch and len(branch) == 1 for branch in branches):
        return _of_branches(branches, named)
    return _of_type(schema, named)


def _of_branches(branches: Iterable[Schema], named: Named) -> str:
    kinds = [branch for branch in branches if branch.get("const") != INHERIT and "if" not in branch]
    patterns = {str(_PATTERNS[branch["pattern"]]) for branch in kinds if branch.get("pattern") in _PATTERNS}
    if patterns & {"size", "rate", "range of user IDs"}:  # a bare number means one, too
        kinds = [branch for branch in kinds if branch.get("type") != "integer"]
    return listed(dict.fromkeys(type_words(branch, named) for branch in kinds), "or")


def _of_type(schema: Schema, named: Named) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return listed([_of_type({**schema, "type": one}, named) for one in kind], "or")
    if kind == "array":
        items = schema.get("items", {})
        if isinstance(items, list):  # each place has a meaning of its own
            return f"list of {' and '.join(type_words(item, named) for item in items)}"
        return f"list of {_several(type_words(items, named))}" if items else "list"
    if kind == "object" and isinstance(below := schema.get("additionalProperties"), dict) and not _is_plain(below):
        return f"mapping of names to {_several(type_words(below, named))}"
    if kind == "string":
        short = schema.get("maxLength") == 255
        return _PATTERNS.get(schema.get("pattern", ""), "name" if short else "text")
    if kind is None:
        return "mapping" if "properties" in schema else "any value"
    return f"{_TYPES[kind]}{_bounds(schema)}"


def _is_plain(schema: Schema) -> bool:
    """Return whether there is more to say of the values than their type: they have keys of their own."""
    return schema.get("type") == "object" and "properties" in schema


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}, at most {high:,}"
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    if low is not None:
        return f", {low:,} or more"
    return f", {high:,} or less" if high is not None else ""


def _several(words: str) -> str:
    """Return the plural of simple words."""
    plurals = {"text": "texts", "mapping": "mappings", "true or false": "booleans", "name": "names", "tag": "tags"}
    plurals |= {"disk template": "disk templates", "hypervisor": "hypervisors", "binding resource": "binding resources"}
    plurals |= {"component of the cluster score": "components of the cluster score"}
    plurals |= {"size": "sizes", "whole number": "whole numbers", "range of user IDs": "ranges of user IDs"}
    return plurals.get(words, words)
