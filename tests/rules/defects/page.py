"""The page docs/reference/seeded-mistakes.md: how many of the mistakes are caught, by kinds, and why others are not."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from tests.rules.defects.measuring import Figures, Mutant
from tests.rules.defects.seeding import DEFECTS

_HEAD: Final = """\
# Seeded mistakes

For those who want to know how many mistakes `gpolicy check` finds, and how often it is wrong. `benchmarks/rules.py`
puts one mistake at a time into a good policy (each of `policies/`, the one that `gpolicy init` writes, and the example
of [testing.md](../guides/testing.md)) and checks the result without a cluster. A mistake counts as caught if there is
an error or a warning that the good policy does not have. The kinds of mistakes were taken from Ganeti's manual and
design documents, not from the rules.

`tests/rules/defects/` has the kinds, each with the reason why it is wrong. The same changes are made at every run. The
tests require that at least 97 % are caught, and of each kind all, unless it is [below](#what-is-not-caught). Almost
half of the kinds were written without a look at the rules. Two thirds of those mistakes were caught then; rules were
written for most of the others. `benchmarks/rules.py 24` makes more of each kind: in November 2026, 6778 of 6915
mistakes were caught (98.0 %).
"""


def page(figures: Figures, reasons: dict[str, str]) -> str:
    """Return the page as Markdown."""
    every = figures.mutants
    silent = sum(not said for said in figures.alarms.values())
    caught, alone = (sum(getattr(mutant, what) for mutant in every) for what in ("caught", "alone"))
    lines = [
        f"{_HEAD}\n**{caught} of {len(every)} are caught, {figures.recall * 100:.1f} %**, in {len(DEFECTS)} kinds;",
        f"{alone} of them by exactly one finding. Of {len(figures.alarms)} policies that are unusual and sane",
        f"(`tests/rules/cases/sane.txt`), {silent} have no error and no warning.\n",
        "| family | kinds | for example | mistakes | caught | by one finding |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for family, members in by_family(every).items():
        caught, alone = (sum(getattr(mutant, what) for mutant in members) for what in ("caught", "alone"))
        kinds = len({mutant.defect.name for mutant in members})
        example = _escaped(members[0].defect.name)
        lines.append(f"| {family} | {kinds} | {example} | {len(members)} | {caught} | {alone} |")
    return "\n".join([*lines, "", *_missed(every, reasons)])


def by_family(mutants: list[Mutant]) -> dict[str, list[Mutant]]:
    """Return the mutants of each family of kinds."""
    families: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        families[mutant.defect.family].append(mutant)
    return families


def _missed(mutants: list[Mutant], reasons: dict[str, str]) -> list[str]:
    lines = ["## What is not caught", "", "| kind | caught | why not all |", "|---|---:|---|"]
    for name in dict.fromkeys(mutant.defect.name for mutant in mutants if not mutant.caught):
        members = [mutant.caught for mutant in mutants if mutant.defect.name == name]
        share = f"{sum(members)} of {len(members)}"
        lines.append(f"| {_escaped(name)} | {share} | {_escaped(reasons.get(name, ''))} |")
    return [*lines, ""]


def _escaped(text: str) -> str:
    """Return text for a cell of a table, which it may not end nor format. What stands in backticks stays."""
    parts = text.split("`")
    for letter in "\\|*_<>[]{}":
        parts[::2] = [part.replace(letter, f"\\{letter}") for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|") if "|" in "".join(parts[1::2]) else "`".join(parts)
