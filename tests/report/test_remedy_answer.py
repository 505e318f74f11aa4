"""Times in words."""

from __future__ import annotations

import pytest

from gpolicy.report.remedy_answer import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (150, "2 min"),
        (1000, "17 min"),
        (59 * 60, "59 min"),
        (60 * 60, "1 h 0 min"),
        (125 * 60, "2 h 5 min"),
    ],
)
def test_a_duration(seconds: float, words: str) -> None:
    assert duration(seconds) == words
