"""No input breaks the compiled engine: it answers as the law does, or refuses.

`python -m tests.fuzz.engine_feeding SEED 1` repeats a seed. scripts/sanitize runs
these tests against a build that also sees reads and writes beyond the engine's memory, and what C leaves undefined.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

from tests import sanitizers
from tests.children import Died, in_children

FEEDING = ["-m", "tests.fuzz.engine_feeding"]
PARTS = 4
INPUTS = 5000  # of each part


def faults(first: int, count: int) -> list[str]:
    """Feed the inputs from a seed on; return what went wrong."""
    found = []
    for seed, line in in_children(FEEDING, first, count, seconds=60):
        fault = str(line) if isinstance(line, Died) else json.loads(line).get("fault")
        if fault:
            found.append(f"seed {seed}: {fault}")
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_no_input_breaks_the_engine(part: int) -> None:
    assert faults(part * INPUTS, INPUTS) == []


def test_minus_one_spindles_are_not_taken_for_an_unknown_number() -> None:
    assert faults(1_183_565, 1) == []


def test_a_tag_that_only_failure_domains_count_is_left_to_the_law() -> None:
    assert faults(20_984_960, 1) == []


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_a_million_inputs(part: int) -> None:
    first = int(os.environ.get("GPOLICY_SEED") or random.SystemRandom().randrange(10**9))
    print(f"GPOLICY_SEED={first}, part {part}")  # noqa: T201
    assert faults(first + part * 50_000, 50_000) == []


def test_inputs_reach_answers_of_all_kinds() -> None:
    """Sound, odd and damaged: where too many were refused at the door, nothing behind it would be tested."""
    lines = [line for _, line in in_children(FEEDING, 0, 1000, seconds=60) if not isinstance(line, Died)]
    asked = [word for line in lines for word in json.loads(line).get("asked", ())]
    assert asked.count("DONE") > len(asked) // 5
    assert asked.count("INVALID") > len(asked) // 5
    for kind in ("attempt", "redundancy", "standard", "tiered", "balance", "dedicated", "evacuate"):
        assert asked.count(f"{kind} EQUAL") > 12


@pytest.mark.skipif(not sanitizers.ACTIVE, reason="only with sanitizers (scripts/sanitize)")
def test_the_engine_frees_all_memory() -> None:
    options = os.environ["ASAN_OPTIONS"].replace("detect_leaks=0", "detect_leaks=1")
    done = subprocess.run(
        [sys.executable, *FEEDING, "0", "1000"],
        env={**os.environ, "ASAN_OPTIONS": options, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == 1000
    assert "gpolicy_" not in done.stderr  # Python itself leaks; what began in the engine would name its functions


CRASHING = (
    "import os, sys; [print(n, flush=True) if n != 3 else os.kill(os.getpid(), 9) for n in range({0}, {0} + {1})]"
)


def test_a_crash_is_reported_with_its_seed() -> None:
    code = CRASHING.format("int(sys.argv[1])", "int(sys.argv[2])")
    lines = list(in_children(["-c", code], 1, 4, seconds=60))
    assert [(seed, isinstance(line, Died)) for seed, line in lines] == [(1, False), (2, False), (3, True), (4, False)]
    assert lines[2][1].startswith("exit code -9: ")


def test_a_hang_is_reported_with_its_seed() -> None:
    ((seed, line),) = in_children(["-c", "import time; time.sleep(100)"], 7, 1, seconds=0.5)
    assert seed == 7
    assert line.startswith("needs more than 0.5 s: ")
