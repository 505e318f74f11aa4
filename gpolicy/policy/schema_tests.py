"""The JSON Schema of Test documents: the cluster, what is done on it, and what must come out."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy.schema_parameters import NAME, SIZE, Schema

MOST_NODES: Final = 1000
"""Simulated nodes of one test."""

MOST_TESTS: Final = 1000
"""Tests of one document."""

FILLINGS: Final = {"empty": 0, "quarter-full": 1, "half-full": 2, "three-quarter-full": 3, "full": 4}
"""How full a simulated node is, in quarters."""

REFUSALS: Final = (
    "memory",
    "n1-reserve",
    "disk",
    "spindles",
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
    "oversubscription",
)
"""Why no more fits: the keys that `gpolicy capacity` and `gpolicy place` show."""

_TAG: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_.+*/:@-]{1,128}$"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
_NODES: Final[Schema] = {"type": "array", "items": NAME, "minItems": 1, "maxItems": 2, "uniqueItems": True}


def test_items() -> Schema:
    """Return the schema of one test."""
    return {
        "type": "object",
        "properties": {
            "name": {**NAME, "description": "What the test shows."},
            "description": {"type": "string", "description": "For people; gpolicy does not read it."},
            "on": _cluster(),
            "place": {**_wanted(), "description": "Ask where a new instance would go (as hail decides)."},
            "check_instance": {**_checked(), "description": "Ask whether the policy lets an instance be."},
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


def _expected(action: str, keys: Schema) -> Schema:
    return {**_object(keys, minimum=1), "description": f"What must come out of `{action}`."}


def _object(properties: Schema, *, required: tuple[str, ...] = (), minimum: int = 0) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    if minimum:
        schema["minProperties"] = minimum
    return schema


def _map(of: Schema) -> Schema:
    """Return a mapping of names that the policy chooses (specs, nodes) to values."""
    return {"type": "object", "additionalProperties": of, "minProperties": 1}


# --- the cluster -------------------------------------------------------------------------------------------------


def definitions() -> dict[str, Schema]:
    """Return the parts of the schema that are used in several places, by name."""
    return {"simulatedGroup": _simulated(), "existingInstance": _existing()}


def _cluster() -> Schema:
    part = {"$ref": "#/definitions/simulatedGroup"}
    properties: Schema = {
        "snapshot": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "File that `gpolicy snapshot` wrote, by its path from this document. It must lie in the"
            " directory of the policy.",
        },
        "simulate": {
            "anyOf": [part, {"type": "array", "items": part, "minItems": 1}],
            "description": "Hardware that exists on paper only: of one group, or a list with an entry for each group.",
        },
        "edits": {
            "type": "array",
            "items": _edit(),
            "minItems": 1,
            "description": "What is different on this cluster: nodes that are offline, instances more or less, tags.",
        },
    }
    return {
        **_object(properties, minimum=1),
        "description": "The cluster, under the policy. Without it (or with `edits` alone): the hardware that the groups"
        " promise, on the nodes that they name.",
    }


def _hardware(*, one_node: bool) -> Schema:
    whose = "the node" if one_node else "each node"
    return {
        "memory": {**SIZE, "description": f"Memory of {whose}. Default: the group's promised hardware."},
        "memory_node": {
            **SIZE,
            "description": f"Memory that {whose} uses itself. Default: mem_node of the hypervisor's hv_state.",
        },
        "cpus": {
            **_COUNT,
            "minimum": 1,
            "description": f"Logical CPUs of {whose}. Default: the group's promised hardware.",
        },
        "disk": {**SIZE, "description": f"Disk of {whose}, where no physical volumes are given."},
        "spindles": {
            **_COUNT,
            "description": f"Spindles of {whose} (node parameter spindle_count) where storage is not exclusive.",
        },
        "pv_size": {**SIZE, "description": f"Size of each physical volume of {whose}."},
        "pv_count": {**_COUNT, "description": f"Physical volumes of {whose}."},
    }


def _simulated() -> Schema:
    node = _object(
        {
            "name": {**NAME, "description": "Name of the node."},
            **_hardware(one_node=True),
            "pvs": {
                "type": "array",
                "items": {**SIZE},
                "minItems": 1,
                "maxItems": 1000,
                "description": "Size of each physical volume, where they differ.",
            },
            "filled": {"enum": list(FILLINGS), "description": "How full the node is. Default: empty."},
            "offline": {"type": "boolean", "description": "True: the node is offline."},
            "drained": {"type": "boolean", "description": "True: the node is drained."},
            "tags": {"type": "array", "items": _TAG, "description": "Tags beside those of the policy's node sets."},
        },
        required=("name",),
    )
    properties: Schema = {
        "group": {**NAME, "description": "Group of the nodes. It can be left out when the policy declares one group."},
        **_hardware(one_node=False),
        "nodes": {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_NODES},
                {
                    **_object(
                        {
                            filling: {**_COUNT, "description": f"Nodes that are {filling.replace('-full', ' full')}."}
                            for filling in FILLINGS
                        },
                        minimum=1,
                    )
                },
                {"type": "array", "items": node, "minItems": 1, "maxItems": MOST_NODES},
            ],
            "description": "How many nodes (node-1, node-2, …); how many of each filling (a single one has the filling"
            " as its name: half-full; of several: half-full-1, half-full-2, …); or the nodes by name.",
        },
        "instances": {
            "type": "array",
            "items": {"$ref": "#/definitions/existingInstance"},
            "maxItems": 20_000,
            "description": "Instances that are there already.",
        },
    }
    return _object(properties, required=("nodes",))


def _edit() -> Schema:
    properties: Schema = {
        "node": {**NAME, "description": "A node of which something is different."},
        "offline": {"type": "boolean", "description": "Whether the node is offline."},
        "drained": {"type": "boolean", "description": "Whether the node is drained."},
        "group": {**NAME, "description": "The group that the node is in."},
        "instance": {**NAME, "description": "An instance of which something is different."},
        "add_tags": {"type": "array", "items": _TAG, "minItems": 1, "description": "Tags that it has as well."},
        "remove_tags": {"type": "array", "items": _TAG, "minItems": 1, "description": "Tags that it has not."},
        "add_instance": {"$ref": "#/definitions/existingInstance"},
        "remove_instance": {**NAME, "description": "One instance less."},
        "remove_node": {**NAME, "description": "One node less; no instance may be on it."},
    }
    whats = ("node", "instance", "add_instance", "remove_instance", "remove_node")
    return {**_object(properties, minimum=1), "oneOf": [{"required": [what]} for what in whats]}


# --- instances ---------------------------------------------------------------------------------------------------


def _sizes() -> Schema:
    disk = _object(
        {
            "size": {**SIZE, "description": "Size of the disk."},
            "spindles": {**_COUNT, "description": "Physical volumes of the disk (exclusive storage)."},
        },
        required=("size",),
    )
    return {
        "group": {**NAME, "description": "Group. For `place`: the one that is asked for."},
        "spec": {**NAME, "description": "Named spec pair; its least size is meant, and other keys win over it."},
        "bound": {"enum": ["min", "max"], "description": "Which end of the spec is meant. Default: min."},
        "memory-size": {**SIZE, "description": "Memory."},
        "cpu-count": {**_COUNT, "description": "Virtual CPUs."},
        "disks": {
            "type": "array",
            "items": {"anyOf": [*SIZE["anyOf"], disk]},
            "maxItems": 100,
            "description": "Size of each disk.",
        },
        "spindle-use": {**_COUNT, "description": "Spindle use (where storage is not exclusive)."},
        "nic-count": {**_COUNT, "description": "Network interfaces."},
        "disk-template": {"type": "string", "description": "Disk template. Default: the first enabled one allowed."},
        "tags": {"type": "array", "items": _TAG, "description": "Tags of the instance."},
    }


def _wanted() -> Schema:
    return _object(_sizes(), minimum=1)


def _checked() -> Schema:
    minimal = {"minmem": {**SIZE, "description": "Least memory, where it differs from memory-size (the most)."}}
    return _object({**_sizes(), **minimal}, minimum=1)


def _existing() -> Schema:
    own: Schema = {
        "minmem": {**SIZE, "description": "Least memory, where it differs from memory-size (the most)."},
        "name": {**NAME, "description": "Name of the instance."},
        "nodes": {**_NODES, "description": "Primary node, and secondary node."},
        "running": {"type": "boolean", "description": "Whether it runs. Default: true."},
        "offline": {
            "type": "boolean",
            "description": "True: it is offline (gnt-instance modify --offline), its memory and CPUs are given back.",
        },
        "count": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": "How many of them: NAME-1, …"},
    }
    sizes = {key: value for key, value in _sizes().items() if key != "group"}
    schema = _object({**own, **sizes}, required=("name", "nodes"))
    return {**schema, "description": "An instance that is there already."}


# --- what is done ------------------------------------------------------------------------------------------------


def _capacity() -> Schema:
    properties: Schema = {
        "group": {**NAME, "description": "Count in this group alone. Default: the only one; else the whole cluster."},
        "disk-template": {"type": "string", "description": "Disk template. Default: the first enabled one allowed."},
        "standard": {
            **_object(_standard(), minimum=1),
            "description": "A standard instance for this test, where it is not the policy's `std`.",
        },
        "without": {
            "type": "array",
            "items": {"enum": ["reserved_mem_rtotal"]},
            "minItems": 1,
            "uniqueItems": True,
            "description": "Components of the cluster score that do not count, to see what they are for. Standard"
            " instances only.",
        },
        "max_node_failures": {
            "type": "integer",
            "minimum": 0,
            "maximum": 8,
            "description": "Keep room for the loss of so many nodes at once (resource model). Default: as hspace, 1.",
        },
        "resource_model": {
            "type": "boolean",
            "description": "True: what is free follows from hv_state and disk_state, not from what nodes measure.",
        },
        "oversubscription": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "The sum of the most memory of a node's instances may be so many times what it has for them"
            " (resource model). Each is guaranteed the least memory of its spec and may burst to the most.",
        },
    }
    return {**_object(properties), "description": "Count how many instances fit, as hspace does."}


def _standard() -> Schema:
    return {
        name: {**(SIZE if name.endswith("-size") else _COUNT), "description": f"Its {name}."}
        for name in SPEC_PARAMETERS
        if name in ("memory-size", "cpu-count", "disk-size", "spindle-use")
    }


def _redundancy() -> Schema:
    properties: Schema = {
        "group": {**NAME, "description": "The group. It can be left out when there is one."},
        "failures": {
            "type": "integer",
            "minimum": 1,
            "maximum": 8,
            "description": "How many nodes are lost at once. Default: 1.",
        },
    }
    return {**_object(properties), "description": "Ask which losses of nodes can be absorbed."}


# --- what must come out ------------------------------------------------------------------------------------------

_FITS: Final[Schema] = {
    "anyOf": [
        _COUNT,
        _object(
            {
                "at_least": {**_COUNT, "description": "So many, or more."},
                "at_most": {**_COUNT, "description": "So many, or fewer."},
                "exactly": {**_COUNT, "description": "Just so many."},
            },
            minimum=1,
        ),
    ]
}
_REFUSAL: Final[Schema] = {"enum": list(REFUSALS)}
_LOST: Final[Schema] = _map(_COUNT)
_CANDIDATE: Final[Schema] = _object(
    {
        "refused": {"type": "boolean", "description": "Whether the node cannot take it."},
        "because": {**_REFUSAL, "description": "Why the node cannot take it."},
        "lost_allocations": {**_LOST, "description": "Instances of each spec that no longer fit on the node then."},
        "disk_left": {**SIZE, "description": "Disk that is left on the node then."},
    },
    minimum=1,
)

EXPECTATIONS: Final[dict[str, Schema]] = {
    "place": {
        "refused": {"type": "boolean", "description": "Whether it cannot be placed."},
        "because": {**_REFUSAL, "description": "What keeps it out on most nodes."},
        "group": {**NAME, "description": "The group that is chosen."},
        "node": {**NAME, "description": "The node that is chosen, for the primary."},
        "nodes": {**_NODES, "description": "The nodes that are chosen: primary, secondary."},
        "lost_allocations": {
            **_LOST,
            "description": "Instances of each spec that no longer fit on the chosen node (dedicated allocation).",
        },
        "disk_left": {**SIZE, "description": "Disk that is left on the chosen node."},
        "preference": {
            "type": "array",
            "items": NAME,
            "minItems": 2,
            "uniqueItems": True,
            "description": "Nodes in the order of preference: each would be chosen before those behind it.",
        },
        "candidates": {**_map(_CANDIDATE), "description": "What is said of single nodes, by name."},
    },
    "check_instance": {
        "refused": {"type": "boolean", "description": "Whether the policy does not let the instance be."},
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
        "specs": {**_map(_FITS), "description": "How many of each spec fit, alone, at its largest size."},
        "standard": {**_FITS, "description": "How many standard instances fit."},
        "tiered": {
            "anyOf": [*_FITS["anyOf"], _object({"specs": {**_map(_FITS), "description": "By spec."}}, minimum=1)],
            "description": "How many instances tiered allocation places: all, or `specs:` for each spec pair.",
        },
        "binding": {
            "anyOf": [_REFUSAL, _map(_REFUSAL)],
            "description": "What keeps out one more: of the standard instance, or by spec.",
        },
    },
    "redundancy": {
        "survives": {"type": "boolean", "description": "Whether every such loss can be absorbed."},
        "failing": {
            "anyOf": [{"type": "array", "items": NAME, "uniqueItems": True}, _map(_REFUSAL)],
            "description": "All nodes whose loss cannot be absorbed, or by node what there is too little of."
            " Of several that are lost at once: node1 + node2.",
        },
    },
}
"""What can be expected of each action."""
