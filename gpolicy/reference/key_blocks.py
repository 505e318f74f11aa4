"""What there is to say of a key, and of a kind of document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpolicy.ganeti.parameter import Level, Parameter
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.policy.kinds import KINDS
from gpolicy.policy.schema_files import schema_of
from gpolicy.policy.schema_kinds import example_document
from gpolicy.reference.blocks import Block, PageListing, PageTable, Paragraph
from gpolicy.reference.examples import example_listing, flow
from gpolicy.reference.keys import ITEM, NAME, SETTINGS, Key, policy_keys, settings_keys
from gpolicy.reference.type_words import type_words

_DEFINITIONS = {"size": "size", "rule": "rule", "ignorable": "rule"}


def keys_at(home: str) -> tuple[Key, ...]:
    """Return the keys of a kind, or of gpolicy.toml."""
    return settings_keys() if home == SETTINGS else policy_keys(home)


def key_type(key: Key) -> str:
    """Return the type of a key in words, without the references of its schema."""
    return type_words(key.schema, lambda name: _DEFINITIONS.get(name, "mapping"))


def key_blocks(places: tuple[Key, ...]) -> Iterator[Block]:
    """Yield what there is to say of a key that stands at these places."""
    key = places[0]
    yield Paragraph(key.text)
    names = ", ".join(dict.fromkeys(place.name for place in places))
    facts = [("path", names)] if names != ".".join(key.words) else []
    facts += [("together with", key.condition)] if key.condition else []
    facts += [("type", key_type(key)), *parameter_facts(key.parameter)]
    facts += [("required", "yes")] if key.required else []
    yield PageTable(("fact", "meaning"), tuple(facts))
    below = tuple(_below(key))
    if below:
        yield Paragraph("Keys below it:")
        yield PageTable(("key", "meaning"), tuple((item.path[-1], first_sentence(item.text)) for item in below))
    elif key.home != SETTINGS:
        yield Paragraph("Example:")
        yield PageListing(example_listing(key), "yaml")


def parameter_facts(parameter: Parameter | None) -> list[tuple[str, str]]:
    """Return what Ganeti knows of a parameter, as names and values."""
    if parameter is None:
        return []
    facts = [
        ("unit", parameter.unit),
        ("default", default_words(parameter)),
        ("sensible", f"{parameter.sensible.words}: {parameter.sensible.why}" if parameter.sensible else ""),
        ("set on", ", ".join(level for level in Level if level in parameter.levels)),
        ("takes effect", parameter.takes_effect),
        ("Ganeti", releases(parameter)),
        ("security", f"{parameter.reach[0].upper()}{parameter.reach[1:]}." if parameter.reach else ""),
    ]
    return [(name, str(value)) for name, value in facts if value]


def default_words(parameter: Parameter) -> str:
    """Return Ganeti's default; nothing where it is empty, or chosen when the cluster is made."""
    if parameter.path == ("ipolicy", "minmax") or parameter.default in (None, "", [], {}):
        return ""
    newer = f" ({flow(parameter.new_default[1])} from {parameter.new_default[0]})" if parameter.new_default else ""
    return f"{flow(parameter.default)}{newer}"


def releases(parameter: Parameter) -> str:
    """Return the releases of Ganeti that know a parameter."""
    if not parameter.since and not parameter.until:
        return f"{VERSIONS[0]} to {VERSIONS[-1]}"
    return " ".join(
        [f"from {parameter.since}"] * bool(parameter.since) + [f"before {parameter.until}"] * bool(parameter.until)
    )


def kind_blocks(kind: str) -> Iterator[Block]:
    """Yield what there is to say of a kind of document below its title."""
    yield Paragraph(kind_summary(kind))
    yield PageListing(example_document(kind), "yaml")
    keys = [key for key in policy_keys(kind) if len(key.path) == 1 or (len(key.path) == 3 and key.path[1] == ITEM)]
    yield PageTable(("key", "meaning"), tuple((key.name, first_sentence(key.text)) for key in keys))


def kind_summary(kind: str) -> str:
    """Return what a kind of document is for."""
    return str(schema_of(kind)["description"])


def kind_names() -> tuple[str, ...]:
    """Return the kinds of documents."""
    return tuple(KINDS)


def _below(key: Key) -> Iterator[Key]:
    """Yield the keys directly below one: in a mapping, in each item of a list, or below each name."""
    for other in keys_at(key.home):
        rest: Any = other.path[len(key.path) :]
        if other.path[: len(key.path)] == key.path and rest and not set(rest[:-1]) - {ITEM, NAME}:
            yield other


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return text.partition(". ")[0].removesuffix(".") + "."
