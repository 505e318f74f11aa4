"""Comments that accept findings at their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpolicy.checking.checking import Examination
from gpolicy.checking.settings import Settings
from gpolicy.findings import COMMENT, WAIVER, Finding
from gpolicy.policy.loading import load_policy
from gpolicy.policy.source_file import SourceFile
from gpolicy.policy.yaml_reader import read_yaml
from tests.mistakes import find_mistakes
from tests.rules import run_rules
from tests.rules.run_rules import TODAY, cluster, codes

HEAD = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams:\n"
BAD = f"{HEAD}  ssh_port: 0"  # GP106


def check(text: str, directory: Path, **more: Any) -> list[Finding]:
    """Return what is found besides comments without a reason, which most of these tests write."""
    return [item for item in run_rules.check(text, directory, **more) if "gives no reason" not in item.message]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{BAD}  # gpolicy: ignore[GP106]\n", "ignore[GP106]"),
        (f"{BAD}  # gpolicy: ignore[GP106, port-range] -\n", "ignore[GP106, port-range]"),
        (f"# gpolicy: ignore-file[GP106]\n{BAD}\n", "ignore-file[GP106]"),
    ],
)
def test_a_comment_without_a_reason_works_with_a_warning_that_says_how_to_write_it(
    text: str, written: str, tmp_path: Path
) -> None:
    (warning,) = run_rules.check(text, tmp_path)
    assert (warning.code, warning.severity) == ("GP912", "warning")
    assert f"# gpolicy: {written} agreed with the owners" in warning.hint
    assert codes(run_rules.check(text.replace(f"{written}", f"{written} agreed with the owners"), tmp_path)) == []


def test_a_comment_that_accepts_nothing_is_one_finding(tmp_path: Path) -> None:
    assert codes(run_rules.check(f"{HEAD}  ssh_port: 22  # gpolicy: ignore[GP106]\n", tmp_path)) == ["GP911"]


def fixed(text: str, findings: list[Finding]) -> str:
    return SourceFile("f", text).edited(edit for finding in findings if finding.fix for edit in finding.fix.edits)


@pytest.mark.parametrize(
    "text",
    [
        f"{BAD}  # gpolicy: ignore[GP106]\n",
        f"{BAD}  #gpolicy:ignore[port-range]",
        f"{BAD}  # why not # gpolicy: ignore[ port-range , GP106] so it is\n",
        f"{BAD}  # gpolicy: ignore[GP1]\n",
        f"{BAD}  # gpolicy: ignore[GP10] the reason\n",
        f"{HEAD}  # gpolicy: ignore[GP106]\n  ssh_port: 0\n",
        f"{HEAD}# gpolicy: ignore[GP106]\n\n  # another\n  ssh_port: 0\n",
        f"{HEAD}  # why # gpolicy: ignore[GP106]\n  ssh_port: 0\n",
        f"# gpolicy: ignore-file[GP106]\n{BAD}\n",
        f"\n# head\n#gpolicy: ignore-file[port-range] all of it\n---\n{BAD}\n",
        f"# gpolicy: ignore-file[GP106]\ngpolicy: v1\nkind: NodeGroup\nname: x\n---\n{BAD}\n",
        f"gpolicy: v1 # gpolicy: ignore-file[GP106]\n{BAD.removeprefix('gpolicy: v1')}\n".replace("\n\n", "\n"),
        f"{BAD}  # gpolicy: ignore[GP106]\n".replace("\n", "\r\n"),
        f"\ufeff{BAD}  # gpolicy: ignore[GP106]\n",
    ],
)
def test_a_finding_is_accepted(text: str, tmp_path: Path) -> None:
    assert check(text, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}  # gpolicy: ignore[GP106]\n  spindle_count: 4\n  ssh_port: 0\n", ["GP911", "GP106"]),  # one line only
        (f"# gpolicy: ignore[GP106]\n{BAD}\n", ["GP911", "GP106"]),
        (f"{BAD}  # gpolicy: ignore[GP107]\n", ["GP106", "GP911"]),
        (f"{BAD}  # gpolicy: ignore[GP106, GP107]\n", ["GP911"]),
        (f"{BAD}  # gpolicy: ignore[GP2]\n", ["GP106", "GP911"]),
        (f"{BAD}  # gpolicy: ignore[GP1, GP2]\n", ["GP911"]),
        (f"{BAD}  # gpolicy: ignore[GP74]\n", ["GP106"]),  # all of these rules need a cluster
        (f"{BAD}  # gpolicy: ignore\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore all of it\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore[]\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore[,]\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore[GP106\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy ignore[GP106]\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy : ignore[GP106]\n", ["GP106", "GP912"]),
        (f"# gpolicy ignore-file [GP106]\n{BAD}\n", ["GP912", "GP106"]),
        (f"{BAD}  # gpolicy: ignroe[GP106]\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore-lines[GP106]\n", ["GP106", "GP912"]),
        (f"{BAD}  # gpolicy: ignore-file[GP106]\n", ["GP106", "GP912"]),  # not at the head
        (f"{BAD}\n# gpolicy: ignore[GP106]\n", ["GP106", "GP912"]),  # nothing follows
        (f"{BAD}\n# gpolicy: ignore[GP106]\n---\n{HEAD.replace('gold', 'x')}", ["GP106", "GP912", "GP014"]),
        (f"{BAD}  # gpolicy: ignore[port-rang]\n", ["GP106", "GP913"]),
        (f"{BAD}  # gpolicy: ignore[GP106, nope]\n", ["GP913"]),
        (f"{BAD}  # gpolicy: ignore[GP106, GP011]\n", ["GP914"]),
        (f"{BAD}  # gpolicy: ignore[GP106, GP911]\n", ["GP914"]),
        (f"{HEAD}  nonsense: 1  # gpolicy: ignore[unknown-key]\n", ["GP011", "GP914"]),
    ],
)
def test_an_ineffective_comment_is_a_finding(text: str, expected: list[str], tmp_path: Path) -> None:
    assert codes(check(text, tmp_path)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "# gpolicy: v1\n",
        "# gpolicy: this is checked by gpolicy\n",
        "# see gpolicy: ignore[GP1]\n",
        "# gpolicy ignores this [GP106]\n",
        "# gpolicy docs[1]\n",
        "# about mygpolicy: ignore\n",
    ],
)
def test_other_comments_are_left_alone(text: str, tmp_path: Path) -> None:
    assert check(f"{text}{HEAD}  ssh_port: 22\n", tmp_path) == []


def test_findings_about_comments_are_never_errors(tmp_path: Path) -> None:
    found = check(f"{HEAD}  ssh_port: 22 # gpolicy: ignore[nope] # gpolicy: ignore\n", tmp_path)
    assert {finding.severity for finding in found} == {"warning"}


# --- comments and values -------------------------------------------------------------------------------------------


def test_a_hash_in_a_value_is_not_a_comment() -> None:
    text = (
        "a: '# no'\nb: \"x\n  # no\"\nc: |  # yes\n  # no\nd: [x, '# no', {e: f, '# no': g}]  # yes\n# yes\ne: x#no\n"
        "f: &x # yes\n  g: >-\n    # no\nh: *x # yes\ni: plain # yes\nj: !!str | # yes\n  # no\n--- # yes\n'# no'\n"
    )
    found = [text[start:stop].rstrip() for start, stop in read_yaml(text, "f").comments]
    assert found == ["# yes"] * text.count("# yes")


def test_a_value_that_looks_like_a_suppression_accepts_nothing(tmp_path: Path) -> None:
    text = f"{HEAD}  oob_program: '/bin/x # gpolicy: ignore[GP106]'\n  ssh_port: 0\n"
    assert {"GP106"} <= set(codes(check(text, tmp_path)))
    assert not {"GP911", "GP912"} & set(codes(check(text, tmp_path)))


# --- how it goes together with the rest ----------------------------------------------------------------------------


def test_accepted_findings_are_listed_with_the_reason(tmp_path: Path) -> None:
    waiver = (
        "---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
        "  - {rule: GP107, where: group/gold, reason: no spindles yet, until: '2099-12-31'}\n"
    )
    text = f"{HEAD}  spindle_count: 0\n  ssh_port: 0  # gpolicy: ignore[GP106] - behind a gateway\n{waiver}"
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    checked = Examination(policy=load_policy(tmp_path), today=TODAY).run()
    assert checked.findings == []
    told = [(item.finding.code, item.by, item.reason) for item in checked.accepted]
    assert told == [("GP107", WAIVER, "no spindles yet"), ("GP106", COMMENT, "behind a gateway")]


def test_a_family_that_has_not_run_as_a_whole_is_not_removed(tmp_path: Path) -> None:
    """Some rules of GP2 need a cluster."""
    found = [item.fix for item in check(f"{BAD}  # gpolicy: ignore[GP106, GP2, GP107]\n", tmp_path)]
    assert [fix and fix.message for fix in found] == ["remove GP107 from the comment", None]


def test_a_comment_about_an_ignored_rule_is_not_unused(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"{BAD}  # gpolicy: ignore[GP106]\n", encoding="utf-8")
    policy = load_policy(tmp_path)
    assert find_mistakes(policy, today=TODAY, settings=Settings(ignored=frozenset({"GP106"}))) == []


def test_a_comment_in_a_base_may_be_unused_in_one_policy(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams:\n"
    (tmp_path / "one").mkdir()
    (tmp_path / "base.yaml").write_text(
        f"{base}  spindle_count: 4  # gpolicy: ignore[GP107]\n  ssh_port: 0  # gpolicy: ignore[GP106] a test\n"
        "  oob_program: '# gpolicy: ignore'\n"
    )
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: ../base.yaml\nndparams: {oob_program: /bin/oob}\n"
    (tmp_path / "one" / "p.yaml").write_text(text)
    assert find_mistakes(load_policy(tmp_path / "one"), today=TODAY) == []


def test_a_comment_in_a_template_may_be_for_another_policy(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams:\n"
    comment = "  # gpolicy: ignore[GP106]\n"
    group = f"---\n{HEAD}  spindle_count: 4{comment}extends: base\n"
    assert codes(check(f"{base}  ssh_port: 0{comment}{group}", tmp_path)) == ["GP911"]
    found = check(f"{base}  ssh_port: 22{comment}{group}", tmp_path)
    assert [(finding.code, finding.span and finding.span.line) for finding in found] == [("GP911", 12)]
    assert (
        check(f"# gpolicy: ignore-file[GP106]\n{base}  ssh_port: 22\n{group.replace(comment, chr(10))}", tmp_path) == []
    )


def test_one_file_among_others_says_nothing_about_unused_comments(tmp_path: Path) -> None:
    text = f"{HEAD}  ssh_port: 22  # gpolicy: ignore[GP106]\n"
    assert codes(check(text, tmp_path)) == ["GP911"]
    (tmp_path / "cluster.yaml").write_text("gpolicy: v1\nkind: Cluster\nname: c\n", encoding="utf-8")
    assert codes(check(text, tmp_path)) == ["GP911"]
    assert find_mistakes(load_policy(tmp_path / "policy.yaml"), today=TODAY) == []
    assert find_mistakes(load_policy(tmp_path / "cluster.yaml"), today=TODAY) == []


def test_a_comment_for_a_rule_that_needs_a_cluster_is_not_unused(tmp_path: Path) -> None:
    head = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
    text = f"{head}diskparams: {{drbd: {{resync-rate: 100M}}}}  # gpolicy: ignore[GP307]\n"
    assert check(text, tmp_path) == []
    state = cluster({"gold": {}})
    state.cluster.own["enabled_disk_templates",] = ["plain"]
    assert check(text, tmp_path, state=state) == []
    state.cluster.own["enabled_disk_templates",] = ["drbd"]
    assert codes(check(text, tmp_path, state=state)) == ["GP911"]
    cluster_document = "---\ngpolicy: v1\nkind: Cluster\nname: c\nenabled_disk_templates: [drbd]\n"
    assert codes(check(text + cluster_document, tmp_path)) == ["GP911"]


def test_a_broken_policy_says_nothing_about_unused_comments(tmp_path: Path) -> None:
    assert codes(check(f"{HEAD}  nonsense: 1  # gpolicy: ignore[GP106]\n", tmp_path)) == ["GP011"]


# --- removing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}  ssh_port: 22   # gpolicy: ignore[GP106] why\n", f"{HEAD}  ssh_port: 22\n"),
        (f"{HEAD}  ssh_port: 22 # a # gpolicy: ignore[GP106]", f"{HEAD}  ssh_port: 22 # a"),
        (f"{HEAD}  # gpolicy: ignore[GP106]\n  ssh_port: 22\n", f"{HEAD}  ssh_port: 22\n"),
        (f"{HEAD}  # gpolicy: ignore[GP106]\r\n  ssh_port: 22\n", f"{HEAD}  ssh_port: 22\n"),
        (
            f"{HEAD}  ssh_port: 0  # gpolicy: ignore[GP107, port-range,GP201] why\n",
            f"{HEAD}  ssh_port: 0  # gpolicy: ignore[port-range] why\n",
        ),
        (f"# gpolicy: ignore-file[GP106]\n{HEAD}  ssh_port: 22\n", f"{HEAD}  ssh_port: 22\n"),
    ],
)
def test_an_unused_comment_is_removed(text: str, expected: str, tmp_path: Path) -> None:
    found = check(text, tmp_path)
    assert codes(found) == ["GP911"]
    assert fixed(text, found) == expected
    assert check(expected, tmp_path) == []
