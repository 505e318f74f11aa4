"""Names of nodes, guards, tests, waivers and comments that do not do what they seem to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Data, Document, Seed, defect


def _nodes(base: Base) -> Iterator[tuple[Document, str]]:
    """Yield groups that name nodes, and the domain of the first."""
    for document in base.documents("NodeGroup"):
        nodes = document.data.get("nodes", [])
        if nodes and "." in nodes[0]:
            yield document, nodes[0].partition(".")[2]


def _patterns(base: Base, *patterns: str) -> Iterator[Seed]:
    for document, domain in _nodes(base):
        for pattern in patterns:
            yield document.put(("nodes",), [pattern.format(domain)])


@defect("groups", "numbers of two digits as a set of letters", "[10-20] is one letter: 0, 1 to 2, or 0.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "x[1-12].{}", "x[10-20].{}", "x[0-15].{}")


@defect("groups", "braces of a shell as a pattern", "Patterns know *, ? and sets of letters only.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "x{{1..6}}.{}", "x{{1,2}}.{}")


@defect("groups", "a regular expression as a pattern", "Patterns know *, ? and sets of letters only.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "^x.*\\.{}$", "x\\d+.{}", "(x|y)1.{}")


@defect("groups", "several nodes in one text", "No node has a comma or a blank in its name.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "x1.{0}, x2.{0}", "x1.{0} x2.{0}")


@defect("groups", "a pattern with a blank at its end", "It matches no node.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "x[1-4].{} ", " x1.{}")


@defect("groups", "a pattern with commas in a set of letters", "A set has no commas: it matches a comma, too.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "x[1,2,3].{}", "x[a,b].{}")


@defect("groups", "capital letters in the names of nodes", "Ganeti stores names of nodes in lower case.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "X[1-4].{}", "Node1.{}")


@defect("groups", "words as a set of letters", "It stands for one letter of them.")
def _(base: Base) -> Iterator[Seed]:
    yield from _patterns(base, "[front]1.{}", "[web][1-4].{}")


def _beside(base: Base, what: str, *documents: Data) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.beside(what, *documents)


def _guards(*guards: dict[str, Any]) -> Data:
    return {"gpolicy": "v1", "kind": "Guards", "guards": list(guards)}


@defect("guards", "a guard that nothing can break", "0 instances, 0 failures and 100 % hold always.")
def _(base: Base) -> Iterator[Seed]:
    for measure in ({"node_failures": 0}, {"capacity_loss": {"at_most": "100%"}}):
        yield from _beside(base, str(measure), _guards({"name": "vacuous", **measure}))


@defect("guards", "a guard that lets nothing pass", "Every plan has a change.")
def _(base: Base) -> Iterator[Seed]:
    yield from _beside(base, "no change", _guards({"name": "nothing-ever", "max_changes": 0}))


@defect("guards", "two guards that say the same", "The second never decides.")
def _(base: Base) -> Iterator[Seed]:
    for measure in ({"max_changes": 20}, {"newly_violating": 2}, {"capacity_loss": {"at_most": "10%"}}):
        yield from _beside(base, str(measure), _guards({"name": "one", **measure}, {"name": "two", **measure}))


@defect("guards", "a guard that a stricter one covers", "It never decides.")
def _(base: Base) -> Iterator[Seed]:
    for strict, loose in (({"max_changes": 5}, {"max_changes": 20}), ({"newly_violating": 0}, {"newly_violating": 9})):
        yield from _beside(base, str(loose), _guards({"name": "strict", **strict}, {"name": "loose", **loose}))


@defect("guards", "a guard for a group that is nowhere", "It guards nothing.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("NodeGroup"):
        wrong = f"{document.data['name']}s"
        yield document.beside("group", _guards({"name": "wrong", "group": wrong, "node_failures": 1}))
        yield document.beside("case", _guards({"name": "wrong", "group": document.data["name"].upper(), "at_least": 1}))


@defect("guards", "a measure of the wrong unit", "A share has a percent sign.")
def _(base: Base) -> Iterator[Seed]:
    for value in (0.1, "10 percent", "10"):
        yield from _beside(base, str(value), _guards({"name": "loss", "capacity_loss": {"at_most": value}}))


def _test(action: dict[str, Any], expect: dict[str, Any], **more: Any) -> Data:
    return {"gpolicy": "v1", "kind": "Test", "tests": [{"name": "seeded", **more, **action, "expect": expect}]}


_STAGE = {"simulate": {"memory": "64G", "cpus": 16, "disk": "1T", "nodes": 3}}


def _groups(base: Base) -> Iterator[tuple[Document, dict[str, Any]]]:
    for document in base.first("NodeGroup"):
        yield document, {"simulate": {**_STAGE["simulate"], "group": document.data["name"]}}


@defect("tests", "a test that expects nothing", "It cannot fail.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        yield document.beside("capacity", _test({"capacity": {"group": document.data["name"]}}, {}, on=stage))
        yield document.beside("redundancy", _test({"redundancy": {"group": document.data["name"]}}, {}, on=stage))


@defect("tests", "a test that holds whatever fits", "At least 0 of anything always fit.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        expect = {"standard": {"at_least": 0}}
        yield document.beside("0", _test({"capacity": {"group": document.data["name"]}}, expect, on=stage))


@defect("tests", "a group of a test that is nowhere", "The test cannot run.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        action = {"capacity": {"group": f"{document.data['name']}x"}}
        yield document.beside("group", _test(action, {"standard": {"at_least": 1}}, on=stage))


@defect("tests", "an edit of what is not there", "The test cannot run.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        for edit in ({"node": "node-9", "offline": True}, {"remove_node": "node-9"}, {"remove_instance": "web"}):
            action = {"redundancy": {"group": document.data["name"]}}
            yield document.beside(str(edit), _test(action, {"survives": True}, on={**stage, "edits": [edit]}))


@defect("tests", "more failures survived than there are nodes", "Nothing is left that could fail to survive.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        action = {"redundancy": {"group": document.data["name"], "failures": 3}}
        yield document.beside("3 of 3", _test(action, {"survives": True}, on=stage))


@defect("tests", "an edit that changes nothing", "The test shows nothing more than without it.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        for edit in ({"node": "node-1", "offline": False}, {"node": "node-1", "drained": False}, {"node": "node-1"}):
            action = {"redundancy": {"group": document.data["name"]}}
            yield document.beside(str(edit), _test(action, {"survives": True}, on={**stage, "edits": [edit]}))


@defect("tests", "a placement on a node that is not there", "The test always fails.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        action = {"place": {"group": document.data["name"], "memory-size": "4G", "cpu-count": 2, "disks": ["20G"]}}
        yield document.beside("node-7", _test(action, {"node": "node-7"}, on=stage))


@defect("tests", "a mirrored instance with both halves on one node", "DRBD has two nodes.")
def _(base: Base) -> Iterator[Seed]:
    for document, stage in _groups(base):
        action = {
            "place": {"group": document.data["name"], "memory-size": "4G", "disks": ["20G"], "disk-template": "drbd"}
        }
        yield document.beside("twice", _test(action, {"nodes": ["node-1", "node-1"]}, on=stage))


def _waiver(**more: Any) -> Data:
    one = {"rule": "spec-overlap", "where": "cluster", "reason": "until the move", "until": "2026-12-31", **more}
    return {"gpolicy": "v1", "kind": "Waiver", "waivers": [one]}


@defect("waivers", "a waiver for another kind of object", "It accepts nothing.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("NodeGroup"):
        name = document.data["name"]
        for where in (f"node-set/{name}", name, f"groups/{name}", f"group/{name.upper()}"):
            yield document.beside(where, _waiver(where=where))


@defect("waivers", "a day in another order", "2026-12-31 is the only one that is clear.")
def _(base: Base) -> Iterator[Seed]:
    for day in ("31-12-2026", "12/31/2026", "2026-13-31", "31.12.2026"):
        yield from _beside(base, day, _waiver(until=day))


@defect("waivers", "a waiver of what cannot be waived", "A policy that cannot be read cannot be planned.")
def _(base: Base) -> Iterator[Seed]:
    for rule in ("GP001", "yaml-syntax", "unknown-key"):
        yield from _beside(base, rule, _waiver(rule=rule))


@defect("waivers", "a waiver for ever", "An accepted finding is to be seen again.")
def _(base: Base) -> Iterator[Seed]:
    yield from _beside(base, "2999", _waiver(until="2999-12-31"))


def _comments(base: Base, *comments: str) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if line.startswith("name:") and "#" not in line:
            for comment in comments:
                yield base.replace_line(file, index, f"{line}  # {comment}")


@defect("waivers", "a comment that accepts what is not there", "Nobody knows why it stands there.")
def _(base: Base) -> Iterator[Seed]:
    yield from _comments(base, "gpolicy: ignore[GP201] why", "gpolicy: ignore[spec-gap] why")


@defect("waivers", "a comment for an unknown rule", "It accepts nothing.")
def _(base: Base) -> Iterator[Seed]:
    yield from _comments(base, "gpolicy: ignore[GP999] why", "gpolicy: ignore[spec-overlaps] why")


@defect("waivers", "a comment without its rules", "It accepts nothing.")
def _(base: Base) -> Iterator[Seed]:
    yield from _comments(
        base, "gpolicy: ignore", "gpolicy: ignore(GP201)", "gpolicy: ingore[GP201]", "gpolicy ignore[GP201]"
    )
