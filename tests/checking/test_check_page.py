"""The examples of docs/guides/check.md are true."""

from __future__ import annotations

import re
from pathlib import Path

from gpolicy.checking.settings_tables import read_settings
from gpolicy.findings import Severity
from gpolicy.policy.settings_file import CHECK_KEYS
from tests.rules.run_rules import check

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "check.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_settings_are_read_and_show_every_key(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "gpolicy.toml").write_text(text, encoding="utf-8")
    made = read_settings(tmp_path / "gpolicy.toml")
    assert made.fail_on is Severity.WARNING
    assert made.severities["GP201"] is Severity.ERROR
    assert made.parameters
    for key in CHECK_KEYS:
        assert key in text


def test_the_comment_and_the_waiver_accept_what_they_say(tmp_path: Path) -> None:
    def shared_cpus(text: str) -> list[str]:
        return [finding.code for finding in check(text, tmp_path) if finding.code != "GP411"]

    policy, waiver = blocks("yaml")
    assert shared_cpus(policy) == []
    without = re.sub(r"  # gpolicy:.*", "", policy)
    assert shared_cpus(without) == ["GP406"]
    assert shared_cpus(f"{without}---\n{waiver}") == []
