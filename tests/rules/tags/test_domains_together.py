"""Domains, exclusion and tags beside one another: what they leave, and what is of the wrong kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processor_time import takes_less
from tests.rules.run_rules import check, codes

HEAD = "gpolicy: v1\nkind: "
GROUP = f"{HEAD}NodeGroup\nname: gold\nnodes: [n1, n2, n3, n4]\n"


def rules(text: str) -> str:
    return f"---\n{HEAD}TagRules\n{text}\n"


def tagged(**nodes: str) -> str:
    return "".join(
        f'---\n{HEAD}NodeSet\nname: {name}\nnodes: [{name}]\ntags: ["{tags.replace(" ", chr(34) + ", " + chr(34))}"]\n'
        for name, tags in nodes.items()
    )


RACKS_AND_VERSIONS = tagged(n1="rack:1 hv:4", n2="rack:1 hv:4", n3="rack:2 hv:5", n4="rack:2 hv:5")
CROSSED = tagged(n1="rack:1 hv:4", n2="rack:1 hv:5", n3="rack:2 hv:4", n4="rack:2 hv:5")
POWER = tagged(n1="rack:1 power:a", n2="rack:1 power:b", n3="rack:2 power:a", n4="rack:2 power:a")


@pytest.mark.parametrize(
    ("group", "rule", "nodes", "wanted"),
    [
        (GROUP, "failure_domains: [rack]\nmigration: {domains: [hv]}", RACKS_AND_VERSIONS, ["GP526"]),
        (GROUP, "failure_domains: [rack]\nmigration: {domains: [hv]}", CROSSED, []),
        (GROUP, "failure_domains: [rack]\nmigration: {domains: [rack]}", CROSSED, ["GP526"]),
        (
            GROUP,
            'failure_domains: [rack]\nmigration: {domains: [hv], allow: [{from: "hv:4", to: "hv:5"}]}',
            RACKS_AND_VERSIONS,
            [],
        ),
        (GROUP, "failure_domains: [rack]", RACKS_AND_VERSIONS, []),
        (GROUP, "failure_domains: [rack, power]", POWER, ["GP526"]),  # n2 leaves n1 none by both, and n3, n4
        (
            GROUP + "ipolicy: {disk-templates: [plain]}\n",
            "failure_domains: [rack]\nmigration: {domains: [hv]}",
            RACKS_AND_VERSIONS,
            [],
        ),
    ],
)
def test_what_domains_leave_together(group: str, rule: str, nodes: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(group + rules(rule) + nodes, tmp_path)) == wanted


UP = 'migration: {domains: [hv], allow: [{from: "hv:4", to: "hv:5"}]}'
DOWN = 'migration: {domains: [hv], allow: [{from: "hv:10", to: "hv:9"}]}'


@pytest.mark.parametrize(
    ("rule", "more", "wanted"),
    [
        ("exclusion: [rack]\nfailure_domains: [rack]", "", ["GP525"]),
        ("exclusion: [service]\nfailure_domains: [rack]", "", []),
        ("exclusion: [service]\nfailure_domains: [rack]", tagged(n1="rack:1 service:dns"), ["GP525", "GP520"]),
        ('exclusion: ["service:"]', "", []),
        ('exclusion: [{raw: "service::"}]', "", ["GP513"]),
        ("failure_domains: [rack, power]", CROSSED, ["GP517"]),
        ("failure_domains: [rack, power]", tagged(n1="ssd:yes"), []),  # others tag the nodes
        ("failure_domains: [rack]", f'---\n{HEAD}NodeGroup\nname: silver\ntags: ["rack:9"]\n', ["GP509"]),
        ("failure_domains: [rack]", f'---\n{HEAD}NodeGroup\nname: silver\ntags: ["racks:9"]\n', []),
        (
            "failure_domains: [rack]",
            tagged(n1="rack:a", n2="rack:A", n3="rack:b", n4="rack:c"),
            ["GP522"],
        ),
        ("failure_domains: [rack]", tagged(n1="rack:1", n2="rack:01", n3="rack:10", n4="rack:100"), ["GP522"]),
        (
            "failure_domains: [rack]",
            tagged(n1="rack:north", n2="rack:nroth", n3="rack:south", n4="rack:hull"),
            ["GP522"],
        ),
        ("failure_domains: [rack]", tagged(n1="rack:hall", n2="rack:hull", n3="rack:north1", n4="rack:north2"), []),
        ("failure_domains: [rack]", tagged(n1="rack:a", n2="rack:b", n3="rack:c", n4="rack-d"), ["GP522"]),
        (UP, tagged(n1="hv:4", n2="hv:4", n3="hv:5"), ["GP520"]),
        (f"failure_domains: [hv]\n{UP}", tagged(n1="hv:4", n2="hv:4", n3="hv:5"), ["GP520"]),
        ("failure_domains: [hv]\nmigration: {domains: [hv]}", tagged(n1="hv:4", n2="hv:4"), ["GP520"]),
        (UP, tagged(n1="hv:4", n2="hv:4", n3="hv:5", n4="hv:5"), []),
        (DOWN, tagged(n1="hv:9", n2="hv:9", n3="hv:10", n4="hv:10"), ["GP530"]),
        ("migration: {domains: [hv]}", tagged(n1="hv:4 hv:5", n2="hv:4 hv:5", n3="hv:4", n4="hv:4"), ["GP527"] * 2),
        ('owns: [{prefix: "htools:", "on": [cluster]}]', "", ["GP515"]),
        ('owns: [{prefix: "hv:", "on": [node]}, {prefix: "hv:", "on": [node, group]}]', "", ["GP515"]),
        ('owns: [{prefix: "hv:", "on": [node]}, {prefix: "hv:", "on": [group]}]', "", []),
    ],
)
def test_tags_of_the_wrong_kind(rule: str, more: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(GROUP + rules(rule) + more, tmp_path)) == wanted


@pytest.mark.parametrize(
    ("tag", "wanted"),
    [
        ("htools-iextags:x:", ["GP502"]),
        ("htools_nlocation:rack", ["GP502"]),
        ("htoolsiextags:x", ["GP502"]),
        ("htools::migration:hv", ["GP502"]),
        ("htools:iextags:x:", []),
        ("ganeti:watcher:autorepair:migrate", []),
    ],
)
def test_prefixes_with_other_separators(tag: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(f'{HEAD}Cluster\nname: c.example.org\ntags: ["{tag}"]\n', tmp_path)) == wanted


def test_two_repairs_of_one_object(tmp_path: Path) -> None:
    tags = ", ".join(f'"ganeti:watcher:autorepair:{kind}"' for kind in ("migrate", "reinstall"))
    assert codes(check(f"{HEAD}NodeGroup\nname: gold\ntags: [{tags}]\n", tmp_path)) == ["GP510"]


def test_hundreds_of_nodes_with_tags_of_their_own_take_no_time(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(900)]
    text = f"{HEAD}NodeGroup\nname: gold\nnodes: [{', '.join(names)}]\n"
    text += rules("failure_domains: [rack, power]\nmigration: {domains: [hv]}")
    text += tagged(**{name: f"rack:{name} power:{name} hv:4" for name in names})
    assert takes_less(5, lambda: check(text, tmp_path))
    assert check(text, tmp_path) == []


@pytest.mark.parametrize(("tag", "expected"), [("services:dns", ["GP529"]), ("service:dns", []), ("owner:ops", [])])
def test_a_test_has_almost_the_tag_of_an_exclusion(tag: str, expected: list[str], tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: TagRules\nexclusion: [service]\n---\n"
        "gpolicy: v1\nkind: Test\ntests:\n  - name: two name servers\n"
        '    "on":\n      simulate:\n        nodes: [{name: n1, memory: 8G, cpus: 4, disk: 1T}]\n'
        "        instances:\n"
        f'          - {{name: dns1, nodes: [n1], memory-size: 1G, cpu-count: 1, disks: [1G], tags: ["service:dns"]}}\n'
        f'    place: {{memory-size: 1G, cpu-count: 1, disks: [1G], disk-template: plain, tags: ["{tag}"]}}\n'
        "    expect: {refused: false}\n"
    )
    assert [code for code in codes(check(text, tmp_path)) if code == "GP529"] == expected


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        ('[{prefix: "rack:", "on": [node]}]', ["GP531"]),
        ('[{prefix: "rack:", "on": [node]}, {prefix: "power:", "on": [node]}]', []),
        ("[nlocation]", []),
    ],
)
def test_the_tags_of_one_domain_are_owned_and_those_of_another_are_not(
    owned: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"gpolicy: v1\nkind: TagRules\nowns: {owned}\nfailure_domains: [rack, power]\n"
    for number in (1, 2):
        tags = f'["rack:{number}", "power:{number}"]'
        text += f"---\ngpolicy: v1\nkind: NodeSet\nname: s{number}\nnodes: [n{number}]\ntags: {tags}\n"
    assert [code for code in codes(check(text, tmp_path)) if code in ("GP523", "GP531")] == expected
