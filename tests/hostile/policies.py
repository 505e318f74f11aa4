"""Hostile policies: each maker takes a size in bytes and returns files by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from gpolicy.policy.conformance import whole_schema

Files = dict[str, str]
Maker = Callable[[int], Files]

ROOT: Final = Path(__file__).resolve().parents[2]
CLUSTER: Final = "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\n"
GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: default\n"
EACH_GROUP: Final = "---\n" + GROUP.replace("default", "g%d")
SPEC: Final = "{memory-size: %s, cpu-count: %s, disk-size: %s, disk-count: %s, nic-count: %s, spindle-use: %s}"
LEAST: Final = SPEC % ("1G", 1, "1G", 1, 1, 1)


def times(size: int, text: str) -> int:
    """Return how often a text fits into a size, counting the digits that numbers add."""
    return max(2, size // (len(text) + 4))


def listed(head: str, item: str, size: int, tail: str = "") -> str:
    """Return `head`, then as many lines of `item` (with `%d` for its number) as the size allows."""
    return head + "".join(item.replace("%d", str(number)) for number in range(times(size, item))) + tail


def in_line(head: str, item: str, size: int, tail: str = "]\n") -> str:
    """Return the same on one line, items parted by commas."""
    return head + ", ".join(item.replace("%d", str(number)) for number in range(times(size, item + ", "))) + tail


def one(text: str) -> Files:
    """Return a policy of one file."""
    return {"policy.yaml": text}


def lines_of(head: str, item: str, tail: str = "") -> Maker:
    """Return what makes a policy of many lines, or of many documents."""
    return lambda size: one(listed(head, item, size, tail))


def line_of(head: str, item: str, tail: str = "]\n") -> Maker:
    """Return what makes a policy with many items on one line."""
    return lambda size: one(in_line(head, item, size, tail))


def groups_of(text: str) -> Maker:
    """Return what makes a policy of many groups that have `text`."""
    return lines_of("", EACH_GROUP + text)


def halves(*parts: tuple[str, str]) -> Maker:
    """Return what makes a policy of two parts, each a head and many lines."""
    return lambda size: one("".join(listed(head, item, size // 2) for head, item in parts))


def _together(size: int, count: int, item: Callable[[int], str], head: str = "") -> Files:
    text = head
    for number in range(count):
        if len(text) > size:
            break
        text += "---\n" + item(number)
    return one(text)


def _pair(number: int) -> str:
    low = SPEC % (f"{number + 1}G", 1, "1G", 1, 1, 1)
    return f"    - min: {low}\n      max: {SPEC % (f'{number + 1}G', 8, '1T', 8, 8, 8)}\n"


def _extends_chain(size: int) -> Files:
    return _together(size, size // 60, lambda n: f"gpolicy: v1\nkind: NodeGroup\nname: g{n}\nextends: g{n + 1}\n")


def _extends_all(size: int) -> Files:
    bases = min(100, size // 600)
    names = ", ".join(f"b{number}" for number in range(bases))
    text = ""
    for number in range(bases):
        text += f"---\ngpolicy: v1\nkind: NodeGroup\ntemplate: true\nname: b{number}\n"
        text += f"ipolicy: {{vcpu-ratio: {number + 1}}}\n"
        text += f"ndparams: {{spindle_count: {number + 1}, oob_program: /bin/{number}}}\n"
    number = 0
    while len(text) < size:
        text += f"---\ngpolicy: v1\nkind: NodeGroup\nname: g{number}\nextends: [{names}]\n"
        number += 1
    return one(text)


def _extends_each_other(size: int) -> Files:
    """Thirty layers, of which each extends all documents of the one below."""
    width = max(2, min(90, size // 4000))
    text, layer = "", 0
    while len(text) < size and layer < 30:
        names = ", ".join(f"l{layer - 1}n{number}" for number in range(width))
        for number in range(width):
            text += f"---\ngpolicy: v1\nkind: NodeGroup\nname: l{layer}n{number}\n"
            text += f"ipolicy: {{vcpu-ratio: {number + 1}, spindle-ratio: {number + 1}}}\n" if not layer else ""
            text += f"extends: [{names}]\n" if layer else ""
        layer += 1
    return one(text)


def _heirs_of_much(size: int) -> Files:
    """Half of it is one base, half are those that extend it: what all inherit grows by the square."""
    pairs = "".join(map(_pair, range(size // 2 // 220)))
    heirs = listed("", "---\ngpolicy: v1\nkind: NodeGroup\nname: g%d\nextends: b\n", size // 2)
    return one(f"gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nipolicy:\n  minmax:\n{pairs}{heirs}")


def _heirs_of_a_cluster(size: int) -> Files:
    """The same by what groups take from the cluster."""
    pairs = "".join(map(_pair, range(size // 2 // 220)))
    heirs = listed("", "---\ngpolicy: v1\nkind: NodeGroup\nname: g%d\nnodes: [n%d]\n", size // 2)
    return one(f"{CLUSTER}ipolicy:\n  minmax:\n{pairs}  std: {LEAST}\n{heirs}")


def _heirs_of_nodes(size: int) -> Files:
    nodes = in_line("gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nnodes: [", "node%d", size // 2)
    return one(nodes + listed("", "---\ngpolicy: v1\nkind: NodeGroup\nname: g%d\nextends: b\n", size // 2))


def _heirs_of_tags(size: int) -> Files:
    nodes = in_line("gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\ntags: [", "htools:iextag:%d", size // 2)
    return one(nodes + listed("", "---\ngpolicy: v1\nkind: NodeGroup\nname: g%d\nextends: b\n", size // 2))


def _heirs_with_an_error(size: int) -> Files:
    """A base with a long value, and thousands of findings at its heirs."""
    pairs = "".join(map(_pair, range(size // 2 // 220)))
    heirs = listed("", "---\ngpolicy: v1\nkind: NodeGroup\nname: g%d\nextends: [b, nobody]\n", size // 2)
    return one(f"gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nipolicy:\n  minmax:\n{pairs}{heirs}")


def _waivers_and_findings(size: int) -> Files:
    """As many waivers as findings, none of which is the other's."""
    groups = listed("", EACH_GROUP + "ipolicy: {vcpu-ratio: 0.5}\n", size // 2)
    entry = "  - {rule: %s, where: group/h%%d, reason: x, until: 2099-01-01}\n"
    code = "GP302"
    return one(
        groups + listed("---\ngpolicy: v1\nkind: Waiver\nwaivers:\n", entry % code, size // 2).replace("%d", "1")
    )


def _findings_with_long_names(size: int) -> Files:
    name = "n" * 250
    return one(f"{GROUP.replace('default', name)}ipolicy: {{" + ", ".join(f"k{n}: 1" for n in range(size // 8)) + "}\n")


def _files(size: int) -> Files:
    """A thousand files, each with comments."""
    text = "".join(f"# gpolicy: ignore[GP201] {number}\n" for number in range(size // 1000 // 30))
    return {f"f{n}.yaml": text + GROUP.replace("default", f"g{n}") for n in range(1000)}


def _extends_files(size: int) -> Files:
    count = min(200, size // 100)
    names = ", ".join(f'"f{number}.yaml#x"' for number in range(90))
    padding = "# " + "x" * max(0, size // count - 1500) + "\n"
    return {
        f"f{number}.yaml": f"gpolicy: v1\nkind: NodeGroup\nname: x\nextends: [{names}]\n{padding}"
        for number in range(count)
    }


def _rule(name: str, schema: str) -> str:
    head = f"gpolicy: v1\nkind: Rule\nname: {name}\nfor: {{kind: NodeGroup}}\nmessage: x\n"
    return f"{head}schema: {schema}\n"


def _references(size: int) -> Files:
    """Return definitions each of which refers to the next one twice."""
    count = min(size // 120, 30)
    each = "".join(
        f"    d{n}: {{allOf: [{{$ref: '#/definitions/d{n + 1}'}}, {{$ref: '#/definitions/d{n + 1}'}}]}}\n"
        for n in range(count)
    )
    schema = f"\n  $ref: '#/definitions/d0'\n  definitions:\n{each}    d{count}: {{required: [name]}}\n"
    return one(f"{GROUP}---\n{_rule('r', schema)}")


def _waivers(size: int) -> Files:
    entry = "  - {rule: GP201, where: group/g%d, reason: because of %d, until: 2026-01-01}\n"
    return one(listed("gpolicy: v1\nkind: Waiver\nwaivers:\n", entry, size))


def _aliases(size: int) -> Files:
    bomb = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    return one(f"{CLUSTER}a0: &a0 [x]\n{bomb}# {'x' * (size - len(bomb))}\n")


def _spec_boxes(size: int) -> Files:
    """Many pairs that overlap one another in all ways."""
    pairs = ""
    number = 0
    while len(pairs) < size:
        low = SPEC % (f"{number % 97 + 1}G", number % 7 + 1, f"{number % 53 + 1}G", number % 3 + 1, 1, 1)
        high = SPEC % (f"{number % 97 + 90}G", number % 7 + 9, f"{number % 53 + 60}G", number % 3 + 5, 8, 8)
        pairs += f"    - {{min: {low}, max: {high}}}\n"
        number += 1
    return one(f"{CLUSTER}ipolicy:\n  minmax:\n{pairs}  std: {LEAST}\n")


YAML: Final[dict[str, Maker]] = {
    "flow sequences": lambda size: one("[" * size),
    "flow sequences closed": lambda size: one("[" * (size // 2) + "]" * (size // 2)),
    "flow mappings": lambda size: one("{a: " * (size // 4)),
    "block sequences": lambda size: one("- " * (size // 2)),
    "block mappings": lambda size: one("\n".join(" " * n + "a:" for n in range(int((2 * size) ** 0.5)))),
    "question marks": lambda size: one("? " * (size // 2)),
    "anchors": lines_of("a:\n", "- &a%d x\n"),
    "aliases": lines_of("a: &a [x]\nb:\n", "- *a\n"),
    "aliases that multiply": _aliases,
    "aliases of nothing": line_of("a: [", "*a%d"),
    "aliases of itself": lambda size: one("a: &a [*a]\n" * (size // 11)),
    "merge keys": lines_of(CLUSTER, "<<: {a: %d}\n"),
    "keys that stand twice": lines_of(CLUSTER, "name: x\n"),
    "keys that nobody knows": lines_of(CLUSTER, "ipolic%d: x\n"),
    "keys that nobody knows, in line": line_of(CLUSTER + "ipolicy: {", "vcpu-rati%d: x", "}\n"),
    "long keys": lambda size: one(CLUSTER + "? " + "a" * size + "\n: 1\n"),
    "a long scalar": lambda size: one(CLUSTER + "description: " + "a" * size + "\n"),
    "a long block": lambda size: one(CLUSTER + "description: |\n" + "  a\n" * (size // 4)),
    "a folded block": lambda size: one(CLUSTER + "description: >\n" + "  a\n\n" * (size // 5)),
    "quotes": lambda size: one(CLUSTER + "description: '" + "''" * (size // 2)),
    "escapes": lambda size: one(CLUSTER + 'description: "' + "\\x41" * (size // 4) + '"\n'),
    "tags": lines_of(CLUSTER + "tags:\n", "- !a%d x\n"),
    "tag handles": lines_of("", "%TAG !a%d! tag:x,2000:\n", "---\na: 1\n"),
    "documents": lambda size: one("---\n" * (size // 4)),
    "documents of one key": lambda size: one("---\na: 1\n" * (size // 9)),
    "documents of a kind": lines_of("", f"---\n{GROUP.replace('default', 'g%d')}"),
    "documents of one name": lines_of("", f"---\n{GROUP}"),
    "clusters": lines_of("", f"---\n{CLUSTER}"),
    "comments": lambda size: one(CLUSTER + "# x\n" * (size // 4)),
    "hashes": lambda size: one(CLUSTER + "#" * size),
    "hashes with blanks": lambda size: one(CLUSTER + "# " * (size // 2)),
    "blank lines": lambda size: one(CLUSTER + "\n" * size),
    "blanks": lambda size: one(CLUSTER + "tags: [a]" + " " * size + "\n"),
    "carriage returns": lambda size: one(CLUSTER + "\r" * size),
    "tabs": lambda size: one(CLUSTER + "\t" * size),
    "line separators": lambda size: one(CLUSTER + "description: a\u2028" * (size // 16)),
    "wide letters": lambda size: one(CLUSTER + "description: '" + "\U0001f433" * (size // 4) + "'\n"),
    "unprintable letters": lambda size: one(CLUSTER + "tags: ['" + "\u202e" * (size // 3) + "']\n"),
    "digits": lambda size: one(CLUSTER + "candidate_pool_size: " + "9" * size + "\n"),
    "digits in hexadecimal": lambda size: one(CLUSTER + "candidate_pool_size: 0x" + "f" * size + "\n"),
    "digits behind a point": lambda size: one(CLUSTER + "ipolicy: {vcpu-ratio: 1." + "9" * size + "}\n"),
    "an exponent": lambda size: one(CLUSTER + "ipolicy: {vcpu-ratio: 1e" + "9" * size + "}\n"),
    "numbers of 400 digits": lines_of(CLUSTER, "k%d: " + "9" * 400 + "\n"),
}
"""Text that is hard to parse."""

EXTENDS: Final[dict[str, Maker]] = {
    "unknown, on one line": line_of(GROUP + "extends: [", "x%d"),
    "unknown, a hundred in each": lambda size: _together(
        size,
        size,
        lambda n: (
            f"gpolicy: v1\nkind: NodeGroup\nname: g{n}\nextends: [{', '.join(f'x{n}y{m}' for m in range(100))}]\n"
        ),
    ),
    "unknown, from one line by aliases": groups_of("extends: [" + ", ".join(["nobody"] * 99) + "]\n"),
    "the same, many times": line_of(GROUP + "extends: [", "b", f"]\n---\n{GROUP.replace('default', 'b')}"),
    "unknown files": line_of(GROUP + "extends: [", '"f%d.yaml#x"'),
    "a chain": _extends_chain,
    "all of a hundred": _extends_all,
    "layers": _extends_each_other,
    "files of one another": _extends_files,
    "heirs of many pairs": _heirs_of_much,
    "heirs of the cluster's pairs": _heirs_of_a_cluster,
    "heirs of many nodes": _heirs_of_nodes,
    "heirs of many tags": _heirs_of_tags,
    "heirs with an error": _heirs_with_an_error,
    "a long name": lambda size: one(GROUP + "extends: " + "x" * size + "\n"),
    "a long path": lambda size: one(GROUP + "extends: " + "x/" * (size // 2) + "y.yaml#x\n"),
}

COMMENTS: Final[dict[str, Maker]] = {
    "on each line": lines_of(GROUP + "nodes:\n", "- node%d  # gpolicy: ignore[GP201] why\n"),
    "alone, before each line": lines_of(GROUP + "nodes:\n", "# gpolicy: ignore[GP201] why\n- node%d\n"),
    "alone, all before one line": lambda size: one("# gpolicy: ignore[GP201]\n" * (size // 25) + GROUP),
    "for the file": lambda size: one("# gpolicy: ignore-file[GP201]\n" * (size // 30) + GROUP),
    "of many rules": lambda size: one(GROUP + "# gpolicy: ignore[" + ", ".join(["GP201"] * (size // 7)) + "]\n"),
    "of unknown rules": lambda size: one(
        GROUP
        + "ndparams: {}  # gpolicy: ignore["
        + ", ".join(f"spec-overlap{n}" for n in range(min(900, size // 15)))
        + "]\n"
    ),
    "of unknown rules on each line": lines_of(GROUP + "nodes:\n", "- node%d  # gpolicy: ignore[spec-overlpa%d]\n"),
    "in a thousand files": _files,
    "in flow": lambda size: one(GROUP + "nodes: [\n" + "x,  # gpolicy: ignore[GP201]\n" * (size // 29) + "]\n"),
    "in one block": lambda size: one(CLUSTER + "description: |\n" + "  x # gpolicy: ignore[GP201]\n" * (size // 29)),
    "in one quoted line": lambda size: one(
        CLUSTER + 'description: "' + " # gpolicy: ignore[GP201]" * (size // 25) + '"\n'
    ),
    "in one comment": lambda size: one(CLUSTER + " # gpolicy: ignore[GP201]" * (size // 25) + "\n"),
    "never closed": lambda size: one(CLUSTER + "# gpolicy: ignore[" * (size // 18) + "\n"),
    "never closed, on lines": lambda size: one(CLUSTER + "# gpolicy: ignore[GP201\n" * (size // 24)),
    "with blanks": lambda size: one(
        CLUSTER + "#" + " \t" * (size // 2) + "gpolicy\n" + "#" + "\t" * (size // 2) + "\n"
    ),
    "words and blanks": lambda size: one(CLUSTER + "# gpolicy" + " " * (size // 2) + "x" * (size // 2) + "\n"),
    "words": lambda size: one(CLUSTER + "# gpolicy " * (size // 10) + "\n"),
    "a long word": lambda size: one(CLUSTER + "# gpolicy: ignore" + "-" * size + "\n"),
    "long words": lambda size: one(CLUSTER + ("# gpolicy: ignore" + "-" * 980 + "\n") * (size // 1000)),
}

MANY: Final[dict[str, Maker]] = {
    "nodes of a group": lines_of(GROUP + "nodes:\n", "- node%d\n"),
    "nodes of a group, on one line": line_of(GROUP + "nodes: [", "node%d"),
    "patterns of a group": lines_of(GROUP + "nodes:\n", "- node*%d*\n"),
    "patterns of groups": groups_of('nodes: ["*a*%d*", "[a-z]?%d*"]\n'),
    "patterns with many stars": lambda size: one(
        in_line(GROUP + "nodes: [", '"' + "*a" * 120 + '%d"', size)
        + "---\ngpolicy: v1\nkind: NodeSet\nname: x\nnodes: ["
        + "a" * 240
        + "]\n"
    ),
    "a pattern of stars": lambda size: one(
        f"{GROUP}nodes: [{'*a' * (size // 4)}b]\n---\n{GROUP.replace('default', 'x')}nodes: [{'a' * (size // 2)}]\n"
    ),
    "patterns of two stars": lambda size: one(
        f"{GROUP}nodes: ['{'*a' * 30}', '{'a*' * 30}b']\n---\n{GROUP.replace('default', 'x')}nodes: ["
        + ", ".join(f"'{'?*' * 20}{n}'" for n in range(size // 60))
        + "]\n"
    ),
    "brackets": lambda size: one(GROUP + "nodes: ['" + "[" * size + "']\n"),
    "brackets with ranges": lambda size: one(GROUP + "nodes: ['" + "[a-z]" * (size // 5) + "']\n"),
    "node sets": lines_of(
        "", "---\ngpolicy: v1\nkind: NodeSet\nname: s%d\nnodes: ['node*']\nndparams: {spindle_count: %d}\ntags: [t%d]\n"
    ),
    "node sets by group": lines_of(
        GROUP, "---\ngpolicy: v1\nkind: NodeSet\nname: s%d\ngroups: [default]\nndparams: {spindle_count: %d}\n"
    ),
    "groups with nodes": groups_of("nodes: [a%d]\nipolicy: {vcpu-ratio: 2}\n"),
    "groups that differ": lines_of(
        "", EACH_GROUP + "hardware: {memory: 64G, cpus: 8, pv_count: %d}\nndparams: {exclusive_storage: true}\n"
    ),
    "groups with specs": lines_of(
        "", EACH_GROUP + f"ipolicy:\n  minmax:\n    - {{name: s%d, min: {LEAST}, max: {LEAST}}}\n"
    ),
    "groups renamed": groups_of("renamed_from: h%d\n"),
    "pairs": lambda size: one(
        f"{CLUSTER}ipolicy:\n  minmax:\n" + "".join(map(_pair, range(size // 200))) + f"  std: {LEAST}\n"
    ),
    "pairs that overlap": _spec_boxes,
    "pairs that are equal": lambda size: one(
        f"{CLUSTER}ipolicy:\n  minmax:\n"
        + f"    - {{min: {LEAST}, max: {LEAST}}}\n" * (size // 220)
        + f"  std: {LEAST}\n"
    ),
    "pairs with names": lines_of(
        f"{CLUSTER}ipolicy:\n  minmax:\n", f"    - {{name: s%d, min: {LEAST}, max: {LEAST}}}\n"
    ),
    "pairs by alias": lambda size: one(
        f"{CLUSTER}x: &p {{min: {LEAST}, max: {LEAST}}}\nipolicy:\n  minmax:\n" + "    - *p\n" * (size // 10)
    ),
    "tags": lines_of(CLUSTER + "tags:\n", "- t%d\n"),
    "tags, on one line": line_of(CLUSTER + "tags: [", "htools:iextag:t%d"),
    "tags misspelt": lines_of(CLUSTER + "tags:\n", "- htool:iextags:t%d\n"),
    "a long tag": lambda size: one(f"{CLUSTER}tags: ['{'htools:' * (size // 7)}']\n"),
    "tags of groups": groups_of("tags: [rack:a%d, rack:b%d]\n"),
    "exclusion": lines_of("gpolicy: v1\nkind: TagRules\nowns: [iextags]\nexclusion:\n", "- s%d\n"),
    "failure domains": lines_of("gpolicy: v1\nkind: TagRules\nfailure_domains:\n", "- r%d\n"),
    "owned prefixes": lines_of("gpolicy: v1\nkind: TagRules\nowns:\n", "- {prefix: 'p%d:', 'on': [node]}\n"),
    "migration": lines_of("gpolicy: v1\nkind: TagRules\nmigration:\n  domains:\n", "  - v%d\n"),
    "migration allowed": lines_of(
        "gpolicy: v1\nkind: TagRules\nmigration:\n  domains: [a, b]\n  allow:\n", "  - {from: a%d, to: b%d}\n"
    ),
    "guards": lines_of(CLUSTER + "---\ngpolicy: v1\nkind: Guards\nguards:\n", "- {name: g%d, max_changes: 4}\n"),
    "guards of nothing": lines_of(
        "gpolicy: v1\nkind: Guards\nguards:\n", "- {name: g%d, group: x%d, spec: y%d, at_least: 1}\n"
    ),
    "tests": lines_of(
        GROUP + "---\ngpolicy: v1\nkind: Test\ntests:\n",
        "- {name: t%d, check_instance: {group: default, memory-size: 1G}, expect: {refused: true}}\n",
    ),
    "tests with disks": line_of(
        GROUP + "---\ngpolicy: v1\nkind: Test\ntests:\n- name: t\n  check_instance: {group: default, disks: [",
        "1G",
        "]}\n  expect: {refused: true}\n",
    ),
    "waivers": _waivers,
    "waivers and findings": _waivers_and_findings,
    "findings with long names": _findings_with_long_names,
    "nodes of all sorts": line_of(GROUP + "nodes: [", "[%d], {a: %d}, %d"),
    "house rules": halves(
        ("", EACH_GROUP + "tags: [a%d]\n"),
        ("", "---\n" + _rule("r%d", "{properties: {tags: {items: {pattern: '(a+)+$'}}}}")),
    ),
    "a house rule of references": _references,
    "a house rule of alternatives": lambda size: one(
        GROUP + "---\n" + _rule("r", in_line("{anyOf: [", "{required: [limits.max_node_failures]}", size, "]}"))
    ),
    "a house rule of many paths": lambda size: one(
        GROUP + "---\n" + _rule("r", in_line("{required: [", "x%d", size, "]}"))
    ),
    "a house rule about long tags": lambda size: one(
        f"{GROUP}tags: ['{'a' * (size // 2)}!']\n---\n"
        + _rule("r", f"{{properties: {{tags: {{items: {{pattern: '({'a*' * 200})*b'}}}}}}}}")
    ),
    "house rules about much": lambda size: one(
        f"{CLUSTER}reserved_lvs: [{', '.join(map(str, range(size // 20)))}]\n---\n"
        + listed("", EACH_GROUP, size // 2)
        + "---\n"
        + _rule("r", "{patternProperties: {'.': {not: {const: 1}}}, additionalProperties: {uniqueItems: true}}")
    ),
    "house rules named in comments": lines_of(GROUP + "nodes: [a]  # gpolicy: ignore[", "house/x%d, ", "house/y]\n"),
    "wide ranges": line_of(GROUP + "nodes: [", "'%d" + "[!-\U0010ffff]" * 20 + "'"),
    "names in ranges": groups_of("nodes: ['[0-9][0-9][0-9]x%d']\n"),
    "names in ranges of one group": line_of(GROUP + "nodes: [", "'[0-9][0-9][0-9]x%d'"),
    "sizes": line_of(GROUP + "hardware: {pv_size: [", "'" + "9" * 200 + "T'", "]}\n"),
    "node tags and rules about them": halves(
        ("gpolicy: v1\nkind: NodeSet\nname: s\nnodes: ['*']\ntags:\n", "- hv:%d\n"),
        (
            "---\ngpolicy: v1\nkind: TagRules\nmigration:\n  domains: [hv]\n  allow:\n",
            "  - {from: hv:a%d, to: hv:b%d}\n",
        ),
    ),
    "failure domains and node tags": halves(
        ("gpolicy: v1\nkind: NodeSet\nname: s\nnodes: ['*']\ntags:\n", "- rack%d:1\n"),
        ("---\ngpolicy: v1\nkind: TagRules\nfailure_domains:\n", "- rakc%d\n"),
    ),
    "groups and sets of them": halves(
        ("", EACH_GROUP + "nodes: [n%d]\n"),
        ("", "---\ngpolicy: v1\nkind: NodeSet\nname: s%d\nnodes: ['n*']\nndparams: {spindle_count: 2}\n"),
    ),
    "groups and guards": halves(
        ("", EACH_GROUP + "nodes: [n%d]\n"),
        ("---\ngpolicy: v1\nkind: Guards\nguards:\n", "- {name: h%d, group: g%d, spec: s%d, at_least: 1}\n"),
    ),
    "guards that name groups": lines_of(
        CLUSTER + "---\ngpolicy: v1\nkind: Guards\nguards:\n", "- {name: h%d, group: g, at_least: %d}\n"
    ),
    "waivers of unknown rules": lines_of(
        "gpolicy: v1\nkind: Waiver\nwaivers:\n", "  - {rule: spec-overlpa%d, where: group/g%d, reason: x}\n"
    ),
    "user ids": line_of(CLUSTER + "uid_pool: [", '"%d-%d9"'),
    "reserved volumes": line_of(CLUSTER + "reserved_lvs: [", '"xenvg/(a+)+%d$"'),
    "a pattern of reserved volumes": lambda size: one(CLUSTER + "reserved_lvs: ['" + "(a+)+" * (size // 5) + "$']\n"),
    "blacklisted os": line_of(CLUSTER + "blacklisted_os: [", '"os%d"'),
    "templates": line_of(CLUSTER + "enabled_disk_templates: [", "drbd"),
    "unknown templates": line_of(CLUSTER + "enabled_disk_templates: [", "drb%d"),
    "a mask of processors": lambda size: one(
        CLUSTER + "hvparams: {kvm: {cpu_mask: '" + "0-3:" * (size // 4) + "0'}}\n"
    ),
    "a mask of ranges": lambda size: one(
        CLUSTER + "hvparams: {kvm: {cpu_mask: '" + ",".join(f"0-{n}" for n in range(size // 8)) + "'}}\n"
    ),
    "hypervisors": lines_of(CLUSTER + "hvparams:\n", "  kvm%d: {boot_order: disk}\n"),
    "hypervisor parameters": lines_of(CLUSTER + "hvparams:\n  kvm:\n", "    boot_orde%d: disk\n"),
    "volume groups": lines_of(CLUSTER + "disk_state:\n  plain:\n", "    vg%d: {disk_total: 1T, disk_reserved: 1G}\n"),
    "physical volumes": line_of(GROUP + "hardware: {pv_size: [", "%dG", "]}\n"),
    "disk-custom": lambda size: one(CLUSTER + "diskparams: {drbd: {disk-custom: '" + "--a " * (size // 4) + "'}}\n"),
    "quotes of disk-custom": lambda size: one(
        CLUSTER + 'diskparams: {drbd: {disk-custom: "' + "'a' " * (size // 4) + '"}}\n'
    ),
}
"""Many of what a policy may have one of."""

MAKERS: Final[dict[str, Maker]] = {
    f"{kind}: {name}": maker
    for kind, makers in (("yaml", YAML), ("extends", EXTENDS), ("comments", COMMENTS), ("many", MANY))
    for name, maker in makers.items()
}


# --- every place of the schemas -------------------------------------------------------------------------------------

Place = tuple[str | int, ...]


def places() -> Iterator[tuple[str, Place, dict[str, Any]]]:
    """Yield every place that a document can have: its kind, where it is, and the schema of what stands there."""
    definitions = whole_schema()["definitions"]
    for kind in definitions:
        if kind[0].isupper():
            yield from _below(kind, (), definitions[kind], definitions)


def _below(
    kind: str, place: Place, schema: dict[str, Any], definitions: dict[str, Any], opened: tuple[str, ...] = ()
) -> Iterator[tuple[str, Place, dict[str, Any]]]:
    if reference := schema.get("$ref"):
        if reference in opened:
            return  # the schema of a Rule holds itself
        opened = (*opened, reference)
        schema = definitions[reference.rpartition("/")[2]]
    if place:
        yield kind, place, schema
    for key, value in schema.get("properties", {}).items():
        if (*place, key) not in (("gpolicy",), ("kind",)):
            yield from _below(kind, (*place, key), value, definitions, opened)
    for value in schema.get("patternProperties", {}).values():
        yield from _below(kind, (*place, "x"), value, definitions, opened)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _below(kind, (*place, "x"), schema["additionalProperties"], definitions, opened)
    if isinstance(schema.get("items"), dict):
        yield from _below(kind, (*place, 0), schema["items"], definitions, opened)
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        for key in ("$ref", "properties", "items", "patternProperties", "additionalProperties"):
            if key in alternative:
                yield from _below(kind, place, alternative, definitions, opened)
                break


def with_value(kind: str, place: Place, value: Any) -> Files:
    """Return a policy whose document of `kind` has `value` at one place, and else what it must have."""
    whole: dict[str, Any] = {"gpolicy": "v1", "kind": kind}
    if kind in ("Cluster", "NodeGroup", "NodeSet"):
        whole["name"] = "x"
    holder: Any = whole
    for step, following in zip(place, (*place[1:], None), strict=True):
        below: Any = value if following is None else ([None] if following == 0 else {})
        if isinstance(holder, list):
            holder[0] = below
        else:
            holder[step] = below
        holder = below
    return one(json.dumps(whole))
