"""The table of traps in the documentation is whole, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "traps.md").read_text(encoding="utf-8")


def rows() -> dict[int, list[str]]:
    """Return the tests that each row names, by the trap's number."""
    found = re.findall(r"^\| T([0-9]+) \|.*\| ([^|]*) \|$", TABLE, re.MULTILINE)
    return {int(number): re.findall(r"`(test_\w+)`", shown) for number, shown in found}


def test_every_trap_is_in_the_table() -> None:
    assert list(rows()) == list(range(1, 63))


def test_every_trap_has_a_test() -> None:
    assert all(any(f"t{number:02d}" in test.split("_") for test in tests) for number, tests in rows().items())


def test_every_trap_is_shown_live() -> None:
    found = {int(number): shown for number, shown in re.findall(r"^\| T([0-9]+) live \| (.+) \|$", TABLE, re.MULTILINE)}
    assert list(found) == list(range(1, 63))
    for number, shown in found.items():
        tests = re.findall(r"`(test_\w+)`", shown)
        assert tests
        assert all({f"t{number:02d}", "live"} <= {*test.split("_")} for test in tests)


def test_every_test_that_the_table_names_exists() -> None:
    there = {
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", TABLE))
    assert named
    assert sorted(named - there) == []
