from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from run_rules import TODAY, check, cluster, codes

from gpolicy.findings import RuleInfo, Severity
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy
from gpolicy.rules import checking
from gpolicy.rules.checking import check_policy
from gpolicy.rules.context import Context
from gpolicy.rules.registry import RULES
from gpolicy.rules.rule import Hit, Rule

POLICIES = Path(__file__).resolve().parents[2] / "policies"
EXAMPLES = sorted({file.parent for name in ("cluster", "policy") for file in POLICIES.rglob(f"{name}.yaml")})


def test_an_empty_policy_is_sound() -> None:
    assert check_policy(Policy(paths=()), today=TODAY) == []


def test_findings_are_sorted_by_place(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("gpolicy: v1\nkind: NodeSet\nname: x\n", encoding="utf-8")
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {spindle_count: 0, ssh_port: 0}\nnonsense: 1\n"
    (tmp_path / "a.yaml").write_text(text.replace("nonsense: 1\n", ""), encoding="utf-8")
    found = check_policy(load_policy(tmp_path), today=TODAY)
    assert codes(found) == ["GP107", "GP106", "GP604"]
    assert found == sorted(found, key=lambda finding: finding.sort_key())


def test_a_rule_that_raises_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        info = RuleInfo(code="GP199", name="broken", severity=Severity.INFO, summary="", rationale="", source="a test")
        needs_state = False
        needs_whole_policy = False

        def check(self, _: Context) -> Iterator[Hit]:
            raise ZeroDivisionError

    monkeypatch.setattr(checking, "RULES", (Broken(),))
    with pytest.raises(ZeroDivisionError):
        check("gpolicy: v1\nkind: NodeSet\nname: x\n", tmp_path)


def test_no_rule_changes_the_policy_or_says_something_else_the_second_time(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "cases" / "specs.yaml").read_text(encoding="utf-8")
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(tmp_path)
    assert check_policy(policy, today=TODAY) == check_policy(policy, today=TODAY)


def test_rules_stand_in_the_order_of_their_families() -> None:
    families = [rule.info.code[:3] for rule in RULES]
    assert families == sorted(families)
    assert all(isinstance(rule, Rule) for rule in RULES)


def test_what_the_cluster_enables_is_known_from_its_state(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {disk-templates: [drbd]}\n"
    state = cluster({"gold": {}})
    state.cluster.own["enabled_disk_templates",] = ["plain"]
    assert check(text, tmp_path) == []
    (found,) = check(text, tmp_path, state=state)
    assert (found.code, found.related) == ("GP301", ())


def test_groups_of_the_cluster_are_groups_that_a_node_set_may_name(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeSet\nname: fast\ngroups: [gold]\nndparams: {cpu_speed: 2}\n"
    assert codes(check(text, tmp_path)) == ["GP605"]
    assert check(text, tmp_path, state=cluster({"gold": {}})) == []


def test_a_group_that_is_told_to_inherit_is_not_stale(tmp_path: Path) -> None:
    head = "gpolicy: v1\nkind: Cluster\nname: c\nenabled_disk_templates: [plain]\n---\ngpolicy: v1\nkind: NodeGroup\n"
    state = cluster({"gold": {("ipolicy", "disk-templates"): ["drbd"]}, "silver": {}})
    inherit = "ipolicy: {disk-templates: inherit}\n"
    assert codes(check(f"{head}name: gold\n", tmp_path, state=state)) == ["GP308"]
    assert check(f"{head}name: gold\n{inherit}", tmp_path, state=state) == []
    assert check(f"{head}name: new\nrenamed_from: gold\n{inherit}", tmp_path, state=state) == []
    assert check(f"{head}name: gold\nremoved: true\n", tmp_path, state=state) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_worked_examples_are_sound(path: Path) -> None:
    found = check_policy(load_policy(path), today=date(2026, 1, 1))
    assert [finding for finding in found if finding.severity is not Severity.INFO] == []
