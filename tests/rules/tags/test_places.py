"""Where nodes are, as far as names, patterns and groups of node sets tell; and what no rule reads or nobody tags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.rules.run_rules import check, cluster, codes

HEAD = "gpolicy: v1\nkind: "
GROUP = f'{HEAD}NodeGroup\nname: gold\nnodes: ["n*"]\n'
OTHERS = f'---\n{HEAD}NodeGroup\nname: silver\nnodes: ["m*"]\n'


def rules(text: str) -> str:
    return f"---\n{HEAD}TagRules\n{text}\n"


def sets(*written: tuple[str, str], key: str = "nodes") -> str:
    return "".join(
        f'---\n{HEAD}NodeSet\nname: set {number}\n{key}: ["{nodes}"]\ntags: ["{tag}"]\n'
        for number, (nodes, tag) in enumerate(written)
    )


ROOMS = rules("failure_domains: [room]")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ([("n1", "room:a"), ("n1", "room:b")], ["GP528"]),
        ([("n1*", "room:a"), ("n1*", "room:b")], ["GP528"]),
        ([("n[1-4]*", "room:a"), ("n[12]*", "room:b")], ["GP528"]),
        ([("n1", "room:a"), ("n1*", "room:b")], ["GP528"]),
        ([("n[1-4]", "room:a"), ("n[4-7]", "room:b")], ["GP528"]),
        ([("n1*", "room:a"), ("n*", "room:b")], ["GP528"]),
        ([("n1*", "room:a"), ("n2*", "room:b")], []),
        ([("n*1", "room:a"), ("n2*", "room:b")], []),
        ([("n[1-4]", "room:a"), ("n[5-7]", "room:b")], []),
        ([("n1", "room:a"), ("n1", "rack:b")], []),
        ([("n[1-12]", "room:a"), ("n[2-9]", "room:b")], ["GP612"]),
    ],
)
def test_a_node_is_in_one_room(written: list[tuple[str, str]], wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(GROUP + ROOMS + sets(*written), tmp_path)) == wanted


def test_a_node_of_a_group_in_one_room_is_in_no_other(tmp_path: Path) -> None:
    of_group = sets(("gold", "room:a"), key="groups")
    alone = f"---\n{HEAD}NodeSet\nname: alone\nnodes: [{{}}]\ntags: ['room:b']\n"
    (found,) = check(GROUP + OTHERS + ROOMS + of_group + alone.format('"n1*"'), tmp_path)
    assert found.message == "nodes n1* are in room:a and room:b at once"
    assert codes(check(GROUP + OTHERS + ROOMS + of_group + alone.format('"m1*"'), tmp_path)) == ["GP519"]


@pytest.mark.parametrize(
    ("tagged", "wanted"),
    [
        (sets(("gold", "room:a"), ("silver", "room:b"), key="groups"), ["GP519", "GP519"]),
        (sets(("n*", "room:a"), ("m1*", "room:b"), ("m2*", "room:c")), ["GP519"]),
        (sets(("n1*", "room:a"), ("n2*", "room:b")), []),
    ],
)
def test_all_nodes_of_a_group_in_one_room(tagged: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(GROUP + OTHERS + ROOMS + tagged, tmp_path)) == wanted


TWO_ROWS = sets(("n1*", "row:a"), ("n2*", "row:b"))


@pytest.mark.parametrize(
    ("rule", "tagged", "wanted"),
    [
        ("failure_domains: [rack]", TWO_ROWS, ["GP517"]),
        ("failure_domains: [rack]", sets(("n1*", "owner:a"), ("n2*", "owner:b")), []),
        ("failure_domains: [rack]", sets(("n1*", "row:a"), ("n2*", "row:a")), []),
        ("failure_domains: [rack]\nmigration: {domains: [row]}", TWO_ROWS, ["GP517"]),
        ("owns: [nlocation]", TWO_ROWS, ["GP532"]),
        ("owns: [nlocation]", sets(("n1*", "row:a"), ("n2*", "row:a")), []),
        ("owns: [nlocation]", sets(("n1*", "owner:a"), ("n2*", "owner:b")), []),
        ("owns: [iextags]\nexclusion: [service]", TWO_ROWS, []),
        ("owns: [nlocation]\nfailure_domains: [row]", TWO_ROWS, []),
    ],
)
def test_places_that_no_rule_is_about(rule: str, tagged: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(GROUP + rules(rule) + tagged, tmp_path)) == wanted


def test_a_node_that_loses_its_place(tmp_path: Path) -> None:
    state = cluster({"gold": {}, "spare": {}}, {"n1": "gold", "n2": "gold", "n3": "spare"})
    tags = {"n1": "room:a", "n2": "room:b", "n3": "room:b"}
    state = replace(
        state, nodes={name: replace(node, tags=frozenset([tags[name]])) for name, node in state.nodes.items()}
    )
    owned = rules('owns: [{prefix: "room:", "on": [node]}]\nfailure_domains: [room]')
    rooms = sets(("n1", "room:a"), ("n2", "room:b"))
    gold = GROUP.replace("n*", "n[12]")
    (found,) = check(gold + owned + rooms + sets(("n3", "owner:x")).replace("set 0", "owned"), tmp_path, state=state)
    assert found.message == "group spare: n3 has no tag room:…, unlike now"
    assert check(gold + owned + rooms, tmp_path, state=state) == []  # tags that no set manages stay


@pytest.mark.parametrize(
    ("names", "tags", "line", "hint"),
    [
        (("rack 1", "rack 2"), ("rack:osl-1", "rack:osl-1"), "rack 2", "is rack:osl-2 meant?"),
        (("east", "west"), ("rack:east", "rack:east"), "west", "is rack:west meant?"),
        (("rack a", "rack b"), ("rack:b", "rack:b"), "rack a", "is rack:a meant?"),
        (("rack 1", "rack 2"), ("rack:x", "rack:x"), "rack 2", "tag the nodes by what they really share"),
    ],
)
def test_a_copied_set_is_asked_for_the_tag_of_its_own_name(
    names: tuple[str, str], tags: tuple[str, str], line: str, hint: str, tmp_path: Path
) -> None:
    named = f'{HEAD}NodeGroup\nname: gold\nnodes: ["n1", "n2"]\n'
    copies = sets(("n1", tags[0]), ("n2", tags[1])).replace("set 0", names[0]).replace("set 1", names[1])
    text = named + rules("failure_domains: [rack]") + copies
    (found,) = check(text, tmp_path)
    assert found.code == "GP519"
    assert found.span is not None
    assert text.splitlines()[found.span.line - 3] == f"name: {line}"
    assert found.hint.startswith(hint)
    other = names[1] if line == names[0] else names[0]
    assert [item.message for item in found.related] == [f"{other} has the same tag"]


def test_a_node_in_two_places_shows_both(tmp_path: Path) -> None:
    (found,) = check(GROUP + ROOMS + sets(("n1", "room:a"), ("n1", "room:b")), tmp_path)
    assert found.span is not None
    assert [found.span.line - item.span.line for item in found.related] == [6]
