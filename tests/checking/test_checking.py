from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import ClassVar

import pytest

from gpolicy.checking import checking
from gpolicy.checking.catalogue import RULES
from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule, When, information
from gpolicy.checking.settings import DEFAULT
from gpolicy.findings import Severity
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.resolve.desired import resolve
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY, check, cluster, codes

POLICIES = Path(__file__).resolve().parents[2] / "policies"
EXAMPLES = sorted({file.parent for name in ("cluster", "policy") for file in POLICIES.rglob(f"{name}.yaml")})


def test_an_empty_policy_is_sound() -> None:
    assert find_mistakes(Policy(paths=()), today=TODAY) == []


def test_findings_are_sorted_by_place(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("gpolicy: v1\nkind: NodeSet\nname: x\n", encoding="utf-8")
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {spindle_count: 0, ssh_port: 0}\nnonsense: 1\n"
    (tmp_path / "a.yaml").write_text(text.replace("nonsense: 1\n", ""), encoding="utf-8")
    found = find_mistakes(load_policy(tmp_path), today=TODAY)
    assert codes(found) == ["GP107", "GP106", "GP604"]
    assert found == sorted(found, key=lambda finding: finding.sort_key())


def test_a_rule_that_raises_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @information("GP199")
    def broken(_: Context) -> Iterator[Hit]:
        raise ZeroDivisionError

    monkeypatch.setattr(checking, "RULES", (broken,))
    with pytest.raises(ZeroDivisionError):
        check("gpolicy: v1\nkind: NodeSet\nname: x\n", tmp_path)


def test_no_rule_changes_the_policy_or_its_findings_on_a_second_run(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[1] / "rules" / "cases" / "specs.yaml").read_text(encoding="utf-8")
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(tmp_path)
    assert find_mistakes(policy, today=TODAY) == find_mistakes(policy, today=TODAY)


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


def test_a_group_with_inherit_is_not_stale(tmp_path: Path) -> None:
    head = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nenabled_disk_templates: [plain]\n---\n"
    head += "gpolicy: v1\nkind: NodeGroup\n"
    state = cluster({"gold": {("ipolicy", "disk-templates"): ["drbd"]}, "silver": {}})
    inherit = "ipolicy: {disk-templates: inherit}\n"
    assert codes(check(f"{head}name: gold\n", tmp_path, state=state)) == ["GP308"]
    assert check(f"{head}name: gold\n{inherit}", tmp_path, state=state) == []
    assert check(f"{head}name: new\nrenamed_from: gold\n{inherit}", tmp_path, state=state) == []
    assert check(f"{head}name: gold\nremoved: true\n", tmp_path, state=state) == []


TWO_NODES = cluster({"gold": {}, "silver": {}}, {"node1": "gold", "node2": "gold"})
_GROUP = "gpolicy: v1\nkind: NodeGroup\nname: "
_SET = "gpolicy: v1\nkind: NodeSet\nname: "


@pytest.mark.parametrize(
    ("documents", "without", "with_cluster"),
    [
        ([f"{_GROUP}gold\nnodes: [node1, nodex]\n"], [], ["GP701"]),
        ([f"{_GROUP}gold\nnodes: ['rack*']\n"], [], ["GP606"]),
        ([f"{_GROUP}{name}\nnodes: [node1]\n" for name in ("gold", "silver")], ["GP602"], ["GP702"]),
        ([f"{_GROUP}{name}\nnodes: ['node?']\n" for name in ("gold", "silver")], ["GP611"], ["GP702"]),
        ([f"{_SET}s{n}\nnodes: [node1]\nndparams: {{spindle_count: {n}}}\n" for n in (1, 2)], ["GP607"], ["GP703"]),
        (
            [
                f"{_SET}s1\nnodes: ['node[12]']\nndparams: {{spindle_count: 1}}\n",
                f"{_SET}s2\nnodes: ['node?']\nndparams: {{spindle_count: 2}}\n",
            ],
            ["GP611"],
            ["GP703"],
        ),
        (
            [f"{_GROUP}gold\nrenamed_from: silver\n", f"{_GROUP}silver\nrenamed_from: gold\n"],
            ["GP608"],
            ["GP704", "GP704"],
        ),
        ([f"{_GROUP}{name}\nrenamed_from: silver\n" for name in ("one", "two")], ["GP608"], ["GP704"]),
        ([f"{_GROUP}{name}\nrenamed_from: gone\n" for name in ("one", "two")], ["GP608"], ["GP608"]),
        ([f"{_GROUP}gold\nrenamed_from: gold\n"], ["GP608"], ["GP608"]),
    ],
)
def test_with_a_cluster_check_and_plan_find_the_same(
    documents: list[str], without: list[str], with_cluster: list[str], tmp_path: Path
) -> None:
    text = "---\n".join(documents)
    assert codes(check(text, tmp_path)) == without
    found = check(text, tmp_path, state=TWO_NODES)
    assert codes(found) == with_cluster
    planned = resolve(load_policy(tmp_path), TWO_NODES).findings
    assert [item for item in found if item.code.startswith("GP7")] == sorted(planned, key=lambda item: item.sort_key())


def test_a_mistake_that_many_nodes_show_is_one_finding(tmp_path: Path) -> None:
    text = "---\n".join(f"{_GROUP}{name}\nnodes: ['node?']\n" for name in ("gold", "silver"))
    (found,) = check(text, tmp_path, state=TWO_NODES)
    assert found.message == "node node1 and 1 more are claimed by the groups gold and silver"


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["main\nrenamed_from: default", "default"], "the policy also declares default"),
        (["one\nrenamed_from: default", "main\nrenamed_from: default"], "so is one"),
        (
            ["main\nrenamed_from: default", "default\nrenamed_from: main"],
            "default is to be renamed from main",
        ),
        (
            ["main\nrenamed_from: default", "default\nrenamed_from: third", "third\nrenamed_from: main"],
            "default is to be renamed from third, third from main",
        ),
    ],
)
def test_the_message_of_an_impossible_rename(documents: list[str], message: str, tmp_path: Path) -> None:
    (found,) = check("---\n".join(f"{_GROUP}{document}\n" for document in documents), tmp_path)
    assert found.code == "GP608"
    assert found.message == f"main is to be renamed from default, but {message}"


