"""The rules catch most single mistakes in good policies and are silent about sane ones (`benchmarks/rules.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.rules.defects.bases import TOP, good_policies
from tests.rules.defects.measuring import Figures, alarms, cures, measure, sound
from tests.rules.defects.page import page
from tests.rules.defects.reasons import REASONS
from tests.rules.defects.seeding import DEFECTS, chosen

LEAST: Final = 0.97
"""The share of mistakes that must be caught."""
HEALED: Final = 0.86
"""The share of the orders in hints that, done literally, must heal a seeded mistake and bring nothing new."""
ALONE: Final = 0.9
"""The share of those caught of which exactly one finding must tell."""


def check_mutants(found: Figures) -> None:
    missed = [(mutant.defect.name, mutant.where) for mutant in found.mutants if not mutant.caught]
    assert found.recall >= LEAST, missed
    assert [where for name, where in missed if name not in REASONS] == [], "missed without a reason"
    assert {mutant.defect.name for mutant in found.mutants} == {defect.name for defect in DEFECTS}
    assert {mutant.base for mutant in found.mutants} == {base.name for base in good_policies()}
    # a change without a new meaning is not a mistake and does not count
    assert len({(mutant.base, mutant.defect.name, mutant.where) for mutant in found.mutants}) == len(found.mutants)


@pytest.mark.slow
def test_all_figures_and_the_page(tmp_path: Path) -> None:
    found = measure(tmp_path)
    check_mutants(found)
    caught = [mutant for mutant in found.mutants if mutant.caught]
    assert sum(mutant.alone for mutant in caught) / len(caught) >= ALONE
    assert found.precision == 1, found.alarms
    written = (TOP / "docs" / "reference" / "seeded-mistakes.md").read_text(encoding="utf-8")
    assert written == page(found, REASONS), "run scripts/generate"


@pytest.mark.slow
def test_what_hints_say_heals_seeded_mistakes(tmp_path: Path) -> None:
    """The rest are orders of which one of several is needed, and tests that fail once they can run."""
    done = list(cures(tmp_path, most=1))
    assert len(done) > 150
    assert sum(heals for _, heals in done) / len(done) >= HEALED, [order for order, heals in done if not heals]


def test_the_good_policies_are_good_and_the_sane_ones_sane(tmp_path: Path) -> None:
    assert [found for base in good_policies() for found in sound(base, tmp_path / base.name)] == []
    (tmp_path / "sane").mkdir()
    said = alarms(tmp_path / "sane")
    assert len(said) >= 100
    assert {name: found for name, found in said.items() if found} == {}


def test_the_kinds_of_mistakes_have_names_and_the_reasons_are_of_kinds() -> None:
    assert len(DEFECTS) == len({(defect.family, defect.name) for defect in DEFECTS}) >= 398
    assert set(REASONS) <= {defect.name for defect in DEFECTS}


def test_the_same_mistakes_are_made_at_every_run() -> None:
    bases = good_policies()
    for defect in DEFECTS[::10]:
        first, second = (
            [(base.name, seed.where, seed.files()) for base, seed in chosen(defect, bases)] for _ in range(2)
        )
        assert first == second
