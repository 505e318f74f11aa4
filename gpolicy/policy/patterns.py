"""The patterns of texts in a policy that are no words: sizes, rates, shares, days."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from gpolicy.data import read_data
from gpolicy.ganeti.releases import POINT_RELEASE

SIZE_PATTERN: Final = r"^ *([0-9]+(\.[0-9]*)?|\.[0-9]+) *([mMgGtT]([iI]?[bB])?)? *$"
RATE_PATTERN: Final = r"^ *([0-9]+(\.[0-9]*)?|\.[0-9]+) *([kKmMgG]([iI]?[bB])?)? *$"
UID_PATTERN: Final = "^[0-9]{1,10}(-[0-9]{1,10})?$"
PERCENT_PATTERN: Final = r"^[0-9]+(\.[0-9]+)? *%$"
SHARE_PATTERN: Final = r"^[0-9]{1,2}(\.[0-9]{1,6})? *%$"
"""A percentage below 100."""
DAY_PATTERN: Final = "^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4})$"
"""A day; of one as 31.12.2026 GP905 says more."""


@dataclass(frozen=True, slots=True)
class PatternWords:
    """What is said of a text that has a pattern: its type, what a finding expects, an editor's message, an example."""

    type: str
    expected: str
    message: str
    example: str


@cache
def pattern_words() -> dict[str, PatternWords]:
    """Return what is said of texts, by their patterns: `templates/patterns.toml`."""
    patterns = {
        "size": SIZE_PATTERN,
        "rate": RATE_PATTERN,
        "user IDs": UID_PATTERN,
        "percentage": PERCENT_PATTERN,
        "share": SHARE_PATTERN,
        "day": DAY_PATTERN,
        "release": POINT_RELEASE,
    }
    return {patterns[name]: PatternWords(**words) for name, words in read_data("patterns.toml").items()}


INHERIT: Final = "inherit"
"""What a policy writes where an object has no own value."""
TAG_PATTERN: Final = "^[A-Za-z0-9_.+*/:@-]{1,128}$"
