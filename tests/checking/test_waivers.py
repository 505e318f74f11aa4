from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.run_rules import check, cluster, codes

SHARED = """\
gpolicy: v1
kind: NodeGroup
name: {name}
ipolicy: {{vcpu-ratio: 1}}
tags: ["htools:nlocation:rack"]
"""
"""A group with one finding: GP509."""


def waiver(rule: str = "GP509", where: str = "group/gold", until: str = "2026-12-31") -> str:
    text = f'  - {{rule: "{rule}", where: "{where}", reason: agreed, until: "{until}"}}\n'
    return f"---\ngpolicy: v1\nkind: Waiver\nwaivers:\n{text}"


def gold(*waivers: str) -> str:
    return SHARED.format(name="gold") + "".join(waivers)


def test_without_a_waiver_there_is_a_finding(tmp_path: Path) -> None:
    assert codes(check(gold(), tmp_path)) == ["GP509"]


@pytest.mark.parametrize("rule", ["GP509", "gp509", "tag-wrong-level"])
def test_a_waiver_names_the_rule_by_code_or_name(rule: str, tmp_path: Path) -> None:
    assert check(gold(waiver(rule)), tmp_path) == []


@pytest.mark.parametrize("where", ["group/gold", "group/*", "group/g?ld", "*", "policy.yaml", "*.yaml", "*policy*"])
def test_a_waiver_names_the_place_by_object_or_file(where: str, tmp_path: Path) -> None:
    assert check(gold(waiver(where=where)), tmp_path) == []


@pytest.mark.parametrize("where", ["group/silver", "cluster", "other.yaml", "olicy.yaml", ""])
def test_elsewhere_the_finding_stays_below_the_waiver_that_is_unused(where: str, tmp_path: Path) -> None:
    (found,) = check(gold(waiver(where=where)), tmp_path)
    assert (found.code, codes(found.consequences)) == ("GP902", ["GP509"])
    assert found.hint == "is `where: group/gold` meant? Else remove the waiver"


def test_what_a_waiver_was_most_likely_meant_for_follows_from_its_mistake(tmp_path: Path) -> None:
    for mistaken, code in ((waiver(where="GROUP/GOLD"), "GP902"), (waiver(where="grup/gold"), "GP902")):
        (found,) = check(gold(mistaken), tmp_path)
        assert (found.code, found.hint) == (code, "Did you mean `group/gold`?")
        assert codes(found.consequences) == ["GP509"]
    (found,) = check(gold(waiver(rule="tag-wrong-leve")), tmp_path)
    assert (found.code, codes(found.consequences)) == ("GP903", ["GP509"])


def test_what_is_found_at_one_other_place_may_be_meant(tmp_path: Path) -> None:
    other = "---\ngpolicy: v1\nkind: NodeGroup\nname: {}\n"
    text = gold(waiver(where="group/silver")) + other.format("silver")
    (found,) = check(text, tmp_path)
    hint = "is `where: group/gold` meant? Else remove the waiver"
    assert found.message.endswith("finds nothing at 'group/silver': it is found at group/gold")
    assert (found.code, found.hint, found.fix) == ("GP902", hint, None)
    assert codes(found.consequences) == ["GP509"]
    several = text + other.format("bronze") + "ipolicy: {vcpu-ratio: 1}\ntags: ['htools:nlocation:rack']\n"
    assert codes(check(several, tmp_path)) == ["GP509", "GP902", "GP509"]


def test_a_waiver_of_a_bare_name_is_told_the_object_and_stays(tmp_path: Path) -> None:
    for where in ("gold", "groups/gold"):
        (unused,) = check(gold(waiver(where=where)), tmp_path)
        assert (unused.code, unused.hint, unused.fix) == ("GP902", "Did you mean `group/gold`?", None)
        assert codes(unused.consequences) == ["GP509"]


def test_the_last_day_is_still_covered(tmp_path: Path) -> None:
    text = gold(waiver(until="2026-03-01"))
    assert check(text, tmp_path, today=date(2026, 3, 1)) == []
    (ended,) = check(text, tmp_path, today=date(2026, 3, 2))
    assert (ended.code, codes(ended.consequences)) == ("GP901", ["GP509"])


def test_each_unused_waiver_is_named(tmp_path: Path) -> None:
    found = check(gold(waiver(), waiver(), waiver("spec-overlap")), tmp_path)
    assert [(finding.code, finding.span and finding.span.line) for finding in found] == [("GP902", 15), ("GP902", 20)]


@pytest.mark.parametrize(
    ("rule", "code"),
    [("GP999", "GP903"), ("", "GP903"), ("unknown-key", "GP904"), ("waiver-unused", "GP904"), ("GP701", "GP904")],
)
def test_findings_that_cannot_be_waived(rule: str, code: str, tmp_path: Path) -> None:
    assert codes(check(gold(waiver(rule)), tmp_path)) == ["GP509", code]


