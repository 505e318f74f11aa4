"""The JSON Schema of Test documents: the cluster, the question, the expected answer, and instances in all of them."""

from __future__ import annotations

from typing import Final

from gpolicy.data import read_data
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, SCORE_COMPONENTS, SPEC_PARAMETERS
from gpolicy.policy.conformance import Schema
from gpolicy.policy.scenario import FILLINGS, MOST_NODES
from scripts.schemas.parameters import (
    COUNT,
    NAME,
    NODES,
    SHAPE,
    SIZE,
    TAG,
    amount_of,
    count_of,
    described,
    flag,
    list_of,
    map_of,
    name_of,
    node_failures,
    object_of,
    oversubscription,
    size_of,
    whole,
)

MOST_TESTS: Final = 1000
"""Tests of one document."""


def test_items() -> Schema:
    """Return the schema of one test."""
    expected = {
        action: object_of(keys, f"What must come out of `{action}`.", minimum=1)
        for action, keys in EXPECTATIONS.items()
    }
    return {
        "type": "object",
        "properties": {
            "name": name_of("What the test shows."),
            "description": {"type": "string", "description": "For people; gpolicy does not read it."},
            "on": cluster_of_test(),
            "place": object_of(
                {**_sizes(), "ignore_ipolicy": flag("True: ignore the sizes and disk templates of the policy.")},
                "Ask where a new instance would go (as hail decides).",
                minimum=1,
            ),
            "check_instance": object_of(_sizes(), "Ask whether the policy allows an instance.", minimum=1),
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
            {"if": {"required": [action]}, "then": {"properties": {"expect": schema}}}
            for action, schema in expected.items()
        ],
        "additionalProperties": False,
    }


def _capacity() -> Schema:
    standard = {name: amount_of(name) for name in ("memory-size", "cpu-count", "disk-size", "spindle-use")}
    properties: Schema = {
        "group": name_of("Count in this group alone. Default: the only one; else the whole cluster."),
        "disk-template": TEMPLATE,
        "standard": object_of(standard, "The standard instance of this test. Default: the policy's `std`.", minimum=1),
        "without": list_of(
            {"enum": list(SCORE_COMPONENTS)},
            "Components of the cluster score that do not count, to see their influence.",
            least=1,
            unique=True,
        ),
        "weights": object_of(
            {
                name: {"type": "number", "minimum": 0, "maximum": 1000, "description": f"Weight of {name}."}
                for name in SCORE_COMPONENTS
            },
            "Other weights of components of the cluster score than Ganeti's, as `--weight`.",
            minimum=1,
        ),
        "max_node_failures": node_failures(
            "Keep room for the loss of this many nodes at once (resource model). Default: as the limits"
            " of the group say; without limits as hail, 1 (0 on exclusive storage)."
        ),
        "resource_model": flag("True: what is free follows from hv_state and disk_state, not from what nodes measure."),
        "oversubscription": oversubscription(
            "The sum of the most memory of a node's instances may be so many times what it has for them"
            " (resource model). Each is guaranteed the least memory of its size and may burst to the most."
            " Default: as the limits of the group say."
        ),
        "cpus_after_failure": flag(
            "Whether nodes that take over after a failure must keep their vcpu-ratio. Default: as the"
            " limits of the group say, or false."
        ),
    }
    return object_of(properties, "Count how many instances fit: what hail accepts one after another.")


def _redundancy() -> Schema:
    properties: Schema = {
        "group": name_of("The group. It can be left out when there is one."),
        "failures": node_failures(
            "How many nodes are lost at once. Default: max_node_failures of the group's limits, or 1.", least=1
        ),
        "cpus_after_failure": flag(
            "Whether nodes that take over must keep their vcpu-ratio. Default: as the group's limits say, or true."
        ),
    }
    return object_of(properties, "Ask which losses of nodes can be absorbed.")


TEMPLATE: Final[Schema] = {
    SHAPE: "disk-template",
    "enum": list(DISK_TEMPLATES),
    "description": "Disk template. Default: the first of the policy that is enabled.",
}


def _sizes() -> Schema:
    disk = object_of(
        {
            "size": size_of("Size of the disk."),
            "spindles": count_of("spindles", "Physical volumes of the disk (exclusive storage)."),
        },
        required=("size",),
    )
    return {
        "group": name_of("Group. For `place`: the one that is asked for."),
        "spec": name_of("Named size: the instance is this size at its smallest; other keys win over it."),
        "bound": {"enum": ["min", "max"], "description": "The size at its smallest (min, the default) or largest."},
        "memory-size": size_of("Memory."),
        "minmem": size_of("Least memory, if it differs from memory-size (the greatest)."),
        "cpu-count": count_of("cpu-count", "Virtual CPUs."),
        "disks": {SHAPE: "disks"} | list_of({"anyOf": [*SIZE["anyOf"], disk]}, "Size of each disk.", most=100),
        "spindle-use": count_of("spindle-use", "Spindle use (where storage is not exclusive)."),
        "nic-count": count_of("nic-count", "Network interfaces."),
        "disk-template": TEMPLATE,
        "tags": list_of(TAG, "Tags of the instance."),
    }