def test_a_group_renamed_into_a_cycle_is_not_part_of_it(tmp_path: Path) -> None:
    documents = ["a\nrenamed_from: b", "b\nrenamed_from: c", "c\nrenamed_from: d"]
    assert check("---\n".join(f"{_GROUP}{document}\n" for document in documents), tmp_path) == []


def test_a_rule_with_the_prefix_is_one_finding_and_counts_as_what_it_means(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: TagRules\n"
    text += 'failure_domains: ["htools:nlocation:rack"]\ndesired_location: [rack]\n'
    text += 'migration: {domains: ["htools:migration:hv"], allow: [{from: "hv:1", to: "hv:2"}]}\n'
    found = check(text, tmp_path)
    assert codes(found) == ["GP512", "GP512"]
    assert [finding.hint for finding in found] == ["write rack", "write hv"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_worked_examples_are_sound(path: Path) -> None:
    found = find_mistakes(load_policy(path), today=date(2026, 1, 1))
    assert [finding for finding in found if finding.severity is not Severity.INFO] == []


class Watched(Context):
    """A context that notes whether the state is asked for."""

    asked: ClassVar[bool] = False

    def __getattribute__(self, name: str) -> object:
        Watched.asked = Watched.asked or name == "state"
        return super().__getattribute__(name)


def test_a_rule_that_uses_the_state_documents_it(tmp_path: Path) -> None:
    rules = [rule for rule in RULES if When.STATE not in rule.when]
    by_code = {rule.info.code: rule for rule in RULES}
    asking = set()
    for number, text in enumerate(text for rule in RULES for text in (rule.info.text.bad, rule.info.text.good)):
        directory = tmp_path / f"{number}"
        directory.mkdir()
        (directory / "policy.yaml").write_text(text, encoding="utf-8")
        policy = load_policy(directory)
        for rule in rules:
            if rule.info.code in asking:
                continue
            of_all = rules if When.LAST | When.MORE_WITH_STATE in rule.when else ()
            before = (
                other.check(Context(policy, None, DEFAULT, TODAY, rules=by_code))
                for other in of_all
                if When.LAST not in other.when
            )
            found = [hit.finding for hits in before for hit in hits]
            Watched.asked = False
            list(rule.check(Watched(policy, None, DEFAULT, TODAY, rules=by_code), found))
            if Watched.asked:
                asking.add(rule.info.code)
    with_state = When.MORE_WITH_STATE | When.BETTER_WITH_STATE
    assert asking == {rule.info.code for rule in rules if with_state & rule.when}
