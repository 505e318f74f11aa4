"""Most single mistakes in good policies are found; docs/reference/seeded-mistakes.md says why the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.defects.bases import TOP, good_policies
from tests.rules.defects.measuring import Mutant, mutants, sound
from tests.rules.defects.page import page
from tests.rules.defects.reasons import REASONS
from tests.rules.defects.seeding import DEFECTS, Base, chosen

BASES = good_policies()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Mutant]:
    return mutants(tmp_path_factory.mktemp("mutants"))


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_the_good_policies_are_good(base: Base, tmp_path: Path) -> None:
    assert sound(base, tmp_path) == []


def test_at_least_92_percent_are_caught(made: list[Mutant]) -> None:
    assert len(made) >= 1500
    assert sum(mutant.caught for mutant in made) >= 0.92 * len(made)


@pytest.mark.full
def test_at_least_96_percent_of_many_more_are_caught(tmp_path: Path) -> None:
    found = mutants(tmp_path, most=24)
    assert len(found) >= 3000
    assert sum(mutant.caught for mutant in found) >= 0.96 * len(found)


def test_every_kind_of_mistake_is_made(made: list[Mutant]) -> None:
    assert {mutant.defect.name for mutant in made} == {defect.name for defect in DEFECTS}
    assert len({(defect.family, defect.name) for defect in DEFECTS}) == len(DEFECTS)
    assert {mutant.base for mutant in made} == {base.name for base in BASES}


def test_each_missed_mistake_has_a_reason(made: list[Mutant]) -> None:
    missed = {mutant.defect.name for mutant in made if not mutant.caught}
    assert missed <= set(REASONS)
    assert set(REASONS) <= {defect.name for defect in DEFECTS}


def test_the_page_is_true(made: list[Mutant]) -> None:
    written = TOP / "docs" / "reference" / "seeded-mistakes.md"
    assert written.read_text(encoding="utf-8") == page(made, REASONS), "run scripts/generate"


def test_the_same_mistakes_are_made_at_every_run() -> None:
    for defect in DEFECTS[::10]:
        first, second = (
            [(base.name, seed.where, seed.files()) for base, seed in chosen(defect, BASES)] for _ in range(2)
        )
        assert first == second


def test_a_mutant_has_one_change(made: list[Mutant]) -> None:
    """A change without a new meaning is not a mistake and does not count."""
    assert len({(mutant.base, mutant.defect.name, mutant.where) for mutant in made}) == len(made)
