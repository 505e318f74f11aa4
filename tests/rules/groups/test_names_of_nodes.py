"""Names and patterns of nodes and groups that match nothing, too much, or not what their writer means."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.checking.consequences import one_for_each_missing
from gpolicy.findings import Severity
from tests.rules.run_rules import check, cluster, codes

HEAD = "gpolicy: v1\nkind: "
CLUSTER = f"{HEAD}Cluster\nname: c.example.org\n---\n"


def group(name: str, nodes: str) -> str:
    return f"{HEAD}NodeGroup\nname: {name}\nnodes: [{nodes}]\n---\n"


def node_set(name: str, nodes: str, more: str = "ndparams: {cpu_speed: 2}", key: str = "nodes") -> str:
    return f"{HEAD}NodeSet\nname: {name}\n{key}: [{nodes}]\n{more}\n---\n"


@pytest.mark.parametrize(
    "pattern",
    [
        "web[1-12]",
        "web[01-12]",
        "web[10-20]",
        "web[0-19]",
        "[front][1-4]",
        "web[1224]",
        "web[db]a[zya]",
        "Web1",
        "web1.",
    ],
)
def test_what_is_meant_is_not_what_it_matches(pattern: str, tmp_path: Path) -> None:
    (found,) = check(group("gold", f'"{pattern}"'), tmp_path)
    assert found.code == "GP612"
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("web{1..4}", "write web[1-4]"),
        ("web[1..4].example.org", "write web[1-4].example.org"),
        ("web(1:4)", "write web[1-4]"),
        ("web{1,3}", "write web[13]"),
        ("{web,db1}.example.org", "write each as an entry of its own: web.example.org, db1.example.org"),
        ("web[1-12]", "write each as an entry of its own: web[1-9], web1[0-2]"),
        ("web{08..11}", "write each as an entry of its own: web0[8-9], web1[0-1]"),
        ("web{8..10}", "write each as an entry of its own: web[8-9], web10"),
        ("web{4..1}", "* is for any letters"),
        ("web{1,{2,3}}", "* is for any letters"),
    ],
)
def test_numbers_and_braces_are_written_as_patterns(pattern: str, hint: str, tmp_path: Path) -> None:
    (found,) = check(group("gold", f'"{pattern}"'), tmp_path)
    assert (found.code, found.hint.startswith(hint)) == ("GP612", True), found.hint


@pytest.mark.parametrize(
    "pattern",
    ["web[1-9]", "web[135]", "web[0-35-9]", "web[abc]", "web[ba]", "web[!1-4]", "web[12-5]", "web[a-f]"],
)
def test_a_set_of_letters_that_is_meant(pattern: str, tmp_path: Path) -> None:
    assert check(group("gold", f'"{pattern}"'), tmp_path) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (node_set("a", '"web[1-3]"') + node_set("b", '"web[3-5]"', "ndparams: {cpu_speed: 3}"), ["GP611"]),
        (node_set("a", '"web[1-3]"') + node_set("b", '"web[3-5]"'), []),
        (node_set("a", '"web[1-3]"') + node_set("b", '"web[3-5]"', "ndparams: {ssh_port: 222}"), []),
        (node_set("a", '"web[1-3]"') + node_set("b", '"web[45]"', "ndparams: {cpu_speed: 3}"), []),
        (node_set("a", "gold", key="groups") + node_set("b", "gold", "ndparams: {cpu_speed: 3}", "groups"), ["GP607"]),
        (node_set("a", "gold", key="groups") + node_set("b", '"web*"', "ndparams: {cpu_speed: 3}"), []),  # it wins
        (node_set("a", "web1", ""), ["GP604"]),
        (node_set("a", "web1", "tags: []"), []),
        (node_set("a", '"db*"'), ["GP613"]),
        (node_set("a", '"*"'), []),
        (node_set("a", '"?eb1"'), []),
        (node_set("a", '"web[78]"'), ["GP613"]),
        (node_set("a", '"mail[78]"'), []),
        (node_set("a", '"mail*-x"'), []),
        (node_set("a", "mail1, db1"), ["GP613"]),
    ],
)
def test_node_sets(text: str, wanted: list[str], tmp_path: Path) -> None:
    text = group("gold", '"web[1-6]"') + group("mail", '"mail*"') + text
    assert codes(check(text, tmp_path)) == wanted


def test_a_name_that_a_group_or_a_node_set_misspells_is_shown_at_both_places(tmp_path: Path) -> None:
    text = group("gold", "alpha.example.org, bravoo.example.org") + node_set(
        "a", "alpha.example.org, bravo.example.org"
    )
    (found,) = check(text, tmp_path)
    assert (found.code, found.hint.partition("?")[0]) == ("GP613", "Did you mean `bravoo.example.org`")
    assert [item.message for item in found.related] == ["group gold names bravoo.example.org, and no node set does"]
    series = group("gold", "web1.example.org, web2.example.org") + node_set("a", "web3.example.org")
    assert check(series, tmp_path)[0].related == ()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("Gold", 1), ("gold", 0), ("rack_1", 1), ("rack-2", 0), ('"a/b"', 1), ('"a "', 1), ("silver", 0)],
)
def test_names_of_groups(name: str, wanted: int, tmp_path: Path) -> None:
    groups = "".join(f"{HEAD}NodeGroup\nname: {other}\n---\n" for other in ("gold", "rack-1") if other != name)
    found = [item.code for item in check(f"{groups}{HEAD}NodeGroup\nname: {name}\n", tmp_path)]
    assert found == ["GP616"] * wanted


@pytest.mark.parametrize(("old", "wanted"), [("Gold", 1), ("main", 0), ("MAIN", 0)])
def test_an_old_name_that_is_almost_another_group(old: str, wanted: int, tmp_path: Path) -> None:
    text = f"{HEAD}NodeGroup\nname: gold\n---\n{HEAD}NodeGroup\nname: Main\nrenamed_from: {old}\n"
    assert codes(check(text, tmp_path)) == ["GP616"] * wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (group("gold", '"web[1-4]"') + group("silver", "web4, db1"), ["GP611"]),
        (group("gold", '"web*"') + group("silver", "web4, db1"), []),  # an exception
        (group("gold", "a.north.example.org, b.north.example.org, c.nroth.example.org"), ["GP621"]),
        (group("gold", "a.north.example.org, b.north.example.org, c.south.example.org"), []),
        (group("gold", "a.dc1.example.org, b.dc1.example.org, c.dc2.example.org"), []),
        (group("gold", "a.example.org, b.example.org, cexample.org"), ["GP621"]),
        (group("gold", "a.example.org, b.example.org, c"), ["GP621"]),
        (group("gold", "a.example.org, b.example.org, c.north.example.org"), []),
        (group("gold", '"w*.a.org"') + group("silver", '"w*.a.org"'), ["GP611"]),
        (group("gold", '"w[1-9]*.a.org"') + group("silver", '"w[1-3]*.a.org"'), ["GP611"]),
        (
            CLUSTER + group("gold", "a.c.example.org, b.c.example.org") + group("silver", '"n[12]c.example.org"'),
            ["GP621"],
        ),
        (CLUSTER + group("gold", "a.c.example.org, b.c.example.org") + group("silver", "n.example.org"), []),
        (CLUSTER + group("gold", '"a*.example.org"') + group("silver", "abc.example.org"), []),
    ],
)
def test_names_beside_those_of_others(text: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(text, tmp_path)) == wanted


def test_a_pattern_of_two_groups_is_named_once(tmp_path: Path) -> None:
    (found,) = check(group("gold", '"w*.a.org"') + group("silver", '"w*.a.org"'), tmp_path)
    assert found.message == "w*.a.org is also a pattern of group gold"


def test_a_glued_name_is_missing_where_sets_name_it_rightly(tmp_path: Path) -> None:
    text = CLUSTER + group("gold", '"n[12]c.example.org"') + group("silver", "a.c.example.org, b.c.example.org")
    findings = check(text + node_set("first", "n1.c.example.org"), tmp_path)
    (found,) = one_for_each_missing(findings)
    assert found.hint == "Did you mean `n[12].c.example.org`?"
    assert len(found.consequences) == 1


@pytest.mark.parametrize(
    ("nodes", "lost"),
    [
        ("n1, n2", "n3, n4"),
        ("n1, n2, n3", "n4"),
        ("n1", ""),  # the list is of a few, not of all
        ("n1, n2, n3, n4", ""),
        ("a1, a2", ""),
        ("", ""),
    ],
)
def test_a_node_that_the_list_of_its_group_lacks(nodes: str, lost: str, tmp_path: Path) -> None:
    state = cluster({"gold": {}}, dict.fromkeys(("n1", "n2", "n3", "n4", "a1", "a2"), "gold"))
    if "a1" not in nodes:
        state = cluster({"gold": {}}, dict.fromkeys(("n1", "n2", "n3", "n4"), "gold"))
    found = [item.message for item in check(group("gold", nodes), tmp_path, state=state) if item.code == "GP619"]
    verb, what = ("are", "them") if "," in lost else ("is", "it")
    wanted = f"{lost} {verb} in gold, but its list lacks {what}, and no other group names {what}"
    assert found == ([wanted] if lost else [])
