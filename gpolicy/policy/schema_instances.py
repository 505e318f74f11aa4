"""The JSON Schema of the instances of tests."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.vocabulary import DISK_TEMPLATES
from gpolicy.policy.schema_parameters import (
    NAME,
    NODES,
    SHAPE,
    SIZE,
    TAG,
    Schema,
    count_of,
    flag,
    list_of,
    object_of,
    whole,
)

TEMPLATE: Final[Schema] = {
    SHAPE: "disk-template",
    "enum": list(DISK_TEMPLATES),
    "description": "Disk template. Default: the first of the policy that is enabled.",
}


def _sizes() -> Schema:
    disk = object_of(
        {
            "size": {**SIZE, "description": "Size of the disk."},
            "spindles": {**count_of("spindles"), "description": "Physical volumes of the disk (exclusive storage)."},
        },
        required=("size",),
    )
    return {
        "group": {**NAME, "description": "Group. For `place`: the one that is asked for."},
        "spec": {**NAME, "description": "Named spec pair; its least size is meant, and other keys win over it."},
        "bound": {"enum": ["min", "max"], "description": "Which end of the spec is meant. Default: min."},
        "memory-size": {**SIZE, "description": "Memory."},
        "minmem": {**SIZE, "description": "Least memory, if it differs from memory-size (the greatest)."},
        "cpu-count": {**count_of("cpu-count"), "description": "Virtual CPUs."},
        "disks": {SHAPE: "disks"} | list_of({"anyOf": [*SIZE["anyOf"], disk]}, "Size of each disk.", most=100),
        "spindle-use": {**count_of("spindle-use"), "description": "Spindle use (where storage is not exclusive)."},
        "nic-count": {**count_of("nic-count"), "description": "Network interfaces."},
        "disk-template": TEMPLATE,
        "tags": list_of(TAG, "Tags of the instance."),
    }


def wanted_instance() -> Schema:
    """Return the schema of a new instance."""
    ignore = flag("True: ignore the sizes and disk templates of the policy.")
    return object_of({**_sizes(), "ignore_ipolicy": ignore}, minimum=1)


def checked_instance() -> Schema:
    """Return the schema of an instance that is checked against the policy."""
    return object_of(_sizes(), minimum=1)


def existing_instance() -> Schema:
    """Return the schema of existing instances."""
    own: Schema = {
        "name": {**NAME, "description": "Name of the instance."},
        "nodes": {**NODES, "description": "Primary node, and secondary node."},
        "running": flag("Whether it runs. Default: true."),
        "offline": flag("True: it is offline (gnt-instance modify --offline), its memory and CPUs are given back."),
        "count": whole("How many of them: NAME-1, …", least=1, most=10_000),
    }
    sizes = {key: value for key, value in _sizes().items() if key != "group"}
    schema = object_of({**own, **sizes}, required=("name", "nodes"))
    return {**schema, "description": "An instance that is there already."}
