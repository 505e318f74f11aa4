"""What is accepted is visible: by what, why, where and until when, and what of it is new in a change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import gpolicy

BAD = """\
gpolicy: v1
kind: NodeGroup
name: gold
ndparams:
  ssh_port: 0  # gpolicy: ignore[GP106] a test
  spindle_count: 0
"""
WAIVER = """\
---
gpolicy: v1
kind: Waiver
waivers:
  - {rule: GP107, where: group/gold, reason: no spindles yet, until: "2099-12-31"}
"""
BASE = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "main"}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A repository whose branch main has BAD, and the work tree a waiver, too."""
    directory = tmp_path / "policy"
    directory.mkdir()
    (directory / "gold.yaml").write_text(BAD, encoding="utf-8")
    own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", tmp_path, *own, *words], check=True)
    (directory / "gold.yaml").write_text(BAD + WAIVER, encoding="utf-8")
    return directory


def test_accepted_lists_what_accepts_each_finding(policy: Path) -> None:
    done = gpolicy("check", "policy", "--accepted", cwd=policy.parent)
    assert done.returncode == 0
    assert "  accepted by comment (policy/gold.yaml:5:16): a test\n" in done.stdout
    assert "  accepted by waiver until 2099-12-31 (policy/gold.yaml:11:5): no spindles yet\n" in done.stdout
    assert done.stdout.endswith("accepted: 2\n")


@pytest.mark.parametrize("form", ["text", "markdown", "html", "junit"])
def test_the_base_of_the_change_says_what_is_new(policy: Path, form: str) -> None:
    known = gpolicy("check", "policy", "--format", form, cwd=policy.parent, env=BASE).stdout
    assert "2, 1 of them new" in known
    assert "of them new" not in gpolicy("check", "policy", "--format", form, cwd=policy.parent).stdout
    gone = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "0" * 40}  # CI often has one commit only
    assert "of them new" not in gpolicy("check", "policy", "--format", form, cwd=policy.parent, env=gone).stdout


def accepted(policy: Path, **env: str) -> dict[str, dict[str, object]]:
    done = gpolicy("check", "policy", "--format", "json", cwd=policy.parent, env=env)
    return {item["code"]: item for item in json.loads(done.stdout)["accepted"]}


def test_the_json_has_reason_place_and_last_day(policy: Path) -> None:
    found = accepted(policy, **BASE)
    assert {code: item["new"] for code, item in found.items()} == {"GP106": False, "GP107": True}
    assert [found["GP107"][key] for key in ("by", "reason", "until")] == ["waiver", "no spindles yet", "2099-12-31"]
    assert found["GP107"]["at"] == {"file": "policy/gold.yaml", "line": 11, "column": 5}
    assert found["GP106"]["until"] is None
    assert {item["new"] for item in accepted(policy).values()} == {None}


def test_a_baseline_that_is_written_anew_accepts_new_findings(policy: Path) -> None:
    (policy / "gold.yaml").write_text(BAD, encoding="utf-8")
    (policy / "gpolicy.toml").write_text('[check]\nbaseline = "baseline.json"\n', encoding="utf-8")
    done = gpolicy("check", "policy", "--write-baseline", "policy/baseline.json", cwd=policy.parent)
    assert done.returncode == 0
    found = accepted(policy, **BASE)
    assert {code: (item["by"], item["new"]) for code, item in found.items()} == {
        "GP106": ("comment", False),
        "GP107": ("baseline", True),
    }
