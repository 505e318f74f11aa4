"""The table of traps in the documentation is whole, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "traps.md").read_text(encoding="utf-8")
WITHOUT_TEST = {44}
"""Traps that a version which does not read the text of info commands cannot meet."""


NOT_LIVE = {27, 30, 41, 44, 46, 53}
"""Traps that no command on the test cluster can show."""


def rows() -> dict[int, list[str]]:
    """Return the tests that each row names, by the trap's number."""
    found = re.findall(r"^\| T([0-9]+) \|.*\| ([^|]*) \|$", TABLE, re.MULTILINE)
    return {int(number): re.findall(r"`(test_\w+)`", shown) for number, shown in found}


def test_every_trap_is_in_the_table() -> None:
    assert list(rows()) == list(range(1, 63))


def test_every_trap_has_a_test_or_a_reason() -> None:
    assert {number for number, tests in rows().items() if not tests} == WITHOUT_TEST
    assert all(any(f"t{number:02d}" in test.split("_") for test in tests) for number, tests in rows().items() if tests)


def test_every_trap_is_shown_live_or_has_a_reason() -> None:
    found = {int(number): shown for number, shown in re.findall(r"^\| T([0-9]+) live \| (.+) \|$", TABLE, re.MULTILINE)}
    assert list(found) == list(range(1, 63))
    assert {number for number, shown in found.items() if not shown.startswith("`test_")} == NOT_LIVE
    live = {number: shown for number, shown in found.items() if number not in NOT_LIVE}
    assert all(f"t{number:02d}" in shown.strip("`").split("_") for number, shown in live.items())


def test_every_test_that_the_table_names_exists() -> None:
    there = {
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", TABLE))
    assert named
    assert sorted(named - there) == []
