"""Find the comments of a file: whatever begins with # between the texts that the parser took for values."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from gpolicy.formatting.tree import CannotFormatError, Comment

Events = list[tuple[Any, int, int]]
"""Events of the parser, each with the offsets of its text; both the same where it has none of its own."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX: Final = re.compile(r"(?:(?:&[\w-]+|!\S*)[ \t]*)*", re.ASCII)
_COMMENT: Final = re.compile(r"#[^\n]*")
_BETWEEN: Final = re.compile(r"[\s:,-]*")
_HEADER: Final = re.compile(r"([|>])([+-]?)([ \t]*)(#[^\n]*)?")
_INDENTATION: Final = re.compile(r"[ \t]*")
_FAR: Final = 100  # comments to look past; no comment goes on for so long
_MAY_TOUCH: Final = frozenset(" \t\n,[]{}:")


def events_of(text: str) -> Events:
    """Return the parser's events. Raise CannotFormatError for what it cannot read."""
    found: Events = []
    try:
        next_event = _LOADER(text).get_event
        event = next_event()
        while type(event) is not StreamEndEvent:
            found.append((event, *_extent(event, text)))
            event = next_event()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise CannotFormatError("it is not YAML", mark.line + 1 if mark else 0) from None
    return found


def _extent(event: Any, text: str) -> tuple[int, int]:
    kind = type(event)
    start = event.start_mark.index
    if kind is ScalarEvent or kind is AliasEvent:
        return start, event.end_mark.index
    if kind is MappingStartEvent or kind is SequenceStartEvent:
        if event.flow_style:
            end = event.end_mark.index
            return start, end if text[start:end].endswith(("{", "[")) else start  # a pair in brackets has no braces
        named = event.anchor is not None or event.tag is not None
        return start, start + len(prefix_at(text, start)) if named else start
    if kind is MappingEndEvent or kind is SequenceEndEvent:
        return start, start + 1 if text[start : event.end_mark.index] in ("}", "]") else start
    if kind is DocumentStartEvent and event.explicit:
        if not text.startswith("---", start):
            raise CannotFormatError("it has a %directive", line_of(event))
        return start, start + 3
    if kind is DocumentEndEvent and event.explicit:
        return start, start + 3
    return start, start


def line_of(event: Any) -> int:
    """Return the line on which an event begins, from 1."""
    return int(event.start_mark.line) + 1


def prefix_at(text: str, start: int) -> str:
    """Return the anchor and the tag that stand at an offset, with the blanks behind them."""
    found = _PREFIX.match(text, start)
    return found.group() if found else ""


def comments_of(text: str, events: Events) -> list[Comment]:
    """Return all comments in their order. Raise CannotFormatError where what lies between the values is not clear."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    comments: list[Comment] = []
    place = 0
    for event, start, end in events:
        if start < end:
            _scan(text, place, start, starts, comments)
            place = end
            if type(event) is ScalarEvent and event.style in ("|", ">"):
                _header(text, start, starts, comments)
    _scan(text, place, len(text), starts, comments)
    return _joined(comments, text, starts)


def _joined(comments: list[Comment], text: str, starts: list[int]) -> list[Comment]:
    """Give the lines in which a comment behind something goes on, right below it and in its column, to it."""
    joined: list[Comment] = []
    for place, comment in enumerate(comments):
        last = joined[-1] if joined else None
        goes_on = (
            last is not None
            and comment.own_line
            and not last.own_line
            and comment.column == last.column
            and comment.line == last.line + len(last.texts)
        )
        if goes_on and last is not None and comment.column > _next_column(comments, place, text, starts):
            last.more.append(comment.text)
        else:
            joined.append(comment)
    return joined


def _next_column(comments: list[Comment], place: int, text: str, starts: list[int]) -> int:
    """Return the column of what comes next behind a comment that stands on a line of its own; -1 at the end."""
    passed = {comment.line for comment in comments[place : place + _FAR] if comment.own_line}
    for line in range(comments[place].line + 1, len(starts) + 1):
        if line not in passed and not is_blank(text, starts, line):
            found = _INDENTATION.match(text, starts[line - 1])
            return len(found.group()) if found else 0
    return -1


def _scan(text: str, start: int, end: int, starts: list[int], comments: list[Comment]) -> None:
    """Add the comments between two offsets."""
    place = start
    while place < end:
        between = _BETWEEN.match(text, place, end)
        assert between is not None  # noqa: S101 (it matches the empty text)
        place = between.end()
        if place == end:
            return
        found = _COMMENT.match(text, place)
        if found is None or found.end() > end:
            raise CannotFormatError("it has YAML that gpolicy does not format", bisect_right(starts, place))
        if place and text[place - 1] not in _MAY_TOUCH:
            raise CannotFormatError("a comment touches what stands before it", bisect_right(starts, place))
        comments.append(_comment(text, place, found.group(), starts))
        place = found.end()


def _header(text: str, start: int, starts: list[int], comments: list[Comment]) -> None:
    """Add the comment in the first line of a block scalar."""
    begin = start + len(prefix_at(text, start))
    found = _HEADER.match(text, begin)
    if found is None or text[found.end() : found.end() + 1] not in ("", "\n"):
        raise CannotFormatError("a block of text says how far it is indented", bisect_right(starts, begin))
    if found[4]:
        comments.append(_comment(text, found.start(4), found[4], starts))


def _comment(text: str, start: int, shown: str, starts: list[int]) -> Comment:
    line = bisect_right(starts, start)
    before = text[starts[line - 1] : start]
    own_line = not before.strip()
    return Comment(
        start=start,
        text=shown.rstrip(),
        line=line,
        column=len(before),
        gap=len(before) - len(before.rstrip()),
        own_line=own_line,
        blank=is_blank(text, starts, line - 1),
    )


def is_blank(text: str, starts: list[int], line: int) -> bool:
    """Return whether a line, from 1, is there and empty."""
    return line > 0 and not text[starts[line - 1] : starts[line] if line < len(starts) else len(text)].strip()
