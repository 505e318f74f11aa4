"""The JSON Schema of TagRules documents: what htools reads from tags, and which tags gpolicy owns."""

from __future__ import annotations

from typing import Final

from gpolicy.policy.schema_parameters import SHAPE, Schema, described, list_of, name_of

_PREFIX: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_.+*/:@-]{1,100}$"}

TAG_FAMILIES: Final = {
    "iextags": "htools:iextags:",
    "nlocation": "htools:nlocation:",
    "migration": "htools:migration:",
    "allowmigration": "htools:allowmigration:",
    "desiredlocation": "htools:desiredlocation:",
}
"""Families of cluster tags that htools reads, and their prefixes (location awareness; partitioned Ganeti)."""

RULES: Final[dict[str, tuple[str, ...]]] = {
    "iextags": ("exclusion",),
    "desiredlocation": ("desired_location",),
    "nlocation": ("failure_domains",),
    "migration": ("migration", "domains"),
    "allowmigration": ("migration", "allow"),
}
"""Where a TagRules document has the items that mean the tags of a family."""


def tag_rule_properties() -> Schema:
    """Return the properties of a TagRules document."""
    marker: Schema = {
        SHAPE: "prefix",
        "anyOf": [
            described(_PREFIX, "`service` means tags service:…"),
            {
                "type": "object",
                "properties": {"raw": described(_PREFIX, "All tags that begin with these characters.")},
                "required": ["raw"],
                "additionalProperties": False,
                "description": "A bare prefix, as Ganeti stores it: `raw: a` also means tags abc and a:b.",
            },
        ],
    }
    owned: Schema = {
        "anyOf": [
            {"enum": list(TAG_FAMILIES), "description": "All cluster tags of this htools family."},
            {
                "type": "object",
                "properties": {
                    "prefix": described(_PREFIX, "Tags that begin with these characters."),
                    "on": list_of(
                        {"enum": ["cluster", "group", "node"]},
                        "Objects on which the prefix is owned.",
                        least=1,
                        unique=True,
                    ),
                },
                "required": ["prefix", "on"],
                "additionalProperties": False,
                "description": "Own the tags with this prefix on objects whose `tags` the policy declares.",
            },
        ]
    }
    name = {**_PREFIX, "pattern": "^[A-Za-z0-9_.+*/@-]+(:[A-Za-z0-9_.+*/@-]+)*$"}
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
        "migration": {
            "type": "object",
            "description": "Where instances may migrate.",
            "properties": {
                "domains": list_of(
                    name, "`hv` means: node tags hv:… restrict migration; the target must carry them too.", unique=True
                ),
                "allow": {
                    "type": "array",
                    "description": "One-way exceptions.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "from": described(name, "Tag of the source node that the target may lack if it has `to`."),
                            "to": described(name, "Tag that the target has instead."),
                        },
                        "required": ["from", "to"],
                        "additionalProperties": False,
                    },
                },
            },
            "additionalProperties": False,
        },
        "desired_location": list_of(
            marker, "Instance tags that name the failure domain where the instance should be.", unique=True
        ),
    }
