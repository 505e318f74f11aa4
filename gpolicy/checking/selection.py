"""Words that name rules: a code, a name, or a prefix of codes for a family (GP2, GP20)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE, DRIFT, find_rule
from gpolicy.checking.settings import reason_to_keep
from gpolicy.findings import RuleInfo, Severity

_ALL: Final = "GP"
_FAMILY: Final = re.compile(r"GP[0-9]{0,2}", re.IGNORECASE)


def rules_named(word: str, *, guess: bool = True) -> tuple[tuple[RuleInfo, ...], str]:
    """Return the rules that a word names, in order; or none and a hint, with a `guess` at what may have been meant."""
    wanted = word.strip()
    if _FAMILY.fullmatch(wanted):
        family = tuple(info for info in CATALOGUE if info.code.startswith(wanted.upper()))
        return family, "" if family else "`gpolicy explain` lists all rules"
    info, hint = find_rule(wanted, guess=guess)
    return ((info,) if info else ()), hint


def is_family(word: str) -> bool:
    """Return whether a word names a family by a prefix of its codes."""
    return _FAMILY.fullmatch(word.strip()) is not None


def ignored_codes(select: Iterable[str] | None, ignore: Iterable[str]) -> frozenset[str]:
    """Return the codes of the rules that do not count.

    The most precise word about a rule decides, `ignore` where both are as precise: with select GP2 and ignore GP20 and
    select spec-overlap, of the GP20x only spec-overlap counts. No `select` selects all. What can be no less than an
    error always counts, and so does drift unless it is ignored: to select what check looks for hides none. The words
    are known ones.
    """
    selected = {DRIFT.code: len(_ALL), **_precision((_ALL,) if select is None else select)}
    ignored = _precision(ignore)
    return frozenset(
        info.code
        for info in CATALOGUE
        if not reason_to_keep(info) and (info.code not in selected or ignored.get(info.code, 0) >= selected[info.code])
    )


def selects_nothing(select: Iterable[str], ignore: Iterable[str]) -> bool:
    """Return whether no selected rule counts, which is a mistake."""
    select = list(select)
    return _precision(select).keys() <= ignored_codes(select, ignore)


def severities_by_code(words: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return severity by code; the most precise word about a rule decides, then the last.

    Of a family, what can be no less than an error stays one.
    """
    result: dict[str, Severity] = {}
    for word in sorted(words, key=lambda word: len(word.strip()) if is_family(word) else 5):
        for info in rules_named(word)[0]:
            if words[word] is Severity.ERROR or not reason_to_keep(info):
                result[info.code] = words[word]
    return result


def _precision(words: Iterable[str]) -> dict[str, int]:
    """Return how precisely the words name each rule: the number of letters of a family, or 5 for one rule."""
    result: dict[str, int] = {}
    for word in words:
        precision = len(word.strip()) if is_family(word) else 5
        for info in rules_named(word)[0]:
            result[info.code] = max(precision, result.get(info.code, 0))
    return result
