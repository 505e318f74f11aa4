"""What there is to say, as blocks, and their text on a terminal; scripts/reference/ writes pages of them.

Text has two kinds of markup: words in backquotes are literal, and `[words](page.md)` leads to another page. Of a key
the blocks say its type in words and an example of its value.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from gpolicy.data import read_data
from gpolicy.ganeti import vocabulary
from gpolicy.ganeti.parameters import as_word
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.policy import conformance
from gpolicy.printable import listed
from gpolicy.reference.keys import ITEM, NAME, SETTINGS, DocumentKey, policy_keys, settings_keys

WIDTH: Final = 100
"""Columns that text fills."""
_PATTERNS: Final = {
    **{pattern: words.type for pattern, words in conformance.pattern_words().items()},
    conformance.TAG_PATTERN: "tag",
    **vocabulary.FORMS,
    vocabulary.PATH: "path",
    vocabulary.PATH_OR_NOTHING: 'path or empty (`""`)',
    vocabulary.PATH_URL_OR_NOTHING: 'path, URL or empty (`""`)',
    vocabulary.CPUS_PER_VCPU: "CPU mask",
}
WORD_LISTS: Final = {
    tuple(read_data("known_words.toml")["words"]["binding_resources"]): "binding resource",
    vocabulary.SCORE_COMPONENTS: "component of the cluster score",
    vocabulary.DISK_TEMPLATES: "disk template",
    vocabulary.HYPERVISORS: "hypervisor",
}
"""Lists of words that have a name together."""
Named = Callable[[str], str]
"""From the name of a definition to the words for it."""
_TEXTS: Final = read_data("reference.toml")
_BY_NAME: Final[dict[str, Any]] = _TEXTS["values"]
"""Examples of values, by key, where the form of the value does not say enough."""
_DEFINITIONS = {"size": "size", "rule": "rule", "ignorable": "rule"}


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; `level` 1 is that of the page. The anchor is made of the title, as GitHub makes it."""

    title: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class PageListing:
    """Lines shown as they are."""

    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows about one thing each: the first cell names it, the last describes it. An empty column is not shown.

    `anchors` has a name for each row that can be linked to, or nothing.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    anchors: tuple[str, ...] = field(default=())

    def filled(self) -> tuple[int, ...]:
        """Return the columns with any text."""
        return tuple(column for column in range(len(self.head)) if any(row[column] for row in self.rows))


PageBlock = Heading | str | PageListing | PageTable
"""A text is a paragraph."""


