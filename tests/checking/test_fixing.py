"""Rounds of fixing, on real policies and on checks that are made to be difficult."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpolicy.checking.fixing import MOST_CHECKS, CheckRound, fix_policy
from gpolicy.findings import Edit, Finding, Fix, Severity
from gpolicy.policy.source_file import SourceFile


class Words:
    """A check of words: each rule is a pattern with what to write instead, its code and severity."""

    def __init__(self, text: str, rules: list[tuple[str, str, str, Severity]], editable: str = "f") -> None:
        self.text = text
        self.rules = rules
        self.editable = frozenset(editable)
        self.checks = 0

    def __call__(self, texts: Mapping[str, str]) -> CheckRound:
        self.checks += 1
        file = SourceFile("f", texts.get("f", self.text))
        found = [
            Finding(code, "x", severity, match[0], place, fix=Fix("fix", (Edit(place, new),)))
            for pattern, new, code, severity in self.rules
            for match in re.finditer(pattern, file.text)
            for place in [file.span(*match.span())]
        ]
        return CheckRound(findings=found, files={"f": file, "base": SourceFile("base", "")}, editable=self.editable)


def test_rounds_go_on_until_nothing_changes() -> None:
    check = Words("a a", [("a", "b", "GP101", Severity.ERROR), ("b", "c", "GP102", Severity.WARNING)])
    result = fix_policy(check)
    assert result.texts == {"f": "c c"}
    assert [finding.code for finding in result.fixed] == ["GP101", "GP101", "GP102", "GP102"]
    assert result.left.findings == []


def test_nothing_to_fix_changes_nothing() -> None:
    result = fix_policy(Words("x", [("a", "b", "GP101", Severity.ERROR)]))
    assert (result.texts, result.fixed) == ({}, [])


def test_a_fix_that_adds_an_error_is_dropped_and_the_others_are_kept() -> None:
    rules = [
        ("bad", "WORSE WORSE", "GP101", Severity.WARNING),
        ("good", "fine", "GP102", Severity.WARNING),
        ("WORSE", "WORSE", "GP103", Severity.ERROR),
    ]
    result = fix_policy(Words("good bad good good bad", rules))
    assert result.texts == {"f": "fine bad fine fine bad"}
    assert {finding.code for finding in result.left.findings} == {"GP101"}


def test_a_fix_that_breaks_the_file_is_dropped_though_fewer_errors_are_left() -> None:
    rules = [
        ("error", "{", "GP101", Severity.ERROR),
        (r"\{", "{", "GP002", Severity.ERROR),
    ]
    check = Words("error error error", rules)
    result = fix_policy(check)
    assert result.texts == {}


def test_a_fixed_file_may_show_more_errors() -> None:
    rules = [("misspelt", "known known", "GP011", Severity.ERROR), ("known", "known", "GP201", Severity.ERROR)]
    assert fix_policy(Words("misspelt", rules)).texts == {"f": "known known"}


def test_two_rules_that_undo_each_other_terminate() -> None:
    check = Words("a", [("a", "b", "GP101", Severity.WARNING), ("b", "a", "GP102", Severity.WARNING)])
    result = fix_policy(check)
    assert result.texts == {"f": "b"}
    assert check.checks < 10


def test_a_fix_that_never_ends_is_bounded() -> None:
    check = Words("a", [("a$", "aa", "GP101", Severity.WARNING)])
    result = fix_policy(check)
    assert check.checks <= MOST_CHECKS + 1
    assert set(result.texts["f"]) == {"a"}


def test_only_given_files_are_edited() -> None:
    assert fix_policy(Words("a", [("a", "b", "GP101", Severity.ERROR)], editable="")).texts == {}
