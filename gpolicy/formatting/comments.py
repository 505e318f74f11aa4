"""What the parser sees in a file, and the comments with all their lines."""

from __future__ import annotations

import re
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

from gpolicy.formatting.tree import CannotFormatError, CommentLines
from gpolicy.policy.source_file import Comment, SourceFile

Events = list[tuple[Any, int, int]]
"""Events of the parser, each with the offsets of its text; both the same where it has none of its own."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX: Final = re.compile(r"(?:(?:&[\w-]+|!\S*)[ \t]*)*", re.ASCII)
_BETWEEN: Final = re.compile(r"[\s:,-]*")
_HEADER: Final = re.compile(r"([|>])([+-]?)([ \t]*)(#[^\n]*)?")
_FAR: Final = 100  # comments to look past; no comment goes on for so long
_MAY_TOUCH: Final = frozenset(" \t\n,[]{}:")


def events_of(text: str) -> Events:
    """Return the parser's events; `text` is known to be YAML. Raise CannotFormatError for directives."""
    found: Events = []
    next_event = _LOADER(text).get_event
    event = next_event()
    while type(event) is not StreamEndEvent:
        found.append((event, *_extent(event, text)))
        event = next_event()
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


def comments_of(source: SourceFile, events: Events) -> list[CommentLines]:
    """Return all comments in their order. Raise CannotFormatError where what lies between the values is not clear."""
    text = source.text
    places = [(start, end) for _, start, end in events if start < end]
    places += [(comment.start, comment.stop) for comment in source.comments]
    last = 0
    for start, end in [*sorted(places), (len(text), len(text))]:
        between = _BETWEEN.match(text, last, max(start, last))
        if between is not None and between.end() < start:
            line, _ = source.line_and_column(between.end())
            raise CannotFormatError("it has YAML that gpolicy does not format", line)
        last = max(last, end)
    for event, start, _ in events:
        if type(event) is ScalarEvent and event.style in ("|", ">"):
            _check_header(source, start)
    return _joined([_on_its_line(comment) for comment in source.comments], source)


def _on_its_line(comment: Comment) -> CommentLines:
    source, start = comment.source, comment.start
    line, column = source.line_and_column(start)
    if start and source.text[start - 1] not in _MAY_TOUCH:
        raise CannotFormatError("a comment has no blank before it", line)
    before = source.text[start - column + 1 : start]
    return CommentLines(
        start=start,
        stop=comment.stop,
        text=comment.text,
        line=line,
        column=len(before),
        gap=len(before) - len(before.rstrip()),
        own_line=not before.strip(),
        blank=is_blank(source, line - 1),
    )


def _check_header(source: SourceFile, start: int) -> None:
    """Raise CannotFormatError if the first line of a block scalar says more than we write."""
    begin = start + len(prefix_at(source.text, start))
    found = _HEADER.match(source.text, begin)
    if found is None or source.text[found.end() : found.end() + 1] not in ("", "\n"):
        raise CannotFormatError("a block of text has an indentation indicator", source.line_and_column(begin)[0])


def _joined(comments: list[CommentLines], source: SourceFile) -> list[CommentLines]:
    """Join each comment behind other text with the comment lines directly below it in the same column."""
    joined: list[CommentLines] = []
    for place, comment in enumerate(comments):
        last = joined[-1] if joined else None
        goes_on = (
            last is not None
            and comment.own_line
            and not last.own_line
            and comment.column == last.column
            and comment.line == last.line + len(last.texts)
        )
        if goes_on and last is not None and comment.column > _next_column(comments, place, source):
            last.more.append(comment.text)
            last.stop = comment.stop
        else:
            joined.append(comment)
    return joined


def _next_column(comments: list[CommentLines], place: int, source: SourceFile) -> int:
    """Return the column of what comes next behind a comment that stands on a line of its own; -1 at the end."""
    passed = {comment.line for comment in comments[place : place + _FAR] if comment.own_line}
    for line in range(comments[place].line + 1, source.line_count + 1):
        if line not in passed and not is_blank(source, line):
            return len(source.line(line)) - len(source.line(line).lstrip(" \t"))
    return -1


def is_blank(source: SourceFile, line: int) -> bool:
    """Return whether a line, from 1, exists and is empty."""
    return line > 0 and not source.line(line).strip()
