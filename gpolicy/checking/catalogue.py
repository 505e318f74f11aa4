"""All rules: each `Rule` in a module below `gpolicy.rules`; what there is to know of each; and the words
that name them: a code, a name, or a prefix of codes for a family (GP2, GP20).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

from gpolicy.checking import accepting, baseline, settings
from gpolicy.checking.rule import Rule, When
from gpolicy.findings import HOUSE, HOUSE_CODE, Finding, Role, RuleInfo, Severity
from gpolicy.guessing import did_you_mean
from gpolicy.policy import source_file
from gpolicy.policy.model import RULE_NAME

_HOME: Final = "gpolicy.rules"
EVERY_RULE: Final = "GP"
ALL: Final = "ALL"
"""The word for every rule, those included that are off otherwise."""
_FAMILY: Final = re.compile(r"GP[0-9]{0,2}|ALL", re.IGNORECASE)
_HOUSE_RULE: Final = re.compile(f"{HOUSE}{RULE_NAME[1:-1]}")
_LIKE_A_CODE: Final = re.compile(r"gp[0-9oil]+")
_DIGITS: Final = str.maketrans("oil", "011")


def rules_in(modules: Iterable[object]) -> tuple[Rule, ...]:
    """Return the rules of modules, by code."""
    rules = {id(item): item for module in modules for item in vars(module).values() if isinstance(item, Rule)}
    return tuple(sorted(rules.values(), key=lambda rule: rule.info.code))


_ALL: Final = rules_in(import_module(found.name) for found in walk_packages(import_module(_HOME).__path__, f"{_HOME}."))
RULES: Final = tuple(rule for rule in _ALL if When.FLEET not in rule.when)
"""The rules about one policy, in the order of their codes."""

FLEET_RULES: Final = tuple(rule for rule in _ALL if When.FLEET in rule.when)
"""The rules about several policies together, in the order of their codes."""


def catalogue(infos: Iterable[RuleInfo]) -> tuple[RuleInfo, ...]:
    """Return the infos of rules in the order of their codes. ValueError where two share a code or a name."""
    by_word: dict[str, RuleInfo] = {}
    for info in infos:
        for word in (info.code, info.name):
            if by_word.setdefault(word, info) is not info:
                raise ValueError(f"two rules are called {word}: {by_word[word].name} and {info.name}")
    return tuple(sorted({id(info): info for info in by_word.values()}.values(), key=lambda info: info.code))


_ENGINE: Final = (source_file, accepting, baseline, settings)  # which finds mistakes itself
_OF_ENGINE: Final = [item for module in _ENGINE for item in vars(module).values() if isinstance(item, RuleInfo)]
CATALOGUE: Final = catalogue((*(rule.info for rule in _ALL), *_OF_ENGINE))
"""All rules in the order of their codes."""

_BITS: Final = [(info.code, info.role.value) for info in CATALOGUE]  # numbers: this is done at each start
CODES: Final = {role: frozenset(code for code, bits in _BITS if bit & bits) for role in Role for bit in [role.value]}
"""The codes of the rules that have a role."""
_BY_WORD: Final = {word.lower(): info for info in CATALOGUE for word in (info.code, info.name)}


def find_rule(
    word: str, *, guess: bool = True, house_rules: Collection[str] | None = None
) -> tuple[RuleInfo | None, str]:
    """Return the rule with this code or name (in any case), or None and a hint about what may have been meant.

    Without `guess` the word is compared with no other: for who asks for thousands. `house_rules` are those that there
    are (house/NAME); without them every house/NAME may be a house rule of some policy.
    """
    wanted = word.strip().lower()[:100]
    if wanted in _BY_WORD:
        return _BY_WORD[wanted], ""
    if _HOUSE_RULE.fullmatch(wanted):
        if house_rules is None or wanted in house_rules:
            return replace(_BY_WORD[HOUSE_CODE.lower()], name=wanted), ""
        otherwise = "the policy and what it extends have no Rule of this name"
        return None, did_you_mean(wanted, house_rules if guess else (), otherwise)
    if f"{HOUSE}{wanted}" in (house_rules or ()):
        return None, f"Did you mean `{HOUSE}{wanted}`?"
    if _LIKE_A_CODE.fullmatch(wanted):
        return None, _code_hint(wanted)
    words = [word for info in CATALOGUE for word in (info.code, info.name)] if guess else []
    return None, did_you_mean(wanted, words, "`gpolicy explain` lists all rules")


def house_rules_of(findings: Iterable[Finding]) -> tuple[RuleInfo, ...]:
    """Return the house rules that findings are of, each with what there is to know without its document."""
    shared = _BY_WORD[HOUSE_CODE.lower()]
    found = {finding.name: finding for finding in findings if finding.code == HOUSE_CODE}
    return tuple(replace(shared, name=name, severity=found[name].severity) for name in sorted(found))


def _code_hint(word: str) -> str:
    """Return what may have been meant by a word that looks like a code: the letters O, I and l are digits first."""
    code = f"GP{word[2:].translate(_DIGITS)}"
    if code.lower() in _BY_WORD:
        return f"Did you mean `{code}`?"
    if len(code) < len(HOUSE_CODE) and any(info.code.startswith(code) for info in CATALOGUE):
        return f"{code} is a family of rules: `gpolicy explain {code}` lists them"
    near = [info.code for info in CATALOGUE if info.code[:4] == code[:4]]
    if near:
        best = min(near, key=lambda known: (not code.startswith(known), abs(int(known[2:]) - int(code[2:]))))
        return f"Did you mean `{best}`?"
    family = code[:3]
    is_known = any(info.code.startswith(family) for info in CATALOGUE)
    return f"`gpolicy explain {family}` lists its family" if is_known else "`gpolicy explain` lists all rules"


def rules_named(
    word: str, *, guess: bool = True, house_rules: Collection[str] | None = None
) -> tuple[tuple[RuleInfo, ...], str]:
    """Return the rules that a word names, in order; or none and a hint (see `find_rule`)."""
    wanted = word.strip()
    family = tuple(info for info in CATALOGUE if info.code.startswith(family_of(word))) if is_family(word) else ()
    if family or (is_family(word) and f"{HOUSE}{wanted.lower()}" not in (house_rules or ())):
        return family, "" if family else "`gpolicy explain` lists all rules"
    info, hint = find_rule(wanted, guess=guess, house_rules=house_rules)
    return ((info,) if info else ()), hint


def family_of(word: str) -> str:
    """Return the beginning of the codes of a family that a word names."""
    wanted = word.strip().upper()
    return EVERY_RULE if wanted == ALL else wanted


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
    selected = {accepting.DRIFT.code: len(EVERY_RULE), **_precision((EVERY_RULE,) if select is None else select)}
    ignored = _precision(ignore)
    keys = [info.key for info in CATALOGUE if not info.stays]
    keys += [key for key in {**selected, **ignored} if key.startswith(HOUSE)]

    def is_ignored(key: str) -> bool:
        shared = HOUSE_CODE if key.startswith(HOUSE) else key  # a house rule follows what is said of all
        return ignored.get(key, ignored.get(shared, 0)) >= selected.get(key, selected.get(shared, 0))

    return frozenset(key for key in keys if is_ignored(key))


def asked_codes(words: Iterable[str]) -> frozenset[str]:
    """Return the codes of the rules that words name one by one, or with ALL."""
    named = (word for word in words if not is_family(word) or word.strip().upper() == ALL)
    return frozenset(info.code for word in named for info in rules_named(word)[0])


def house_rules_kept(select: Iterable[str] | None, ignored: frozenset[str]) -> frozenset[str]:
    """Return the house rules that are selected by name, and so count even where all the others do not."""
    return frozenset(key for key in _precision(select or ()) if key.startswith(HOUSE) and key not in ignored)


def selects_nothing(select: Iterable[str], ignore: Iterable[str]) -> bool:
    """Return whether no selected rule counts, which is a mistake."""
    select = list(select)
    return _precision(select).keys() <= ignored_codes(select, ignore)


def severities_by_code(words: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return severity by a rule's key: the most precise word decides, then the last; what stays an error stays."""
    said = ((info, words[word]) for word in sorted(words, key=_precision_of) for info in rules_named(word)[0])
    return {info.key: severity for info, severity in said if severity is Severity.ERROR or not info.stays}


def _precision(words: Iterable[str]) -> dict[str, int]:
    in_order = sorted(words, key=_precision_of)  # of several words the most precise counts
    return {info.key: _precision_of(word) for word in in_order for info in rules_named(word)[0]}


def _precision_of(word: str) -> int:
    """Return how precise a word is: the number of letters of a family, 5 for one rule, 6 for one house rule."""
    if is_family(word):
        return len(family_of(word))
    return 6 if word.strip().lower().startswith(HOUSE) else 5
