"""Guards, tests and waivers that contradict the policy or themselves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Seed, defect, leaves, slips, typo


def _guards(base: Base) -> Iterator[tuple[Document, int, dict[str, Any]]]:
    for document in base.documents("Guards"):
        for index, guard in enumerate(document.data["guards"]):
            yield document, index, guard


def _tests(base: Base, *actions: str) -> Iterator[tuple[Document, int, dict[str, Any]]]:
    for document in base.documents("Test"):
        for index, test in enumerate(document.data["tests"]):
            if not actions or any(action in test for action in actions):
                yield document, index, test


def _waiver(**more: str) -> dict[str, Any]:
    one = {"rule": "GP201", "where": "cluster", "reason": "until the move", "until": "2026-12-31", **more}
    return {"gpolicy": "v1", "kind": "Waiver", "waivers": [one]}


@defect("guards", "a guard for a group or size that is not there", "It guards nothing.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        for key in ("group", "spec"):
            if key in guard:
                yield document.put(("guards", index, key), typo(guard[key], slips(f"{base.name} {guard[key]}")))


@defect("guards", "a guard for a size of another group", "The group has no such pair: it guards nothing.")
def _(base: Base) -> Iterator[Seed]:
    pairs = {
        document.data["name"]: {pair.get("name") for pair in document.data["ipolicy"]["minmax"]}
        for document in base.documents("NodeGroup")
        if isinstance(document.data.get("ipolicy", {}).get("minmax"), list)
    }
    for document, index, guard in _guards(base):
        for group, names in pairs.items():
            if "spec" in guard and guard["spec"] not in names:
                yield document.put(("guards", index, "group"), group)


@defect("guards", "two guards of one name", "A guard is passed by its name; both would be.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        if index:
            yield document.put(("guards", index, "name"), document.data["guards"][0]["name"])
        yield document.put(("guards",), [*document.data["guards"], copy.deepcopy(guard)])


@defect("guards", "a guard with two measures", "Which one holds?")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        if "max_changes" not in guard:
            yield document.put(("guards", index, "max_changes"), 5)


@defect("guards", "a loss of more than all", "There is no more than 100 % to lose; the guard never fails.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        if "capacity_loss" in guard:
            for wrong in ("150%", "10 percent", "100%", -5):
                yield document.put(("guards", index, "capacity_loss", "at_most"), wrong)


@defect(
    "guards",
    "as many node failures to survive as the group has nodes",
    "No group survives that: the guard always fails.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        if "node_failures" in guard:
            nodes = [
                item.data.get("nodes", [])
                for item in base.documents("NodeGroup")
                if item.data["name"] == guard.get("group")
            ]
            if nodes and not any("*" in node for node in nodes[0]):
                yield document.put(("guards", index, "node_failures"), 5)
                yield document.put(("guards", index, "node_failures"), 12)


@defect("guards", "a guard that asks for nothing", "At least 0 instances, or as much loss as there is: it never fails.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        for key in ("at_least", "node_failures"):
            if key in guard:
                yield document.put(("guards", index, key), 0)


@defect("guards", "a guard with the name of a built-in one", "Passing the one would pass the other.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, _guard in _guards(base):
        yield document.put(("guards", index, "name"), "disks-stay")


@defect("guards", "more instances asked for than the promised nodes can hold", "The guard fails at every plan.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, guard in _guards(base):
        groups = {item.data["name"]: item.data for item in base.documents("NodeGroup")}
        if "at_least" in guard and "hardware" in groups.get(guard.get("group", ""), {}):
            yield document.put(("guards", index, "at_least"), 100_000)


@defect("tests", "two tests of one name", "A report cannot tell them apart.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, _test in _tests(base):
        if index:
            yield document.put(("tests", index, "name"), document.data["tests"][0]["name"])


@defect("tests", "a group, size or node that is not there", "The test cannot run.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base):
        for pointer, value in leaves(test):
            if pointer[-1] in ("group", "spec", "node") and isinstance(value, str) and "edits" not in pointer:
                word = typo(value, slips(f"{base.name} {value}"))
                yield document.put(("tests", index, *pointer), word)


@defect("tests", "two actions in one test", "Of which is the expectation?")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "place", "check_instance"):
        if "redundancy" not in test:
            yield document.put(("tests", index, "redundancy"), {"failures": 1})


@defect("tests", "an expectation of another action", "Such an outcome does not come out of it.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, _test in _tests(base, "place"):
        yield document.put(("tests", index, "expect", "standard"), 3)
    for document, index, _test in _tests(base, "capacity"):
        yield document.put(("tests", index, "expect", "refused"), False)
    for document, index, _test in _tests(base, "check_instance"):
        yield document.put(("tests", index, "expect", "node"), "node1")


@defect("tests", "refused, and placed all the same", "One of the two cannot come out.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "place"):
        expected = test["expect"]
        if {"node", "nodes", "group"} & set(expected):
            yield document.put(("tests", index, "expect", "refused"), True)
        elif expected.get("refused") is True and "candidates" not in expected:
            yield document.put(("tests", index, "expect", "group"), "main")


@defect("tests", "a reason for what is not refused", "What is allowed has no reason of refusal.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "place", "check_instance"):
        if "because" in test["expect"] and test["expect"].get("refused") is True:
            yield document.put(("tests", index, "expect", "refused"), False)


@defect("tests", "at least more than at most", "No number is both.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "capacity"):
        for key in ("standard", "tiered"):
            if key in test["expect"]:
                yield document.put(("tests", index, "expect", key), {"at_least": 64, "at_most": 60})


@defect("tests", "hardware of none", "No nodes, no memory: nothing can be placed.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base):
        simulated = test.get("on", {}).get("simulate")
        if isinstance(simulated, dict):
            yield document.put(("tests", index, "on", "simulate", "nodes"), 0)
            if isinstance(simulated["nodes"], list):
                yield document.put(("tests", index, "on", "simulate", "nodes"), [])


@defect("tests", "an instance on a node that is not there", "The test's own cluster has no such node.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base):
        simulated = test.get("on", {}).get("simulate", {})
        for number in range(len(simulated.get("instances", []))) if isinstance(simulated, dict) else ():
            place = ("tests", index, "on", "simulate", "instances", number, "nodes", 0)
            yield document.put(place, "nowhere.example.org")


@defect("tests", "a snapshot that is not there", "The test cannot run.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base):
        if "on" not in test:
            yield document.put(("tests", index, "on"), {"snapshot": "cluster.json"})


@defect("tests", "a disk template that the group does not allow", "It is refused whatever the test was to show.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "place"):
        if test["place"].get("disk-template") and not test["expect"].get("refused"):
            yield document.put(("tests", index, "place", "disk-template"), "rbd")


@defect("tests", "an instance that must and cannot be", "A size outside of every pair, expected to be legal.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, test in _tests(base, "check_instance"):
        if test["expect"] == {"refused": False} and "memory-size" in test["check_instance"]:
            yield document.put(("tests", index, "check_instance", "memory-size"), "900G")


@defect("waivers", "a waiver that has expired", "The finding is no longer accepted.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.beside("an expired waiver", _waiver(until="2024-01-31"))


@defect("waivers", "a day that is none", "Nobody can tell when it ends.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for day in ("2026-02-30", "31.12.2026", "soon", "2026-13-01"):
            yield document.beside(f"until {day}", _waiver(until=day))


@defect("waivers", "a waiver of an unknown rule, or for nowhere", "It accepts nothing.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.beside("of GP999", _waiver(rule="GP999"))
        yield document.beside("of spec-overlaps", _waiver(rule="spec-overlaps"))
        yield document.beside("in group/nowhere", _waiver(where="group/nowhere"))


@defect("waivers", "a waiver that nothing needs", "What it accepts is not there (any more).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.beside("of an overlap that is not", _waiver())


@defect("waivers", "a waiver without a reason or an end", "Accepted by whom, why, for how long?")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for key in ("reason", "until", "where", "rule"):
            one = _waiver()
            one["waivers"][0].pop(key)
            yield document.beside(f"without {key}", one)
