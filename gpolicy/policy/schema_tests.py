"""The JSON Schema of Test documents: the cluster, the question, and the expected answer."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS, SPEC_PARAMETERS
from gpolicy.policy.schema_expectations import EXPECTATIONS
from gpolicy.policy.schema_instances import TEMPLATE, checked_instance, existing_instance, wanted_instance
from gpolicy.policy.schema_parameters import NAME, SIZE, Schema, count_of, flag, list_of, object_of
from gpolicy.policy.schema_stage import cluster_of_test, simulated_group
from gpolicy.policy.schema_terms import node_failures, oversubscription

MOST_TESTS: Final = 1000
"""Tests of one document."""


def test_items() -> Schema:
    """Return the schema of one test."""
    return {
        "type": "object",
        "properties": {
            "name": {**NAME, "description": "What the test shows."},
            "description": {"type": "string", "description": "For people; gpolicy does not read it."},
            "on": cluster_of_test(),
            "place": {**wanted_instance(), "description": "Ask where a new instance would go (as hail decides)."},
            "check_instance": {**checked_instance(), "description": "Ask whether the policy allows an instance."},
            "capacity": _capacity(),
            "redundancy": _redundancy(),
            "expect": {
                "type": "object",
                "description": "What must come out. What can be expected depends on what is done.",
            },
        },
        "required": ["name", "expect"],
        "oneOf": [{"required": [action]} for action in EXPECTATIONS],
        "allOf": [
            {"if": {"required": [action]}, "then": {"properties": {"expect": _expected(action, keys)}}}
            for action, keys in EXPECTATIONS.items()
        ],
        "additionalProperties": False,
    }


def definitions() -> dict[str, Schema]:
    """Return the parts of the schema that are used in several places, by name."""
    return {"simulatedGroup": simulated_group(), "existingInstance": existing_instance()}


def _expected(action: str, keys: Schema) -> Schema:
    return {**object_of(keys, minimum=1), "description": f"What must come out of `{action}`."}


def _capacity() -> Schema:
    properties: Schema = {
        "group": {**NAME, "description": "Count in this group alone. Default: the only one; else the whole cluster."},
        "disk-template": TEMPLATE,
        "standard": {
            **object_of(_standard(), minimum=1),
            "description": "The standard instance of this test. Default: the policy's `std`.",
        },
        "without": list_of(
            {"enum": list(SCORE_COMPONENTS)},
            "Components of the cluster score that do not count, to see their influence.",
            least=1,
            unique=True,
        ),
        "weights": {
            **object_of(
                {
                    name: {"type": "number", "minimum": 0, "maximum": 1000, "description": f"Weight of {name}."}
                    for name in SCORE_COMPONENTS
                },
                minimum=1,
            ),
            "description": "Other weights of components of the cluster score than Ganeti's, as `--weight`.",
        },
        "max_node_failures": node_failures(
            "Keep room for the loss of this many nodes at once (resource model). Default: as the limits"
            " of the group say; without limits as hail, 1 (0 on exclusive storage)."
        ),
        "resource_model": flag("True: what is free follows from hv_state and disk_state, not from what nodes measure."),
        "oversubscription": oversubscription(
            "The sum of the most memory of a node's instances may be so many times what it has for them"
            " (resource model). Each is guaranteed the least memory of its spec and may burst to the most."
            " Default: as the limits of the group say."
        ),
        "cpus_after_failure": flag(
            "Whether nodes that take over after a failure must keep their vcpu-ratio. Default: as the"
            " limits of the group say, or false."
        ),
    }
    return {
        **object_of(properties),
        "description": "Count how many instances fit: what hail accepts one after another.",
    }


def _standard() -> Schema:
    return {
        name: {
            **(SIZE if name.endswith("-size") else count_of(name)),
            "description": f"{SPEC_PARAMETERS[name][0].upper()}{SPEC_PARAMETERS[name][1:]}.",
        }
        for name in SPEC_PARAMETERS
        if name in ("memory-size", "cpu-count", "disk-size", "spindle-use")
    }


def _redundancy() -> Schema:
    properties: Schema = {
        "group": {**NAME, "description": "The group. It can be left out when there is one."},
        "failures": node_failures(
            "How many nodes are lost at once. Default: max_node_failures of the group's limits, or 1.", least=1
        ),
        "cpus_after_failure": flag(
            "Whether nodes that take over must keep their vcpu-ratio. Default: as the group's limits say, or true."
        ),
    }
    return {**object_of(properties), "description": "Ask which losses of nodes can be absorbed."}
