from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given, strategies as st

from gpolicy.findings import Accepted, Finding, Severity, Span
from gpolicy.report.junit import findings_junit
from tests.report.findings_samples import FINDINGS, OVERLAP, WITHOUT_PLACE
from tests.report.jenkins import accepted_by_jenkins

WARNING = Finding("GP202", "spec-order", Severity.WARNING, "1 < 2 & 3", Span("b.yaml", 4, 1, 4, 2))


def fails(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def report(findings: list[Finding], files: list[str]) -> ET.Element:
    text = findings_junit(findings, files, fails=fails)
    assert text.isascii()
    return ET.fromstring(text)  # noqa: S314 (our own)


def cases(root: ET.Element, file: str) -> list[tuple[str, str]]:
    """Return name and state of each case of a suite."""
    (suite,) = (suite for suite in root if suite.get("name") == file)
    return [(case.get("name", ""), case[0].tag if len(case) else "passed") for case in suite.findall("testcase")]


def test_errors_fail_other_findings_are_skipped_and_a_clean_file_passes() -> None:
    root = report([OVERLAP, WARNING, WITHOUT_PLACE], ["policies/gold.yaml", "b.yaml", "c.yaml"])
    assert cases(root, "policies/gold.yaml") == [("GP201 spec-overlap: small overlaps large", "failure")]
    assert cases(root, "b.yaml") == [("GP202 spec-order: 1 < 2 & 3", "skipped"), ("gpolicy check", "passed")]
    assert cases(root, "c.yaml") == [("gpolicy check", "passed")]
    assert cases(root, "policy")[0][1] == "skipped"
    assert root.attrib == {"tests": "6", "failures": "1", "errors": "0"}
    assert {suite.get("name"): suite.get("skipped") for suite in root} == {
        "policies/gold.yaml": "0", "b.yaml": "1", "c.yaml": "0", "policy": "1",
    }  # fmt: skip
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "small overlaps large"
    assert failure.text == (
        "error GP201 spec-overlap: small overlaps large\n"
        "policies/gold.yaml:3:7\n"
        "policies/silver.yaml:1:2: large is here\n"
        "hint: move a bound"
    )


def test_what_is_accepted_has_a_suite_of_skipped_cases() -> None:
    accepted = [
        Accepted(WARNING, "waiver", Span("w.yaml", 5, 3, 5, 9), "<agreed>", "2099-12-31", new=True),
        Accepted(WITHOUT_PLACE, "comment", Span("b.yaml", 1, 1, 1, 2), new=False),
    ]
    text = findings_junit([OVERLAP], ["b.yaml"], fails=fails, accepted=accepted)
    root = ET.fromstring(text)  # noqa: S314 (our own)
    accepted_by_jenkins(root)
    assert [state for _, state in cases(root, "accepted")] == ["skipped", "skipped"]
    assert root.attrib == {"tests": "4", "failures": "1", "errors": "0"}
    suite = root[-1]
    assert suite.findtext("system-out") == "accepted: 2, 1 of them new"
    assert [case[0].get("message") for case in suite.findall("testcase")] == ["<agreed>", "no reason is given"]
    assert "accepted by waiver until 2099-12-31, new (w.yaml:5:3): <agreed>" in (suite[0][0].text or "")


def test_names_hold_no_line_and_are_unique_in_their_file() -> None:
    again = [Finding("GP202", "spec-order", Severity.ERROR, "m", Span("b.yaml", line, 1, line, 2)) for line in (3, 9)]
    assert [name for name, _ in cases(report(again, []), "b.yaml")] == [
        "GP202 spec-order: m",
        "GP202 spec-order: m (2)",
    ]


@given(st.lists(FINDINGS, max_size=6), st.lists(st.sampled_from(["a.yaml", "z.yaml"]), unique=True))
def test_any_findings_are_well_formed_and_counted(findings: list[Finding], files: list[str]) -> None:
    root = report(findings, files)
    assert int(root.get("tests", "")) == len(root.findall(".//testcase"))
    assert int(root.get("failures", "")) == len(root.findall(".//failure")) == sum(map(fails, set(findings)))
    assert sum(int(suite.get("skipped", "")) for suite in root) == len(root.findall(".//skipped"))
    accepted_by_jenkins(root)
    for file in files:
        assert any(state in ("passed", "failure") for _, state in cases(root, file))
