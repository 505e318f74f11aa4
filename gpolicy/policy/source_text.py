"""Places in the text of a file: lines and columns as YAML's parser counts them, and offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final

from gpolicy.findings import Span

_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


@lru_cache(maxsize=16)
def line_starts(text: str) -> tuple[int, ...]:
    """Return the offset at which each line of `text` begins; the last is one behind its end."""
    starts = (0, *(found.end() for found in _BREAK.finditer(text)))
    return starts if starts[-1] == len(text) and len(starts) > 1 else (*starts, len(text))


def offset(text: str, line: int, column: int) -> int:
    """Return the offset of a line and column, both from 1; one behind the text for what lies behind it."""
    starts = line_starts(text)
    return min(starts[line - 1] + column - 1, len(text)) if line <= len(starts) else len(text)


def line_and_column(text: str, place: int) -> tuple[int, int]:
    """Return the line and column, from 1, of an offset."""
    starts = line_starts(text)
    line = bisect_right(starts, place)
    if line == len(starts) and not text[starts[line - 2] : place].endswith(("\n", "\r", "\x85", "\u2028", "\u2029")):
        line -= 1  # the end of a text whose last line does not end
    return line, place - starts[line - 1] + 1


def line_text(text: str, line: int) -> str:
    """Return a line of `text`, counted from 1, without its end; nothing where there is none."""
    starts = line_starts(text)
    return text[starts[line - 1] : starts[line]].rstrip("\n\r\x85\u2028\u2029") if 0 < line < len(starts) else ""


def line_end(text: str) -> str:
    """Return what ends the lines of `text`: as its first line ends."""
    found = _BREAK.search(text)
    return found.group() if found else "\n"


def span_between(file: str, text: str, start: int, stop: int) -> Span:
    """Return the place between two offsets of a file's text."""
    return Span(file, *line_and_column(text, start), *line_and_column(text, stop))


def span_offsets(text: str, span: Span) -> tuple[int, int]:
    """Return the offsets at which a place of a file begins and ends."""
    return offset(text, span.line, span.column), offset(text, span.end_line, span.end_column)
