"""The page on the demands of the design documents: its counts are those of its tables, and all that it names exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from gpolicy.checking.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "how-we-know" / "design-documents.md").read_text(encoding="utf-8")
REASONS = ("internals", "superseded", "future", "balancing", "unseen", "missing")
LINES = re.findall(r"^\| ([A-Z])([0-9]+)(?:-\1([0-9]+))? \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
ROWS = [
    (document, str(number), demand, does, shown)
    for document, first, last, demand, does, shown in LINES
    for number in range(int(first), int(last or first) + 1)
]
"""The demands; a line may have several in a row (`P30-P32`)."""
COUNTS = re.findall(r"^\| (?:\[([A-Z]): [^|]+|all) \| ([0-9 |]+) \|$", PAGE, re.MULTILINE)
NOT = re.compile(rf"not, ({'|'.join(REASONS)})(?:: .+)?")
NAMED = r"(`[^`]+`)(, `[^`]+`)*"


def test_demands_are_numbered_one_by_one() -> None:
    assert len(LINES) == len(re.findall(r"^\| [A-Z][A-Z0-9-]+ \|", PAGE, re.MULTILINE))
    for document, demands in Counter(row[0] for row in ROWS).items():
        assert [int(row[1]) for row in ROWS if row[0] == document] == list(range(1, demands + 1))


def test_every_demand_is_shown_or_says_why_not() -> None:
    assert [row for row in ROWS if not (NOT.fullmatch(row[4]) or re.fullmatch(NAMED, row[4]))] == []


def test_the_counts_at_the_top_are_those_of_the_tables() -> None:
    def counted(rows: list[tuple[str, str, str, str, str]]) -> list[int]:
        reasons = Counter(found[1] for row in rows if (found := NOT.fullmatch(row[4])))
        return [len(rows), len(rows) - reasons.total(), *(reasons[reason] for reason in REASONS)]

    written = {document: [int(number) for number in numbers.split("|")] for document, numbers in COUNTS}
    documents = {row[0] for row in ROWS}
    assert written == {
        **{document: counted([row for row in ROWS if row[0] == document]) for document in documents},
        "": counted(ROWS),
    }
    assert len(documents) == 5


def test_all_that_the_page_names_exists() -> None:
    named = {name for row in ROWS if not NOT.fullmatch(row[4]) for name in re.findall(r"`([^`]+)`", row[4])}
    missing = []
    for name in named:
        path, _, test = name.partition("::")
        if re.fullmatch(r"GP[0-9]{3}", name):
            continue
        if test:
            file = ROOT / path
            there = file.is_file() and re.search(rf"^ *def {test}\(", file.read_text(encoding="utf-8"), re.MULTILINE)
        else:
            there = path.startswith("policies/design-documents/") and (ROOT / path / "policy.yaml").is_file()
        if not there:
            missing.append(name)
    assert sorted(missing) == []


def test_every_rule_that_the_page_names_exists() -> None:
    codes = {info.code for info in CATALOGUE}
    named = set(re.findall(r"\bGP[0-9]{3}\b", PAGE))
    assert named
    assert sorted(named - codes) == []


def test_every_example_is_named() -> None:
    examples = {path.name for path in (ROOT / "policies" / "design-documents").iterdir()}
    assert examples == set(re.findall(r"`policies/design-documents/([a-z-]+)`", PAGE))
