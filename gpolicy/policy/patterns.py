"""The patterns of texts in a policy that are no words: sizes, rates, shares, days."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from gpolicy.data import read_data
from gpolicy.ganeti.releases import POINT_RELEASE


@dataclass(frozen=True, slots=True)
class PatternWords:
    """What is said of a text that has a pattern: its type, what a finding expects, an editor's message, an example.

    The pattern of releases follows from those that gpolicy knows.
    """

    type: str
    expected: str
    message: str
    example: str
    pattern: str = POINT_RELEASE


@cache
def pattern_words() -> dict[str, PatternWords]:
    """Return what is said of texts, by their patterns: `templates/patterns.toml`."""
    known = [PatternWords(**words) for words in read_data("patterns.toml").values()]
    return {words.pattern: words for words in known}


INHERIT: Final = "inherit"
"""What a policy writes where an object has no own value."""
TAG_PATTERN: Final = "^[A-Za-z0-9_.+*/:@-]{1,128}$"
