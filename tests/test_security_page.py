"""docs/explanation/security.md names existing code and tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")


def test_the_page_names_files_that_there_are() -> None:
    named = set(re.findall(r"`((?:gpolicy|tests|ci|scripts)/[a-z_/.-]+|action\.yml)`", PAGE))
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_input_is_shown_by_a_test() -> None:
    _, *rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(rows) >= 12
    for row in rows:
        *_, where, shown_by = row.strip("|").split("|")
        assert "`" in where, row
        assert "`tests/" in shown_by, row
