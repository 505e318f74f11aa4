from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st
from jsonschema import Draft7Validator

from gpolicy.checking.baseline import unique_fingerprints
from gpolicy.findings import Finding, Severity
from gpolicy.report.findings_json import findings_gitlab
from tests.report.findings_samples import FINDINGS, OVERLAP, PLACE, WITHOUT_PLACE

# What GitLab's page "Code Quality" says of a report: these properties, paths that are relative and do not begin with
# "./", and no byte order mark.
VALIDATOR = Draft7Validator(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string", "minLength": 1},
                "check_name": {"type": "string", "minLength": 1},
                "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32,}$"},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^(?!\\./)."},
                        "lines": {
                            "type": "object",
                            "required": ["begin"],
                            "properties": {"begin": {"type": "integer", "minimum": 1}},
                        },
                    },
                },
            },
        },
    }
)


def report(findings: list[Finding]) -> list[dict[str, Any]]:
    known = dict(zip(found := list(dict.fromkeys(findings)), unique_fingerprints(found, {}), strict=True))
    text = findings_gitlab(findings, fingerprint=known.__getitem__, without_place="policies/all.yaml")
    assert text.isascii()
    data = json.loads(text)
    VALIDATOR.validate(data)
    assert isinstance(data, list)
    return data


def test_an_entry() -> None:
    first, second = report([OVERLAP, WITHOUT_PLACE])
    fingerprint = first.pop("fingerprint")
    assert len(fingerprint) == 32
    assert first == {
        "type": "issue",
        "check_name": "GP201 spec-overlap",
        "description": "small overlaps large (hint: move a bound)",
        "severity": "critical",
        "location": {"path": "policies/gold.yaml", "lines": {"begin": 3}},
    }
    assert second["location"] == {"path": "policies/all.yaml", "lines": {"begin": 1}}
    assert second["severity"] == "info"


def test_without_findings_the_report_is_empty() -> None:
    assert report([]) == []


def test_findings_of_one_rule_and_line_are_told_apart_and_shared_ones_stand_once() -> None:
    many = [Finding("GP201", "spec-overlap", Severity.WARNING, f"m{number}", PLACE) for number in range(3)]
    shared = [*many, many[0]]  # a base that two policies have in common
    entries = report(shared)
    assert [entry["description"] for entry in entries] == ["m0", "m1", "m2"]
    assert len({entry["fingerprint"] for entry in entries}) == 3
    assert report(shared) == entries


@given(st.lists(FINDINGS, max_size=6))
def test_any_findings_conform(findings: list[Finding]) -> None:
    entries = report(findings)
    assert len({entry["fingerprint"] for entry in entries}) == len(set(findings)) == len(entries)
