"""Slips in names and tags: one finding each, at the slip, and what is most likely meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE
from gpolicy.guessing import did_you_mean_one_of
from tests.rules.policy_texts import CLUSTER, EXCLUSIVE, FOUR, GROUP, HARDWARE, SILVER, node_set
from tests.rules.run_rules import check, cluster, with_resources
from tests.rules.test_slips_between_documents import bad
from tests.rules.test_with_cluster import tagged

NODES = {f"node{number}.example.org": "gold" for number in (1, 2, 3)}
STATE = cluster({"gold": {}}, NODES)
LISTED = f"{GROUP}nodes: [{', '.join(NODES)}]\n"
OWNS = 'gpolicy: v1\nkind: TagRules\nowns: [migration, allowmigration, {prefix: "hv:", "on": [node]}]\n'
UP = "migration:\n  domains: [hv]\n  allow: [{from: 'hv:4', to: 'hv:5'}]\n---\n"


VERSIONS = node_set("old", "n1, n2", "tags: ['hv:4']") + node_set("new", "n3, n4", "tags: ['hv:5']")
RATIO = (
    "---\ngpolicy: v1\nkind: Rule\nname: ratio\nfor: {{kind: NodeGroup, tags: ['{}']}}\n"
    "schema: {{properties: {{hardware.memory: {{minimum: {}}}}}}}\nmessage: enough memory\n"
)

SLIPS: dict[str, tuple[str, ClusterState | None, str, str]] = {
    "a value without its domain": (OWNS + UP.replace("'hv:4'", "'4'") + FOUR + VERSIONS, None, "GP505", "hv:4"),
    "a tag of a domain with another sign": (
        OWNS + UP.replace("to: 'hv:5'", "to: hv-5") + FOUR + VERSIONS,
        None,
        "GP505",
        "Did you mean `hv:5`? Else declare the domain 'hv-5'",
    ),
    "a domain renamed where it is owned, too": (
        (OWNS + UP).replace("hv:'", "hyp:'").replace('"hv:"', '"hyp:"').replace("[hv]", "[hyp]") + FOUR + VERSIONS,
        None,
        "GP517",
        "rename the tags hv:… to hyp:…, as in `owns`; or write hv",
    ),
    "another domain": (OWNS + UP.replace("[hv]", "[hypervisor]") + FOUR + VERSIONS, None, "GP517", "`hv`"),
    "a number of a node that is to come": (
        LISTED
        + node_set("fast", "node2.example.org, node3.example.org, node4.example.org", "ndparams: {cpu_speed: 2}"),
        STATE,
        "GP701",
        "add the node to the cluster first",
    ),
    "short names": (
        LISTED + node_set("fast", "node1, node2", "ndparams: {cpu_speed: 2}"),
        STATE,
        "GP701",
        "write the full names of nodes: node1.example.org",
    ),
    "a rename that is also a removal": (
        GROUP + "renamed_from: silver\n---\n" + SILVER + "removed: true\n",
        None,
        "GP608",
        "a rename needs no removal: remove this document",
    ),
    "another cluster": (CLUSTER.replace("c.example", "c.exmaple"), STATE, "GP705", "Did you mean `c.example.org`?"),
    "a rule about another tag": (
        f"{GROUP}tags: ['tier:gold']\n{HARDWARE}" + RATIO.format("tier=gold", 1024),
        None,
        "GP953",
        "is tier:gold meant?",
    ),
    "a bound without a unit": (
        f"{GROUP}tags: ['tier:gold']\n{HARDWARE}" + RATIO.format("tier:gold", 256),
        None,
        "GP955",
        "write 262144 for 256G",
    ),
    "a bound with a part of a unit": (
        f"{GROUP}tags: ['tier:gold']\n{HARDWARE}" + RATIO.format("tier:gold", 1.5),
        None,
        "GP955",
        "write 1536 for 1.5G",
    ),
    "a bound in quotes": (
        f"{GROUP}tags: ['tier:gold']\n" + RATIO.format("tier:gold", "'1024'"),
        None,
        "GP012",
        "quotes",
    ),
    "a bound with a unit": (f"{GROUP}tags: ['tier:gold']\n" + RATIO.format("tier:gold", "4G"), None, "GP012", "4096"),
    "the braces of a shell": (
        f"{GROUP}nodes: ['node{{1..3}}.example.org']\n",
        STATE,
        "GP612",
        "write node[1-3].example.org",
    ),
    "numbers of two digits": (
        f"{GROUP}nodes: ['front[01-06].example.org']\n",
        None,
        "GP612",
        "write front0[1-6].example.org",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_one_slip_is_one_finding(name: str, tmp_path: Path) -> None:
    text, state, code, hint = SLIPS[name]
    (found,) = bad(text, tmp_path, state)
    assert (found.code, hint in found.hint) == (code, True), found.hint


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("node-4", ["node-1", "node-2", "node-3"], None),
        ("node-4.example.org", ["node-1.example.org", "node-2.example.org"], None),
        ("noed-1", ["node-1", "node-2", "node-3"], "node-1"),
        ("node-44", ["node-4", "node-5"], "node-4"),
        ("rack-1", ["racks", "node-1"], "racks"),
    ],
)
def test_of_names_that_differ_in_numbers_only_none_is_meant(word: str, known: list[str], meant: str | None) -> None:
    listed = f"the nodes are {', '.join(sorted(known))}"
    assert did_you_mean_one_of(word, "nodes", known) == (f"Did you mean `{meant}`?" if meant else listed)


def test_tags_that_the_policy_takes_from_nodes_are_not_counted(tmp_path: Path) -> None:
    state = tagged({"n1": "hv:4", "n2": "hv:4", "n3": "hv:5", "n4": "hv:5"})
    assert bad(OWNS + UP + FOUR + VERSIONS, tmp_path, state) == []
    found = bad(OWNS + UP + FOUR + VERSIONS.replace("['hv:5']", "['hv:6']"), tmp_path, state)
    assert [item.message for item in found] == ["no node has the tag hv:5"]


def test_a_group_name_inside_the_names_of_its_nodes_is_no_slip(tmp_path: Path) -> None:
    text = f"{GROUP}nodes: ['xgold[1-4].example.org']\n---\n{SILVER}nodes: ['xsilver[1-4].example.org']\n"
    assert bad(text, tmp_path) == []


def test_the_test_of_a_renamed_group_is_told_its_new_name(tmp_path: Path) -> None:
    test = "---\ngpolicy: v1\nkind: Test\ntests:\n  - {name: t, place: {group: silver, memory-size: 1G},"
    test += " expect: {refused: false}}\n"
    found = check(f"{GROUP}renamed_from: silver\n{test}", tmp_path, state=cluster({"silver": {}, "other": {}}))
    assert ("GP811", "write gold") in [(item.code, item.hint) for item in found]


def test_all_that_nodes_lack_of_one_promise_is_one_finding(tmp_path: Path) -> None:
    state = cluster({"dedicated": {}, "gold": {}}, {"n1": "dedicated", "n2": "gold"})
    text = f"{EXCLUSIVE}nodes: [n1, n2]\n{HARDWARE}"
    found = bad(text, tmp_path, with_resources(state, memory_total=9999, cpu_total=2))
    assert [item.code for item in found].count("GP725") == 1


@pytest.mark.parametrize(
    ("text", "spindles", "place", "hint"),
    [
        (HARDWARE.replace("12", "21"), 12, "21", "is 12 meant, as the nodes have?"),
        (HARDWARE.replace("12", "21"), None, "21", "is 12 meant, as the nodes have?"),
        (HARDWARE.replace("12", "14"), 12, "14", "is 12 meant, as the nodes have?"),
        (HARDWARE.replace("12", "24"), None, "1T", "correct the promise"),
        (HARDWARE.replace("1T", "2T"), 12, "2T", "correct the promise"),
        (HARDWARE.replace("32", "64"), 12, "64", "is 32 meant, as the nodes have?"),
    ],
)
def test_what_nodes_have_is_told_at_the_figure_that_is_wrong(
    text: str, spindles: int | None, place: str, hint: str, tmp_path: Path
) -> None:
    state = cluster({"gold": {EXCLUSIVE_STORAGE: spindles is not None}}, {"n1": "gold", "n2": "gold"})
    disk = 12 * 1018 * 1000
    state = with_resources(state, memory_total=1 << 18, cpu_total=32, disk_total=disk, spindles_total=spindles or 1)
    text = f"{EXCLUSIVE.replace('dedicated', 'gold')}nodes: [n1, n2]\n{text}"
    (found,) = [item for item in bad(text, tmp_path, state) if item.code == "GP725"]
    assert found.span is not None
    written = text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]
    assert (written, found.hint.startswith(hint)) == (place, True), found.hint
