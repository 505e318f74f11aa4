"""Measure the rules of `gpolicy check`: the share of seeded mistakes that they catch, and of sane policies they accept.

Run `scripts/venv dev && .venv/bin/python benchmarks/rules.py [MOST]`, where MOST is the number of mistakes of a kind
(3, as on docs/reference/seeded-mistakes.md). A mistake is caught if there is an error or a warning that the good policy
does not have. The mistakes are in `tests/rules/defects/`, the sane policies in `tests/rules/cases/sane.txt`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import checkout  # noqa: F401

from tests.rules.defects.measuring import Mutant, measure
from tests.rules.defects.page import by_family
from tests.rules.defects.seeding import MOST_SEEDS


def main() -> int:
    most = int(sys.argv[1]) if sys.argv[1:] else MOST_SEEDS
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name), most)
    print(f"{'family':20} {'mistakes':>8} {'caught':>14} {'by one finding':>16}")
    for family, members in by_family(found.mutants).items():
        _show(family, members)
    _show("all", found.mutants)
    for mutant in found.mutants:
        if not mutant.caught:
            print(f"missed: {mutant.defect.name}: {mutant.base}, {mutant.where}")
    for policy, said in found.alarms.items():
        for finding in said:
            print(f"false alarm: {policy}: {finding.code} {finding.message}")
    print(f"sane policies without an error or a warning: {found.precision:.1%} of {len(found.alarms)}")
    return 0


def _show(title: str, mutants: Collection[Mutant]) -> None:
    whole = len(mutants)
    caught, alone = (sum(getattr(mutant, what) for mutant in mutants) for what in ("caught", "alone"))
    print(f"{title:20} {whole:8} {caught:6} {caught / whole:7.1%} {alone:8} {alone / whole:7.1%}")


if __name__ == "__main__":
    sys.exit(main())
