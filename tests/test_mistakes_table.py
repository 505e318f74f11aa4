"""The table of mistakes in the documentation is whole, and names rules, verbs and guards that exist."""

from __future__ import annotations

import re
from pathlib import Path

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.cli.app import VERBS
from gpolicy.policy.guard import BUILT_IN, Measure

DOCS = Path(__file__).parents[1] / "docs"
TABLE = (DOCS / "mistakes.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", TABLE, re.MULTILINE)
ROWS = [cells for cells in CELLS if cells[2] != "rules"]

PAINS = (
    *(873, 559, 761, 1530, 51, 539, 540, 495, 917, 474, 865, 1386, 183, 951, 525, 1497, 1249, 855, 1238, 781, 1640),
    *(769, 496, 655, 311, 993, 530, 1229, 919, 1178, 580, 794, 145, 295, 1378, 478, 799, 1390, 1978, 1972, 1850, 1851),
)
"""Issues of Ganeti in which users complain about policies, placement and capacity."""


def named(column: str) -> list[tuple[str, str]]:
    """Return the rules that a cell links to: code and anchor."""
    return re.findall(r"\[(GP[0-9]{3})\]\(rules\.md#([a-z0-9-]+)\)", column)


def numbered(prefix: str) -> list[tuple[int, str, str]]:
    """Return the rows whose first cell begins with `prefix`: number, rules, what else."""
    return [
        (int(number), rules, other)
        for first, _, rules, other in ROWS
        for number in re.findall(rf"{prefix}([0-9]+)", first)
    ]


def test_every_trap_is_listed_once() -> None:
    assert [number for number, _, _ in numbered("T")] == list(range(1, 63))


def test_every_pain_is_listed_once() -> None:
    assert [number for number, _, _ in numbered("#")] == list(PAINS)


def test_every_row_is_answered() -> None:
    assert len(CELLS) == sum(line.startswith("| ") for line in TABLE.splitlines())
    assert [row for row in ROWS if not named(row[2]) and row[3] == "-"] == []
    assert [row for row in ROWS if bool(named(row[2])) == (row[2] == "-")] == []


def test_every_rule_that_is_named_exists_and_is_linked() -> None:
    anchors = {info.code: f"{info.code.lower()}-{info.name}" for info in CATALOGUE}
    links = [link for row in ROWS for link in named(row[2])]
    assert links
    assert [link for link in links if anchors.get(link[0]) != link[1]] == []
    assert len(links) == len(re.findall(r"\bGP[0-9]{3}\]", TABLE))
    assert set(re.findall(r"\bGP[0-9]{3}\b", TABLE)) <= set(anchors)


def test_every_verb_guard_and_page_that_is_named_exists() -> None:
    verbs = set(re.findall(r"`gpolicy ([a-z]+)", TABLE))
    assert verbs
    assert sorted(verbs - VERBS.keys()) == []
    guards = set(re.findall(r"guard `([a-z_-]+)`", TABLE))
    assert guards <= {*BUILT_IN, *(measure.value for measure in Measure)}
    assert all((DOCS / page).is_file() for page in re.findall(r"\]\(([a-z]+\.md)", TABLE))


def test_the_head_counts_right() -> None:
    traps = sum(bool(named(rules)) for _, rules, _ in numbered("T"))
    pains = [row for row in ROWS if row[0].startswith("#")]
    with_rule = sum(bool(named(row[2])) for row in pains)
    assert f"{traps} of the 62 traps and {with_rule} of the {len(pains)} pains have a rule." in TABLE


def test_the_traps_are_those_of_the_table_of_traps() -> None:
    traps = (DOCS / "traps.md").read_text(encoding="utf-8")
    titles = dict(re.findall(r"^\| (T[0-9]+) \| ([^|]+?)\.? \|", traps, re.MULTILINE))
    assert set(titles) >= {row[0] for row in ROWS if row[0].startswith("T")}
