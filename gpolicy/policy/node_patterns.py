"""Names and patterns of nodes, as documents list them: what a pattern matches, and which one is a slip."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, product
from typing import Final

MOST_NODES: Final = 1000
"""The greatest number of nodes of a group that are listed."""

WILDCARD: Final = re.compile(r"[*?\[]")


def is_glob(pattern: str) -> bool:
    """Return whether `pattern` is a glob, not a name."""
    return "*" in pattern or "[" in pattern or "?" in pattern


def matches(pattern: str, name: str) -> bool:
    """Return whether `pattern`, a name or a glob, matches a node's name."""
    begin, middle, end = _parts(pattern)
    if not (name.startswith(begin) and name.endswith(end)):
        return False
    if middle == "*":
        return len(name) >= len(begin) + len(end)
    return fnmatchcase(name, pattern) if middle else name == pattern


@lru_cache(maxsize=4096)
def _parts(pattern: str) -> tuple[str, str, str]:
    """Return a pattern in three: up to its first wildcard, what is between, and what follows its last wildcard."""
    begin, end = ends(pattern)
    return begin, pattern[len(begin) : len(pattern) - len(end)], end


def ends(pattern: str) -> tuple[str, str]:
    """Return the letters that all names that a pattern matches begin and end with."""
    parts = WILDCARD.split(pattern)
    return parts[0], "" if "[" in pattern else parts[-1]


_PART = re.compile(r"\[([^\]!][^\]]{0,250})\]|([^\[\]*?]++)")

_LETTERS: Final = re.compile(r"[A-Za-z0-9._*?!\[\]-]+")
_RANGE: Final = re.compile(r"([^\[\]!-])-([^\]])")
_NUMBERS: Final = re.compile(r"(?!.-.$)([0-9]{1,9})-([0-9]{1,9})")


def unlikely(pattern: str) -> str:
    """Return why a name or pattern can match no node, or not those that are meant; or nothing."""
    if not pattern:
        return "it is empty"
    if not _LETTERS.fullmatch(pattern):
        odd = next(letter for letter in pattern if not _LETTERS.fullmatch(letter))
        return f"no node has {odd!r} in its name"
    if pattern != pattern.lower():
        return "Ganeti stores names of nodes in lower case"
    if pattern.endswith("."):
        return "no name ends with a dot"
    if pattern.rfind("[") > pattern.rfind("]") or "]" in pattern.partition("[")[0]:
        return "a bracket is not closed, or not opened"
    for before_end in pattern.split("]")[:-1]:
        content = before_end.partition("[")[2].removeprefix("!")
        numbers = _NUMBERS.fullmatch(content)
        if numbers is not None and int(numbers[1]) <= int(numbers[2]):
            return f"[{content}] stands for one letter, not for the numbers from {numbers[1]} to {numbers[2]}"
        for low, high in _RANGE.findall(content):
            if low > high:
                return f"the range {low}-{high} is empty"
        letters = list(content) if "-" not in content else []
        if len(letters) != len(set(letters)) or (content.isalpha() and len(letters) > 2 and letters != sorted(letters)):
            return f"[{content}] stands for one of these letters, not for the word"
    return ""


@lru_cache(maxsize=64)  # of a few hundred names each; one pattern is compared with many
def written_out(pattern: str) -> list[str] | None:
    """Return the names that match a pattern of letters and sets of letters, None if it contains a wildcard."""
    parts, end = [], 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            return None
        end = match.end()
        parts.append(_letters(match[1]) if match[1] else [match[2]])
        if len(parts[-1]) > MOST_NODES:
            return None
    if end != len(pattern):
        return None
    found = ["".join(choice) for choice in islice(product(*parts), MOST_NODES + 1)]
    return found if len(found) <= MOST_NODES else None


def _letters(text: str) -> list[str]:
    """Return the letters of a set, as `fnmatch` reads it: `1-4` is a range."""
    letters: list[str] = []
    while text:
        is_range = len(text) > 2 and text[1] == "-"
        last = ord(text[2 if is_range else 0])
        letters += map(chr, islice(range(ord(text[0]), last + 1), MOST_NODES + 1))
        text = text[3 if is_range else 1 :]
    return list(dict.fromkeys(letters))
