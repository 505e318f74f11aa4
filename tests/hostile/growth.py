"""Policies of one or two parts that are as long as wanted, to see how the work of a check grows with its input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Row = Callable[[int], str]


@dataclass(frozen=True)
class Part:
    """Documents of one kind (`row` makes one), or the rows of a list under `head`, perhaps in the cluster's."""

    row: Row
    head: str = ""
    in_cluster: bool = False

    def text(self, size: int) -> str:
        """Return about `size` letters."""
        rows: list[str] = []
        length = 0
        while length < size:
            rows.append(self.row(len(rows)))
            length += len(rows[-1])
        return self.head + "".join(rows)


def _document(kind: str, body: str) -> str:
    return f"---\ngpolicy: v1\nkind: {kind}\n{body}"


def _group(body: Callable[[int], str]) -> Part:
    return Part(lambda i: _document("NodeGroup", f"name: g{i}\n{body(i)}"))


def _size(i: int) -> str:
    number = i % 900 + 1
    return (
        f"{{memory-size: {number}G, cpu-count: 1, disk-size: {number}G, disk-count: 1, nic-count: 1, spindle-use: 1}}"
    )


def _pair(i: int) -> str:
    return f"{{name: s{i}, min: {_size(i)}, max: {_size(i + 1)}}}"


_MEASURES = ("at_least: 1", "capacity_loss: {at_most: 5%}", "newly_violating: 1", "node_failures: 1")
_TESTS = (
    "check_instance: {group: g%d, memory-size: 5G, cpu-count: 1, disks: [5G]}, expect: {refused: true}",
    "place: {group: g%d, spec: s1}, expect: {refused: true}",
    "capacity: {group: g%d}, expect: {standard: 1}",
    "redundancy: {group: g%d}, expect: {survives: true}",
)

PARTS = {
    "pairs of the cluster": Part(
        lambda i: f"    - {_pair(i)}\n", f"ipolicy:\n  std: {_size(0)}\n  minmax:\n", in_cluster=True
    ),
    "tags of the cluster": Part(lambda i: f"  - htools:iextags:p{i}\n", "tags:\n", in_cluster=True),
    "groups that extend one another": _group(
        lambda i: f"template: true\nextends: [g{i - 1}]\n" if i else "template: true\n"
    ),
    "groups with hardware": _group(
        lambda i: f"hardware: {{memory: {i % 90 + 1}G, cpus: 8, pv_size: {i % 70 + 1}G, pv_count: 1}}\n"
    ),
    "groups with pairs": _group(lambda i: f"ipolicy: {{minmax: [{_pair(i)}, {_pair(2 * i)}]}}\n"),
    "groups with patterns": _group(lambda i: f"nodes: ['n{i}*', '*x{i}y?', 'm{i}']\n"),
    "groups with tags": _group(lambda i: f"tags: ['rack:{i}', 'p{i}:x', 'htools:nlocation:q{i}']\n"),
    "groups with parameters": _group(
        lambda i: (
            f"ndparams: {{spindle_count: {i % 5 + 1}}}\ndiskparams: {{drbd: {{resync-rate: {i + 1}M}}}}\n"
            "hv_state: {kvm: {mem_node: 1G}}\nlimits: {max_node_failures: 1}\n"
        )
    ),
    "groups renamed": _group(lambda i: f"renamed_from: g{i + 1}\n"),
    "node sets": Part(
        lambda i: _document(
            "NodeSet", f"name: s{i}\nnodes: ['n{i}*', '*{i}y']\ngroups: [g{i}]\ntags: ['rack:{i}', 'p{i}:x']\n"
        )
    ),
    "node sets with parameters": Part(
        lambda i: _document("NodeSet", f"name: t{i}\nnodes: [m{i}, 'n?{i}']\nndparams: {{spindle_count: 2}}\n")
    ),
    "tag rules": Part(lambda i: f"  - {{prefix: 'p{i}:', 'on': [node]}}\n", _document("TagRules", "owns:\n")),
    "failure domains": Part(lambda i: f"  - q{i}\n", _document("TagRules", "failure_domains:\n")),
    "migration": Part(
        lambda i: f"    - {{from: 'm{i % 9}:{i}', to: 'm{i % 7}:{i}'}}\n",
        _document("TagRules", f"migration:\n  domains: [{', '.join(f'm{i}' for i in range(9))}]\n  allow:\n"),
    ),
    "guards": Part(
        lambda i: f"  - {{name: gu{i}, group: g{i}, {_MEASURES[i % 4]}}}\n", _document("Guards", "guards:\n")
    ),
    "tests": Part(lambda i: f"  - {{name: t{i}, {_TESTS[i % 4] % i}}}\n", _document("Test", "tests:\n")),
    "waivers": Part(
        lambda i: f"  - {{rule: GP{i % 900 + 100}, where: group/g{i}, reason: r}}\n", _document("Waiver", "waivers:\n")
    ),
    "waivers with patterns": Part(
        lambda i: f"  - {{rule: spec-gap, where: 'group/*{i}*:ipolicy.*', reason: r, until: 2099-01-01}}\n",
        _document("Waiver", "waivers:\n"),
    ),
    "house rules": Part(
        lambda i: _document(
            "Rule",
            f"name: r{i}\nfor: {{kind: NodeGroup, names: ['*{i}', 'g{i}*']}}\nmessage: m\n"
            "schema: {properties: {tags: {items: {pattern: '^(a|b)*$'}}}}\n",
        )
    ),
}
"""By what they are."""


def policy_of(parts: tuple[Part, ...], size: int) -> str:
    """Return a policy of about `size` letters that the parts share."""
    each = size // len(parts)
    first = sorted(parts, key=lambda part: not part.in_cluster)
    cluster = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nenabled_disk_templates: [drbd, plain]\n"
    return cluster + "".join(part.text(each) for part in first)
