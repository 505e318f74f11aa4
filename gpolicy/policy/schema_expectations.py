"""The JSON Schema of what a test expects, for each action."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy.schema_parameters import COUNT, NAME, NODES, SHAPE, SIZE, Schema, flag, list_of, map_of, object_of

REFUSALS: Final = (
    "memory",
    "n1-reserve",
    "disk",
    "spindles",
    "too-few-spindles",
    "spindles-on-shared-storage",
    "plain-with-exclusive-storage",
    "ipolicy.minmax",
    "ipolicy.disk-templates",
    "ipolicy.vcpu-ratio",
    "ipolicy.spindle-ratio",
    "enabled-disk-templates",
    "exclusion-tags",
    "migration-tags",
    "n1-capacity",
    "n1-broken",
    "nodes",
    "alloc_policy",
    "max_node_failures",
    "cpus_after_failure",
    "oversubscription",
    "default_iallocator_params",
)
"""Binding resources: the keys that `gpolicy capacity` and `gpolicy place` show."""


_FITS: Final[Schema] = {
    SHAPE: "number-that-fits",
    "anyOf": [
        COUNT,
        object_of(
            {
                "at_least": {**COUNT, "description": "This many or more."},
                "at_most": {**COUNT, "description": "This many or fewer."},
                "exactly": {**COUNT, "description": "Exactly this many."},
            },
            minimum=1,
        ),
    ],
}
_REFUSAL: Final[Schema] = {SHAPE: "binding-resource", "enum": list(REFUSALS)}
_LOST: Final[Schema] = map_of(COUNT)
_CANDIDATE: Final[Schema] = object_of(
    {
        "refused": flag("Whether the node cannot take it."),
        "because": {**_REFUSAL, "description": "Why the node cannot take it."},
        "lost_allocations": {**_LOST, "description": "Instances of each spec that would no longer fit on the node."},
        "disk_left": {**SIZE, "description": "Free disk space that would be left on the node."},
    },
    minimum=1,
)

EXPECTATIONS: Final[dict[str, Schema]] = {
    "place": {
        "refused": flag("Whether it cannot be placed."),
        "because": {**_REFUSAL, "description": "Why most nodes cannot take it."},
        "group": {**NAME, "description": "The group that is chosen."},
        "node": {**NAME, "description": "The node that is chosen, for the primary."},
        "nodes": {**NODES, "description": "The nodes that are chosen: primary, secondary."},
        "lost_allocations": {
            **_LOST,
            "description": "Instances of each spec that no longer fit on the chosen node (dedicated allocation).",
        },
        "disk_left": {**SIZE, "description": "Free disk space that is left on the chosen node."},
        "preference": list_of(NAME, "Nodes, the most preferred first.", least=2, unique=True),
        "candidates": {**map_of(_CANDIDATE), "description": "What must come out for single nodes, by name."},
    },
    "check_instance": {
        "refused": flag("Whether the policy refuses the instance."),
        "because": {
            "anyOf": [
                {"enum": [*SPEC_PARAMETERS, "disk-templates", "spindles"]},
                {"type": "array", "items": {"enum": [*SPEC_PARAMETERS, "disk-templates", "spindles"]}, "minItems": 1},
            ],
            "description": "The parameters that are outside the nearest spec; all of them in a list.",
        },
        "pair": {**NAME, "description": "The spec that takes the instance; if it is refused, the nearest one."},
    },
    "capacity": {
        "specs": {**map_of(_FITS), "description": "How many of each spec fit, alone, at its largest size."},
        "standard": {**_FITS, "description": "How many standard instances fit."},
        "tiered": {
            "anyOf": [*_FITS["anyOf"], object_of({"specs": {**map_of(_FITS), "description": "By spec."}}, minimum=1)],
            "description": "How many instances tiered allocation places: all, or `specs:` for each spec pair.",
        },
        "binding": {
            "anyOf": [_REFUSAL, map_of(_REFUSAL)],
            "description": "Why no more instances fit: standard ones, or those of each spec.",
        },
    },
    "redundancy": {
        "survives": flag("Whether every such loss can be absorbed."),
        "failing": {
            "anyOf": [{"type": "array", "items": NAME, "uniqueItems": True}, map_of(_REFUSAL)],
            "description": "All nodes whose loss cannot be absorbed, or for each of them what the others have too"
            " little of. Several nodes at once: node1 + node2.",
        },
    },
}
"""The possible expectations of each action."""
