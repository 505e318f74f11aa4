"""Regular expressions of strangers: matched letter by letter, so that no pattern takes more than one pass of a text.

Python's `re` tries alternatives one after another, and needs years for some short patterns. Here all states that a
pattern can be in are followed at once (Thompson's construction). What cannot be matched so is refused: back
references, look-around, word boundaries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

LONGEST: Final = 500
"""Characters of a pattern."""
MOST_STATES: Final = 2000
_DEEPEST: Final = 20  # groups in groups
_MOST_KNOWN: Final = 2000  # steps of one pattern that are remembered
_QUANTIFIER: Final = re.compile(r"[*+?]|\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
_CLASS: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])++\]")
_TWICE: Final = re.compile(r"--|&&|~~|\|\||\[")
_ESCAPES: Final = frozenset("dDwWsStnr")

Fits = Callable[[str], object]
Spend = Callable[[int], None]
"""Is told how many steps are taken, and may raise to end the match."""
Build = Callable[[int], int]
"""Makes the states of a part of a pattern before the state that follows it, and returns the first of them."""


class PatternError(ValueError):
    """A pattern is not a regular expression, or one that cannot be matched in one pass."""


class LinearPattern:
    """A compiled pattern. A state has a test of the next letter, or is one of _BEGIN, _END, _SPLIT, _ACCEPT."""

    def __init__(self, text: str) -> None:
        self._fits: list[Fits | int] = []
        self._next: list[tuple[int, ...]] = []
        self._known: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}
        self._accept = self._state(_ACCEPT)
        self._start = _Parser(text, self._state, self._loop).pattern(self._accept)

    def is_in(self, text: str, spend: Spend) -> bool:
        """Return whether a part of `text` matches, as JSON Schema asks; `^` and `$` are the ends of the text."""
        now = self._reached([self._start], begin=True, end=not text)
        last = len(text) - 1
        for place, letter in enumerate(text):
            if self._accept in now:
                return True
            spend(1)
            key = (now, letter, place == last)
            if key not in self._known:
                spend(len(now))
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = self._after(now, letter, end=place == last)
            now = self._known[key]
        return self._accept in now

    def _after(self, states: frozenset[int], letter: str, *, end: bool) -> frozenset[int]:
        steps = [self._start]  # a match may begin at each letter
        for state in states:
            fits = self._fits[state]
            if not isinstance(fits, int) and fits(letter):
                steps += self._next[state]
        return self._reached(steps, begin=False, end=end)

    def _reached(self, states: Iterable[int], *, begin: bool, end: bool) -> frozenset[int]:
        """Return the states with all that follow from them without a letter."""
        found = set[int]()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state in found:
                continue
            found.add(state)
            kind = self._fits[state]
            if kind == _SPLIT or (kind == _BEGIN and begin) or (kind == _END and end):
                todo += self._next[state]
        return frozenset(found)

    def _state(self, fits: Fits | int, *following: int) -> int:
        if len(self._fits) >= MOST_STATES:
            raise PatternError(f"its repetitions come to more than {MOST_STATES} letters")
        self._fits.append(fits)
        self._next.append(following)
        return len(self._fits) - 1

    def _loop(self, body: Callable[[int], int], following: int) -> int:
        """Return a state from which `body` is repeated any number of times."""
        state = self._state(_SPLIT)
        self._next[state] = (body(state), following)
        return state


_SPLIT, _BEGIN, _END, _ACCEPT = range(4)


class _Parser:
    def __init__(self, text: str, state: Callable[..., int], loop: Callable[[Build, int], int]) -> None:
        if len(text) > LONGEST:
            raise PatternError(f"it has {len(text)} characters; {LONGEST} is the most")
        self._text = text
        self._place = 0
        self._state = state
        self._loop = loop

    def pattern(self, accept: int) -> int:
        build = self._alternatives(0)
        if self._place < len(self._text):
            raise PatternError("a closing parenthesis has no opening one")
        return build(accept)

    def _alternatives(self, depth: int) -> Build:
        if depth > _DEEPEST:
            raise PatternError(f"groups are nested more than {_DEEPEST} deep")
        branches = [self._sequence(depth)]
        while self._peek() == "|":
            self._place += 1
            branches.append(self._sequence(depth))
        if len(branches) == 1:
            return branches[0]
        return lambda following: self._state(_SPLIT, *(branch(following) for branch in branches))

    def _sequence(self, depth: int) -> Build:
        parts: list[Build] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom(depth)))

        def build(following: int) -> int:
            for part in reversed(parts):
                following = part(following)
            return following

        return build

    def _quantified(self, atom: Build) -> Build:
        found = _QUANTIFIER.match(self._text, self._place)
        if found is None:
            return atom
        self._place = found.end()
        if self._peek() == "?":  # which match is found first does not matter here
            self._place += 1
        if self._peek() == "+" or _QUANTIFIER.match(self._text, self._place):
            raise PatternError("two quantifiers stand behind one another")
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(found[0], (0, 0))
        if found[1] is not None:
            least = int(found[1])
            most = (int(found[3]) if found[3] else None) if found[2] else least
        if most is not None and most < least:
            raise PatternError(f"the quantifier {found[0]} ends before it begins")
        if max(least, most or 0) > MOST_STATES:
            raise PatternError(f"its repetitions come to more than {MOST_STATES} letters")

        def build(following: int) -> int:
            end = following
            if most is None:
                following = self._loop(atom, following)
            for _ in range(0 if most is None else most - least):
                following = self._state(_SPLIT, atom(following), end)
            for _ in range(least):
                before, following = following, atom(following)
                if following == before:
                    break  # the atom is empty
            return following

        return build

    def _atom(self, depth: int) -> Build:
        letter = self._peek()
        self._place += 1
        match letter:
            case "(":
                return self._group(depth)
            case "[":
                return self._class()
            case "^":
                return lambda following: self._state(_BEGIN, following)
            case "$":
                return lambda following: self._state(_END, following)
            case ".":
                return self._letter("[^\\n\\r]")
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise PatternError(f"nothing stands before {letter} that could be repeated")
        return self._letter(re.escape(letter))

    def _group(self, depth: int) -> Build:
        if self._peek() == "?":
            if self._text[self._place : self._place + 2] != "?:":
                raise PatternError("only plain groups ( ) and (?: ) can be matched in one pass")
            self._place += 2
        build = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise PatternError("an opening parenthesis has no closing one")
        self._place += 1
        return build

    def _class(self) -> Build:
        found = _CLASS.match(self._text, self._place - 1)
        if found is None:
            raise PatternError("an opening bracket has no closing one")
        self._place = found.end()
        inside = found[0][1:-1]
        if twice := _TWICE.search(re.sub(r"\\.", "", inside)):
            raise PatternError(f"{twice[0]} in brackets needs a backslash before it")
        for escaped in re.findall(r"\\(.)", inside):
            _refuse_unknown_escape(escaped)
        return self._letter(found[0])

    def _escape(self) -> Build:
        letter = self._peek()
        self._place += 1
        _refuse_unknown_escape(letter)
        return self._letter(f"\\{letter}")

    def _letter(self, pattern: str) -> Build:
        """Return the part that is one letter, which a pattern of one letter takes."""
        try:
            fits = re.compile(pattern, re.ASCII | re.DOTALL).fullmatch
        except re.error as error:
            raise PatternError(f"{pattern}: {error}") from None
        return lambda following: self._state(fits, following)

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]


def _refuse_unknown_escape(letter: str) -> None:
    if not letter:
        raise PatternError("a backslash stands at its end")
    if letter not in _ESCAPES and (letter.isalnum() or not letter.isascii()):
        raise PatternError(f"\\{letter} cannot be matched in one pass: \\d, \\w and \\s can")


@lru_cache(maxsize=1000)
def linear_pattern(text: str) -> LinearPattern:
    """Return the compiled pattern. Raise PatternError."""
    return LinearPattern(text)
