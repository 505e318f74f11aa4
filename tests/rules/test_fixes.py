"""Fixes of rules: the fixed policies, and findings without a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpolicy.findings import Severity
from gpolicy.policy.source_file import SourceFile
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import check, codes

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
RULES = "gpolicy: v1\nkind: TagRules\n"
SET = "gpolicy: v1\nkind: NodeSet\nname: spare\nnodes: [n1]\n"
MIGRATION = f"{RULES}migration:\n  domains: [hv]\n  allow: "
UP = '{from: "hv:1", to: "hv:2"}'
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SPECS = GROUP + "ipolicy:\n  minmax:\n"
LARGE = bounds("16G 64G", "4 16", "100G 1T")
SMALL = bounds("1G 12G", "1 3", "10G 90G")
EXCLUSIVE = GROUP + "ndparams: {exclusive_storage: true}\n"
BESIDE: Final = ("GP152", "GP411")
"""Findings that some of the policies have in addition."""

FIXES: Final[list[tuple[str, str, str | None]]] = [
    (f'{CLUSTER}mac_prefix: "AA:00:01"\n', "GP102", f'{CLUSTER}mac_prefix: "aa:00:01"\n'),
    (f"{CLUSTER}mac_prefix: AA-00-0F\n", "GP102", f"{CLUSTER}mac_prefix: aa:00:0f\n"),
    (f"{CLUSTER}mac_prefix: AA-00\n", "GP102", None),
    (f"{CLUSTER}mac_prefix: 5E-00-0F\n", "GP102", None),
    (
        f"{CLUSTER}compression_tools: [lzop]  # fast\n",
        "GP105",
        f"{CLUSTER}compression_tools: [gzip, lzop]  # fast\n",
    ),
    (f"{CLUSTER}compression_tools:\n  - lzop\n", "GP105", None),
    (
        f"{CLUSTER}diskparams:\n  drbd: {{protocol: c}}\n",
        "GP124",
        f"{CLUSTER}diskparams:\n  drbd: {{protocol: C}}\n",
    ),
    (f"{CLUSTER}diskparams:\n  drbd: {{protocol: z}}\n", "GP124", None),
    (
        f"{CLUSTER}diskparams:\n  drbd: {{disk-barriers: 'BF'}}\n",
        "GP123",
        f"{CLUSTER}diskparams:\n  drbd: {{disk-barriers: 'bf'}}\n",
    ),
    (f"{CLUSTER}diskparams:\n  drbd: {{disk-barriers: nb}}\n", "GP123", None),
    (f"{CLUSTER}tags: ['htools:nlocatoin:rack']\n", "GP502", f"{CLUSTER}tags: ['htools:nlocation:rack']\n"),
    (f"{CLUSTER}tags:\n  - htols:migration:hv\n", "GP502", f"{CLUSTER}tags:\n  - htools:migration:hv\n"),
    (f"{CLUSTER}tags:\n  - nlocation:rack\n", "GP502", f"{CLUSTER}tags:\n  - htools:nlocation:rack\n"),
    (f"{CLUSTER}tags: ['htools:bogus:rack']\n", "GP502", None),
    (f'{RULES}exclusion: ["htools:iextags:service"]\n', "GP512", f'{RULES}exclusion: ["service"]\n'),
    (f'{RULES}exclusion: [{{raw: "htools:iextags:service"}}]\n', "GP512", None),
    (f"{CLUSTER}tags: ['htools:nlocation:rack:']\n", "GP513", f"{CLUSTER}tags: ['htools:nlocation:rack']\n"),
    (f"{CLUSTER}tags: ['htools:iextags:service']\n", "GP506", None),
    (f"{SET}tags: [htools:standby:x, htools:standby:auto]\n", "GP508", f"{SET}tags: [htools:standby:x]\n"),
    (f"{SET}tags: [htools:standby:auto]\n", "GP508", None),
    (f"{MIGRATION}[{UP}, {UP}]\n", "GP516", f"{MIGRATION}[{UP}]\n"),
    (
        f"{SPECS}    - name: large\n      {LARGE}    - {SMALL}    # twice\n    - {SMALL}",
        "GP204",
        f"{SPECS}    - name: large\n      {LARGE}    - {SMALL}",
    ),
    (f"{SPECS}    - name: a\n      {SMALL}    - name: b\n      {SMALL}", "GP204", None),
    (f"{SPECS}    - {SMALL.replace('nic-count: 1, spindle-use: 12', 'nic-count: 40, spindle-use: 12')}", "GP214", None),
    (f"{EXCLUSIVE}ipolicy: {{spindle-ratio: 32}}  # or is exclusive_storage the slip?\n", "GP409", None),
    (f"{GROUP}renamed_from: gold  # or is the name the slip?\n", "GP608", None),
    (
        f"{GROUP.replace('NodeGroup', 'Cluster')}beparams: {{maxmem: 130}}\n",
        "GP015",
        f"{GROUP.replace('NodeGroup', 'Cluster')}beparams: {{maxmem: 132}}\n",
    ),
    (f"{GROUP}renamed_from: silver\n---\n{GROUP.replace('gold', 'silver')}", "GP608", None),
    (f'{GROUP}nodes: ["node[4-1].example.org"]\n', "GP612", f'{GROUP}nodes: ["node[1-4].example.org"]\n'),
    (f'{GROUP}nodes: ["node[4-1]{{a,b}}"]\n', "GP612", None),
    (f'{GROUP}nodes: ["node[14"]\n', "GP612", None),
]


def test_fixes(tmp_path: Path) -> None:
    failures = []
    for text, code, fixed in FIXES:
        about = [found for found in check(text, tmp_path) if found.code not in BESIDE]
        made = SourceFile("f", text).edited(about[0].fix.edits) if about and about[0].fix else None
        left = [found for found in check(made, tmp_path) if found.severity is not Severity.INFO] if made else []
        if (codes(about), made, left) != ([code], fixed, []):
            failures.append((text, code, codes(about), made, left))
    assert failures == []
