"""Fixes of rules about specs, storage and groups: the fixed policies, and findings without a fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.findings import Severity
from gpolicy.policy.source_file import SourceFile
from gpolicy.rules.examples import bounds
from tests.rules.run_rules import check, codes

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SPECS = GROUP + "ipolicy:\n  minmax:\n"
LARGE = bounds("16G 64G", "4 16", "100G 1T")
SMALL = bounds("1G 12G", "1 3", "10G 90G")
EXCLUSIVE = GROUP + "ndparams: {exclusive_storage: true}\n"


@pytest.mark.parametrize(
    ("text", "code", "fixed"),
    [
        (
            f"{SPECS}    - name: large\n      {LARGE}    - {SMALL}    # twice\n    - {SMALL}",
            "GP204",
            f"{SPECS}    - name: large\n      {LARGE}    - {SMALL}",
        ),
        (f"{SPECS}    - name: a\n      {SMALL}    - name: b\n      {SMALL}", "GP204", None),
        (
            f"{SPECS}    - {SMALL.replace('nic-count: 1, spindle-use: 12', 'nic-count: 9, spindle-use: 12')}",
            "GP214",
            f"{SPECS}    - {SMALL.replace('nic-count: 1, spindle-use: 12', 'nic-count: 8, spindle-use: 12')}",
        ),
        (f"{EXCLUSIVE}ipolicy: {{spindle-ratio: 32}}  # or is exclusive_storage the slip?\n", "GP409", None),
        (f"{GROUP}renamed_from: gold  # or is the name the slip?\n", "GP608", None),
        (
            f"{GROUP.replace('NodeGroup', 'Cluster')}beparams: {{maxmem: 130}}\n",
            "GP015",
            f"{GROUP.replace('NodeGroup', 'Cluster')}beparams: {{maxmem: 132}}\n",
        ),
        (f"{GROUP.replace('NodeGroup', 'Cluster')}beparams: {{maxmem: 1}}  # or 1G?\n", "GP015", None),
        (f"{GROUP}renamed_from: silver\n---\n{GROUP.replace('gold', 'silver')}", "GP608", None),
        (f'{GROUP}nodes: ["node[4-1].example.org"]\n', "GP612", f'{GROUP}nodes: ["node[1-4].example.org"]\n'),
        (f'{GROUP}nodes: ["node[4-1]{{a,b}}"]\n', "GP612", None),
        (f'{GROUP}nodes: ["node[14"]\n', "GP612", None),
    ],
)
def test_fix(text: str, code: str, fixed: str | None, tmp_path: Path) -> None:
    about = [found for found in check(text, tmp_path) if found.code not in ("GP152", "GP411")]
    assert codes(about) == [code]
    if fixed is None:
        assert about[0].fix is None
        return
    assert about[0].fix is not None
    text = SourceFile("f", text).edited(about[0].fix.edits)
    assert text == fixed
    assert [found for found in check(text, tmp_path) if found.severity is not Severity.INFO] == []
