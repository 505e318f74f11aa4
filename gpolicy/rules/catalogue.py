"""What there is to know of every rule, by code or name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from gpolicy.findings import RuleInfo
from gpolicy.policy.structure import STRUCTURE_RULES
from gpolicy.rules.baseline import BASELINE_STALE
from gpolicy.rules.drift_rule import DRIFT
from gpolicy.rules.fleet import FLEET_RULES
from gpolicy.rules.registry import RULES
from gpolicy.rules.suppressing import SUPPRESSION_RULES
from gpolicy.rules.waiving import WAIVER_RULES

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


def find_rule(word: str) -> tuple[RuleInfo | None, str]:
    """Return the rule with this code or name (in any case), or None and a hint about what may have been meant."""
    wanted = word.strip().lower()[:100]
    if wanted in _BY_WORD:
        return _BY_WORD[wanted], ""
    close = get_close_matches(wanted, _BY_WORD, n=1, cutoff=0.6)
    if not close:
        return None, "`gpolicy explain` lists all rules"
    meant = _BY_WORD[close[0]]
    return None, f"did you mean {meant.name if close[0] == meant.name else meant.code}?"
