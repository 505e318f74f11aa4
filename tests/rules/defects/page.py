"""The page docs/reference/seeded-mistakes.md: the kinds of mistakes, how many are caught, why others are not."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from tests.rules.defects.measuring import Mutant
from tests.rules.defects.seeding import DEFECTS

_HEAD: Final = """\
# Seeded mistakes

For those who want to know how many mistakes `gpolicy check` finds. The tests put one mistake at a time into a good
policy (each of `policies/`, the one that `gpolicy init` writes, and the example of
[testing.md](../guides/testing.md)) and check the result without a cluster. A mistake counts as caught if there is
an error or a warning that the good policy does not have. The kinds of mistakes were taken from Ganeti's manual and
design documents, not from the rules.

`tests/rules/defects/` has the kinds, each with the reason why it is wrong. `tests/rules/test_seeded_defects.py`
makes the same changes at every run and requires that at least 92 % are caught. Almost half of the kinds were written
without a look at the rules. Two thirds of those mistakes were caught then; rules were written for most of the others.
With `-m full` there are more places for each kind: in November 2026, 6778 of 6915 mistakes were caught (98.0 %).
"""


def page(mutants: list[Mutant], reasons: dict[str, str]) -> str:
    """Return the page as Markdown."""
    caught = sum(mutant.caught for mutant in mutants)
    lines = [
        _HEAD,
        f"**{caught} of {len(mutants)} are caught, {_percent(caught, len(mutants))}**, in {len(DEFECTS)} kinds.\n",
        "| family | kinds | for example | mistakes | caught |",
        "|---|---:|---|---:|---:|",
    ]
    families: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        families[mutant.defect.family].append(mutant)
    for family, members in families.items():
        found = sum(mutant.caught for mutant in members)
        kinds = len({mutant.defect.name for mutant in members})
        example = _escaped(members[0].defect.name)
        lines.append(f"| {family} | {kinds} | {example} | {len(members)} | {found} |")
    return "\n".join([*lines, "", *_missed(mutants, reasons)])


def _missed(mutants: list[Mutant], reasons: dict[str, str]) -> list[str]:
    lines = ["## What is not caught", "", "| kind | caught | why not all |", "|---|---:|---|"]
    for name in dict.fromkeys(mutant.defect.name for mutant in mutants if not mutant.caught):
        members = [mutant.caught for mutant in mutants if mutant.defect.name == name]
        share = f"{sum(members)} of {len(members)}"
        lines.append(f"| {_escaped(name)} | {share} | {_escaped(reasons.get(name, ''))} |")
    return [*lines, ""]


def _percent(part: int, whole: int) -> str:
    return f"{part / whole * 100:.1f} %"


def _escaped(text: str) -> str:
    """Return text for a cell of a table, which it may not end nor format. What stands in backticks stays."""
    parts = text.split("`")
    for letter in "\\|*_<>[]{}":
        parts[::2] = [part.replace(letter, f"\\{letter}") for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|") if "|" in "".join(parts[1::2]) else "`".join(parts)
