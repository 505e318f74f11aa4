"""The keys of the policy language and of gpolicy.toml, from their schemas and the table of parameters."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from gpolicy.data import data_directory
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import Parameter
from gpolicy.policy.conformance import Schema, schema_of
from gpolicy.policy.kinds import KINDS, LEVELS

ITEM: Final = "[]"
"""In a path: each item of a list."""
NAME: Final = "*"
"""In a path: a name that the author chooses."""
SETTINGS: Final = "gpolicy.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKey:
    """A key of a kind of document, or of another JSON value.

    `text` describes it, `schema` its value; `parameter` is what Ganeti knows of it. `condition`: the key that must
    stand beside one of those above, so that this one has this meaning.
    """

    home: str
    path: tuple[str, ...]
    text: str
    schema: Schema
    required: bool = False
    parameter: Parameter | None = None
    condition: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Its path without the items of lists and the names that the author chooses."""
        return tuple(step for step in self.path if step not in (ITEM, NAME))

    @property
    def name(self) -> str:
        """Its path as people write it: `guards[].at_least`."""
        return ".".join(self.path).replace(f".{ITEM}", ITEM)


@cache
def policy_keys(kind: str) -> tuple[DocumentKey, ...]:
    """Return the keys of a kind of document, each before those below it."""
    return tuple(keys_of(kind, schema_of(kind), expand=True))


@cache
def settings_keys() -> tuple[DocumentKey, ...]:
    """Return the keys of gpolicy.toml, without the parameters of rules: these are told with the rules."""
    schema = json.loads((data_directory("schemas") / "gpolicy-toml.json").read_text(encoding="utf-8"))
    return tuple(key for key in keys_of(SETTINGS, schema, expand=True) if key.path[0] != "rules" or len(key.path) == 1)


def all_keys() -> Iterator[DocumentKey]:
    """Yield the keys of all kinds, and of gpolicy.toml."""
    for kind in KINDS:
        yield from policy_keys(kind)
    yield from settings_keys()


def keys_of(home: str, schema: Schema, *, expand: bool) -> Iterator[DocumentKey]:
    """Yield the keys of a JSON Schema; with `expand` also those of the definitions that it refers to."""
    yield from _Walk(home, schema.get("definitions", {}), expand=expand).below(schema, ())


@dataclass(frozen=True, slots=True)
class _Walk:
    home: str
    definitions: Schema
    expand: bool

    def below(
        self, schema: Schema, path: tuple[str, ...], condition: str = "", around: tuple[str, ...] = ()
    ) -> Iterator[DocumentKey]:
        """Yield the keys below a place; `around` are the definitions that it is in, each of them told once."""
        if reference := schema.get("$ref"):
            schema = self.resolved(schema) if self.expand and reference not in around else {}
            around = (*around, reference)
        required = set(schema.get("required", ()))
        for name, value in schema.get("properties", {}).items():
            if "if" in value:
                continue
            text = value.get("description") or self.resolved(value).get("description", "")
            here = (*path, name)
            parameter = parameter_at(here) if self.home in LEVELS else None
            yield DocumentKey(
                home=self.home,
                path=here,
                text=parameter.description if parameter else text,
                schema=value,
                required=name in required,
                parameter=parameter,
                condition=condition,
            )
            yield from self.below(value, here, condition, around)
        for keyword, step in (("items", ITEM), ("additionalProperties", NAME)):
            if isinstance(value := schema.get(keyword), dict):
                yield from self.below(value, (*path, step), condition, around)
        for branch in (branch for key in ("anyOf", "oneOf", "allOf") for branch in schema.get(key, ())):
            if "if" in branch:
                action = ", ".join(branch["if"].get("required", ()))
                for key in self.below(branch["then"], path, action, around):
                    if key.path != (*path, "expect"):  # it is described where it stands for all
                        yield key
            else:
                yield from self.below(branch, path, condition, around)

    def resolved(self, schema: Schema) -> Schema:
        """Return the definition that a schema refers to, or itself."""
        found: Schema = self.definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return found
