"""One name that is missing makes one finding, which shows all places that refer to it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpolicy.checking.checking import Checker, CheckReport, report_checks
from gpolicy.findings import Finding, Severity
from gpolicy.policy.files import policy_roots
from tests.rules.run_rules import TODAY

POLICIES = Path(__file__).parents[2] / "policies"
GUARDS_AND_TESTS = """\
gpolicy: v1
kind: Guards
guards:
  - {name: room, group: gold, spec: large, at_least: 1}
---
gpolicy: v1
kind: NodeSet
name: fast
groups: [gold]
ndparams: {cpu_speed: 2}
---
gpolicy: v1
kind: Test
tests:
  - {name: one, check_instance: {group: gold, spec: large}, expect: {refused: false}}
  - {name: two, check_instance: {group: gold, spec: lagre}, expect: {refused: false}}
"""
GROUP = """\
gpolicy: v1
kind: NodeGroup
name: gold
ipolicy:
  minmax:
    - name: large
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 8G, cpu-count: 4, disk-size: 1T, disk-count: 4, nic-count: 4, spindle-use: 4}
---
"""


def _report(directory: Path) -> CheckReport:
    return report_checks(Checker(policy_roots(directory), None, today=TODAY).check())


def _bad(directory: Path) -> list[Finding]:
    return [finding for finding in _report(directory).findings if finding.severity is not Severity.INFO]


def _renamed(policy: str) -> Iterator[tuple[str, int]]:
    """Yield each place of a name that a document, a spec, a guard or a test of a policy declares."""
    for file in sorted((POLICIES / policy).rglob("*.yaml")):
        for found in re.finditer(r"\bname: *", file.read_text(encoding="utf-8")):
            yield str(file.relative_to(POLICIES)), found.end()


@pytest.mark.parametrize("policy", ["two-groups", "large-cluster", "fleet"])
def test_a_name_that_is_changed_at_its_own_place_alone_is_one_finding(policy: str, tmp_path: Path) -> None:
    for name in (policy, "two-groups.snapshot.json"):
        source = POLICIES / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    assert _bad(tmp_path / policy) == []
    found = set[str]()
    for file, place in _renamed(policy):
        path = tmp_path / file
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"[\w.-]+", "quux", text[place:], count=1).join((text[:place], "")), encoding="utf-8")
        bad = _bad(tmp_path / policy)
        assert len(bad) <= 1, (file, place, bad)
        found.update(finding.code for finding in bad)
        path.write_text(text, encoding="utf-8")
    assert found, "no name is referred to"


def _write(directory: Path, text: str) -> Path:
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return directory


def test_the_finding_shows_every_place(tmp_path: Path) -> None:
    renamed = GROUP.replace("name: gold", "name: silver")
    (finding,) = _bad(_write(tmp_path, renamed + GUARDS_AND_TESTS))
    assert (finding.code, finding.severity) == ("GP605", Severity.ERROR)
    assert "no group 'gold'" in finding.message
    assert len(finding.consequences) == 3
    lines = [item.span and item.span.line for item in finding.consequences]
    assert lines == [13, 24, 25]


def test_another_mistake_stays_a_finding_of_its_own(tmp_path: Path) -> None:
    renamed = GROUP.replace("name: large", "name: huge")
    findings = _bad(_write(tmp_path, renamed + GUARDS_AND_TESTS))
    assert [(finding.code, "lagre" in finding.message) for finding in findings] == [("GP802", False), ("GP812", True)]


def test_two_policies_lack_two_groups_of_one_name(tmp_path: Path) -> None:
    for name in ("ber", "muc"):
        (tmp_path / name).mkdir()
        cluster = f"gpolicy: v1\nkind: Cluster\nname: {name}.example.org\n---\n"
        _write(tmp_path / name, cluster + GROUP.replace("name: gold", "name: silver") + GUARDS_AND_TESTS)
    findings = [finding for finding in _bad(tmp_path) if "'gold'" in finding.message]
    assert [Path(finding.span.file).parent.name for finding in findings if finding.span] == ["ber", "muc"]


def test_policies_that_extend_one_base_lack_it_together(tmp_path: Path) -> None:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "refs").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("ber", "muc"):
        (tmp_path / name).mkdir()
        _write(tmp_path / name, f"gpolicy: v1\nkind: Cluster\nname: {name}.example.org\nextends: ../base.yaml\n")
    report = _report(tmp_path)
    (finding,) = report.findings
    assert "there is no file '../base.yaml' to extend" in finding.message
    assert len(finding.consequences) == 1
    assert report.failing == {finding}


RULES = "gpolicy: v1\nkind: Rule\nname: r\nfor: {kind: NodeGroup}\nschema: {required: [tags]}\nmessage: tags tell\n"


def test_rules_that_no_policy_of_the_repository_reads(tmp_path: Path) -> None:
    files = {
        "gpolicy.toml": "",
        "common/base.yaml": "gpolicy: v1\nkind: Cluster\nname: site\ntemplate: true\nbeparams: {vcpus: 1}\n",
        "common/rules.yaml": RULES,
        **{
            f"{town}/c.yaml": f"gpolicy: v1\nkind: Cluster\nname: {town}.org\nextends: ../common/base.yaml#site\n"
            for town in "ab"
        },
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (found,) = _bad(tmp_path)
    assert (found.code, found.span and Path(found.span.file)) == ("GP026", tmp_path / "common" / "rules.yaml")
    alone = report_checks(Checker([tmp_path / "a"], None, today=TODAY).check())
    assert alone.findings == [], "another policy may read it"
    (tmp_path / "common" / "rules.yaml").write_text(files["common/base.yaml"], encoding="utf-8")
    assert _bad(tmp_path) == [], "what is about objects may wait for somebody to extend it"
    (tmp_path / "common" / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "gpolicy.toml").write_text('exclude = ["common/rules.yaml"]\n', encoding="utf-8")
    assert _bad(tmp_path) == []


def test_a_name_that_several_places_use_is_misspelt_where_it_is_given(tmp_path: Path) -> None:
    uses = GUARDS_AND_TESTS.rsplit("  - {name: two", 1)[0]
    (tmp_path / "policy.yaml").write_text(GROUP.replace("name: large", "name: lagre") + uses, encoding="utf-8")
    (found,) = _bad(tmp_path)
    assert found.span is not None
    assert (found.code, found.span.line) == ("GP802", 6)
    assert found.hint == "is large meant? policy.yaml:13 and 1 more name it"
    assert {item.code for item in found.consequences} == {"GP802", "GP812"}
    wrong = GROUP.replace("name: gold", "name: glod") + uses
    (tmp_path / "policy.yaml").write_text(wrong, encoding="utf-8")
    assert [item.span.line for item in _bad(tmp_path) if item.span] == [3]


def test_a_name_that_one_place_uses_is_shown_with_the_place_where_it_is_given(tmp_path: Path) -> None:
    uses = GUARDS_AND_TESTS[: GUARDS_AND_TESTS.index("---")]
    (tmp_path / "policy.yaml").write_text(GROUP.replace("name: large", "name: lagre") + uses, encoding="utf-8")
    (found,) = _bad(tmp_path)
    assert found.span is not None
    assert (found.span.line, [item.span.line for item in found.related]) == (13, [6])
