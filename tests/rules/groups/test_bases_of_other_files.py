"""Bases in files outside the policy: without `template: true` they are policies of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.forecast.telling import FORECAST
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY

_BASE = "gpolicy: v1\nkind: NodeGroup\nname: media\nalloc_policy: preferred\n"
_GROUP = "gpolicy: v1\nkind: NodeGroup\nname: east\nextends: ../base.yaml#media\nnodes: [n1]\n"


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", ["GP618"]), ("template: true\n", []), ("template: false\n", ["GP618"]), ("nodes: [n9]\n", [])],
)
def test_a_base_of_another_file_is_a_template_or_a_group_with_nodes(
    more: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "east").mkdir()
    (tmp_path / "base.yaml").write_text(_BASE + more, encoding="utf-8")
    (tmp_path / "east" / "groups.yaml").write_text(_GROUP, encoding="utf-8")
    found = find_mistakes(load_policy(tmp_path / "east"), today=TODAY, forecast=FORECAST)
    assert [finding.code for finding in found] == expected
