"""The patterns of texts in a policy that are no words: sizes, rates, shares, days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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


PATTERNS: Final = {
    SIZE_PATTERN: PatternWords(
        "size",
        "a size (MiB, or a number with M, G or T)",
        "Not a size: write MiB as a number, or a number with M, G or T (4G).",
        "4G",
    ),
    RATE_PATTERN: PatternWords(
        "rate",
        "a rate (KiB/s, or a number with K, M or G)",
        "Not a rate: write KiB/s as a number, or a number with K, M or G (60M).",
        "60M",
    ),
    UID_PATTERN: PatternWords(
        "range of user IDs",
        'a range like "1000-1010"',
        'Not a range of user IDs: write "1000-1010", or one ID.',
        "1000-1010",
    ),
    PERCENT_PATTERN: PatternWords(
        "percentage", "a share like 5%", "Not a share: write a number and a percent sign (5%).", "5%"
    ),
    SHARE_PATTERN: PatternWords(
        "percentage below 100%",
        "a share below 100%, like 5%",
        "Not a share below 100%: write a number and a percent sign (5%).",
        "2%",
    ),
    DAY_PATTERN: PatternWords(
        "day (YYYY-MM-DD)", 'a day like "2026-12-31"', "Not a day: write YYYY-MM-DD.", "2027-12-31"
    ),
    POINT_RELEASE: PatternWords(
        "release", 'a release like "3.1.1"', 'Not a release that gpolicy knows: write "3.1", or "3.1.1".', "3.1.1"
    ),
}
INHERIT: Final = "inherit"
"""What a policy writes where an object has no own value."""
TAG_PATTERN: Final = "^[A-Za-z0-9_.+*/:@-]{1,128}$"
