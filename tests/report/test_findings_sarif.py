from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st
from jsonschema import Draft4Validator

from gpolicy import HOMEPAGE
from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.data import read_data
from gpolicy.findings import Finding, Severity, Span
from gpolicy.report.findings_json import FINGERPRINT, _help, findings_sarif
from tests.report.findings_samples import FINDINGS, OVERLAP, PLACE, WITHOUT_PLACE

SCHEMA = Path(__file__).resolve().parents[1] / "data/sarif/sarif-2.1.0-rtm.5.json"
VALIDATOR = Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def sarif(findings: list[Finding], **more: Any) -> dict[str, Any]:
    """Return the one run of the report, which must conform."""
    given_more = {"homepage": HOMEPAGE, "fingerprint": lambda finding: f"of {finding.code}", **more}
    text = findings_sarif(findings, CATALOGUE, read_data("reference.toml")["families"], **given_more)
    assert text.isascii()
    data = json.loads(text)
    (run,) = data["runs"]
    assert isinstance(run, dict)
    rules = run["tool"]["driver"].pop("rules")
    VALIDATOR.validate(data)
    run["tool"]["driver"]["rules"] = rules  # the same in each report: held against the schema once
    return run


def test_a_result_with_everything() -> None:
    (result,) = sarif([OVERLAP], locate=lambda file: f"repo/{file}")["results"]
    region = {"startLine": 3, "startColumn": 7, "endLine": 3, "endColumn": 11}
    artifact = {"uri": "repo/policies/gold.yaml", "uriBaseId": "%SRCROOT%"}
    assert result == {
        "ruleId": "GP201",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "small overlaps large\nhint: move a bound"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "relatedLocations": [
            {
                "id": 1,
                "physicalLocation": {
                    "artifactLocation": {"uri": "repo/policies/silver.yaml", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 1, "startColumn": 2, "endLine": 1, "endColumn": 5},
                },
                "message": {"text": "large is here"},
            }
        ],
        "partialFingerprints": {FINGERPRINT: "of GP201"},
        "fixes": [
            {
                "description": {"text": "lower the bound"},
                "artifactChanges": [
                    {
                        "artifactLocation": artifact,
                        "replacements": [
                            {"deletedRegion": {**region, "startColumn": 9}, "insertedContent": {"text": "12G"}}
                        ],
                    }
                ],
            }
        ],
    }


def test_the_rules_that_found_something_are_there_with_their_help() -> None:
    assert sarif([])["tool"]["driver"]["rules"] == []
    run = sarif([Finding(info.code, info.name, info.severity, "m") for info in reversed(CATALOGUE)])
    VALIDATOR.validate({"version": "2.1.0", "runs": [run]})
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [info.code for info in CATALOGUE]
    levels = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    for rule, info in zip(rules, CATALOGUE, strict=True):
        assert rule["name"] == info.name
        assert rule["shortDescription"]["text"] == info.text.summary
        assert rule["defaultConfiguration"] == {"level": levels[info.severity]}
        assert info.text.source in rule["help"]["text"]
        assert info.text.bad.rstrip() in rule["help"]["markdown"]
        assert rule["properties"]["tags"]
    assert run["columnKind"] == "unicodeCodePoints"


def test_places_that_are_not_in_the_checkout_or_not_there() -> None:
    outside = Finding("GP201", "spec-overlap", Severity.WARNING, "m", Span("/etc/a b.yaml", 1, 1, 1, 2))
    first, second = sarif([outside, WITHOUT_PLACE], without_place="policies/all.yaml")["results"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///etc/a%20b.yaml"}
    assert second["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "policies/all.yaml", "uriBaseId": "%SRCROOT%"}}}
    ]


def test_a_name_of_a_file_is_a_relative_reference_whatever_is_in_it() -> None:
    odd = Finding("GP201", "spec-overlap", Severity.WARNING, "m", Span("a:b?#%é\udcff.yaml", 1, 1, 1, 2))
    (result,) = sarif([odd])["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%3Ab%3F%23%25%C3%A9%FF.yaml"


def test_findings_that_two_policies_share_are_reported_once() -> None:
    assert len(sarif([OVERLAP, OVERLAP])["results"]) == 1


def test_nothing_in_a_message_becomes_a_link() -> None:
    bad = Finding("GP201", "spec-overlap", Severity.WARNING, "see [here](https://x.example.org)", PLACE)
    assert sarif([bad])["results"][0]["message"]["text"] == "see [here] (https://x.example.org)"


@given(st.lists(FINDINGS, max_size=5))
def test_any_findings_conform_and_keep_their_places(findings: list[Finding]) -> None:
    run = sarif(findings, without_place="a.yaml")
    results, rules = run["results"], run["tool"]["driver"]["rules"]
    assert len(results) == len(set(findings))
    for result, finding in zip(results, dict.fromkeys(findings), strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding.code
        if finding.span:
            region = result["locations"][0]["physicalLocation"]["region"]
            assert (region["startLine"], region["startColumn"]) == (finding.span.line, finding.span.column)
        if finding.fix:
            changes = result["fixes"][0]["artifactChanges"]
            texts = [item["insertedContent"]["text"] for change in changes for item in change["replacements"]]
            assert sorted(texts) == sorted(edit.text for edit in finding.fix.edits)


def test_help_shows_both_examples_where_there_are_any() -> None:
    shown = next(info.text for info in CATALOGUE if info.text.bad and info.text.good)
    text = _help(shown, "<{}>")
    assert f"Bad:\n\n<{shown.bad.rstrip()}>" in text
    assert f"Good:\n\n<{shown.good.rstrip()}>" in text
    bare = _help(replace(shown, bad="", good=""), "<{}>")
    assert "Bad:" not in bare
    assert "Good:" not in bare
