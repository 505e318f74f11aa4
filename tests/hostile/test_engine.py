"""No input breaks the compiled engine: it answers as the law does, or refuses.

`python -m tests.hostile.bounded engine SEED 1` repeats a seed. scripts/sanitize runs these tests against a build that
also sees reads and writes beyond the engine's memory, and what C leaves undefined.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sanitizers
from tests.hostile.bounded import Feeder

INPUTS = 500 if sanitizers.ACTIVE else 1000
KINDS = ("attempt", "redundancy", "standard", "tiered", "balance", "dedicated", "evacuate")


def test_no_input_breaks_the_engine(feeder: Feeder, tmp_path: Path) -> None:
    """Answers are of all kinds: where too many inputs were refused at the door, nothing behind it would be tested."""
    fed = feeder.feed("engine", range(INPUTS), tmp_path)
    assert fed.faults == []
    asked = [word for answer in fed.answers for word in answer]
    assert min(asked.count("DONE"), asked.count("INVALID")) > len(asked) // 5
    assert min(asked.count(f"{kind} EQUAL") for kind in KINDS) > INPUTS // 80


def test_inputs_that_found_faults(feeder: Feeder, tmp_path: Path) -> None:
    """An instance with the number of another one; the exact score of an offline candidate."""
    assert feeder.feed("engine", [2332, 1151765], tmp_path).faults == []


@pytest.mark.slow
def test_more_inputs(feeder: Feeder, tmp_path: Path) -> None:
    assert feeder.feed("engine", range(INPUTS, 6 * INPUTS), tmp_path).faults == []


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_a_million_inputs(part: int, feeder: Feeder, tmp_path: Path) -> None:
    first = int(os.environ.get("GPOLICY_SEED") or random.SystemRandom().randrange(10**9))
    print(f"GPOLICY_SEED={first}, part {part}")  # noqa: T201
    first += part * 50_000
    assert feeder.feed("engine", range(first, first + 50_000), tmp_path).faults == []


@pytest.mark.skipif(not sanitizers.ACTIVE, reason="only with sanitizers (scripts/sanitize)")
def test_the_engine_frees_all_memory() -> None:
    options = os.environ["ASAN_OPTIONS"].replace("detect_leaks=0", "detect_leaks=1")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.bounded", "engine", "0", str(INPUTS)],
        env={**os.environ, "ASAN_OPTIONS": options, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == INPUTS
    assert "fault" not in done.stdout
    assert "gpolicy_" not in done.stderr  # Python itself leaks; what began in the engine would name its functions
