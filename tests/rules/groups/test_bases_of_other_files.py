"""Bases in files outside the policy: without `template: true` they are policies of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.checking.checking import Checker
from gpolicy.forecast.bridge import FORECAST
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


_CLUSTER = "gpolicy: v1\nkind: Cluster\nname: {}\n{}---\n"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", [("GP618", "cluster fleet has no groups, and is extended by east and west")]),
        ("---\ngpolicy: v1\nkind: NodeGroup\nname: own\nnodes: [n9]\n", []),
    ],
)
def test_a_cluster_that_others_extend_is_a_template_unless_it_has_groups(
    more: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    base = _CLUSTER.format("fleet", "beparams: {vcpus: 1}\n") + _BASE + "template: true\n" + more
    for name in ("base", "east", "west"):
        text = _CLUSTER.format(name, "extends: ../base/all.yaml#fleet\n")
        text += _GROUP.replace("../base.yaml", "../base/all.yaml").replace("n1", f"{name}1")
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.yaml").write_text(base if name == "base" else text, encoding="utf-8")
    roots = [tmp_path / name for name in ("base", "east", "west")]
    checked = Checker(roots, None, today=TODAY, forecast=FORECAST).check()
    found = [finding for item in checked for finding in item.findings if finding.code in ("GP614", "GP618")]
    assert [(finding.code, finding.message) for finding in found] == expected
    assert all(finding.span is not None and finding.span.line == 3 for finding in found)
