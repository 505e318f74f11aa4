"""The findings of the rules' own bad examples, in the forms for other programs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.cli.checking import findings_in
from gpolicy.findings import Finding, Severity
from gpolicy.policy.loading import load_policy
from gpolicy.policy.source_file import SourceFile
from tests.mistakes import find_mistakes

SCHEMA = Path(__file__).resolve().parents[1] / "data/sarif/sarif-2.1.0-rtm.5.json"
TODAY = date(2026, 6, 15)


def fails(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def shown(findings: list[Finding], sources: dict[str, SourceFile], form: str) -> str:
    return findings_in(form, findings, sources, fails)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Finding], dict[str, SourceFile]]:
    return _found(tmp_path_factory.mktemp("examples"))


@cache
def _found(directory: Path) -> tuple[list[Finding], dict[str, SourceFile]]:
    findings: list[Finding] = []
    sources: dict[str, SourceFile] = {}
    for info in CATALOGUE:
        if info.text.bad:
            home = directory / info.code
            home.mkdir()
            (home / "policy.yaml").write_text(info.text.bad, encoding="utf-8")
            policy = load_policy(home)
            findings += find_mistakes(policy, today=TODAY)
            sources |= policy.files
    return findings, sources


def test_sarif(found: tuple[list[Finding], dict[str, SourceFile]]) -> None:
    findings, sources = found
    data = json.loads(shown(findings, sources, "sarif"))
    Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(data)
    (run,) = data["runs"]
    results: list[dict[str, Any]] = run["results"]
    assert len(results) == len(set(findings)) > len(CATALOGUE) // 2
    prints = [tuple(result["partialFingerprints"].values()) for result in results]
    assert len(set(prints)) == len(prints)
    assert all(result["locations"] for result in results)
    assert sum("fixes" in result for result in results) == sum(finding.fix is not None for finding in set(findings)) > 9
    for result in results:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert shown(findings, sources, "sarif") == json.dumps(data, indent=2) + "\n"


def test_gitlab(found: tuple[list[Finding], dict[str, SourceFile]]) -> None:
    findings, sources = found
    entries = json.loads(shown(findings, sources, "gitlab"))
    assert len(entries) == len({entry["fingerprint"] for entry in entries}) == len(set(findings))
    assert {entry["severity"] for entry in entries} == {"critical", "major", "info"}


def test_junit(found: tuple[list[Finding], dict[str, SourceFile]]) -> None:
    findings, sources = found
    root = ET.fromstring(shown(findings, sources, "junit"))  # noqa: S314 (our own)
    assert len(root) == len(sources)
    assert len(root.findall(".//failure")) == sum(map(fails, set(findings)))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
