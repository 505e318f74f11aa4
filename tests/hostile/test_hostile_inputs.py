"""Hostile inputs to every verb that reads them: each ends in seconds and in bounded memory.

Each run has a process of its own with limits of the system (`bounded.py`): 1.5 GiB of address space, and processor
time, so that a machine with other work changes nothing. Ordinary tests take inputs of 20 KB to two commands each, a
minute of processor time all together; `-m full` takes 300 KB to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile import states
from tests.hostile.bounded import Ended, Runner
from tests.hostile.corpus import CASES, SMALL, Case

CPU = 25
"""Seconds of processor time. Most inputs take under one, the longest some ten on a slow machine."""
SMALL_SIZE, FULL_SIZE = 20_000, 300_000
LARGE_ONES = {
    "snapshot: nodes": 100_000,
    "text: nodes": 15_000,
    "text: groups": 60_000,
    "many: pairs": 200_000,
    "extends: heirs of the cluster's pairs": 100_000,
}
"""Legal ones that every verb counts on or writes out one by one: smaller in the large test."""

STATES = (
    ("plan", "-s", "SRC", "--allow", "right-cluster", "-f", "html", "policy"),
    ("capacity", "-s", "SRC"),
    ("suggest", "-s", "SRC", "-f", "json"),
    ("place", "-s", "SRC", "memory=1G", "vcpus=1", "disk=1G"),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def laid_out(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        path.chmod(0o700 if path.parent.name == "bin" else 0o600)


def faults(
    runner: Runner, directory: Path, commands: tuple[tuple[str, ...], ...], environ: dict[str, str] | None = None
) -> list[str]:
    return [
        f"{' '.join(command)[:200]}: {fault}"
        for command in commands
        if (fault := runner.run(list(command), directory, CPU, environ).fault())
    ]


def chosen(name: str, case: Case) -> tuple[tuple[str, ...], ...]:
    """Return the first command and another one, so that all commands have their turn."""
    return tuple(dict.fromkeys((case.commands[0], case.commands[sum(name.encode()) % len(case.commands)])))


@pytest.mark.parametrize("name", CASES)
def test_hostile_input_ends_soon_with_a_reason(name: str, runner: Runner, tmp_path: Path) -> None:
    laid_out(tmp_path, CASES[name].maker(SMALL_SIZE))
    assert faults(runner, tmp_path, chosen(name, CASES[name]), CASES[name].environ) == []


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_much_hostile_input_ends_soon(name: str, runner: Runner, tmp_path: Path) -> None:
    laid_out(tmp_path, CASES[name].maker(LARGE_ONES.get(name, FULL_SIZE)))
    assert faults(runner, tmp_path, CASES[name].commands, CASES[name].environ) == []


@pytest.mark.full
def test_impossible_numbers_in_a_snapshot(runner: Runner, tmp_path: Path) -> None:
    found = []
    for name, data in states.absurd_snapshots():
        laid_out(tmp_path, {"snapshot.json": data, "policy/policy.yaml": SMALL})
        commands = tuple(tuple(word.replace("SRC", "snapshot:snapshot.json") for word in one) for one in STATES)
        found += [f"{name}: {fault}" for fault in faults(runner, tmp_path, commands)]
    assert found == []


@pytest.mark.full
def test_impossible_numbers_in_text(runner: Runner, tmp_path: Path) -> None:
    found = []
    for name, data in states.absurd_texts():
        laid_out(tmp_path, {"cluster.data": data})
        commands = (("htools", "hspace", "-t", "cluster.data"), ("capacity", "-s", "text:cluster.data"))
        found += [f"{name}: {fault}" for fault in faults(runner, tmp_path, commands)]
    assert found == []


@pytest.mark.full
@pytest.mark.parametrize("letters", ["a", "\t", "0", "-", ",", ":", "/", ".", "[", "*", "(a+)+", "1G", "%", " x", "\n"])
def test_a_long_text_in_each_place_of_a_policy(letters: str, runner: Runner, tmp_path: Path) -> None:
    from tests.hostile.policies import places, with_value

    found = []
    for kind, place, schema in places():
        if "properties" not in schema:
            files = with_value(kind, place, letters * (100_000 // len(letters)) + "!")
            laid_out(tmp_path, {f"policy/{name}": text for name, text in files.items()})
            found += [f"{kind} {place}: {fault}" for fault in faults(runner, tmp_path, (("check", "policy"),))]
    assert found == []


def test_a_run_that_uses_too_much_is_detected() -> None:
    """The harness detects a run that breaks a limit or ends in a traceback."""
    good = Ended(0, "", "", 0.1, 40, 0)
    assert good.fault() == ""
    for changed in (
        Ended(-24, "", "", 10.0, 40, 0),
        Ended(-11, "", "", 0.1, 40, 0),
        Ended(99, "", "Traceback (most recent call last)", 0.1, 40, 0),
        Ended(3, "", "no line of ours", 0.1, 40, 0),
        Ended(0, "", "", 0.1, 40, 10**9),
    ):
        assert changed.fault() != ""


def test_the_limits_hold(runner: Runner, tmp_path: Path) -> None:
    """A run that wants more processor time than it may have is ended by the system."""
    laid_out(tmp_path, {"snapshot.json": states.SNAPSHOTS["nodes"](FULL_SIZE)})
    command = ["capacity", "-s", "snapshot:snapshot.json"]
    assert "processor time" in runner.run(command, tmp_path, 1).fault()
