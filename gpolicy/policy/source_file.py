"""A file of a policy: its text, and each line, comment, document and value in it with its place.

A file is read once (`yaml_reader.read_yaml`). Loading, suppressions, fixes, fingerprints and `fmt` share what was read.
Documents are plain dicts, lists and scalars, so that any JSON Schema validator takes them as they are; their dicts and
lists are of two subclasses that also hold the place of each key and value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from gpolicy.findings import Edit, Finding, Span

Mark = tuple[int, int, int, int]
"""Line, column, end line, end column; from 1, the end column just behind the last character."""

Pointer = tuple[str | int, ...]
"""Keys and indices that lead from a document's root to a value."""

T = TypeVar("T")

BREAKS: Final = "\n\r\x85\u2028\u2029"
"""What ends a line for YAML's parser, besides a carriage return with a line feed."""
_BREAK: Final = re.compile(f"\r\n|[{BREAKS}]")
_COMMENT: Final = re.compile(f"#[^{BREAKS}]*+")
_BLOCK_HEADER: Final = re.compile(r"(?:[&!]\S*+[ \t]++)*+[|>][^\s#]*+")


class SourceFile:
    """The text of one file, which is called `name` in findings, and what reading has found in it.

    `scalars` are the places of all keys and single values in the order of the file, `document_lines` the lines at
    which documents begin. Where the text is not YAML, `documents` are those before the mistake; `unfinished` holds it.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.documents: list[YamlDocument] = []
        self.unfinished: YamlDocument | None = None
        self.findings: list[Finding] = []
        self.scalars: list[Mark] = []
        self.document_lines: list[int] = []

    @cached_property
    def reported(self) -> frozenset[Span | None]:
        """Places about which reading has found something; asked for once the file has been read."""
        return frozenset(finding.span for finding in self.findings)

    # --- lines -------------------------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; the last is one behind the end of the text."""
        starts = (0, *(found.end() for found in _BREAK.finditer(self.text)))
        return starts if starts[-1] == len(self.text) and len(starts) > 1 else (*starts, len(self.text))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, both from 1; the end of the text for what lies behind it."""
        starts = self.starts
        return min(starts[line - 1] + column - 1, len(self.text)) if line <= len(starts) else len(self.text)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column, from 1, of an offset."""
        starts = self.starts
        line = bisect_right(starts, offset)
        if line == len(starts) and not self.text[starts[line - 2] : offset].endswith(tuple(BREAKS)):
            line -= 1  # the end of a text whose last line does not end
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return a line, counted from 1, without its end; nothing where there is none."""
        starts = self.starts
        return self.text[starts[number - 1] : starts[number]].rstrip(BREAKS) if 0 < number < len(starts) else ""

    @property
    def line_count(self) -> int:
        """How many lines there are, with the one behind the last line end."""
        return self.line_and_column(len(self.text))[0]

    def span(self, start: int, stop: int) -> Span:
        """Return the place between two offsets."""
        return Span(self.name, *self.line_and_column(start), *self.line_and_column(stop))

    def offsets(self, place: Span | Mark) -> tuple[int, int]:
        """Return the offsets at which a place begins and ends."""
        if isinstance(place, Span):
            place = (place.line, place.column, place.end_line, place.end_column)
        line, column, end_line, end_column = place
        return self.offset(line, column), self.offset(end_line, end_column)

    def written(self, place: Span | Mark) -> str:
        """Return the text at a place."""
        start, stop = self.offsets(place)
        return self.text[start:stop]

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text after edits that do not overlap."""
        parts: list[str] = []
        position = 0
        for start, stop, new in sorted((*self.offsets(edit.span), edit.text) for edit in edits):
            parts += [self.text[position:start], new]
            position = stop
        return "".join([*parts, self.text[position:]])

    # --- comments ----------------------------------------------------------------------------------------------

    @cached_property
    def comments(self) -> tuple[Comment, ...]:
        """All comments in their order: every `#` between scalars begins one, and so does one behind a `|` or `>`."""
        found: list[Comment] = []
        place = 0
        for mark in self.scalars:
            start, stop = self.offsets(mark)
            found += self._comments_between(place, start)
            if mark[0] != mark[2] and (header := _BLOCK_HEADER.match(self.text, start, stop)):
                found += self._comments_between(header.end(), self.offset(mark[0] + 1, 1))
            place = max(place, stop)
        return (*found, *self._comments_between(place, len(self.text)))

    def _comments_between(self, start: int, stop: int) -> list[Comment]:
        if self.text.find("#", start, stop) < 0:
            return []
        return [Comment(self, *found.span()) for found in _COMMENT.finditer(self.text, start, stop)]

    # --- documents ---------------------------------------------------------------------------------------------

    def document_at(self, line: int) -> YamlDocument | None:
        """Return the document around a line, from 1; the first one for what stands before it."""
        number = max(bisect_right(self.document_lines, line) - 1, 0)
        return self.documents[number] if number < len(self.documents) else self.unfinished