def existing_instance() -> Schema:
    """Return the schema of instances that are there already."""
    own: Schema = {
        "name": name_of("Name of the instance."),
        "nodes": described(NODES, "Primary node, and secondary node."),
        "running": flag("Whether it runs. Default: true."),
        "offline": flag("True: it is offline (gnt-instance modify --offline), its memory and CPUs are given back."),
        "count": whole("How many of them: NAME-1, …", least=1, most=10_000),
    }
    sizes = {key: value for key, value in _sizes().items() if key != "group"}
    schema = object_of({**own, **sizes}, required=("name", "nodes"))
    return {**schema, "description": "An instance that is there already."}


_FITS: Final[Schema] = {
    SHAPE: "number-that-fits",
    "anyOf": [
        COUNT,
        object_of(
            {
                "at_least": described(COUNT, "This many or more."),
                "at_most": described(COUNT, "This many or fewer."),
                "exactly": described(COUNT, "Exactly this many."),
            },
            minimum=1,
        ),
    ],
}
_REFUSAL: Final[Schema] = {
    SHAPE: "binding-resource",
    "enum": read_data("known_words.toml")["words"]["binding_resources"],
}
_LOST: Final[Schema] = map_of(COUNT)
_CANDIDATE: Final[Schema] = object_of(
    {
        "refused": flag("Whether the node cannot take it."),
        "because": described(_REFUSAL, "Why the node cannot take it."),
        "lost_allocations": described(_LOST, "Instances of each size that would no longer fit on the node."),
        "disk_left": size_of("Free disk space that would be left on the node."),
    },
    minimum=1,
)

EXPECTATIONS: Final[dict[str, Schema]] = {
    "place": {
        "refused": flag("Whether it cannot be placed."),
        "because": described(_REFUSAL, "Why most nodes cannot take it."),
        "group": name_of("The group that is chosen."),
        "node": name_of("The node that is chosen, for the primary."),
        "nodes": described(NODES, "The nodes that are chosen: primary, secondary."),
        "lost_allocations": described(
            _LOST, "Instances of each size that no longer fit on the chosen node (dedicated allocation)."
        ),
        "disk_left": size_of("Free disk space that is left on the chosen node."),
        "preference": list_of(NAME, "Nodes, the most preferred first.", least=2, unique=True),
        "candidates": described(map_of(_CANDIDATE), "What must come out for single nodes, by name."),
    },
    "check_instance": {
        "refused": flag("Whether the policy refuses the instance."),
        "because": {
            "anyOf": [
                {"enum": [*SPEC_PARAMETERS, "disk-templates", "spindles"]},
                list_of({"enum": [*SPEC_PARAMETERS, "disk-templates", "spindles"]}, least=1),
            ],
            "description": "The parameters that are outside the nearest size; all of them in a list.",
        },
        "pair": name_of("The size that takes the instance; if it is refused, the nearest one."),
    },
    "capacity": {
        "specs": described(map_of(_FITS), "How many of each size fit, alone, at its largest."),
        "standard": described(_FITS, "How many standard instances fit."),
        "tiered": {
            "anyOf": [*_FITS["anyOf"], object_of({"specs": described(map_of(_FITS), "By size.")}, minimum=1)],
            "description": "How many instances tiered allocation places: all, or `specs:` for each size.",
        },
        "binding": {
            "anyOf": [_REFUSAL, map_of(_REFUSAL)],
            "description": "Why no more instances fit: standard ones, or those of each size.",
        },
    },
    "redundancy": {
        "survives": flag("Whether every such loss can be absorbed."),
        "failing": {
            "anyOf": [list_of(NAME, unique=True), map_of(_REFUSAL)],
            "description": "All nodes whose loss cannot be absorbed, or for each of them what the others have too"
            " little of. Several nodes at once: node1 + node2.",
        },
    },
}
"""The possible expectations of each action."""


_WORDS: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 1000}


def cluster_of_test() -> Schema:
    """Return the schema of `on`."""
    part = {"$ref": "#/definitions/simulatedGroup"}
    properties: Schema = {
        "snapshot": described(
            _WORDS,
            "File that `gpolicy snapshot` wrote, by its path from this document. It must lie in the directory of the"
            " policy.",
        ),
        "simulate": {
            "anyOf": [part, list_of(part, least=1)],
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
                list_of(node, least=1, most=MOST_NODES),
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


def _words_like(example: str, text: str) -> Schema:
    return {**_WORDS, "examples": [example], "description": text}


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
        "with": _words_like(
            "2x like:node1 in shared",
            "More of something: `2x like:NODE in GROUP` for empty nodes, `10x SIZE in GROUP` for instances of a"
            " size at its smallest (SIZE:max: at its largest), where the allocator places them.",
        ),
        "upgrade": _words_like(
            "node1 memory=+64G", "Other hardware in nodes: `NODE,... memory=+64G disk=4T cpus=32 pvs=+1`."
        ),
        "lost": _words_like(
            "node1,node2",
            "Nodes that are lost (names with commas, or globs): offline, their DRBD instances failed over where Ganeti"
            " does it.",
        ),
    }
    whats = ("node", "instance", "add_instance", "remove_instance", "remove_node", "with", "upgrade", "lost")
    return {**object_of(properties, minimum=1), "oneOf": [{"required": [what]} for what in whats]}
