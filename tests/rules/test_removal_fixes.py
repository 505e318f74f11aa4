"""Fixes of rules about specs, storage and groups: the fixed policies, and findings without a fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_rules import check, codes

from gpolicy.findings import Severity
from gpolicy.policy.source_file import SourceFile
from gpolicy.rules.examples import bounds

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
        (f"{EXCLUSIVE}ipolicy: {{spindle-ratio: 32}}  # idle\n", "GP409", EXCLUSIVE),
        (
            f"{EXCLUSIVE}ipolicy:\n  vcpu-ratio: 1\n  # idle\n  spindle-ratio: 32\n",
            "GP409",
            f"{EXCLUSIVE}ipolicy:\n  vcpu-ratio: 1\n",
        ),
        (f"{GROUP}renamed_from: gold  # since Monday\ntags: [a]\n", "GP608", f"{GROUP}tags: [a]\n"),
        (f"{GROUP}renamed_from: silver\n---\n{GROUP.replace('gold', 'silver')}", "GP608", None),
        (f'{GROUP}nodes: ["node[4-1].example.org"]\n', "GP612", f'{GROUP}nodes: ["node[1-4].example.org"]\n'),
        (f'{GROUP}nodes: ["node[4-1]{{a,b}}"]\n', "GP612", None),
        (f'{GROUP}nodes: ["node[14"]\n', "GP612", None),
    ],
)
def test_fix(text: str, code: str, fixed: str | None, tmp_path: Path) -> None:
    about = [found for found in check(text, tmp_path) if found.code != "GP411"]
    assert codes(about) == [code]
    if fixed is None:
        assert about[0].fix is None
        return
    assert about[0].fix is not None
    text = SourceFile("f", text).edited(about[0].fix.edits)
    assert text == fixed
    assert [found for found in check(text, tmp_path) if found.severity is not Severity.INFO] == []


def test_a_parameter_that_overrides_a_base_is_not_removed(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nipolicy: {spindle-ratio: 16}\n---\n"
    text = f"{base}{EXCLUSIVE}extends: base\nipolicy: {{spindle-ratio: 32}}\n"
    (found,) = [found for found in check(text, tmp_path) if found.code == "GP409"]
    assert found.fix is None
