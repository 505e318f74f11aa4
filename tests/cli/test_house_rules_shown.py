"""House rules on the command line: the page about them, all forms of findings, and `explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.command_line import ROOT, gpolicy

PAGE = (ROOT / "docs" / "guides" / "house-rules.md").read_text(encoding="utf-8")
(POLICY,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
(OUTPUT,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def test_the_page_shows_what_check_says(home: Path) -> None:
    command, _, shown = OUTPUT.partition("\n")
    done = gpolicy(*command.removeprefix("$ gpolicy ").split(), cwd=home)
    assert (done.returncode, done.stdout) == (1, shown)


def test_all_forms_name_the_rule(home: Path) -> None:
    def printed(form: str) -> str:
        return gpolicy("check", "-f", form, "policy.yaml", cwd=home).stdout

    (found,) = json.loads(printed("json"))["findings"]
    assert (found["code"], found["name"], found["severity"]) == ("GP950", "house/dedicated-cpus", "error")
    (run,) = json.loads(printed("sarif"))["runs"]
    (result,) = run["results"]
    described = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert result["ruleId"] == described["id"] == "house/dedicated-cpus"
    (entry,) = json.loads(printed("gitlab"))
    assert entry["check_name"] == "GP950 house/dedicated-cpus"
    assert "GP950 house/dedicated-cpus" in ET.tostring(ET.fromstring(printed("junit")), "unicode")  # noqa: S314
    for form in ("github", "markdown", "html"):
        assert "house/dedicated-cpus" in printed(form)


def test_no_plan_is_made_of_a_policy_that_breaks_one(home: Path) -> None:
    done = gpolicy("show", "policy.yaml", cwd=home)
    assert done.returncode == 1
    assert "house/dedicated-cpus" in done.stderr


def test_explain_shows_the_rule_of_the_policy_here(home: Path) -> None:
    done = gpolicy("explain", "house/dedicated-cpus", cwd=home)
    assert "gold is sold with dedicated CPUs" in done.stdout
    assert "required: [ipolicy.vcpu-ratio]" in done.stdout
    assert 'ignore = ["house/dedicated-cpus"]' in done.stdout
    missing = gpolicy("explain", "house/dedicated-cpu", cwd=home)
    assert missing.returncode == 3
    assert "Did you mean `house/dedicated-cpus`?" in missing.stderr


def test_fmt_keeps_a_rule(home: Path) -> None:
    assert gpolicy("fmt", "--diff", "policy.yaml", cwd=home).returncode == 0
