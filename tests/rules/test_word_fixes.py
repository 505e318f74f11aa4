"""Fixes of words: the corrected words, and findings without a fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.run_rules import check

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
RULES = "gpolicy: v1\nkind: TagRules\n"
SET = "gpolicy: v1\nkind: NodeSet\nname: spare\nnodes: [n1]\n"
MIGRATION = f"{RULES}migration:\n  domains: [hv]\n  allow: "
UP = '{from: "hv:1", to: "hv:2"}'


@pytest.mark.parametrize(
    ("text", "code", "fixed"),
    [
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
    ],
)
def test_fix(text: str, code: str, fixed: str | None, tmp_path: Path) -> None:
    (found,) = check(text, tmp_path)
    assert found.code == code
    if fixed is None:
        assert found.fix is None
        return
    assert found.fix is not None
    (edit,) = found.fix.edits
    lines = text.splitlines(keepends=True)
    assert edit.span.line == edit.span.end_line
    line = lines[edit.span.line - 1]
    lines[edit.span.line - 1] = line[: edit.span.column - 1] + edit.text + line[edit.span.end_column - 1 :]
    assert "".join(lines) == fixed
    assert check(fixed, tmp_path) == []
