from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, strategies as st
from jsonschema import Draft7Validator

from gpolicy.findings import Edit, Finding, Fix, Related, Severity, Span
from gpolicy.json_values import json_text
from gpolicy.report.findings_json import findings_data

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "schemas/output/check.json").read_text(encoding="utf-8"))
VALIDATOR = Draft7Validator(SCHEMA)
PLACE = Span("policies/gold.yaml", 3, 7, 3, 11)


def test_the_contract() -> None:
    finding = Finding("GP201", "spec-overlap", Severity.WARNING, "overlaps", PLACE, "move", (Related(PLACE, "here"),))
    assert findings_data([finding]) == {
        "format_version": "1.3",
        "findings": [
            {
                "code": "GP201",
                "name": "spec-overlap",
                "severity": "warning",
                "file": "policies/gold.yaml",
                "line": 3,
                "column": 7,
                "end_line": 3,
                "end_column": 11,
                "message": "overlaps",
                "hint": "move",
                "related": [
                    {
                        "file": "policies/gold.yaml",
                        "line": 3,
                        "column": 7,
                        "end_line": 3,
                        "end_column": 11,
                        "message": "here",
                    }
                ],
                "fix": None,
                "consequences": [],
            }
        ],
        "summary": {"error": 0, "warning": 1, "info": 0},
        "accepted": [],
    }


def test_a_fix_is_its_message_and_its_edits() -> None:
    fix = Fix("write 4", (Edit(PLACE, "4"),))
    (data,) = findings_data([Finding("GP201", "x", Severity.INFO, "m", PLACE, fix=fix)])["findings"]
    place = {"file": "policies/gold.yaml", "line": 3, "column": 7, "end_line": 3, "end_column": 11}
    assert data["fix"] == {"message": "write 4", "edits": [{**place, "text": "4"}]}


def test_no_findings_are_zero_of_each() -> None:
    assert findings_data([])["summary"] == {"error": 0, "warning": 0, "info": 0}


SPANS = st.builds(
    Span, st.text(), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6)
)
EDITS = st.lists(st.builds(Edit, SPANS, st.text()), min_size=1, max_size=2).map(tuple)
FINDINGS = st.builds(
    Finding,
    st.from_regex(r"GP[0-9]{3}", fullmatch=True),
    st.from_regex(r"(house/)?[a-z]+(-[a-z]+)*", fullmatch=True),
    st.sampled_from(Severity),
    st.text(min_size=1),
    st.none() | SPANS,
    st.text(),
    st.lists(st.builds(Related, SPANS, st.text())).map(tuple),
    st.none() | st.builds(Fix, st.text(min_size=1), EDITS),
)


@given(st.lists(FINDINGS, max_size=5))
def test_any_findings_conform_to_the_schema_and_survive_the_text(findings: list[Finding]) -> None:
    text = json_text(findings_data(findings))
    assert text.isascii()
    data = json.loads(text)
    VALIDATOR.validate(data)
    assert [item["message"] for item in data["findings"]] == [finding.message for finding in findings]
    assert sum(data["summary"].values()) == len(findings)


def test_the_schema_is_sound_and_describes_every_key() -> None:
    Draft7Validator.check_schema(SCHEMA)
    keys = set(findings_data([Finding("GP201", "a", Severity.INFO, "m", PLACE)])["findings"][0])
    assert keys == set(SCHEMA["definitions"]["finding"]["properties"])
