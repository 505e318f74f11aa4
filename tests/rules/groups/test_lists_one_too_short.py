"""A list of nodes that is one number too short or too long: one finding, at that list, with what is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.policy_texts import GROUP, node_set
from tests.rules.test_slips_between_documents import bad

RULES = (
    "---\ngpolicy: v1\nkind: TagRules\nfailure_domains: [room]\nowns: [nlocation, {prefix: 'room:', \"on\": [node]}]\n"
)
PATTERNS = (
    f"{GROUP}nodes: ['n[1-6].example.org']\n{RULES}"
    + node_set("north", "'n[1-3].example.org'", "tags: ['room:north']")
    + node_set("south", "'n[4-6].example.org'", "tags: ['room:south']")
)
NAMES = (
    f"{GROUP}nodes: ['n[1-4].example.org']\n{RULES}"
    + node_set("north", "n1.example.org, n3.example.org", "tags: ['room:north']")
    + node_set("south", "n2.example.org, n4.example.org", "tags: ['room:south']")
)
ROW = (
    f"{GROUP}nodes: ['n[1-6]']\n{RULES}"
    + node_set("north", "n1, n2, n3", "tags: ['room:north']")
    + node_set("south", "n4, n5, n6", "tags: ['room:south']")
)

SLIPS = {
    "a group stops short": (NAMES, "n[1-4]", "n[1-3]", "GP613", "is n[1-4].example.org meant?"),
    "a group begins late": (NAMES, "n[1-4]", "n[2-4]", "GP613", "is n[1-4].example.org meant?"),
    "a group goes too far": (NAMES, "n[1-4]", "n[1-5]", "GP520", "is n[1-4].example.org meant? Else tag every node"),
    "a set stops short": (PATTERNS, "n[4-6]", "n[4-5]", "GP520", "is n[4-6].example.org meant? Else tag every node"),
    "a set begins late": (PATTERNS, "n[4-6]", "n[5-6]", "GP520", "is n[4-6].example.org meant? Else tag every node"),
    "a set goes too far": (PATTERNS, "n[1-3]", "n[1-4]", "GP528", "is n[1-3].example.org meant? Else leave it the tag"),
    "a set lacks a node": (NAMES, ", n3.example.org", "", "GP520", "is n3.example.org missing here? Else tag every"),
    "a set without nodes": (NAMES, "n1.example.org, n3.example.org", "", "GP604", "add `nodes:` or `groups:`"),
}
"""A sane policy; what is changed in it, and into what; the code; the hint."""


@pytest.mark.parametrize("name", SLIPS)
def test_the_finding_is_at_the_list(name: str, tmp_path: Path) -> None:
    sane, old, new, code, hint = SLIPS[name]
    (found,) = bad(sane.replace(old, new), tmp_path)
    assert found.span is not None
    line = found.span.line + (code == "GP604")  # it is at the name of the set
    assert (found.code, line, found.hint.startswith(hint)) == (code, sane[: sane.index(old)].count("\n") + 1, True), (
        found
    )


def test_a_name_in_two_groups_is_at_the_pattern_that_goes_too_far(tmp_path: Path) -> None:
    other = GROUP.replace("gold", "silver")
    (found,) = bad(f"{GROUP}nodes: [n5]\n---\n{other}nodes: ['n[1-5]']\n", tmp_path)
    assert (found.code, found.hint) == ("GP611", "is n[1-4] meant? Else leave it out of one of the two")
    assert found.span is not None
    assert found.span.line == 9


@pytest.mark.parametrize("sane", [PATTERNS, NAMES, ROW])
def test_the_policies_are_sane(sane: str, tmp_path: Path) -> None:
    assert bad(sane, tmp_path) == []


def test_a_node_of_two_groups_asks_no_tags_of_the_nodes_of_the_second(tmp_path: Path) -> None:
    other = GROUP.replace("gold", "silver") + "nodes: [n4.example.org, s1.example.org]\n---\n"
    (found,) = bad(other + NAMES, tmp_path)
    assert (found.code, found.hint) == ("GP611", "is n[1-3].example.org meant? Else leave it out of one of the two")


@pytest.mark.parametrize(("right", "wrong"), [("n4", "n3"), ("n3", "n4"), ("n6", "n1"), ("n2", "n5")])
def test_a_node_named_in_place_of_another_is_told_at_its_entry(right: str, wrong: str, tmp_path: Path) -> None:
    lists = ROW.partition("kind: NodeSet")
    text = "".join((*lists[:2], lists[2].replace(right, wrong)))
    (found,) = bad(text, tmp_path)
    assert (found.code, found.consequences) == ("GP528", ())
    assert found.message == f"node {wrong} is in room:north and room:south at once"
    assert found.hint.startswith(f"is {right} meant, which is in none? Else leave it the tag")
    assert found.span is not None
    lines = ROW.splitlines()
    line = next(number for number, text in enumerate(lines) if right in text and "[n1-6]" not in text)
    assert (found.span.line, found.span.column) == (line + 1, lines[line].index(right) + 1)
