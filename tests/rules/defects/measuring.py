"""How good the rules are: the share of mistakes that they catch (recall), and of sane policies that they accept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpolicy.checking.consequences import one_for_each_missing
from gpolicy.findings import Finding, Severity
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.files import policy_roots
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.case_files import cases
from tests.rules.defects import (  # noqa: F401 (each registers its defects)
    group_defects,
    guard_defects,
    hardware_defects,
    hypervisor_defects,
    judgement_defects,
    key_defects,
    number_defects,
    parameter_defects,
    spec_defects,
    tag_defects,
    template_defects,
    text_defects,
    together_defects,
    unit_defects,
    value_defects,
)
from tests.rules.defects.bases import good_policies
from tests.rules.defects.seeding import DEFECTS, MOST_SEEDS, Base, Defect, chosen
from tests.rules.hints import healed
from tests.rules.run_rules import TODAY, check


@dataclass(frozen=True, slots=True)
class Mutant:
    """A good policy with one mistake, and the new findings (errors and warnings) about it."""

    defect: Defect
    base: str
    where: str
    found: tuple[Finding, ...]

    @property
    def caught(self) -> bool:
        return bool(self.found)

    @property
    def alone(self) -> bool:
        """Return whether exactly one finding tells of the mistake."""
        return len(self.found) == 1


@dataclass(frozen=True, slots=True)
class Figures:
    """What the rules find of the mistakes, and what they say of each sane policy (errors and warnings)."""

    mutants: list[Mutant]
    alarms: dict[str, list[Finding]]

    @property
    def recall(self) -> float:
        return sum(mutant.caught for mutant in self.mutants) / len(self.mutants)

    @property
    def precision(self) -> float:
        """Return the share of sane policies of which nothing is said."""
        return sum(not said for said in self.alarms.values()) / len(self.alarms)


def measure(directory: Path, most: int = MOST_SEEDS) -> Figures:
    """Return the figures, with at most `most` mutants of a kind of mistake."""
    for name in ("mutants", "sane"):
        (directory / name).mkdir()
    return Figures(mutants(directory / "mutants", most), alarms(directory / "sane"))


def alarms(directory: Path) -> dict[str, list[Finding]]:
    """Return the errors and warnings about each sane policy, by its name: there should be none."""
    return {case.name: _serious_of(case.text, directory) for case in cases("sane")}


def mutants(directory: Path, most: int = MOST_SEEDS) -> list[Mutant]:
    """Make and check all mutants in `directory`, at most `most` of a kind.

    Changes without a new meaning do not count.
    """
    bases = good_policies()
    result: list[Mutant] = []
    for base in bases:
        _write(directory / base.name, base.texts)
    before = {base.name: {_key(finding) for finding in _serious(directory / base.name)} for base in bases}
    for kind in DEFECTS:
        for base, seed in chosen(kind, bases, most):
            changed = seed.files()
            if all(base.texts[file] == text for file, text in changed.items()):
                continue
            home = directory / base.name
            _write(home, changed)
            new = tuple(finding for finding in _serious(home) if _key(finding) not in before[base.name])
            result.append(Mutant(kind, base.name, seed.where, new))
            _write(home, {file: base.texts[file] for file in changed})
    return result


def cures(directory: Path, most: int = MOST_SEEDS) -> Iterator[tuple[str, bool]]:
    """Do what the first finding of each mutant says; yield the order, and whether it heals and brings nothing new."""
    bases = good_policies()
    for base in bases:
        _write(directory / base.name, base.texts)
    before = {base.name: {_key(finding) for finding in _serious(directory / base.name)} for base in bases}
    for kind in DEFECTS:
        for base, seed in chosen(kind, bases, most):
            home, changed = directory / base.name, seed.files()
            _write(home, changed)
            found = [finding for finding in _serious(home) if _key(finding) not in before[base.name]]
            told = {item.code for finding in found for item in (finding, *finding.consequences)}
            first = next((finding for finding in found if finding.span is not None), None)
            file = str(Path(first.span.file).resolve().relative_to(home.resolve())) if first and first.span else ""
            text = {**base.texts, **changed}.get(file, "")
            for order, mended in healed(text, first) if first is not None else ():
                _write(home, {file: mended})
                after = [finding for finding in _serious(home) if _key(finding) not in before[base.name]]
                left = [item for item in after if first and _key(item) == _key(first)]
                yield f"{first.code if first else ''} {order}", not left and all(item.code in told for item in after)
                _write(home, {file: text})
            _write(home, {name: base.texts[name] for name in changed if name in base.texts})


def sound(base: Base, directory: Path) -> list[Finding]:
    """Return the errors and warnings about a good policy as it is: there should be none."""
    _write(directory, base.texts)
    return _serious(directory)


def _key(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.message


def _serious(directory: Path) -> list[Finding]:
    """Return the findings of `gpolicy check DIRECTORY`, without infos."""
    findings = one_for_each_missing(
        *(find_mistakes(load_policy(root), today=TODAY, forecast=FORECAST) for root in policy_roots(directory))
    )
    return [finding for finding in findings if finding.severity is not Severity.INFO]


def _serious_of(text: str, directory: Path) -> list[Finding]:
    """Return the findings about a policy of one file, without infos."""
    return [finding for finding in check(text, directory) if finding.severity is not Severity.INFO]


def _write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
