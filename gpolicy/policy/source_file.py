"""A file of a policy: its text, and its lines, comments, documents and values with their places.

A file is read once (`yaml_reader.read_yaml`); loading, suppressions, fixes, fingerprints and `fmt` share the result.
Documents are dicts, lists and scalars, so that any JSON Schema validator accepts them; two subclasses of dict and list
also hold the place of each key and value. The rules here are about the shape of a file: reading and the schemas find
what they say, and the catalogue (`gpolicy.checking.catalogue`) shows them beside the rules about meaning.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from gpolicy.findings import UNREADABLE, Edit, Finding, Located, Role, Span, error_rule, warning_rule
from gpolicy.light_dataclasses import dataclass

UNREADABLE_FILE: Final = error_rule("GP001", "unreadable-file", UNREADABLE)
YAML_SYNTAX: Final = error_rule("GP002", "yaml-syntax", UNREADABLE, Role.BREAKS)
DUPLICATE_KEY: Final = error_rule("GP003", "duplicate-key", UNREADABLE, Role.BREAKS)
ALIAS_BOMB: Final = error_rule("GP004", "too-large", UNREADABLE)
UNSUPPORTED_YAML: Final = error_rule("GP005", "unsupported-yaml", UNREADABLE)
NOT_A_POLICY: Final = error_rule("GP010", "not-a-policy", UNREADABLE)
UNKNOWN_KEY: Final = error_rule("GP011", "unknown-key", UNREADABLE)
WRONG_VALUE: Final = error_rule("GP012", "wrong-value", UNREADABLE)
MISSING_KEY: Final = error_rule("GP013", "missing-key", UNREADABLE)
EMPTY_VALUE: Final = error_rule("GP014", "empty-value", UNREADABLE)
SIZE_ROUNDED: Final = warning_rule("GP015", "size-rounded", role=Role.WEAK)
NOT_PLAIN_TEXT: Final = error_rule("GP016", "not-plain-text", UNREADABLE)
DUPLICATE_OBJECT: Final = error_rule("GP020", "duplicate-object", UNREADABLE)
EXTENDS_UNKNOWN: Final = error_rule("GP021", "extends-unknown", UNREADABLE)
EXTENDS_CYCLE: Final = error_rule("GP022", "extends-cycle", UNREADABLE)
EXTENDS_CONFLICT: Final = warning_rule("GP023", "extends-conflict")
SEVERAL_CLUSTERS: Final = error_rule("GP024", "several-clusters", UNREADABLE)
UNKNOWN_SNAPSHOT: Final = error_rule("GP025", "unknown-snapshot", UNREADABLE)
SETTINGS_MISTAKE: Final = error_rule(
    "GP028", "settings-mistake", "verbs that work on many clusters would stop, or act on the wrong one"
)
FILE_NOT_READ: Final = warning_rule("GP026", "file-not-read")
NOTHING_DECLARED: Final = warning_rule("GP027", "nothing-declared")

Mark = tuple[int, int, int, int]
"""Line, column, end line and end column, from 1; the end column is behind the last character."""

Pointer = tuple[str | int, ...]
"""The keys and indices from a document's root to a value."""

BREAKS: Final = "\n\r\x85\u2028\u2029"
"""The line ends of YAML's parser, besides a carriage return with a line feed."""
_BREAK: Final = re.compile(f"\r\n|[{BREAKS}]")
_COMMENT: Final = re.compile(f"#[^{BREAKS}]*+")
_BLOCK_HEADER: Final = re.compile(r"(?:[&!]\S*+[ \t]++)*+[|>][^\s#]*+")


