"""Keys that are misspelt, missing, or in the wrong place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Pointer, Seed, defect, keys, shown, slips, typo

_FREE = ("candidates", "lost_allocations", "specs", "binding", "failing", "plain", "preference")
"""Mappings whose keys are names that the policy chooses."""


def _fixed_keys(data: dict[str, Any]) -> Iterator[Pointer]:
    for pointer in keys(data):
        above = pointer[:-1]
        if not (above and above[-1] in _FREE and "disk-template" not in pointer and above[-1] != "diskparams"):
            yield pointer


@defect("keys", "a key misspelt", "What stands there is not applied: there is no such parameter.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer in _fixed_keys(document.data):
            name = str(pointer[-1])
            if len(name) > 2:
                yield document.rename(pointer, typo(name, slips(f"{base.name} {shown(pointer)}")))


@defect("keys", "a size parameter misspelt", "Ganeti: Unknown parameter; all six must be there.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer in keys(document.data.get("ipolicy", {})):
            if str(pointer[-1]).endswith(("-size", "-count", "-use")):
                word = typo(str(pointer[-1]), slips(f"{base.name} {shown(pointer)}"))
                yield document.rename(("ipolicy", *pointer), word)


@defect(
    "keys", "a hyphen written as an underscore, or the other way", "The parameter has another name; there is none such."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer in _fixed_keys(document.data):
            name = str(pointer[-1])
            other = name.replace("-", "_") if "-" in name else name.replace("_", "-")
            if other != name:
                yield document.rename(pointer, other)


@defect("keys", "a key with capital letters", "Names of parameters are exact.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer in _fixed_keys(document.data):
            name = str(pointer[-1])
            yield document.rename(pointer, name.title() if len(pointer) % 2 else name.upper())


@defect(
    "keys",
    "a size parameter by its old or other name",
    "mem-size and its like were options of `gnt-cluster init` only.",
)
def _(base: Base) -> Iterator[Seed]:
    old = {
        "memory-size": "mem-size",
        "cpu-count": "vcpus",
        "disk-size": "disk",
        "nic-count": "nics",
        "disk-count": "disks",
    }
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer in keys(document.data.get("ipolicy", {})):
            if pointer[-1] in old:
                yield document.rename(("ipolicy", *pointer), old[str(pointer[-1])])


@defect("keys", "a size without one of its parameters", "Ganeti: Missing instance specs parameters.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer in keys(document.data.get("ipolicy", {})):
            if pointer[0] == "minmax" and len(pointer) == 4:
                yield document.drop(("ipolicy", *pointer))


@defect("keys", "a pair without its min or its max", "Ganeti: Missing instance specification.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer in keys(document.data.get("ipolicy", {})):
            if pointer[-1] in ("min", "max") and len(pointer) == 3:
                yield document.drop(("ipolicy", *pointer))


@defect("keys", "a document without its kind, version or name", "Nobody can tell what it describes.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        yield document.drop(("kind",))
        yield document.drop(("gpolicy",))
        if document.kind in ("Cluster", "NodeGroup", "NodeSet"):
            yield document.drop(("name",))


@defect("keys", "a guard without its measure or its name", "It guards nothing, or nobody could pass it.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Guards"):
        for index, guard in enumerate(document.data["guards"]):
            for key in guard:
                if key not in ("group", "spec"):
                    yield document.drop(("guards", index, key))


@defect("keys", "a test without an action, a name or an expectation", "It shows nothing.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Test"):
        for index, test in enumerate(document.data["tests"]):
            for key in test:
                if key != "on":
                    yield document.drop(("tests", index, key))


@defect("keys", "a cluster's parameter in a group", "Ganeti has it for the whole cluster only.")
def _(base: Base) -> Iterator[Seed]:
    spec = {"memory-size": "2G", "cpu-count": 1, "disk-size": "20G", "disk-count": 1, "nic-count": 1, "spindle-use": 1}
    for document in base.documents("NodeGroup"):
        yield document.put(("ipolicy", "std"), spec)
        yield document.put(("enabled_disk_templates",), ["plain"])
        yield document.put(("candidate_pool_size",), 3)
        yield document.put(("hvparams",), {"kvm": {"kernel_path": "/vmlinuz"}})
        yield document.put(("beparams",), {"vcpus": 2})


@defect("keys", "a group's parameter in the cluster", "Ganeti has no such parameter of the cluster.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("alloc_policy",), "preferred")
        yield document.put(("nodes",), ["node1.example.org"])
        yield document.put(("hardware",), {"memory": "64G"})
        yield document.put(("renamed_from",), "old.example.org")


@defect(
    "keys", "a parameter of nodes or groups at the wrong one", "Ganeti: global, cannot be customized at node level."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeSet"):
        yield document.put(("ndparams", "exclusive_storage"), True)
        yield document.put(("alloc_policy",), "last_resort")
        yield document.put(("ipolicy", "vcpu-ratio"), 2)
        yield document.put(("diskparams",), {"plain": {"stripes": 2}})


@defect("keys", "a parameter one level too high or too low", "It stands where no such parameter is.")
def _(base: Base) -> Iterator[Seed]:
    moved = (
        ("ipolicy", "vcpu-ratio"),
        ("ipolicy", "disk-templates"),
        ("ndparams", "exclusive_storage"),
        ("ndparams", "spindle_count"),
        ("hardware", "pv_size"),
    )
    for document in base.documents("Cluster", "NodeGroup", "NodeSet"):
        for section, key in moved:
            value = document.data.get(section, {}).get(key)
            if value is not None:

                def change(root: dict[str, Any], section: str = section, key: str = key) -> None:
                    root[key] = root[section].pop(key)

                yield document.edit(f"{key} beside {section}", change)
        if "diskparams" in document.data and "drbd" in document.data["diskparams"]:
            yield document.edit(
                "diskparams without drbd", lambda root: root.update(diskparams=root["diskparams"]["drbd"])
            )


@defect("keys", "a parameter of another disk template", "Ganeti: Provided option keys not supported.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        yield document.put(("diskparams", "plain", "resync-rate"), 61440)
        yield document.put(("diskparams", "drbd", "stripes"), 2)
        yield document.put(("diskparams", "file", "stripes"), 2)
        yield document.put(("diskparams", "gluster", "pool"), "rbd")


@defect("keys", "a ratio that only an unreleased Ganeti has", "memory-ratio: Invalid key in new ipolicy.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        yield document.put(("ipolicy", "memory-ratio"), 1.0)