@pytest.mark.parametrize("until", ["2026-02-30", "2026-13-01", "0000-01-01", "1.12.2026"])
def test_a_day_that_does_not_exist_covers_nothing(until: str, tmp_path: Path) -> None:
    (found,) = check(gold(waiver(until=until)), tmp_path)
    assert (found.code, codes(found.consequences)) == ("GP905", ["GP509"])
    assert found.hint == f"write the last day as {'2026-12-01' if until == '1.12.2026' else 'YYYY-MM-DD'}"


def test_an_error_of_structure_stays_an_error(tmp_path: Path) -> None:
    text = f"gpolicy: v1\nkind: NodeGroup\nname: gold\nnonsense: 1\n{waiver('GP011')}"
    assert codes(check(text, tmp_path)) == ["GP011", "GP904"]


def test_a_warning_of_structure_can_be_waived(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: c\nbeparams: {maxmem: 130}\n"
    assert codes(check(text, tmp_path)) == ["GP015"]
    assert check(text + waiver("size-rounded", "cluster"), tmp_path) == []
    (unused,) = check(text + waiver("size-rounded", "group/*"), tmp_path)
    assert (unused.code, codes(unused.consequences)) == ("GP902", ["GP015"])


def test_in_a_policy_that_cannot_be_read_no_waiver_is_called_unused(tmp_path: Path) -> None:
    text = gold(waiver("spec-overlap")) + "---\ngpolicy: v1\nkind: NodeGrup\n"
    assert codes(check(text, tmp_path)) == ["GP509", "GP010"]


def test_a_waiver_of_a_rule_that_needs_a_cluster_is_not_unused_without_one(tmp_path: Path) -> None:
    assert codes(check(gold(waiver(), waiver("pattern-without-node")), tmp_path)) == []


def test_a_mistake_in_a_common_base_is_waived_for_each_group_alone(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams: {spindle_count: 0}\n"
    groups = [f"---\ngpolicy: v1\nkind: NodeGroup\nname: {name}\nextends: base\n" for name in ("gold", "silver")]
    text = base + "".join(groups)
    assert codes(check(text, tmp_path)) == ["GP107"]
    assert codes(check(text + waiver("GP107", "group/gold"), tmp_path)) == ["GP107"]
    assert check(text + waiver("GP107", "group/gold") + waiver("GP107", "group/silver"), tmp_path) == []


def test_a_file_is_named_by_the_end_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "gold.yaml").write_text(gold(), encoding="utf-8")
    (tmp_path / "waivers.yaml").write_text(waiver(where="groups/gold.yaml").removeprefix("---\n"), encoding="utf-8")
    assert find_mistakes(load_policy(tmp_path), today=date(2026, 1, 1)) == []


def test_a_guard_and_a_test_are_named_by_their_kind(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: Guards\nguards:\n  - {name: no-shrink, capacity_loss: {at_most: 100%}}\n---\n"
        "gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\nkind: Test\ntests:\n"
        "  - {name: a, check_instance: {memory-size: 64G}, expect: {refused: true}}\n"
        "  - {name: a, check_instance: {memory-size: 65G}, expect: {refused: true}}\n"
    )
    assert codes(check(text, tmp_path)) == ["GP806", "GP813"]
    waivers = "".join(
        f'  - {{rule: {rule}, where: {where}, reason: agreed, until: "2099-12-31"}}\n'
        for rule, where in (("GP806", "guard/no-shrink"), ("GP813", "test/a"))
    )
    assert check(f"{text}---\ngpolicy: v1\nkind: Waiver\nwaivers:\n{waivers}", tmp_path) == []


def test_an_unused_waiver_can_be_removed(tmp_path: Path) -> None:
    group = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
    item = '  - {{rule: {}, where: {}, reason: agreed, until: "2099-12-31"}}\n'
    head = "---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
    two = item.format("GP106", "group/gold") + item.format("GP106", "group/silver")
    first, second = check(group + head + two, tmp_path)
    assert first.fix is not None
    assert [edit.text for edit in first.fix.edits] == [""]
    assert second.fix is None  # silver may be misspelt
    (only,) = check(group + head + item.format("GP106", "policy.yaml"), tmp_path)
    assert only.fix is not None
    assert only.fix.edits[0].span.line == 4  # the whole document
    (alone,) = check((head + item.format("GP106", "policy.yaml")).removeprefix("---\n"), tmp_path)
    assert alone.fix is None


def test_a_warning_about_the_cluster_can_be_accepted_and_an_error_cannot(tmp_path: Path) -> None:
    state = cluster({"gold": {}})
    text = "gpolicy: v1\nkind: NodeGroup\nname: godl\n"
    assert codes(check(text, tmp_path, state=state)) == ["GP728"]
    assert check(text + waiver("GP728", "group/godl"), tmp_path, state=state) == []
    assert check(text.replace("godl", "godl  # gpolicy: ignore[GP728] new"), tmp_path, state=state) == []
    unknown = "gpolicy: v1\nkind: NodeGroup\nname: gold\nnodes: [none]\n"
    assert codes(check(unknown + waiver("GP701"), tmp_path, state=state)) == ["GP701", "GP904"]
