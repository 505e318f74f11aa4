"""Slips in lists of nodes, patterns and tags."""

from __future__ import annotations

from typing import Final

from tests.rules.policy_texts import FOUR, GROUP, group, node_set, two_sets

COPIED = (
    'gpolicy: v1\nkind: TagRules\nowns: [migration, nlocation, {{prefix: "cpu:", "on": [node]}},'
    ' {{prefix: "room:", "on": [node]}}]\nfailure_domains: [room]\nmigration: {{domains: [cpu]}}\n'
    + group("prod", '"{}"')
    + group("batch", '"{}"')
    + node_set("old", "n-p1, n-p2, n-p3", "tags: ['cpu:a', 'room:a']")
    + node_set("north", "n-b1", "tags: ['room:a']")
    + node_set("south", "n-b2, n-b3", "tags: ['room:b']")
    + "---\ngpolicy: v1\nkind: NodeSet\nname: new\ngroups: [batch]\ntags: ['cpu:b']\n"
)

IN_BUILDINGS: Final = "gpolicy: v1\nkind: TagRules\nowns: [nlocation]\nfailure_domains: [bldg]\n"
IN_A_HOUSE: Final = (
    'gpolicy: v1\nkind: TagRules\nowns: [nlocation, {prefix: "wing:", "on": [node]}]\nfailure_domains: [house]\n'
)

OF_NODES: Final[dict[str, tuple[str, str, str, str, list[str]]]] = {
    "a pattern of one group is too wide": (
        group("gold", '"n[1-8]"') + group("silver", '"n[5-6]"') + group("bronze", "n7") + group("tin", '"n8*"'),
        "GP611",
        '"n[1-8]"',
        "narrow n[1-8]: it meets 2 others",
        ["GP611", "GP611"],
    ),
    "a pattern copied from another group, whose nodes are in sets": (
        COPIED.format("n-p[1-6]", "n-p[1-3]"),
        "GP611",
        '"n-p[1-3]"',
        "is n-b[1-3] meant? Node sets name such nodes, and no group does",
        ["GP613", "GP613"],
    ),
    "a wide pattern copied from another group": (
        COPIED.format("n-p[1-6]", "n-p*"),
        "GP611",
        '"n-p*"',
        "is n-b* meant?",
        ["GP613", "GP613"],
    ),
    "the same pattern in two groups, of which one has other nodes in sets": (
        COPIED.format("n-p[1-6]", "n-p[1-6]"),
        "GP611",
        '"n-p[1-6]"',
        "is n-b[1-6] meant?",
        ["GP613", "GP613"],
    ),
    "a pattern takes in that of another group": (
        group("gold", '"d*.example.org"') + group("silver", '"dedicated*.example.org"'),
        "GP611",
        '"d*.example.org"',
        "narrow one of them",
        [],
    ),
    "a short pattern takes in that of another group": (
        group("db", '"d*.example.org"') + group("dedicated", '"dedicated*.example.org"'),
        "GP611",
        '"d*.example.org"',
        "is db*.example.org meant? Else narrow one of them",
        [],
    ),
    "another domain than that of node sets": (
        node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']")
        + node_set("b", "k3.example.net, k4.example.net", "tags: ['rack:b']")
        + group("gold", '"k[1-4].example.com"')
        + group("silver", '"web[1-4].example.net"'),
        "GP621",
        '"k[1-4].example.com"',
        "is k[1-4].example.net meant?",
        ["GP613", "GP613"],
    ),
    "no domain": (
        group("gold", '"k[1-4]"') + node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']"),
        "GP621",
        '"k[1-4]"',
        "is k[1-4].example.net meant?",
        ["GP613"],
    ),
    "zeros that the nodes have not": (
        group("gold", '"k0[1-4].example.net"') + node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']"),
        "GP621",
        '"k0[1-4].example.net"',
        "is k[1-4].example.net meant?",
        ["GP613"],
    ),
    "nodes of another kind": (
        group("gold", '"k[1-4].example.net"') + node_set("a", "c1.example.net, c2.example.net", "tags: ['rack:a']"),
        "GP613",
        "c1.example.net",
        "correct the name, or add the node to its group",
        [],
    ),
    "a copied group with the nodes of the first": (
        group("gold", '"n[1-4]"') + group("silver", '"n[1-4]"'),
        "GP611",
        '"n[1-4]"',
        "leave it out of one of the two: was it copied?",
        [],
    ),
    "two names in one entry": (
        group("gold", '"n[1-4].example.org, n8.example.org"'),
        "GP612",
        '"n[1-4].example.org, n8.example.org"',
        "write each as an entry of its own: n[1-4].example.org, n8.example.org",
        [],
    ),
    "another domain in a pattern": (
        group("gold", '"db*.exmaple.org"') + group("silver", '"web*.example.org"') + group("tin", '"c*.example.org"'),
        "GP621",
        '"db*.exmaple.org"',
        "Did you mean `db*.example.org`?",
        [],
    ),
    "tags of one node set under another name": (
        "gpolicy: v1\nkind: TagRules\nowns: [nlocation, {prefix: 'rack:', 'on': [node]}]\nfailure_domains: [rack]\n"
        + FOUR.replace("gpolicy", "---\ngpolicy", 1)
        + node_set("a", "n1, n2", "tags: ['rack:a']")
        + node_set("b", "n3, n4", "tags: ['row:b']"),
        "GP520",
        "'row:b'",
        "is rack:… meant here, not row:…?",
        [],
    ),
    "one node in place of a list": (
        f"{GROUP}nodes: n1.example.org\n",
        "GP012",
        "n1.example.org",
        'write it as a list: `["n1.example.org"]`',
        [],
    ),
    "a set one node too long": (
        two_sets('"n[1-4]"', '"n[1-2]"', '"n[3-5]"', "rack"),
        "GP613",
        '"n[3-5]"',
        "is n[3-4] meant?",
        [],
    ),
    "sets that share two nodes": (
        two_sets('"n[1-4]"', '"n[1-4]"', '"n[3-4]"', "bldg", IN_BUILDINGS),
        "GP528",
        '"n[1-4]"',
        "is n[1-2] meant?",
        [],
    ),
    "a domain by another name than its tags": (
        two_sets('"n[1-4]"', '"n[1-2]"', '"n[3-4]"', "wing", IN_A_HOUSE),
        "GP517",
        "house",
        "is wing meant, which nodes have?",
        [],
    ),
    "the nodes of a group by another name than in all sets": (
        two_sets('"ofen[1-4]"', "oven1, oven2", "oven3, oven4", "rack"),
        "GP613",
        '"ofen[1-4]"',
        "is a node like oven# meant?",
        ["GP613", "GP613"],
    ),
}
