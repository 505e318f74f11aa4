"""Which `#` in a file begin comments, and which stand inside a value: told by the places of the values."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpolicy.policy.source_text import line_and_column, offset
from gpolicy.policy.yaml_document import Mark, YamlDocument, YamlMapping, YamlSequence

_BLOCK: Final = re.compile(r"(?:[&!]\S*+[ \t]++)*+[|>]")


def comments_like(text: str, documents: Iterable[YamlDocument], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield what matches `pattern`, which begins at a `#`, and is in a comment of a file with these documents."""
    documents = list(documents)  # as they stand in the file
    values = _Values(text)
    starts = [document.mark[:2] for document in documents]
    for found in pattern.finditer(text):
        begin = found.start()
        if begin and not text[begin - 1].isspace():
            continue
        line, column = line_and_column(text, begin)
        number = bisect_right(starts, (line, column)) - 1
        if number < 0 or not values.hold(documents[number], (line, column)):
            yield found


class _Values:
    """The values of a file, to ask which of them stands at a place: many comments ask for the same lists."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._children: dict[int, tuple[list[tuple[int, int]], list[tuple[Any, Mark]]]] = {}
        self._is_block: dict[Mark, bool] = {}

    def hold(self, document: YamlDocument, place: tuple[int, int]) -> bool:
        """Return whether a place is inside a scalar of the document."""
        value: Any = document.root
        mark = document.mark
        while True:
            if not mark[:2] <= place < mark[2:]:
                return False
            is_alias = self._text.startswith("*", offset(self._text, *mark[:2]))
            if is_alias or not isinstance(value, YamlMapping | YamlSequence):
                return not (place[0] == mark[0] and self._begins_block(mark))  # behind its | is a comment
            starts, children = self._children_of(value)
            number = bisect_right(starts, place) - 1
            if number < 0 or not children[number][1][:2] <= place < children[number][1][2:]:
                return False
            value, mark = children[number]

    def _children_of(self, value: YamlMapping | YamlSequence) -> tuple[list[tuple[int, int]], list[tuple[Any, Mark]]]:
        """Return where the children of a value begin, and the children, as they stand in the file."""
        known = self._children.get(id(value))
        if known is None:
            children = sorted(_children(value), key=lambda child: child[1][:2])
            known = self._children[id(value)] = ([mark[:2] for _, mark in children], children)
        return known

    def _begins_block(self, mark: Mark) -> bool:
        if mark not in self._is_block:
            self._is_block[mark] = _BLOCK.match(self._text, offset(self._text, *mark[:2])) is not None
        return self._is_block[mark]


def _children(value: YamlMapping | YamlSequence) -> Iterator[tuple[Any, Mark]]:
    if isinstance(value, YamlSequence):
        yield from zip(value, value.marks, strict=True)
        return
    for key, below in value.items():
        yield key, value.key_marks[key]
        yield below, value.value_marks[key]
