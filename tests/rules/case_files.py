"""The format of `cases/`: policies that show what the rules say, beyond the two examples that each rule has itself.

A comment `#! CODE…` stands on every line where findings begin; there are no others. `+CODE` is one that only follows
from another one. A `.yaml` file is one policy. In a
`.txt` file each policy begins with `#= NAME: WHY`, its documents need no `gpolicy: v1`, and `$WORD` stands for a text
(`TEXTS`). A policy with `$row` stands for several: one for each line `#- ROW` behind it, which may go on in lines
`#| MORE`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

CASES: Final = Path(__file__).parent / "cases"
_SIZES: Final = """\
  minmax:
    - name: large
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 12G, cpu-count: 3, disk-size: 90G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}"""
TEXTS: Final = {
    "sizes": _SIZES,
    "cluster": f"""\
kind: Cluster
name: a.example.org
ganeti_version: "3.0"
enabled_disk_templates: [drbd, plain]
ipolicy:
{_SIZES}
  disk-templates: [drbd, plain]
  vcpu-ratio: 4""",
    "group": """\
---
kind: NodeGroup
name: default
nodes: ["node[1-4].example.org"]
hardware: {memory: 192G, cpus: 48, pv_count: 4, pv_size: 2T}""",
    "bare": "kind: Cluster\nname: c.example.org",
    "gold": "kind: NodeGroup\nname: gold",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A policy, and the findings about it: how many of each code (or `+CODE`) begin on each line."""

    name: str
    text: str

    @property
    def expected(self) -> Counter[tuple[int, str]]:
        found: Counter[tuple[int, str]] = Counter()
        for number, line in enumerate(self.text.split("\n"), 1):
            mark = re.search(r"#! ([^#]*)", line)
            found.update((number, code) for code in (mark[1].split() if mark else ()))
        return found


@cache
def cases(pattern: str = "*") -> tuple[Case, ...]:
    """Return the cases of all files whose name (without its ending) matches a pattern."""
    found = [Case(file.stem, file.read_text(encoding="utf-8")) for file in sorted(CASES.glob(f"{pattern}.yaml"))]
    for file in sorted(CASES.glob(f"{pattern}.txt")):
        for part in f"\n{file.read_text(encoding='utf-8')}".split("\n#= ")[1:]:
            head, _, body = part.partition("\n")
            found += _cases(head.partition(":")[0], body)
    return tuple(found)


def _cases(name: str, body: str) -> list[Case]:
    policy, *rows = re.split("^#- ", body, flags=re.MULTILINE)
    found = [Case(f"{name}: {row.rstrip()}", _with_row(policy, row)) for row in rows] or [Case(name, policy)]
    return [Case(case.name, _whole(case.text)) for case in found]


def _whole(text: str) -> str:
    text = Template(text).safe_substitute(TEXTS)
    return re.sub("^kind:", "gpolicy: v1\nkind:", text, flags=re.MULTILINE)


def _with_row(text: str, row: str) -> str:
    """Return a policy with a row in the place of `$row`; what is a comment there stays the end of its line."""
    lines = [re.split("(?=  #)", line, maxsplit=1) for line in row.rstrip().split("\n#| ")]
    before, after = text.split("$row", 1)
    rest, end, following = after.partition("\n")
    lines[-1].insert(1, rest)
    return before + "\n".join("".join(line) for line in lines) + end + following
