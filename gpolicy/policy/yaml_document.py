"""YAML values that know where they stand: the reader's result.

A document is plain dicts, lists and scalars (so that any JSON Schema validator takes it as it is); its dicts and
lists are of two subclasses that also hold the place of each key and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpolicy.findings import Span

Mark = tuple[int, int, int, int]
"""Line, column, end line, end column; from 1, the end column just behind the last character."""

Pointer = tuple[str | int, ...]
"""Keys and indices that lead from a document's root to a value."""


class YamlMapping(dict[str, Any]):
    """A mapping with the marks of its keys and values."""

    __slots__ = ("key_marks", "value_marks")

    def __init__(self) -> None:
        super().__init__()
        self.key_marks: dict[str, Mark] = {}
        self.value_marks: dict[str, Mark] = {}


class YamlSequence(list[Any]):
    """A sequence with the marks of its items."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document of a file."""

    file: str
    root: Any
    mark: Mark

    def span(self, mark: Mark) -> Span:
        """Return the place of a mark in this document's file."""
        return Span(self.file, *mark)

    def value_span(self, pointer: Pointer) -> Span:
        """Return where the value at `pointer` stands; where there is none, its nearest parent."""
        return self.span(self._mark(pointer, of_key=False))

    def key_span(self, pointer: Pointer) -> Span:
        """Return where the key that ends `pointer` stands (for a list item: the item)."""
        return self.span(self._mark(pointer, of_key=True))

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
