"""What names and patterns of nodes have in common, as far as their letters tell."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from gpolicy.policy.promised import written_out
from gpolicy.resolve.desired import is_glob, matches

_ANY: Final = "\0"
"""A letter that no pattern lists: only a wildcard matches it."""
_MOST_EXAMPLES: Final = 100
_ANY_BUT: Final = re.compile(r"\[![^][]++\]|\?")


def takes_in(wide: str, narrow: str) -> bool:
    """Return whether a name or pattern surely matches whatever another one does."""
    if wide == narrow:
        return True
    if not is_glob(narrow):
        return matches(wide, narrow)
    if not is_glob(wide) or "[!" in wide:
        return False
    examples = _examples(narrow)
    return bool(examples) and all(matches(wide, name) for name in examples)


def an_example(entry: str) -> str:
    """Return a name that a pattern matches, as far as one is known; else the entry, as of a name."""
    return next(iter(_examples(entry)), entry) if is_glob(entry) else entry


def share_nodes(one: str, other: str) -> bool:
    """Return whether two patterns surely mean common nodes: one takes all, or some written out, of the other."""
    first, second = written_out(one), written_out(other)
    if first is not None and second is not None:
        return not set(first).isdisjoint(second)
    if first is not None:
        return any(matches(other, name) for name in first)
    if second is not None:
        return any(matches(one, name) for name in second)
    return takes_in(one, other) or takes_in(other, one)


@lru_cache(maxsize=1024)
def _examples(pattern: str) -> tuple[str, ...]:
    """Return names that a pattern matches: each listed letter, and for wildcards a letter that no pattern lists.

    None of a pattern that lists too many.
    """
    found: dict[str, None] = {}
    for letters in ("", _ANY * 2):
        found.update(dict.fromkeys(written_out(_ANY_BUT.sub(_ANY, pattern).replace("*", letters)) or ()))
    return tuple(found) if len(found) <= _MOST_EXAMPLES and all(matches(pattern, name) for name in found) else ()
