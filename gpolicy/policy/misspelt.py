"""Which word was surely meant by an unknown one: so near to one known word, and to no other, that a fix is safe."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

MOST_GUESSES: Final = 100
"""Unknown words of one sort that are compared with all known ones: who wrote more has not slipped."""

MOST_KNOWN: Final = 1000
"""Words that an unknown one is compared with: of more, some are alike by chance."""

_LEAST_LETTERS: Final = 4  # of shorter words too many are neighbours


def surely_meant(word: str, known: Iterable[str]) -> str | None:
    """Return the one known word that `word` is a slip away from; None where there is none, or more than one is near.

    A slip: another case, an underscore for a hyphen, or one letter left out, too many, wrong, or two letters swapped.
    """
    words = set(known)
    alike = {item for item in words if _plain(item) == _plain(word)}
    if alike:
        return alike.pop() if len(alike) == 1 else None
    if len(word) < _LEAST_LETTERS or len(word) > 100:
        return None
    near = [item for item in words if abs(len(item) - len(word)) <= 2 and _distance(_plain(word), _plain(item)) <= 2]
    return near[0] if len(near) == 1 and _distance(_plain(word), _plain(near[0])) == 1 else None


class Guesses:
    """Guesses at what unknown words may have meant, at the first MOST_GUESSES of them."""

    def __init__(self) -> None:
        self._left = MOST_GUESSES

    def __call__(self, word: str, known: Collection[str], *, cutoff: float) -> str | None:
        """Return the known word that is most like `word`, to the degree of `cutoff` (0 to 1); None if none is."""
        if not self._left or len(known) > MOST_KNOWN:
            return None
        self._left -= 1
        return next(iter(get_close_matches(word, sorted(known), n=1, cutoff=cutoff)), None)


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def _distance(one: str, other: str) -> int:
    """Return how many slips lie between two words (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, previous, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, previous[j - 2] + 1)
            row.append(cost)
    return row[-1]