Files = Mapping[str, SourceFile]
"""Files by their names."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: the offsets of its `#` and of the end of its line."""

    source: SourceFile
    start: int
    stop: int

    @property
    def text(self) -> str:
        """What it says, with its `#` and without blanks at the end."""
        return self.source.text[self.start : self.stop].rstrip()


class YamlMapping(dict[str, Any]):
    """A mapping with the marks of its keys and values."""

    __slots__ = ("key_marks", "value_marks")

    def __init__(self) -> None:
        super().__init__()
        self.key_marks: dict[str, Mark] = {}
        self.value_marks: dict[str, Mark] = {}

    def entries(self) -> list[tuple[Mark, Any, Mark]]:
        """Return where each key stands, its value, and where that stands."""
        return [(self.key_marks[key], value, self.value_marks[key]) for key, value in self.items()]


class YamlSequence(list[Any]):
    """A sequence with the marks of its items."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []

    def entries(self) -> list[tuple[Mark, Any, Mark]]:
        """Return where each item stands, the item, and its place again: as those of a mapping."""
        return [(mark, value, mark) for value, mark in zip(self, self.marks, strict=True)]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file."""

    source: SourceFile
    root: Any
    mark: Mark

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.source.name

    def span(self, mark: Mark) -> Span:
        """Return the place of a mark in this document's file."""
        return Span(self.file, *mark)

    def value_span(self, pointer: Pointer) -> Span:
        """Return where the value at `pointer` stands; where there is none, its nearest parent."""
        return self.span(self._mark(pointer, of_key=False))

    def key_span(self, pointer: Pointer) -> Span:
        """Return where the key that ends `pointer` stands (for a list item: the item)."""
        return self.span(self._mark(pointer, of_key=True))

    def written(self, pointer: Pointer) -> str:
        """Return the text of the value at `pointer`."""
        return self.source.written(self._mark(pointer, of_key=False))

    def _mark(self, pointer: Pointer, *, of_key: bool) -> Mark:
        value, mark = self.root, self.mark
        for depth, step in enumerate(pointer):
            last = depth == len(pointer) - 1
            if isinstance(value, YamlMapping) and step in value.key_marks:
                marks = value.key_marks if of_key and last else value.value_marks
                mark, value = marks[str(step)], value.get(str(step))
            elif isinstance(value, YamlSequence) and isinstance(step, int) and step < len(value.marks):
                mark, value = value.marks[step], value[step]
            else:
                break
        return mark


@dataclass(frozen=True, slots=True)
class Located(Generic[T]):
    """Something that a document says, and where."""

    value: T
    span: Span


def place_name(pointer: Pointer) -> str:
    """Return a place for people: `ipolicy.minmax[1].min`. Items of lists count from 1, as in the other messages."""
    return "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in pointer).removeprefix(".")


def last_key(pointer: Pointer) -> str:
    """Return the key that a place stands under: `pv_size` also for the second of its list."""
    return next((step for step in reversed(pointer) if isinstance(step, str)), "")
