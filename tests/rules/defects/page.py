"""The page docs/seeded-defects.md: the kinds of mistakes, how many are caught, and why the others are not."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from defects.measuring import Mutant
from defects.seeding import DEFECTS, Defect

_HEAD: Final = """\
# Seeded defects

How much of what can go wrong does `gpolicy check` see? The tests put single mistakes into good policies (all of
`policies/`, the one that `gpolicy init` writes, and the one of [testing.md](testing.md)) and check each result. A
mistake is a kind of change with the reason why a policy with it is wrong. The kinds were written down from Ganeti's
reference and the design documents, not from the rules; later only changes went that turned out to be no mistake. One
is caught if check, without a cluster, has an error or a warning that the good policy has not.

`tests/rules/defects/` has the kinds, `tests/rules/test_seeded_defects.py` counts and holds this page true. The same
changes are made at every run.
"""


def page(mutants: list[Mutant], reasons: dict[str, str]) -> str:
    """Return the page as Markdown."""
    caught = sum(mutant.caught for mutant in mutants)
    lines = [
        _HEAD,
        f"**{caught} of {len(mutants)} are caught, {_percent(caught, len(mutants))}**, in {len(DEFECTS)} kinds.\n",
        "| family | kinds | policies | caught | |",
        "|---|---:|---:|---:|---:|",
    ]
    families: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        families[mutant.defect.family].append(mutant)
    for family, members in families.items():
        found = sum(mutant.caught for mutant in members)
        kinds = len({mutant.defect.name for mutant in members})
        lines.append(f"| {family} | {kinds} | {len(members)} | {found} | {_percent(found, len(members))} |")
    return "\n".join([*lines, "", *_missed(mutants, reasons), *_kinds(mutants)])


def _missed(mutants: list[Mutant], reasons: dict[str, str]) -> list[str]:
    lines = ["## What is not caught", "", "| mistake | not caught | why |", "|---|---|---|"]
    missed: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        if not mutant.caught:
            missed[mutant.defect.name].append(mutant)
    for name, members in missed.items():
        places = "<br>".join(f"{mutant.base}: {_escaped(mutant.where)}" for mutant in members)
        lines.append(f"| {_escaped(name)} | {places} | {_escaped(reasons.get(name, ''))} |")
    return [*lines, ""]


def _kinds(mutants: list[Mutant]) -> list[str]:
    lines = ["## The kinds of mistakes"]
    counts: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for mutant in mutants:
        counts[mutant.defect.family, mutant.defect.name][mutant.caught] += 1
    families: dict[str, list[Defect]] = defaultdict(list)
    for defect in DEFECTS:
        families[defect.family].append(defect)
    for family, members in families.items():
        lines += [
            "",
            f"### {family[0].upper()}{family[1:]}",
            "",
            "| mistake | why it is wrong | caught |",
            "|---|---|---|",
        ]
        for defect in members:
            count = counts[family, defect.name]
            share = f"{count[True]} of {count.total()}"
            lines.append(f"| {_escaped(defect.name)} | {_escaped(defect.wrong)} | {share} |")
    return [*lines, ""]


def _percent(part: int, whole: int) -> str:
    return f"{part / whole * 100:.1f} %"


def _escaped(text: str) -> str:
    """Return text for a cell of a table, which it may not end nor format. What stands in backticks stays."""
    parts = text.split("`")
    for letter in "\\|*_<>[]{}":
        parts[::2] = [part.replace(letter, f"\\{letter}") for part in parts[::2]]
    return "`".join(parts).replace("|", "\\|") if "|" in "".join(parts[1::2]) else "`".join(parts)
