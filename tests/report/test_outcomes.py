"""Outcomes of tests as text, JSON and JUnit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft7Validator

from gpolicy.findings import Span
from gpolicy.json_values import json_text
from gpolicy.policy.scenario import Action
from gpolicy.printable import Tone, terminal_text
from gpolicy.report.junit import outcomes_junit
from gpolicy.report.outcomes_answer import TEST_DOCUMENT, outcomes_answer, summary_line
from gpolicy.testing.outcome import Check, Outcome
from tests.report.jenkins import accepted_by_jenkins
from tests.report.rendered import text_of

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "output" / "test.json").read_text())


def span(line: int, file: str = "a.yaml") -> Span:
    return Span(file, line, 5, line, 9)


def outcome(name: str, line: int, *checks: Check, error: str | None = None, file: str = "a.yaml") -> Outcome:
    return Outcome(
        name=name,
        action=Action.PLACE,
        span=span(line, file),
        checks=checks,
        error=error,
        hint="write it" if error else None,
        place=span(line + 1, file) if error else None,
    )


GOOD = Check("refused", True, "true", "true", span(3), "memory")
BAD = Check("node", False, "node1", "node2", span(4), "score 1 there")
OUTCOMES = [
    outcome("fine", 1, GOOD),
    outcome("wrong", 2, GOOD, BAD),
    outcome("broken", 9, error="there is no group 'x'", file="b.yaml"),
]
HOSTILE = outcome(
    '\x1b[31m"<&>\u202e]]>é',
    1,
    Check("node", False, "a\x00", "\x07<b>", span(2, "\x1b.yaml"), "&\n"),
    file='\x1b"<.yaml',
)


def test_the_text_says_what_was_expected_and_found_and_where() -> None:
    assert text_of(outcomes_answer(OUTCOMES)) == (
        "Tests of the policy\n"
        "3 tests, 1 failed, 1 could not run\n"
        "\n"
        "a.yaml\n"
        "  ok     fine\n"
        "  FAILED wrong\n"
        "      a.yaml:4:5: node: expected node1, found node2\n"
        "      score 1 there\n"
        "\n"
        "b.yaml\n"
        "  ERROR  broken\n"
        "      b.yaml:10:5: there is no group 'x'\n"
        "      write it\n"
    )


def test_the_summary_counts() -> None:
    assert summary_line([]) == "0 tests: there is no document of kind Test"
    assert summary_line(OUTCOMES[:1]) == "1 test, all passed"
    assert summary_line(OUTCOMES[:2]) == "2 tests, 1 failed"


def test_colour_changes_nothing_else() -> None:
    coloured = terminal_text(text_of(outcomes_answer(OUTCOMES), colour=True))
    assert "\x1b[31mFAILED\x1b[0m" in coloured
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == text_of(outcomes_answer(OUTCOMES))


@pytest.mark.parametrize("outcomes", [[], OUTCOMES, [HOSTILE]])
def test_the_json_is_what_its_schema_says(outcomes: list[Outcome]) -> None:
    data = json.loads(json_text(TEST_DOCUMENT.data(outcomes)))
    Draft7Validator(SCHEMA).validate(data)
    assert [test["name"] for test in data["tests"]] == [item.name for item in outcomes]
    assert sum(data["summary"].values()) == len(outcomes)


def test_the_json_tells_failed_from_broken() -> None:
    data = json.loads(json_text(TEST_DOCUMENT.data(OUTCOMES)))
    assert [test["result"] for test in data["tests"]] == ["passed", "failed", "error"]
    assert data["summary"] == {"passed": 1, "failed": 1, "error": 1}
    assert data["tests"][2]["error"]["line"] == 10
    assert [check["ok"] for check in data["tests"][1]["checks"]] == [True, False]


def test_the_junit_form_has_a_suite_a_file_and_a_case_a_test() -> None:
    root = ET.fromstring(outcomes_junit(OUTCOMES))  # noqa: S314 (our own output)
    assert root.attrib == {"tests": "3", "failures": "1", "errors": "1"}
    accepted_by_jenkins(root)
    assert [(suite.attrib["name"], len(suite)) for suite in root] == [("a.yaml", 2), ("b.yaml", 1)]
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == "node: expected node1, found node2"
    assert failure.text == "a.yaml:4:5: node: expected node1, found node2\nscore 1 there"
    (error,) = root.iter("error")
    assert error.text == "b.yaml:10:5: there is no group 'x'\nwrite it"


def test_no_text_of_a_policy_breaks_the_form() -> None:
    text = text_of(outcomes_answer([HOSTILE]))
    assert "\x1b" not in text
    assert "\u202e" not in text
    xml = outcomes_junit([HOSTILE])
    assert xml.isascii()
    (case,) = ET.fromstring(xml).iter("testcase")  # noqa: S314 (our own output)
    assert case.attrib["name"] == '\\x1b[31m"<&>\\u202e]]>é'


@pytest.mark.parametrize(
    ("outcomes", "tone", "failed", "errors"),
    [
        ([], Tone.PLAIN, "0", "0"),
        (OUTCOMES[:1], Tone.GOOD, "0", "0"),
        (OUTCOMES[:2], Tone.BAD, "1", "0"),
        (OUTCOMES[::2], Tone.BAD, "0", "1"),
    ],
)
def test_one_outcome_that_is_not_good_makes_all_bad(
    outcomes: list[Outcome], tone: Tone, failed: str, errors: str
) -> None:
    answer = outcomes_answer(outcomes)
    assert answer.tone is tone
    assert [figure.value for figure in answer.figures] == [str(len(outcomes)), failed, errors]
    assert [figure.tone is Tone.BAD for figure in answer.figures[1:]] == [failed != "0", errors != "0"]
