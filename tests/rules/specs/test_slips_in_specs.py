"""Bounds of specs that are possible, but most likely exchanged with one another or off by a unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.policy_texts import CLUSTER, GROUP, bounds
from tests.rules.run_rules import check, codes

_RATIOS = f"{GROUP}ipolicy: {{vcpu-ratio: 16, spindle-ratio: 4}}\n"


def spec(memory: str, cpus: str, more: str = "") -> str:
    return f"{more or GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds(memory, cpus, '10G 100G')}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (spec("8G 8G", "2 32"), ["GP224"]),  # 32G and 8 CPUs
        (spec("8G 32G", "2 8"), []),
        (spec("1G 4G", "1 8"), []),
        (
            spec("8G 32G", "2 8").replace("nic-count: 1", "nic-count: 6", 1).replace("nic-count: 1", "nic-count: 8"),
            None,
        ),
        (_RATIOS, ["GP194"]),
        (_RATIOS.replace("16", "8"), []),
        (f"{GROUP}hardware: {{memory: 128G, cpus: 320}}\n", ["GP222"]),
        (f"{GROUP}hardware: {{memory: 133G, cpus: 32}}\n", []),  # no machine has 313G
        (f"{GROUP}hardware: {{memory: 521G, cpus: 32}}\n", ["GP222"]),
        (f"{GROUP}hardware: {{memory: 1G, cpus: 4}}\n", []),  # a small board
        (f'{CLUSTER}ipolicy: {{disk-templates: [plain]}}\n---\n{GROUP}nodes: ["web*"]\n', []),
    ],
)
def test_slips_of_specs(text: str, expected: list[str] | None, tmp_path: Path) -> None:
    assert codes(check(text, tmp_path)) == (["GP152"] if expected is None else expected)
