"""All rules: each class with an `info` in a module below `gpolicy.rules`; and what there is to know of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Final

from gpolicy.checking import baseline, idle_globs, suppressing, waiving
from gpolicy.checking.fleet import FleetRule
from gpolicy.checking.rule import Rule
from gpolicy.findings import HOUSE, HOUSE_CODE, Finding, RuleInfo, warning_rule
from gpolicy.guessing import did_you_mean
from gpolicy.policy import structure
from gpolicy.policy.schema_rules import RULE_NAME

_HOME: Final = "gpolicy.rules"
DRIFT: Final = warning_rule("GP821", "drift")(
    summary="The cluster differs from what the policy declares. `gpolicy drift` finds it.",
    rationale="Somebody changed a value by hand. The next apply reverts it, or the policy should have it. A waiver"
    " accepts it for a time: its `where` is an object (group/gold) or one value (group/gold:ipolicy.vcpu-ratio), and"
    " may hold globs.",
)
"""No check finds it, `gpolicy drift` does. It stands among the rules so that a waiver can name it."""
FAMILIES: Final = {
    "GP0": "Structure: reading the files, YAML and schemas",
    "GP1": "Parameters",
    "GP2": "Specs",
    "GP3": "Disk templates",
    "GP4": "Exclusive storage",
    "GP5": "Tags",
    "GP6": "Groups, nodes and node sets",
    "GP7": "Policy against cluster",
    "GP8": "Guards, tests, drift and fleets",
    "GP9": "Waivers, suppressions, the baseline and house rules",
}
"""What the rules of a range of codes are about."""
_HOUSE_RULE: Final = re.compile(f"{HOUSE}{RULE_NAME[1:-1]}")
_LIKE_A_CODE: Final = re.compile(r"gp[0-9oil]+")
_DIGITS: Final = str.maketrans("oil", "011")


def _modules() -> Iterator[ModuleType]:
    home = import_module(_HOME)
    for found in walk_packages(home.__path__, f"{_HOME}."):
        yield import_module(found.name)


def rules_in(modules: Iterator[ModuleType]) -> tuple[Rule | FleetRule, ...]:
    """Return one of each class with an `info` of its own that is defined in one of `modules`, by code."""
    classes = (
        item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__ and issubclass(item, (Rule, FleetRule))
    )
    rules = (kind() for kind in classes if "info" in vars(kind))
    return tuple(sorted(rules, key=lambda rule: rule.info.code))


_ALL: Final = rules_in(_modules())
RULES: Final = tuple(rule for rule in _ALL if isinstance(rule, Rule))
"""The rules about one policy, in the order of their codes."""

FLEET_RULES: Final = tuple(rule for rule in _ALL if isinstance(rule, FleetRule))
"""The rules about several policies together, in the order of their codes."""


def catalogue(infos: Iterable[RuleInfo]) -> tuple[RuleInfo, ...]:
    """Return the infos of rules in the order of their codes. ValueError where two share a code or a name."""
    by_word: dict[str, RuleInfo] = {}
    for info in infos:
        for word in (info.code, info.name):
            if by_word.setdefault(word, info) is not info:
                raise ValueError(f"two rules are called {word}: {by_word[word].name} and {info.name}")
    return tuple(sorted({id(info): info for info in by_word.values()}.values(), key=lambda info: info.code))


CATALOGUE: Final = catalogue(
    (
        DRIFT,
        *(rule.info for rule in RULES),
        *(rule.info for rule in FLEET_RULES),
        *(
            item
            for module in (structure, waiving, suppressing, baseline, idle_globs)  # the engine itself finds these
            for item in vars(module).values()
            if isinstance(item, RuleInfo)
        ),
    )
)
"""All rules in the order of their codes."""
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
    return tuple(
        replace(shared, name=name, severity=found[name].severity, summary=f"A house rule: {name}.", bad="", good="")
        for name in sorted(found)
    )


def _code_hint(word: str) -> str:
    """Return what may have been meant by a word that looks like a code: the letters O, I and l are digits first."""
    code = f"GP{word[2:].translate(_DIGITS)}"
    if code.lower() in _BY_WORD:
        return f"Did you mean `{code}`?"
    if len(code) < len("GP201") and any(info.code.startswith(code) for info in CATALOGUE):
        return f"{code} is a family of rules: `gpolicy explain {code}` lists them"
    near = [info.code for info in CATALOGUE if info.code[:4] == code[:4]]
    if near:
        best = min(near, key=lambda known: (not code.startswith(known), abs(int(known[2:]) - int(code[2:]))))
        return f"Did you mean `{best}`?"
    family = code[:3]
    return f"`gpolicy explain {family}` lists its family" if family in FAMILIES else "`gpolicy explain` lists all rules"
