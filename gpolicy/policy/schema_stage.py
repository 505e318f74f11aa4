"""The JSON Schema of the cluster of a test: a snapshot or simulated hardware, and changes to it."""

from __future__ import annotations

from typing import Final

from gpolicy.policy.schema_parameters import (
    COUNT,
    SIZE,
    TAG,
    Schema,
    count_of,
    described,
    flag,
    list_of,
    name_of,
    object_of,
    size_of,
)

MOST_NODES: Final = 1000
"""Simulated nodes of one test."""

FILLINGS: Final = {"empty": 0, "quarter-full": 1, "half-full": 2, "three-quarter-full": 3, "full": 4}
"""How full a simulated node is, in quarters."""


_WORDS: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 1000}


def cluster_of_test() -> Schema:
    """Return the schema of `on`."""
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
            "description": "Simulated hardware: of one group, or a list with an entry for each group.",
        },
        "edits": list_of(
            _edit(), "Changes to this cluster before the question: nodes, instances, tags.", least=1, most=200
        ),
    }
    return object_of(
        properties,
        "The cluster, under the policy. Without it (or with `edits` alone): the hardware that the groups"
        " promise, on the nodes that they name.",
        minimum=1,
    )


def _hardware(*, one_node: bool) -> Schema:
    whose = "the node" if one_node else "each node"
    return {
        "memory": size_of(f"Memory of {whose}. Default: the group's promised hardware."),
        "memory_node": size_of(f"Memory that {whose} uses itself. Default: mem_node of the hypervisor's hv_state."),
        "cpus": count_of("cpus", f"Logical CPUs of {whose}. Default: the group's promised hardware.", least=1),
        "disk": size_of(f"Disk of {whose}, where no physical volumes are given."),
        "spindles": count_of(
            "spindles", f"Spindles of {whose} (node parameter spindle_count) where storage is not exclusive."
        ),
        "pv_size": size_of(f"Size of each physical volume of {whose}."),
        "pv_count": count_of("pv_count", f"Physical volumes of {whose}."),
    }


def simulated_group() -> Schema:
    """Return the schema of the simulated nodes of one group."""
    node = object_of(
        {
            "name": name_of("Name of the node."),
            **_hardware(one_node=True),
            "pvs": list_of({**SIZE}, "Size of each physical volume, where they differ.", least=1, most=1000),
            "filled": {"enum": list(FILLINGS), "description": "How full the node is. Default: empty."},
            "offline": flag("True: the node is offline."),
            "drained": flag("True: the node is drained."),
            "tags": list_of(TAG, "Tags beside those of the policy's node sets."),
        },
        required=("name",),
    )
    properties: Schema = {
        "group": name_of("Group of the nodes. It can be left out when the policy declares one group."),
        **_hardware(one_node=False),
        "nodes": {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_NODES},
                object_of(
                    {name: described(COUNT, f"Nodes that are {name.replace('-full', ' full')}.") for name in FILLINGS},
                    minimum=1,
                ),
                {"type": "array", "items": node, "minItems": 1, "maxItems": MOST_NODES},
            ],
            "description": "How many nodes (node-1, node-2, …); how many of each filling (a single one has the filling"
            " as its name: half-full; of several: half-full-1, half-full-2, …); or the nodes by name. Numbers go on"
            " from group to group: after node-3 of one follows node-4 of the next.",
        },
        "instances": list_of(
            {"$ref": "#/definitions/existingInstance"}, "Instances that are there already.", most=20_000
        ),
    }
    return object_of(properties, required=("nodes",))


def _edit() -> Schema:
    properties: Schema = {
        "node": name_of("A node to change."),
        "offline": flag("Whether the node is offline."),
        "drained": flag("Whether the node is drained."),
        "group": name_of("The group of the node."),
        "instance": name_of("An instance to change."),
        "add_tags": list_of(TAG, "Tags to add.", least=1),
        "remove_tags": list_of(TAG, "Tags to remove.", least=1),
        "add_instance": {"$ref": "#/definitions/existingInstance"},
        "remove_instance": name_of("The name of an instance to remove."),
        "remove_node": name_of("The name of a node to remove; no instance may be on it."),
        "with": {
            **_WORDS,
            "examples": ["2x like:node1 in shared"],
            "description": "More of something: `2x like:NODE in GROUP` for empty nodes, `10x SPEC in GROUP` for"
            " instances at the minimum of a spec (SPEC:max: at its maximum), where the allocator places them.",
        },
        "upgrade": {
            **_WORDS,
            "examples": ["node1 memory=+64G"],
            "description": "Other hardware in nodes: `NODE,... memory=+64G disk=4T cpus=32 pvs=+1`.",
        },
        "lost": {
            **_WORDS,
            "examples": ["node1,node2"],
            "description": "Nodes that are lost (names with commas, or globs): offline, their DRBD instances failed"
            " over where Ganeti does it.",
        },
    }
    whats = ("node", "instance", "add_instance", "remove_instance", "remove_node", "with", "upgrade", "lost")
    return {**object_of(properties, minimum=1), "oneOf": [{"required": [what]} for what in whats]}
