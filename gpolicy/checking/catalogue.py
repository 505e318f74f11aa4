"""What there is to know of every rule, by code or name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from gpolicy.checking.baseline import BASELINE_STALE
from gpolicy.checking.drift_rule import DRIFT
from gpolicy.checking.registry import RULES
from gpolicy.checking.suppressing import SUPPRESSION_RULES
from gpolicy.checking.waiving import WAIVER_RULES
from gpolicy.findings import RuleInfo
from gpolicy.policy.structure import STRUCTURE_RULES
from gpolicy.rules.fleet.fleet import FLEET_RULES

CATALOGUE: Final[tuple[RuleInfo, ...]] = tuple(
    sorted(
        (
            *STRUCTURE_RULES,
            *(rule.info for rule in RULES),
            DRIFT,
            *FLEET_RULES,
            *WAIVER_RULES,
            *SUPPRESSION_RULES,
            BASELINE_STALE,
        ),
        key=lambda info: info.code,
    )
)
"""All rules in the order of their codes."""

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
    "GP9": "Waivers, suppressions and the baseline",
}
"""What the rules of a range of codes are about."""


_BY_WORD: Final = {word.lower(): info for info in CATALOGUE for word in (info.code, info.name)}


def find_rule(word: str, *, guess: bool = True) -> tuple[RuleInfo | None, str]:
    """Return the rule with this code or name (in any case), or None and a hint about what may have been meant.

    Without `guess` the word is compared with no other: for who asks for thousands.
    """
    wanted = word.strip().lower()[:100]
    if wanted in _BY_WORD:
        return _BY_WORD[wanted], ""
    if _LIKE_A_CODE.fullmatch(wanted):
        return None, _code_hint(wanted)
    close = get_close_matches(wanted, _BY_WORD, n=1, cutoff=0.6) if guess else []
    if not close:
        return None, "`gpolicy explain` lists all rules"
    meant = _BY_WORD[close[0]]
    return None, f"did you mean {meant.name if close[0] == meant.name else meant.code}?"


_LIKE_A_CODE: Final = re.compile(r"gp[0-9oil]+")
_DIGITS: Final = str.maketrans("oil", "011")


def _code_hint(word: str) -> str:
    """Return what may have been meant by a word that looks like a code: the letters O, I and l are digits first."""
    code = f"GP{word[2:].translate(_DIGITS)}"
    if code.lower() in _BY_WORD:
        return f"did you mean {code}?"
    if len(code) < len("GP201") and any(info.code.startswith(code) for info in CATALOGUE):
        return f"{code} is a family of rules: `gpolicy explain {code}` lists them"
    near = [info.code for info in CATALOGUE if info.code[:4] == code[:4]]
    if near:
        best = min(near, key=lambda known: (not code.startswith(known), abs(int(known[2:]) - int(code[2:]))))
        return f"did you mean {best}?"
    family = code[:3]
    return f"`gpolicy explain {family}` lists its family" if family in FAMILIES else "`gpolicy explain` lists all rules"
