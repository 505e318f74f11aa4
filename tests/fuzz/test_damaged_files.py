"""Damaged input to everything that reads files of others: findings or one of gpolicy's own errors, and soon.

Each target runs in a process of its own with 2 GiB at most (`feeding.py`); seeds are fixed, so that what fails, fails
again. `-m full` feeds fifty times as many. `guided.py` looks for inputs that reach new code, by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.feeding import fault_of
from tests.fuzz.mutating import damaged
from tests.fuzz.targets import TARGETS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOUND = sorted(path.relative_to(HERE / "found").as_posix() for path in (HERE / "found").rglob("*") if path.is_file())
MOST_MEMORY = 400  # MiB


def fed(target: str, inputs: int, first: int, directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the count of a run, and its faults."""
    command = [sys.executable, "-m", "tests.fuzz.feeding", target, str(inputs), str(first), str(directory)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout, done.stderr
    *faults, count = [json.loads(line) for line in done.stdout.splitlines()]
    return count, faults


@pytest.mark.parametrize("name", TARGETS)
def test_random_input_gives_only_findings_and_our_errors(name: str, tmp_path: Path) -> None:
    count, faults = fed(name, TARGETS[name].inputs, 0, tmp_path)
    assert [fault["fault"] for fault in faults] == []
    assert count["inputs"] == TARGETS[name].inputs
    assert count["peak_MiB"] < MOST_MEMORY


@pytest.mark.full
@pytest.mark.parametrize("name", TARGETS)
def test_much_random_input_gives_only_findings_and_our_errors(name: str, tmp_path: Path) -> None:
    count, faults = fed(name, 50 * TARGETS[name].inputs, 1_000_000, tmp_path)
    assert [fault["fault"] for fault in faults] == []
    assert count["peak_MiB"] < MOST_MEMORY


@pytest.mark.parametrize("name", FOUND)
def test_inputs_that_once_failed(name: str, tmp_path: Path) -> None:
    """Each file below `found/TARGET` ended in a traceback, or never, when it was found."""
    assert fault_of(TARGETS[name.split("/", maxsplit=1)[0]], (HERE / "found" / name).read_bytes(), tmp_path) is None


@pytest.mark.parametrize("name", TARGETS)
def test_the_sound_inputs_are_sound(name: str, tmp_path: Path) -> None:
    """Undamaged inputs have no fault, so that damage reaches the code behind the reader."""
    seeds = TARGETS[name].seeds()
    assert len(seeds) > 0
    assert all(fault_of(TARGETS[name], data, tmp_path) is None for data in seeds[:8])


def test_damage_is_the_same_for_the_same_seed() -> None:
    seeds, words = TARGETS["policy"].seeds(), TARGETS["policy"].vocabulary()
    made = [damaged(seeds[0], seed, seeds, words) for seed in range(200)]
    assert made == [damaged(seeds[0], seed, seeds, words) for seed in range(200)]
    assert len(set(made)) > 190


def test_the_fuzzer_detects_a_fault(tmp_path: Path) -> None:
    """The harness detects an exception, an endless loop and too much memory."""
    from tests.fuzz.targets import Target

    def endless(_: bytes, __: Path) -> None:
        while True:
            pass

    def raising(_: bytes, __: Path) -> None:
        raise KeyError("x")

    assert "TooSlow" in str(fault_of(Target(endless, list, seconds=0.2), b"", tmp_path))
    assert "KeyError" in str(fault_of(Target(raising, list), b"", tmp_path))


def test_memory_is_bounded(tmp_path: Path) -> None:
    code = "import feeding; feeding.prepare(); bytearray(3 * 1024**3)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "MemoryError" in done.stderr
