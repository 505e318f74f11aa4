"""Policies in `cases/`: a comment `#! CODE…` stands on every line where these findings, and no others, begin."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from gpolicy.checking.checking import check_policy
from gpolicy.policy.loading import load_policy
from tests.rules.run_rules import TODAY

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


def expected(text: str) -> Counter[tuple[int, str]]:
    result: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.search(r"#! (.*)", line)
        result.update((number, code) for code in (mark[1].split() if mark else ()))
    return result


def test_there_are_cases() -> None:
    assert len(CASES) >= 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path) -> None:
    found = check_policy(load_policy(case), today=TODAY)
    places = Counter((finding.span.line, finding.code) for finding in found if finding.span)
    assert places == expected(case.read_text(encoding="utf-8"))
