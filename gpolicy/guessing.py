"""What may have been meant by a word that nobody knows: one answer for every name that a user writes.

A correction is safe if the word is close to exactly one known word.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from gpolicy.printable import some

MOST_KNOWN: Final = 1500
"""The greatest number of known words for a comparison: among more, some are similar by chance."""

CUTOFF: Final = 0.6
_LONGEST_WORD: Final = 100
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
    wanted = _plain(word[:_LONGEST_WORD])
    if wanted in plain:
        return plain[wanted]
    from difflib import get_close_matches  # noqa: PLC0415 (for errors only)

    near = [item for item in get_close_matches(wanted, sorted(plain), cutoff=cutoff) if _may_be_meant(wanted, item)]
    near.sort(key=lambda item: not item.startswith(wanted))  # a short form is more likely than a slip
    return plain[near[0]] if near else None


def _may_be_meant(word: str, known: str) -> bool:
    """Return whether a word is another's beginning, its plural, or a slip or two away from it: shared is not spare.

    A longer word has parts, one of which may be missing or wrong.
    """
    slips = 1 if len(word) < 8 and word[:2] != known[:2] else max(2, len(word) // 4)
    is_plural = word == f"{known.removesuffix('f')}ves"  # halves
    return known.startswith(word) or word.startswith(known) or is_plural or _distance(word, known) <= slips


def did_you_mean(word: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the hint that names the closest known word; `otherwise` if no word is close."""
    near = closest(word, known)
    return otherwise if near is None else f"Did you mean `{near}`?"


def did_you_mean_one_of(word: str, what: str, known: Collection[str]) -> str:
    """Return such a hint for a name; if no known name is close, the first of them: `the groups are gold, silver`.

    Of node-1 and node-2 none is meant by node-4. A tuple is in an order that means something; all else is sorted.
    """
    names = list(known) if isinstance(known, tuple) else sorted(known)
    if not names:
        return f"there are no {what}"
    near, words = closest(word, known), _split(word)[0]
    slips = sorted(_distance(word[:_LONGEST_WORD], item) for item in names if near and _split(item)[0] == words)
    is_even = slips[1:] != [] and slips[0] == slips[1]
    return f"Did you mean `{near}`?" if near and not is_even else f"the {what} are {some(names, _MOST_LISTED)}"


def _first_part(name: str) -> str:
    return _plain(name.partition(".")[0] if name.count(".") > 1 else name)


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")


MOST_GUESSES: Final = 100
"""The greatest number of unknown words that are compared: more are not misspellings."""

MOST_ALIKE: Final = 60
"""The greatest number of names that are compared with one another."""

_LEAST_LETTERS: Final = 4  # shorter words have too many neighbours


def surely_meant(word: str, known: Iterable[str]) -> str | None:
    """Return the only known word within one slip of `word`; None if there is none or more than one.

    A slip is another case, an underscore for a hyphen, a missing, additional or wrong letter, or two swapped letters.
    """
    words = set(known)
    alike = {item for item in words if _plain(item) == _plain(word)}
    if alike:
        return alike.pop() if len(alike) == 1 else None
    if len(word) < _LEAST_LETTERS or len(word) > 100:
        return None
    near = [item for item in words if abs(len(item) - len(word)) <= 2 and _distance(_plain(word), _plain(item)) <= 2]
    return near[0] if len(near) == 1 and _distance(_plain(word), _plain(near[0])) == 1 else None


def is_one_slip(word: str, known: str) -> bool:
    """Return whether a word, short ones too, is another case of a known one, or one slip away from it."""
    return word != known and len(word) <= 100 and _distance(_plain(word), _plain(known)) <= 1


def is_typing_slip(word: str, known: str) -> bool:
    """Return whether letters of a known word are exchanged, missing or twice; another letter makes another word."""
    return is_one_slip(word, known) and (len(word) != len(known) or sorted(word) == sorted(known))


def name_meant(name: str, known: Iterable[str]) -> str | None:
    """Return the only known name within one slip of `name`; None if there is none or more than one.

    Names that differ in numbers or single letters only (rack1 and rack2, gold and gold-b) are two names, not one
    misspelt.
    """
    words, marks = _split(name)
    others = {other: _split(other) for other in known if other != name}
    return surely_meant(
        name, [other for other, (own, own_marks) in others.items() if own != words or own_marks == marks]
    )


LETTERS: Final = re.compile(r"[^\d.*?\[]*+")


def node_meant(entry: str, name: str) -> str:
    """Return a name or pattern of nodes with the letters and the domain of a node that it is almost about; or nothing.

    Its own may have another domain, or a hyphen or zeros more or less behind the letters.
    """
    begin, letters = (found[0] if (found := LETTERS.match(item)) else "" for item in (entry, name))
    host, domain = entry.partition(".")[0], name.partition(".")[2]
    numbers = host[len(begin) :].lstrip("0") if "[" in host else host[len(begin) :]
    right = f"{letters}{numbers}{'.' if domain else ''}{domain}"
    return right if begin and begin.rstrip("-") == letters.rstrip("-") and right != entry else ""


def rarer_slips(uses: Counter[str]) -> dict[str, str]:
    """Return the names that are one slip away from one that is used more often, each with that one.

    None of more than MOST_ALIKE names: those are a series.
    """
    if len(uses) > MOST_ALIKE:
        return {}
    found = {name: name_meant(name, [other for other in uses if uses[other] > uses[name]]) for name in uses}
    return {name: near for name, near in found.items() if near is not None}


_LETTERS_OR_DIGITS: Final = re.compile(r"[^\W\d_]+|\d+")


def _split(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a name, and its numbers and single letters."""
    parts = _LETTERS_OR_DIGITS.findall(name.lower())
    words = [part for part in parts if len(part) > 1 and not part.isdigit()]
    return words, [part for part in parts if len(part) == 1 or part.isdigit()]


class Guesses:
    """Guesses the meaning of unknown words, for the first MOST_GUESSES of them."""

    def __init__(self) -> None:
        self._left = MOST_GUESSES

    def __call__(self, word: str, known: Collection[str], *, cutoff: float) -> str | None:
        """Return the known word most similar to `word`, at least by `cutoff` (0 to 1); None if there is none."""
        if not self._left:
            return None
        self._left -= 1
        return closest(word, known, cutoff)


def _distance(one: str, other: str) -> int:
    """Return the number of slips between two words (optimal string alignment)."""
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
