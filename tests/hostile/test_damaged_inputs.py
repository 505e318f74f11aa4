"""Damaged inputs to everything that reads files of others: findings or one of gpolicy's own errors, and soon.

The numbers of the inputs are fixed, so that what fails, fails again. `-m full` feeds 250 times as many. `guided.py`
looks for inputs that reach new code, by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.bounded import Feeder
from tests.hostile.targets import TARGETS

FOUND = Path(__file__).parent / "found"
NAMES = [name for name, target in TARGETS.items() if target.inputs]
MOST_MEMORY = 400  # MiB


def feed(feeder: Feeder, name: str, inputs: range, directory: Path) -> None:
    fed = feeder.feed(name, inputs, directory)
    assert fed.faults == []
    assert len(fed.answers) == len(inputs)
    assert fed.mebibytes < MOST_MEMORY


@pytest.mark.parametrize("name", NAMES)
def test_damaged_input_gives_only_findings_and_our_errors(name: str, feeder: Feeder, tmp_path: Path) -> None:
    feed(feeder, name, range(TARGETS[name].inputs), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_more_damaged_input_gives_only_findings_and_our_errors(name: str, feeder: Feeder, tmp_path: Path) -> None:
    feed(feeder, name, range(TARGETS[name].inputs, 2 * TARGETS[name].inputs), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_much_damaged_input_gives_only_findings_and_our_errors(name: str, feeder: Feeder, tmp_path: Path) -> None:
    feed(feeder, name, range(1_000_000, 1_000_000 + 250 * TARGETS[name].inputs), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_sound_inputs_have_no_fault(name: str, feeder: Feeder, tmp_path: Path) -> None:
    """Damage then reaches the code behind the reader."""
    count = len(TARGETS[name].sound())
    assert count > 0
    assert feeder.feed(name, range(-min(count, 3), 0), tmp_path).faults == []


@pytest.mark.parametrize("name", sorted(path.relative_to(FOUND).as_posix() for path in FOUND.glob("*/*")))
def test_inputs_that_once_failed(name: str, feeder: Feeder, tmp_path: Path) -> None:
    """Each file below `found/TARGET` ended in a traceback, in another answer, or never, when it was found."""
    target = name.partition("/")[0]
    assert feeder.feed(target, [(FOUND / name).read_bytes()], tmp_path).faults == []


def test_damage_is_the_same_for_the_same_number() -> None:
    made = [TARGETS["policy"].input(number) for number in range(200)]
    assert made == [TARGETS["policy"].input(number) for number in range(200)]
    assert len(set(made)) > 190