def plain(blocks: Iterable[PageBlock]) -> str:
    """Return the text of blocks."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def filled(text: str, indent: str = "", first: str | None = None) -> str:
    """Return text in lines of at most `WIDTH` columns."""
    first = indent if first is None else first
    wrapped = textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapped or first.rstrip()


def _block(block: PageBlock) -> str:
    match block:
        case Heading(title, _):
            return title
        case str():
            return filled(block)
        case PageListing(text, _):
            return textwrap.indent(text.rstrip(), "    ")
        case PageTable():
            return _table(block)


def _table(table: PageTable) -> str:
    """Return rows with a column for each but the last cell, which fills what is left of the line."""
    columns = table.filled()
    rows = [[row[column] for column in columns] for row in table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(columns) - 1)]
    lines = []
    for row in rows:
        first = "  " + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        lines.append(filled(row[-1], " " * len(first), first))
    return "\n".join(lines)


def _several(words: str) -> str:
    """Return the plural of simple words."""
    return str(_TEXTS["plurals"].get(words, words))


def type_words(schema: conformance.Schema, named: Named = str) -> str:
    """Return the type that a schema describes; `named` words the references in it."""
    if "$ref" in schema:
        return named(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return f"`{as_word(schema['const'])}`"
    if "enum" in schema:
        if words := WORD_LISTS.get(tuple(schema["enum"])):
            return words
        return listed([f"`{as_word(word)}`" if word != "" else 'empty (`""`)' for word in schema["enum"]], "or")
    branches = [branch for key in ("anyOf", "oneOf", "allOf") for branch in schema.get(key, ())]
    if branches and "type" not in schema and not all("required" in branch and len(branch) == 1 for branch in branches):
        kinds = [branch for branch in branches if branch.get("const") != conformance.INHERIT and "if" not in branch]
        patterns = {str(_PATTERNS[branch["pattern"]]) for branch in kinds if branch.get("pattern") in _PATTERNS}
        if patterns & {"size", "rate", "range of user IDs"}:  # a bare number means one, too
            kinds = [branch for branch in kinds if branch.get("type") != "integer"]
        return listed(dict.fromkeys(type_words(branch, named) for branch in kinds), "or")
    return _of_type(schema, named)


def _of_type(schema: conformance.Schema, named: Named) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return listed([_of_type({**schema, "type": one}, named) for one in kind], "or")
    if kind == "array":
        items = schema.get("items", {})
        if isinstance(items, list):  # each place has a meaning of its own
            return f"list of {' and '.join(type_words(item, named) for item in items)}"
        return f"list of {_several(type_words(items, named))}" if items else "list"
    below = schema.get("additionalProperties")
    if kind == "object" and isinstance(below, dict) and not (below.get("type") == "object" and "properties" in below):
        return f"mapping of names to {_several(type_words(below, named))}"
    if kind == "string":
        short = schema.get("maxLength") == 255
        return _PATTERNS.get(schema.get("pattern", ""), "name" if short else "text")
    if kind is None:
        return "mapping" if "properties" in schema else "any value"
    return f"{_TEXTS['types'][kind]}{_bounds(schema)}"


def _bounds(schema: conformance.Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}, at most {high:,}"
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    if low is not None:
        return f", {low:,} or more"
    return f", {high:,} or less" if high is not None else ""


def example_value(key: DocumentKey) -> Any:
    """Return a value that can be written for the key; None for a mapping, whose keys have examples of their own."""
    parameter = key.parameter
    if parameter is not None:
        if parameter.path == ("ipolicy", "minmax"):
            pair = conformance.schema_of("Cluster")["properties"]["ipolicy"]["properties"]["minmax"]["items"]
            return [yaml.safe_load(conformance.filled(pair["defaultSnippets"][0]["bodyText"]))]
        shown = parameter.example if parameter.example is not None else parameter.default
        if isinstance(shown, bool):
            return not shown
        return shown if shown not in ("", None) else _of_form(key.schema)
    named = _BY_NAME.get(".".join(key.path[-2:]), _BY_NAME.get(key.path[-1]))
    return named if named is not None and _has_form(key.schema, named) else _of_form(key.schema)


def _has_form(schema: conformance.Schema, value: Any) -> bool:
    """Return whether the value may have this form, or the first of its forms, as far as a look at its type says."""
    first = next(iter(schema.get("anyOf", ())), schema)
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    if not {"type", "enum", "const", "$ref"} & first.keys():
        return True  # any value
    return names[type(value)] == first.get("type") or (schema.get("enum", ()) != () and value in schema["enum"])


def _of_form(schema: conformance.Schema) -> Any:
    if schema.get("$ref") == "#/definitions/valueSchema":
        return {"maximum": 4}
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return next(word for word in schema["enum"] if word != "")
    if branches := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        return _of_form(branches[0]) if "required" not in branches[0] else None
    match schema.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("default", max(schema.get("minimum", 1), 2))
        case "array":
            item = _of_form(schema["items"])
            return None if item is None else [item]
        case "object":
            below = schema.get("additionalProperties")
            item = _of_form(below) if isinstance(below, dict) else None
            return None if item is None else {"medium": item}
        case "string":
            words = conformance.pattern_words().get(schema.get("pattern", ""))
            return words.example if words else next(iter(schema.get("examples", ())), "gold")
    return None


def flow(value: Any) -> str:
    """Return a value on one line of YAML."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def example_listing(key: DocumentKey) -> str:
    """Return the key with its value in the place where it stands in a document."""
    value = example_value(key)
    for step in reversed(key.path):
        value = [value] if step == ITEM else {"xenvg" if step == "*" else step: value}
    text: str = yaml.safe_dump(value, default_flow_style=None, width=96, sort_keys=False, allow_unicode=True)
    return text


