"""Hostile inputs to every verb that reads them: each ends in seconds and in bounded memory.

Ordinary tests take each input to one command, and keep those small that mean much work; `-m full` takes 300 KB to all
commands.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hostile import states
from tests.hostile.bounded import Feeder
from tests.hostile.cases import CASES, SMALL
from tests.hostile.policies import places, with_value
from tests.hostile.targets import command, lay_out

ORDINARY_SIZE, FULL_SIZE = 20_000, 300_000
OF_MUCH_WORK = {
    "many": 2_000,
    "text": 8_000,
    "extends": 3_000,
    "tests": 5_000,
    "comments": 10_000,
    "settings": 10_000,
    "snapshot": 10_000,
}
"""The size of inputs in an ordinary run, where most of them are sound and every value costs work."""
LARGE_ONES = {
    "snapshot: nodes": 100_000,
    "snapshot: pairs": 150_000,
    "text: nodes": 12_000,
    "text: groups": 60_000,
    "many: pairs": 200_000,
    "many: volume groups": 200_000,
    "extends: heirs of the cluster's pairs": 100_000,
}
"""Legal ones that every verb counts on or writes out one by one: smaller in the large test."""
FAMILIES = list(dict.fromkeys(name.partition(":")[0] for name in CASES))

LETTERS = ("a", "\t", "0", "-", ",", ":", "/", ".", "[", "*", "(a+)+", "1G", "%", " x", "\n")
STATES = (
    ("plan", "-s", "snapshot:snapshot.json", "--allow", "right-cluster", "-f", "html", "policy"),
    ("capacity", "-s", "snapshot:snapshot.json"),
    ("suggest", "-s", "snapshot:snapshot.json", "-f", "json"),
    ("place", "-s", "snapshot:snapshot.json", "memory=1G", "vcpus=1", "disk=1G"),
)


def in_family(feeder: Feeder, directory: Path, family: str, size: int, turns: range) -> list[str]:
    """Feed the cases of a family to some of their commands, to others in each case so that all have their turn."""
    inputs: dict[bytes, None] = {}
    for name, case in CASES.items():
        if name.partition(":")[0] == family:
            home, first = re.sub(r"\W+", "-", name)[:60], sum(name.encode())
            lay_out(directory / home, case.maker(LARGE_ONES.get(name, size) if size == FULL_SIZE else size))
            for turn in turns:
                inputs[command(case.commands[(first + turn) % len(case.commands)], home, **case.environ)] = None
    return feeder.feed("commands", inputs, directory).faults


@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_input_ends_soon_with_a_reason(family: str, feeder: Feeder, tmp_path: Path) -> None:
    assert in_family(feeder, tmp_path, family, OF_MUCH_WORK.get(family, ORDINARY_SIZE), range(1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", ["many", "extends"])
def test_input_of_much_work_ends_soon(family: str, feeder: Feeder, tmp_path: Path) -> None:
    assert in_family(feeder, tmp_path, family, ORDINARY_SIZE // 4, range(1, 2)) == []


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_much_hostile_input_ends_soon(family: str, feeder: Feeder, tmp_path: Path) -> None:
    assert in_family(feeder, tmp_path, family, FULL_SIZE, range(99)) == []


@pytest.mark.full
def test_impossible_numbers_in_a_snapshot(feeder: Feeder, tmp_path: Path) -> None:
    for name, data in states.absurd_snapshots():
        lay_out(tmp_path, {"snapshot.json": data, "policy/policy.yaml": SMALL})
        assert feeder.feed("commands", map(command, STATES), tmp_path).faults == [], name


@pytest.mark.full
def test_impossible_numbers_in_text(feeder: Feeder, tmp_path: Path) -> None:
    commands = (("htools", "hspace", "-t", "cluster.data"), ("capacity", "-s", "text:cluster.data"))
    for name, data in states.absurd_texts():
        lay_out(tmp_path, {"cluster.data": data})
        assert feeder.feed("commands", map(command, commands), tmp_path).faults == [], name


@pytest.mark.full
@pytest.mark.parametrize("letters", LETTERS)
def test_a_long_text_in_each_place_of_a_policy(letters: str, feeder: Feeder, tmp_path: Path) -> None:
    for kind, place, schema in places():
        if "properties" not in schema:
            lay_out(tmp_path, with_value(kind, place, letters * (100_000 // len(letters)) + "!"))
            fed = feeder.feed("commands", [command(("check", "policy.yaml"))], tmp_path)
            assert fed.faults == [], (kind, place)
