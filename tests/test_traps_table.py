"""The table of traps in the documentation is whole, and each trap has the tests that the page promises."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = (TESTS.parent / "docs" / "explanation" / "traps.md").read_text(encoding="utf-8")
THERE = {
    name
    for file in TESTS.rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
}
NUMBERS = range(1, 63)


def numbers(tests: set[str]) -> set[int]:
    """Return the traps that the names of these tests begin with: test_t33_t34_live_… shows two."""
    found = [re.match(r"test((?:_t[0-9]{2})+)_", test) for test in tests]
    return {int(number) for match in found if match for number in re.findall(r"[0-9]{2}", match[1])}


def test_every_trap_is_in_the_table() -> None:
    rows = re.findall(r"^\| T([0-9]+) \| [^|]+ \| [^|]+ \|[^|]+\|$", TABLE, re.MULTILINE)
    assert [int(number) for number in rows] == list(NUMBERS)


def test_every_trap_has_a_test() -> None:
    """Of T44, text that no source reads, there is only the live one."""
    assert numbers({test for test in THERE if "_live_" not in test}) == {*NUMBERS} - {44}


def test_every_trap_is_shown_live() -> None:
    assert numbers({test for test in THERE if "_live_" in test}) == {*NUMBERS}


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)(…?)`", TABLE))
    assert named
    assert [
        name for name, more in named if not any(test == name or (more and test.startswith(name)) for test in THERE)
    ] == []