def key_type(key: DocumentKey) -> str:
    """Return the type of a key in words, without the references of its schema."""
    return type_words(key.schema, lambda name: _DEFINITIONS.get(name, "mapping"))


def key_blocks(places: tuple[DocumentKey, ...]) -> Iterator[PageBlock]:
    """Yield what there is to say of a key that stands at these places."""
    key = places[0]
    yield key.text
    names = ", ".join(dict.fromkeys(place.name for place in places))
    facts = [("path", names)] if names != ".".join(key.words) else []
    facts += [("together with", key.condition)] if key.condition else []
    facts += [("type", key_type(key)), *parameter_facts(key.parameter)]
    facts += [("required", "yes")] if key.required else []
    yield PageTable(("fact", "meaning"), tuple(facts))
    below = tuple(_below(key))
    if below:
        yield "Keys below it:"
        yield PageTable(("key", "meaning"), tuple((item.path[-1], first_sentence(item.text)) for item in below))
    elif key.home != SETTINGS:
        yield "Example:"
        yield PageListing(example_listing(key), "yaml")


def parameter_facts(parameter: vocabulary.Parameter | None) -> list[tuple[str, str]]:
    """Return what Ganeti knows of a parameter, as names and values."""
    if parameter is None:
        return []
    facts = [
        ("unit", parameter.unit),
        ("default", default_words(parameter)),
        ("sensible", f"{parameter.sensible.words}: {parameter.sensible.why}" if parameter.sensible else ""),
        ("set on", ", ".join(level for level in vocabulary.Level if level in parameter.levels)),
        ("takes effect", parameter.takes_effect),
        ("Ganeti", releases(parameter)),
        ("security", f"{parameter.reach[0].upper()}{parameter.reach[1:]}." if parameter.reach else ""),
    ]
    return [(name, str(value)) for name, value in facts if value]


def default_words(parameter: vocabulary.Parameter) -> str:
    """Return Ganeti's default; nothing where it is empty, or chosen when the cluster is made."""
    if parameter.path == ("ipolicy", "minmax") or parameter.default in (None, "", [], {}):
        return ""
    newer = f" ({flow(parameter.new_default[1])} from {parameter.new_default[0]})" if parameter.new_default else ""
    return f"{flow(parameter.default)}{newer}"


def releases(parameter: vocabulary.Parameter) -> str:
    """Return the releases of Ganeti that know a parameter."""
    if not parameter.since and not parameter.until:
        return f"{VERSIONS[0]} to {VERSIONS[-1]}"
    return " ".join(
        [f"from {parameter.since}"] * bool(parameter.since) + [f"before {parameter.until}"] * bool(parameter.until)
    )


def kind_blocks(kind: str) -> Iterator[PageBlock]:
    """Yield what there is to say of a kind of document below its title."""
    yield kind_summary(kind)
    yield PageListing(conformance.example_document(kind), "yaml")
    keys = [key for key in policy_keys(kind) if len(key.path) == 1 or (len(key.path) == 3 and key.path[1] == ITEM)]
    yield PageTable(("key", "meaning"), tuple((key.name, first_sentence(key.text)) for key in keys))


def kind_summary(kind: str) -> str:
    """Return what a kind of document is for."""
    return str(conformance.schema_of(kind)["description"])


def _below(key: DocumentKey) -> Iterator[DocumentKey]:
    """Yield the keys directly below one: in a mapping, in each item of a list, or below each name."""
    for other in settings_keys() if key.home == SETTINGS else policy_keys(key.home):
        rest: Any = other.path[len(key.path) :]
        if other.path[: len(key.path)] == key.path and rest and not set(rest[:-1]) - {ITEM, NAME}:
            yield other


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return text.partition(". ")[0].removesuffix(".") + "."
