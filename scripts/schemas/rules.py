"""The JSON Schemas of TagRules and of Rule documents."""

from __future__ import annotations

from typing import Final

from gpolicy.findings import Severity
from gpolicy.ganeti.vocabulary import TAG_FAMILIES
from gpolicy.policy.conformance import Schema
from gpolicy.policy.kinds import LEVELS
from gpolicy.policy.model import RULE_NAME
from scripts.schemas.parameters import NAME, SHAPE, closed, described, list_of, name_of, object_of

_PREFIX: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_.+*/:@-]{1,100}$"}


def tag_rule_properties() -> Schema:
    """Return the properties of a TagRules document."""
    name = {**_PREFIX, "pattern": "^[A-Za-z0-9_.+*/@-]+(:[A-Za-z0-9_.+*/@-]+)*$"}
    marker: Schema = {
        SHAPE: "prefix",
        "anyOf": [
            described(_PREFIX, "`service` means tags service:…"),
            described(
                closed({"raw": described(_PREFIX, "All tags that begin with these characters.")}, required=("raw",)),
                "A bare prefix, as Ganeti stores it: `raw: a` also means tags abc and a:b.",
            ),
        ],
    }
    levels = {"enum": ["cluster", "group", "node"]}
    own_prefix: Schema = {
        "prefix": described(_PREFIX, "Tags that begin with these characters."),
        "on": list_of(levels, "Objects on which the prefix is owned.", least=1, unique=True),
    }
    owned: Schema = {
        "anyOf": [
            {"enum": list(TAG_FAMILIES), "description": "All cluster tags of this htools family."},
            described(
                closed(own_prefix, required=own_prefix),
                "Own the tags with this prefix on objects whose `tags` the policy declares.",
            ),
        ]
    }
    exception: Schema = {
        "from": described(name, "Tag of the source node that the target may lack if it has `to`."),
        "to": described(name, "Tag that the target has instead."),
    }
    return {
        "name": name_of("Name of these rules, for people."),
        "owns": list_of(
            owned, "Tags that gpolicy removes when the policy does not declare them. Others it never touches."
        ),
        "exclusion": list_of(
            marker, "Instances that share such a tag are kept on different primary nodes.", unique=True
        ),
        "failure_domains": list_of(
            name,
            "`rack` means: nodes with the same tag rack:… may fail together; redundant instances avoid sharing one.",
            unique=True,
        ),
        "migration": closed(
            {
                "domains": list_of(
                    name, "`hv` means: node tags hv:… restrict migration; the target must carry them too.", unique=True
                ),
                "allow": {
                    "type": "array",
                    "description": "One-way exceptions.",
                    "items": closed(exception, required=exception),
                },
            },
            "Where instances may migrate.",
        ),
        "desired_location": list_of(
            marker, "Instance tags that name the failure domain where the instance should be.", unique=True
        ),
    }


_TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
_SCHEMA: Final[Schema] = {"$ref": "#/definitions/valueSchema"}
_NUMBER: Final[Schema] = {"type": "number"}
_LENGTH: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}


def rule_properties() -> Schema:
    """Return the properties of a Rule document."""
    globs = list_of(NAME, least=1, unique=True)
    return {
        "name": {
            **NAME,
            "pattern": RULE_NAME,
            "maxLength": 80,
            "description": "Name of the rule: small letters, digits and hyphens. Findings, waivers, comments and"
            " settings call it house/NAME.",
        },
        "for": object_of(
            {
                "kind": {"enum": list(LEVELS), "description": "The kind of the objects."},
                "names": described(globs, "Only objects with one of these names or globs. Default: all."),
                "tags": described(
                    globs,
                    "Only objects with a declared tag that is one of these, or fits one of these globs. Default: all.",
                ),
            },
            "The objects of the policy that the rule looks at.",
            required=("kind",),
        ),
        "schema": described(
            _SCHEMA,
            "What must hold of each object, as a JSON Schema of draft 7. It sees what `effective` of"
            " `gpolicy show --format json` shows.",
        ),
        "severity": {
            "enum": [str(severity) for severity in Severity],
            "description": "Severity of the findings. Default: error.",
        },
        "message": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "What is wrong and why, for whoever breaks the rule.",
        },
    }


def value_schema() -> Schema:
    """Return the schema of a schema: the keywords of draft 7 that a Rule may use."""
    schemas: Schema = {"type": "array", "minItems": 1, "items": _SCHEMA}
    by_name: Schema = {"type": "object", "additionalProperties": _SCHEMA}
    name_list = list_of(_TEXT)
    type_name: Schema = {"enum": list(_TYPES)}
    keywords: dict[str, tuple[str, Schema]] = {
        "title": ("For people; it has no effect.", _TEXT),
        "description": ("For people; it has no effect.", _TEXT),
        "$ref": (
            "The schema of this name below `definitions`.",
            {"type": "string", "pattern": "^#/definitions/[^/~%]+$"},
        ),
        "type": ("The type of the value, or a list of types.", {"anyOf": [type_name, list_of(type_name, least=1)]}),
        "const": ("The only value.", {}),
        "enum": ("The values to choose from.", {"type": "array", "minItems": 1, "items": {}}),
        "minimum": ("The least number. Sizes are MiB.", _NUMBER),
        "maximum": ("The greatest number. Sizes are MiB.", _NUMBER),
        "exclusiveMinimum": ("The number is above this one.", _NUMBER),
        "exclusiveMaximum": ("The number is below this one.", _NUMBER),
        "multipleOf": (
            "The number is a multiple of this one.",
            {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        ),
        "minLength": ("The least number of characters.", _LENGTH),
        "maxLength": ("The greatest number of characters.", _LENGTH),
        "pattern": ("Regular expression (of Python) that a part of the text matches.", _TEXT),
        "properties": ("The schema of each value, by its path (ipolicy.vcpu-ratio) or key.", by_name),
        "required": ("Paths or keys that must be there.", name_list),
        "additionalProperties": (
            "The schema of values that no other keyword names; false: there are none.",
            {"anyOf": [{"type": "boolean"}, _SCHEMA]},
        ),
        "patternProperties": ("The schema of values whose path or key matches a regular expression.", by_name),
        "propertyNames": ("The schema of the keys.", _SCHEMA),
        "minProperties": ("The least number of keys.", _LENGTH),
        "maxProperties": ("The greatest number of keys.", _LENGTH),
        "items": ("The schema of each item of a list.", _SCHEMA),
        "contains": ("The schema of at least one item of a list.", _SCHEMA),
        "minItems": ("The least number of items.", _LENGTH),
        "maxItems": ("The greatest number of items.", _LENGTH),
        "uniqueItems": ("True: no item occurs twice.", {"type": "boolean"}),
        "allOf": ("All of these schemas hold.", schemas),
        "anyOf": ("At least one of these schemas holds.", schemas),
        "oneOf": ("Exactly one of these schemas holds.", schemas),
        "not": ("This schema does not hold.", _SCHEMA),
        "if": ("Where this schema holds, `then` must hold, else `else`.", _SCHEMA),
        "then": ("Holds where `if` holds.", _SCHEMA),
        "else": ("Holds where `if` does not hold.", _SCHEMA),
        "definitions": ("Schemas by name, for `$ref`.", by_name),
    }
    properties = {name: {**schema, "description": text} for name, (text, schema) in keywords.items()}
    return object_of(properties, "A JSON Schema of draft 7.")
