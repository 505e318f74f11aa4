"""Words that name rules: a code, a name, or a prefix of codes for a family (GP2, GP20)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE, DRIFT, find_rule
from gpolicy.findings import HOUSE, HOUSE_CODE, RuleInfo, Severity

EVERY_RULE: Final = "GP"
_FAMILY: Final = re.compile(r"GP[0-9]{0,2}", re.IGNORECASE)


def rules_named(
    word: str, *, guess: bool = True, house_rules: Collection[str] | None = None
) -> tuple[tuple[RuleInfo, ...], str]:
    """Return the rules that a word names, in order; or none and a hint (see `find_rule`)."""
    wanted = word.strip()
    family = tuple(info for info in CATALOGUE if info.code.startswith(wanted.upper())) if is_family(word) else ()
    if family or (is_family(word) and f"{HOUSE}{wanted.lower()}" not in (house_rules or ())):
        return family, "" if family else "`gpolicy explain` lists all rules"
    info, hint = find_rule(wanted, guess=guess, house_rules=house_rules)
    return ((info,) if info else ()), hint


def is_family(word: str) -> bool:
    """Return whether a word names a family by a prefix of its codes."""
    return _FAMILY.fullmatch(word.strip()) is not None


def ignored_codes(select: Iterable[str] | None, ignore: Iterable[str]) -> frozenset[str]:
    """Return the keys (codes, names of house rules) of the rules that do not count.

    The most precise word about a rule decides, `ignore` where both are as precise: with select GP2 and ignore GP20 and
    select spec-overlap, of the GP20x only spec-overlap counts. No `select` selects all. What can be no less than an
    error always counts, and so does drift unless it is ignored: to select what check looks for hides none. The words
    are known ones.
    """
    selected = {DRIFT.code: len(EVERY_RULE), **_precision((EVERY_RULE,) if select is None else select)}
    ignored = _precision(ignore)
    keys = [info.key for info in CATALOGUE if not info.stays]
    keys += [key for key in {**selected, **ignored} if key.startswith(HOUSE)]

    def is_ignored(key: str) -> bool:
        shared = HOUSE_CODE if key.startswith(HOUSE) else key  # a house rule follows what is said of all
        chosen = selected.get(key, selected.get(shared, 0))
        return ignored.get(key, ignored.get(shared, 0)) >= chosen

    return frozenset(key for key in keys if is_ignored(key))


def house_rules_kept(select: Iterable[str] | None, ignored: frozenset[str]) -> frozenset[str]:
    """Return the house rules that are selected by name, and so count even where all the others do not."""
    return frozenset(key for key in _precision(select or ()) if key.startswith(HOUSE) and key not in ignored)


def selects_nothing(select: Iterable[str], ignore: Iterable[str]) -> bool:
    """Return whether no selected rule counts, which is a mistake."""
    select = list(select)
    return _precision(select).keys() <= ignored_codes(select, ignore)


def severities_by_code(words: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return severity by a rule's key; the most precise word about a rule decides, then the last.

    Of a family, what can be no less than an error stays one.
    """
    result: dict[str, Severity] = {}
    for word in sorted(words, key=_precision_of):
        for info in rules_named(word)[0]:
            if words[word] is Severity.ERROR or not info.stays:
                result[info.key] = words[word]
    return result


def _precision(words: Iterable[str]) -> dict[str, int]:
    """Return how precisely the words name each rule."""
    result: dict[str, int] = {}
    for word in words:
        for info in rules_named(word)[0]:
            result[info.key] = max(_precision_of(word), result.get(info.key, 0))
    return result


def _precision_of(word: str) -> int:
    """Return how precise a word is: the number of letters of a family, 5 for one rule, 6 for one house rule."""
    if is_family(word):
        return len(word.strip())
    return 6 if word.strip().lower().startswith(HOUSE) else 5
