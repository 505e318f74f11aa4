"""The work of a check grows with its input, and not with the square of it: of all kinds of documents together.

Work is counted in calls of functions, so that the answer is the same on every machine. `-m full` measures the time of
large policies: of each kind alone, and with each other one.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import pytest

from gpolicy.cli.running import run
from tests.hostile.growth import PARTS, policy_of

SMALL, LARGE = 25_000, 200_000
MOST_GROWTH = 2.6
"""Of the work, for twice the input."""
MOST_SECONDS = 10.0


def calls_of(path: Path, text: str) -> int:
    """Return how many calls a check of a policy takes."""
    path.write_text(text)
    found = itertools.count()
    sys.setprofile(lambda _frame, event, _argument: next(found) if event in ("call", "c_call") else None)
    try:
        assert run(["check", "-f", "json", str(path)]) in (0, 1)
    finally:
        sys.setprofile(None)
    return next(found)


def test_work_grows_with_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts, policy = tuple(PARTS.values()), tmp_path / "policy.yaml"
    calls_of(policy, policy_of(parts, 1))  # imports, and makes tables
    least, once, twice = (calls_of(policy, policy_of(parts, size)) for size in (0, SMALL, 2 * SMALL))
    capsys.readouterr()
    assert twice - least < MOST_GROWTH * (once - least)


@pytest.mark.full
@pytest.mark.parametrize("names", [*((name,) for name in PARTS), *itertools.combinations(PARTS, 2)], ids="+".join)
def test_large_policies_are_checked_in_seconds(names: tuple[str, ...], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_of(tuple(PARTS[name] for name in names), LARGE))
    began = time.process_time()
    assert run(["check", "-f", "json", str(policy)]) in (0, 1)
    assert time.process_time() - began < MOST_SECONDS
