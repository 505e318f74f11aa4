"""The nodes that a group names, if its patterns are definite: node[1-4] are four, node* are unknown."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, product
from typing import Final

from gpolicy.policy.model import GroupPolicy

MOST_NODES: Final = 1000
"""The greatest number of nodes of a group that are listed."""

_PART = re.compile(r"\[([^\]!][^\]]{0,250})\]|([^\[\]*?]++)")


def promised_nodes(group: GroupPolicy) -> tuple[str, ...] | None:
    """Return the names of the group's nodes; None if a pattern is not definite or there is none."""
    names: dict[str, None] = {}
    for pattern in group.nodes or ():
        found = written_out(pattern.value)
        if found is None:
            return None
        names.update(dict.fromkeys(found))
        if len(names) > MOST_NODES:
            return None
    return tuple(names) or None


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
    letters: dict[str, None] = {}
    while text:
        if len(text) > 2 and text[1] == "-":
            letters.update(dict.fromkeys(map(chr, islice(range(ord(text[0]), ord(text[2]) + 1), MOST_NODES + 1))))
            text = text[3:]
        else:
            letters[text[0]] = None
            text = text[1:]
    return list(letters)
