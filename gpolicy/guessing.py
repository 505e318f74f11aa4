"""What may have been meant by a word that nobody knows: one answer for every name that a user writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from gpolicy.printable import some

MOST_KNOWN: Final = 1500
"""The greatest number of known words for a comparison: among more, some are similar by chance."""

CUTOFF: Final = 0.6
_LONGEST: Final = 100
_MOST_LISTED: Final = 20


def closest(word: str, known: Collection[str], cutoff: float = CUTOFF) -> str | None:
    """Return the known word most similar to `word`, at least by `cutoff` (0 to 1); None if there is none.

    Case does not count, and `_` is like `-`. The first part of a full name (node1 of node1.example.org) stands for it,
    if only one has it.
    """
    if len(known) > MOST_KNOWN:
        return None
    parts = Counter(_first_part(item) for item in known)
    plain = {_first_part(item): item for item in known if parts[_first_part(item)] == 1}
    plain |= {_plain(item): item for item in sorted(known, reverse=True)}
    wanted = _plain(word[:_LONGEST])
    if wanted in plain:
        return plain[wanted]
    from difflib import get_close_matches  # noqa: PLC0415 (for errors only)

    near = get_close_matches(wanted, sorted(plain), cutoff=cutoff)
    near.sort(key=lambda item: not item.startswith(wanted))  # a short form is more likely than a slip
    return plain[near[0]] if near else None


def did_you_mean(word: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the hint that names the closest known word; `otherwise` if no word is close."""
    near = closest(word, known)
    return otherwise if near is None else f"Did you mean `{near}`?"


def did_you_mean_one_of(word: str, what: str, known: Collection[str]) -> str:
    """Return such a hint for a name; if no known name is close, the first of them: `the groups are gold, silver`.

    A tuple is in an order that means something; all else is sorted.
    """
    names = list(known) if isinstance(known, tuple) else sorted(known)
    if not names:
        return f"there are no {what}"
    return did_you_mean(word, known, f"the {what} are {some(names, _MOST_LISTED)}")


def _first_part(name: str) -> str:
    return _plain(name.partition(".")[0] if name.count(".") > 1 else name)


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")
