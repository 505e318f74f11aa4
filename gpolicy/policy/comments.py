"""Which `#` in a file begin comments, and which stand inside a value: told by the places of the values."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from gpolicy.policy.source_text import line_and_column, line_text
from gpolicy.policy.yaml_document import Mark, YamlDocument, YamlMapping, YamlSequence


def comments_like(text: str, documents: Iterable[YamlDocument], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield what matches `pattern`, which begins at a `#`, and is in a comment of a file with these documents."""
    documents = list(documents)  # as they stand in the file
    starts = [document.mark[:2] for document in documents]
    for found in pattern.finditer(text):
        begin = found.start()
        if begin and not text[begin - 1].isspace():
            continue
        line, column = line_and_column(text, begin)
        number = bisect_right(starts, (line, column)) - 1
        if number < 0 or not _is_in_value(text, documents[number], (line, column)):
            yield found


def _is_in_value(text: str, document: YamlDocument, place: tuple[int, int]) -> bool:
    """Return whether a place is inside a scalar of the document."""
    value: Any = document.root
    mark = document.mark
    while True:
        if not mark[:2] <= place < mark[2:]:
            return False
        begin = line_text(text, mark[0])[mark[1] - 1 :]
        if not isinstance(value, YamlMapping | YamlSequence) or begin.startswith("*"):
            has_header = re.match(r"(?:[&!]\S*\s+)*[|>]", begin) is not None
            return not (has_header and place[0] == mark[0])  # behind the | of a block of text is a comment
        inside = next((child for child in _children(value) if child[1][:2] <= place < child[1][2:]), None)
        if inside is None:
            return False
        value, mark = inside


def _children(value: YamlMapping | YamlSequence) -> Iterator[tuple[Any, Mark]]:
    if isinstance(value, YamlSequence):
        yield from zip(value, value.marks, strict=True)
        return
    for key, below in value.items():
        yield key, value.key_marks[key]
        yield below, value.value_marks[key]
