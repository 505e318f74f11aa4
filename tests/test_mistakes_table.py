"""The table of mistakes in the documentation is whole, and names rules, verbs and guards that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.cli.app import VERBS
from gpolicy.policy.kinds import BUILT_IN, Measure

DOCS = Path(__file__).parents[1] / "docs"
TRAPS = (DOCS / "explanation" / "traps.md").read_text(encoding="utf-8")
TABLE = (DOCS / "how-we-know" / "mistakes.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TABLE, re.MULTILINE)
ROWS = [cells for cells in CELLS if cells[2] != "rules"]

PAINS = (
    *(873, 559, 761, 1530, 51, 539, 540, 495, 917, 474, 865, 1386, 183, 951, 525, 1497, 1249, 855, 1238, 781, 1640),
    *(769, 496, 655, 311, 993, 530, 1229, 919, 1178, 580, 794, 145, 295, 1378, 478, 799, 1390, 1978, 1972, 1850, 1851),
)
"""Issues of Ganeti in which users complain about policies, placement and capacity."""


def named(column: str) -> list[tuple[str, str]]:
    """Return the rules that a text links to: code and anchor."""
    return re.findall(r"\[(GP[0-9]{3})\]\((?:\.\./reference/)?rules\.md#([a-z0-9-]+)\)", column)


def test_every_pain_is_listed_once() -> None:
    assert [int(number) for row in ROWS for number in re.findall(r"#([0-9]+)", row[0])] == list(PAINS)


def test_every_row_is_answered() -> None:
    assert len(CELLS) == sum(line.startswith("| ") for line in TABLE.splitlines())
    assert [row for row in ROWS if not named(row[2]) and row[3] == "-"] == []
    assert [row for row in ROWS if bool(named(row[2])) == (row[2] == "-")] == []


@pytest.mark.parametrize("page", [TABLE, TRAPS], ids=["mistakes", "traps"])
def test_every_rule_that_is_named_exists_and_is_linked(page: str) -> None:
    anchors = {info.code: f"{info.code.lower()}-{info.name}" for info in CATALOGUE}
    links = named(page)
    assert links
    assert [link for link in links if anchors.get(link[0]) != link[1]] == []
    assert len(links) == len(re.findall(r"\bGP[0-9]{3}\]", page))
    assert set(re.findall(r"\bGP[0-9]{3}\b", page)) <= set(anchors)


@pytest.mark.parametrize("page", [TABLE, TRAPS], ids=["mistakes", "traps"])
def test_every_verb_guard_and_page_that_is_named_exists(page: str) -> None:
    assert set(re.findall(r"`gpolicy ([a-z]+)", page)) <= VERBS.keys()
    guards = set(re.findall(r"guard `([a-z_-]+)`", page))
    assert guards
    assert guards <= {*BUILT_IN, *(measure.value for measure in Measure)}
    assert all((DOCS / "how-we-know" / link).is_file() for link in re.findall(r"\]\(([a-z./-]+\.md)", page))


def test_the_head_counts_right() -> None:
    pains = [row for row in ROWS if row[0].startswith("#")]
    with_rule = sum(bool(named(row[2])) for row in pains)
    assert f"{with_rule} of the {len(pains)} reports have a rule" in " ".join(TABLE.split())


def test_the_traps_with_a_rule_are_counted_right() -> None:
    rows = re.findall(r"^\| T[0-9]+ \| .* \|([^|]*)\|$", TRAPS, re.MULTILINE)
    assert f"{sum(bool(named(rules)) for rules in rows)} of the {len(rows)} traps have a rule" in " ".join(
        TRAPS.split()
    )