class SourceFile:
    """The text of one file, called `name` in findings, and the results of reading it.

    `scalars` are the places of all keys and single values in the order of the file, `document_lines` the first lines of
    documents. After a YAML error, `documents` are those before it; `unfinished` is the one with the error. A file
    that `is_foreign` is of another program, and is not read.
    """

    def __init__(self, name: str, text: str, *, is_foreign: bool = False) -> None:
        self.name = name
        self.is_foreign = is_foreign
        self.text = text
        self.documents: list[YamlDocument] = []
        self.unfinished: YamlDocument | None = None
        self.findings: list[Finding] = []
        self.scalars: list[Mark] = []
        self.document_lines: list[int] = []

    @cached_property
    def reported(self) -> frozenset[Span | None]:
        """The places of findings; valid after the file is read."""
        return frozenset(finding.span for finding in self.findings)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset of each line; the last one is one behind the end of the text."""
        starts = (0, *(found.end() for found in _BREAK.finditer(self.text)))
        return starts if starts[-1] == len(self.text) and len(starts) > 1 else (*starts, len(self.text))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, both from 1, at most the end of the text."""
        starts = self.starts
        return min(starts[line - 1] + column - 1, len(self.text)) if line <= len(starts) else len(self.text)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column, from 1, of an offset."""
        starts = self.starts
        line = bisect_right(starts, offset)
        if line == len(starts) and not self.text[starts[line - 2] : offset].endswith(tuple(BREAKS)):
            line -= 1  # the text does not end with a line end
        return line, offset - starts[line - 1] + 1

    def line_of(self, offset: int) -> int:
        """Return the line, from 1, of an offset."""
        return self.line_and_column(offset)[0]

    def before(self, offset: int) -> str:
        """Return the text before an offset on its line."""
        line, column = self.line_and_column(offset)
        return self.line(line)[: column - 1]

    def behind(self, offset: int) -> str:
        """Return the text behind an offset on its line."""
        line, column = self.line_and_column(offset)
        return self.line(line)[column - 1 :]

    def line(self, number: int) -> str:
        """Return a line, counted from 1, without its end; empty if there is none."""
        starts = self.starts
        return self.text[starts[number - 1] : starts[number]].rstrip(BREAKS) if 0 < number < len(starts) else ""

    @property
    def line_count(self) -> int:
        """The number of lines, with the one behind the last line end."""
        return self.line_of(len(self.text))

    def span(self, start: int, stop: int) -> Span:
        """Return the place between two offsets."""
        return Span(self.name, *self.line_and_column(start), *self.line_and_column(stop))

    def offsets(self, place: Span | Mark) -> tuple[int, int]:
        """Return the offsets of the beginning and end of a place."""
        if isinstance(place, Span):
            place = (place.line, place.column, place.end_line, place.end_column)
        line, column, end_line, end_column = place
        return self.offset(line, column), self.offset(end_line, end_column)

    def written(self, place: Span | Mark) -> str:
        """Return the text at a place."""
        start, stop = self.offsets(place)
        return self.text[start:stop]

    @property
    def newline(self) -> str:
        """What ends its lines."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def edit(self, start: int, stop: int, text: str) -> Edit:
        """Return the edit that writes `text` between two offsets."""
        return Edit(self.span(start, stop), text)

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text after edits that do not overlap."""
        parts: list[str] = []
        position = 0
        for start, stop, new in sorted((*self.offsets(edit.span), edit.text) for edit in edits):
            parts += [self.text[position:start], new]
            position = stop
        return "".join([*parts, self.text[position:]])

    @cached_property
    def comments(self) -> tuple[tuple[int, int], ...]:
        """The offsets of all comments in order: every `#` between scalars or behind a `|` or `>` begins one."""
        found: list[tuple[int, int]] = []
        place = 0
        for mark in self.scalars:
            start, stop = self.offsets(mark)
            found += self._comments_between(place, start)
            if mark[0] != mark[2] and (header := _BLOCK_HEADER.match(self.text, start, stop)):
                found += self._comments_between(header.end(), self.offset(mark[0] + 1, 1))
            place = max(place, stop)
        return (*found, *self._comments_between(place, len(self.text)))

    def _comments_between(self, start: int, stop: int) -> list[tuple[int, int]]:
        if self.text.find("#", start, stop) < 0:
            return []
        return [found.span() for found in _COMMENT.finditer(self.text, start, stop)]

    def document_at(self, line: int) -> YamlDocument | None:
        """Return the document around a line, from 1; the first one for lines before it."""
        number = max(bisect_right(self.document_lines, line) - 1, 0)
        return self.documents[number] if number < len(self.documents) else self.unfinished


Files = Mapping[str, SourceFile]
"""Files by their names."""


class YamlMapping(dict[str, Any]):
    """A mapping with the marks of its keys and values."""

    __slots__ = ("key_marks", "value_marks")

    def __init__(self) -> None:
        super().__init__()
        self.key_marks: dict[str, Mark] = {}
        self.value_marks: dict[str, Mark] = {}

    def entries(self) -> list[tuple[Mark, Any, Mark]]:
        """Return the place of each key, its value, and the place of the value."""
        return [(self.key_marks[key], value, self.value_marks[key]) for key, value in self.items()]

    def entry(self, step: str | int) -> tuple[Mark, Any, Mark] | None:
        """Return the same of one key; None if there is no such key."""
        key = str(step)
        return (self.key_marks[key], self[key], self.value_marks[key]) if step in self else None


class YamlSequence(list[Any]):
    """A sequence with the marks of its items."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []

    def entries(self) -> list[tuple[Mark, Any, Mark]]:
        """Return the place of each item, the item, and its place again, like the entries of a mapping."""
        return [(mark, value, mark) for value, mark in zip(self, self.marks, strict=True)]

    def entry(self, step: str | int) -> tuple[Mark, Any, Mark] | None:
        """Return the same of one item, by its number from 0; None if there is none."""
        has_item = isinstance(step, int) and 0 <= step < len(self)
        return (self.marks[int(step)], self[int(step)], self.marks[int(step)]) if has_item else None


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

    def value(self, pointer: Pointer) -> Any:
        """Return the value at `pointer` as it was read: neither rounded nor with anything filled in."""
        found = self.root
        for step in pointer:
            found = found[step]
        return found

    def located(self, pointer: Pointer) -> Located[Any]:
        """Return the value at `pointer` with its place."""
        return Located(self.value(pointer), self.value_span(pointer))

    def value_span(self, pointer: Pointer) -> Span:
        """Return the place of the value at `pointer`, or of its nearest parent if there is none."""
        return self.span(self._mark(pointer, of_key=False))

    def key_span(self, pointer: Pointer) -> Span:
        """Return the place of the last key of `pointer` (for a list item: the item)."""
        return self.span(self._mark(pointer, of_key=True))

    def written(self, pointer: Pointer) -> str:
        """Return the text of the value at `pointer`."""
        return self.source.written(self._mark(pointer, of_key=False))

    def _mark(self, pointer: Pointer, *, of_key: bool) -> Mark:
        value, mark = self.root, self.mark
        for depth, step in enumerate(pointer, 1):
            entry = value.entry(step) if isinstance(value, YamlMapping | YamlSequence) else None
            if entry is None:
                break
            first, value, mark = entry
            mark = first if of_key and depth == len(pointer) else mark
        return mark


def place_name(pointer: Pointer) -> str:
    """Return the place as text: `ipolicy.minmax[1].min`. Items of lists count from 1, as in other messages."""
    return "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in pointer).removeprefix(".")


def last_key(pointer: Pointer) -> str:
    """Return the key of a place: `pv_size` also for an item of its list."""
    return next((step for step in reversed(pointer) if isinstance(step, str)), "")
