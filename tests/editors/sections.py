"""Every section of the schemas, as a text with the cursor where its next key would be written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpolicy.policy.conformance import file_name
from scripts.schemas.documents import schemas

Schema = dict[str, Any]
Step = str | int
"""A key of a mapping, or an item of a list."""

SCHEMAS = schemas()


@dataclass(frozen=True)
class Section:
    """A mapping somewhere in a document of `kind`: the way to it, and the schemas of its keys."""

    kind: str
    steps: tuple[Step, ...]
    keys: dict[str, Schema]

    def __str__(self) -> str:
        return ".".join([self.kind, *map(str, self.steps)])


def sections(kind: str) -> Iterator[Section]:
    """Yield each mapping of a kind that a document can reach without a choice that excludes it."""
    schema = SCHEMAS[file_name(kind)]
    yield from _sections(kind, schema, (), schema["definitions"], ())


def _sections(
    kind: str, schema: Schema, steps: tuple[Step, ...], definitions: Schema, seen: tuple[str, ...]
) -> Iterator[Section]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from _sections(kind, definitions[name], steps, definitions, (*seen, name))
        return
    for branch in schema.get("anyOf", ()):
        yield from _sections(kind, branch, steps, definitions, seen)
    if "properties" in schema:
        yield Section(kind, steps, schema["properties"])
    for key, below in schema.get("properties", {}).items():
        yield from _sections(kind, below, (*steps, key), definitions, seen)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield from _sections(kind, others, (*steps, "some-name"), definitions, seen)
    if isinstance(schema.get("items"), dict):
        yield from _sections(kind, schema["items"], (*steps, 0), definitions, seen)


def at_section(section: Section, written: str) -> str:
    """Return a document of the section's kind that has `written` in the section."""
    lines = ["gpolicy: v1", f"kind: {section.kind}"]
    indent, dash = "", ""
    for step in section.steps:
        if step == 0:
            dash = "- "
            continue
        lines.append(f"{indent}{dash}{_key(str(step))}:")
        indent += " " * (2 + len(dash))
        dash = ""
    lines.append(f"{indent}{dash}{written}")
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return f'"{key}"' if key == "on" else key


def choices(schema: Schema) -> list[str]:
    """Return the words that a value may be, as YAML has them."""
    found = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if schema.get("type") == "boolean":
        found += ["true", "false"]
    for branch in schema.get("anyOf", ()):
        found += choices(branch)
    return [str(word).lower() if isinstance(word, bool) else str(word) for word in found]
