"""Groups, their nodes, and documents that extend others."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Seed, defect, mib, slips, typo


def _real(base: Base) -> list[Document]:
    return [document for document in base.documents("NodeGroup") if not document.data.get("template")]


@defect("groups", "an object described twice", "Which of the two holds?")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeGroup", "NodeSet"):
        if not document.data.get("template"):
            yield document.beside("again", copy.deepcopy(document.data))
    for document in base.first("Cluster"):
        yield document.beside("a second cluster", {"gpolicy": "v1", "kind": "Cluster", "name": "other.example.org"})


@defect("groups", "the name of another group", "Two documents of one group, and one group without any.")
def _(base: Base) -> Iterator[Seed]:
    groups = _real(base)
    for document in groups:
        for other in groups:
            if other.data["name"] != document.data["name"]:
                yield document.put(("name",), other.data["name"])


@defect("groups", "a node in two groups", "A node is in one group.")
def _(base: Base) -> Iterator[Seed]:
    groups = [document for document in _real(base) if document.data.get("nodes")]
    for document in groups:
        for other in groups:
            if other is not document:
                yield document.put(("nodes",), [*document.data["nodes"], other.data["nodes"][0]])


@defect("groups", "a pattern with a slip", "It matches nothing, or not what was meant.")
def _(base: Base) -> Iterator[Seed]:
    for document in _real(base):
        for index, node in enumerate(document.data.get("nodes", [])):
            if "[" in node:
                first, last = node[node.index("[") + 1], node[node.index("]") - 1]
                yield document.put(("nodes", index), node.replace("]", "", 1))
                yield document.put(("nodes", index), node.replace(f"[{first}-{last}]", f"[{last}-{first}]"))
                yield document.put(("nodes", index), node.replace(f"[{first}-{last}]", f"{{{first}..{last}}}"))
            elif "*" in node:
                yield document.put(("nodes", index), node.replace("*", "[", 1))


@defect("groups", "all nodes for one group", "The pattern * takes the nodes of every other group.")
def _(base: Base) -> Iterator[Seed]:
    groups = [document for document in _real(base) if document.data.get("nodes")]
    for document in groups if len(groups) > 1 else ():
        yield document.put(("nodes",), ["*"])


@defect(
    "groups",
    "a group that is renamed from itself or from one that stays",
    "The old name must go and the new one must not be there.",
)
def _(base: Base) -> Iterator[Seed]:
    groups = _real(base)
    for document in groups:
        yield document.put(("renamed_from",), document.data["name"])
        for other in groups:
            if other.data["name"] != document.data["name"] and "renamed_from" not in other.data:
                yield document.put(("renamed_from",), other.data["name"])


@defect("groups", "a group removed that is still to have nodes", "It must be empty by then.")
def _(base: Base) -> Iterator[Seed]:
    for document in _real(base):
        if document.data.get("nodes") and len(_real(base)) > 1:
            yield document.put(("removed",), True)


@defect("groups", "the last group removed", "Ganeti keeps at least one group (T52).")
def _(base: Base) -> Iterator[Seed]:
    groups = _real(base)
    if len(groups) == 1:
        yield groups[0].edit("removed", lambda root: (root.update(removed=True), root.pop("nodes", None)))


@defect("groups", "no group left that takes instances", "Nothing can be created without naming nodes by hand.")
def _(base: Base) -> Iterator[Seed]:
    groups = _real(base)
    others = [document.data.get("alloc_policy") for document in groups[1:]]
    if groups and all(policy == "unallocable" for policy in others):
        yield groups[0].put(("alloc_policy",), "unallocable")


@defect(
    "groups",
    "the only home of its sizes closed",
    "Its pairs are legal nowhere else: none of these sizes can be created.",
)
def _(base: Base) -> Iterator[Seed]:
    groups = _real(base)
    common = next((document.data.get("ipolicy", {}).get("minmax") for document in base.first("Cluster")), None)
    for document in groups if len(groups) > 1 else ():
        own = document.data.get("ipolicy", {}).get("minmax")
        others = [other.data.get("ipolicy", {}).get("minmax") for other in groups if other is not document]
        elsewhere = [pair for pairs in others for pair in (pairs if isinstance(pairs, list) else common or [])]
        if isinstance(own, list) and any(not any(_meet(pair, other) for other in elsewhere) for pair in own):
            yield document.put(("alloc_policy",), "unallocable")


def _meet(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether some size lies in both pairs."""
    return all(
        mib(one["min"][key]) <= mib(other["max"][key]) and mib(other["min"][key]) <= mib(one["max"][key])
        for key in one["min"]
    )


@defect("groups", "a set that chooses nothing", "Neither nodes nor groups: it applies to no node.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeSet"):
        yield document.drop(("nodes",))
        yield document.put(("nodes",), [])


@defect("groups", "a set of the nodes of an unknown group", "There is no such group.")
def _(base: Base) -> Iterator[Seed]:
    names = [document.data["name"] for document in _real(base)]
    for document in base.documents("NodeSet") if names else ():
        yield document.put(("groups",), [typo(names[0], slips(f"{base.name} {names[0]}"))])


@defect("groups", "a node's parameter set twice", "Two sets choose the node and disagree: which holds?")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeSet"):
        if document.data.get("ndparams"):
            again = {**copy.deepcopy(document.data), "name": "again", "ndparams": {"spindle_count": 9}}
            yield document.beside("another set with another number", again)


@defect("extends", "a base that is not there", "Nothing is inherited from it.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        named = document.data.get("extends")
        if named:
            yield document.put(
                ("extends",), typo(named.partition("#")[0], slips(named)) + "#" + named.partition("#")[2]
            )
            yield document.put(("extends",), f"{named}s")
            yield document.put(("extends",), named.replace("#", "/"))


@defect(
    "extends", "an object that extends itself, or the wrong kind", "There is no end to it, or nothing of that kind."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        named = document.data.get("extends")
        if named:
            wrong = {"Cluster": "../base.yaml#compute", "NodeGroup": "../base.yaml#fleet"}[document.kind]
            yield document.put(("extends",), wrong)
            if named.partition("#")[2] != document.data["name"]:  # the base of that name would be meant
                yield document.put(("extends",), document.data["name"])


@defect("extends", "a base that nobody extends", "What it says goes nowhere.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeGroup"):
        if not document.data.get("template"):
            yield document.put(("template",), True)


@defect("extends", "a base that is no longer marked as one", "It becomes a second cluster, or a group of the cluster.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        if document.data.get("template"):
            yield document.drop(("template",))


@defect("extends", "a member that takes away what its base rests on", "The base's std or templates no longer fit.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        if document.data.get("extends"):
            yield document.put(("enabled_disk_templates",), ["plain"])
            yield document.put(("ipolicy", "disk-templates"), ["drbd", "rbd"])
            yield document.put(("diskparams", "drbd", "c-max-rate"), "2M")
            yield document.put(("ipolicy", "std"), {"memory-size": "14G"})
