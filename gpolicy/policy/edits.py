"""Edits of a policy's text that change one thing and keep the rest, with comments, as written.

    edits.fix("write 132", edits.replace_value(leaf.document, leaf.pointer, "132"))

Each function takes a document and the pointer to a value in it. It returns the edits, or None if they might change
something else: inside an anchor or an alias, in exotic YAML, or for the only entry of a collection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.findings import Edit, Fix, Span
from gpolicy.policy.model import Policy
from gpolicy.policy.source_file import BREAKS, Mark, Pointer, SourceFile, YamlDocument, YamlMapping, YamlSequence

Edits = tuple[Edit, ...]

ANCHOR: Final = re.compile(r"(?:^|[\s\[{,])&\S")
_COMMENT: Final = re.compile(r"(?:^|\s)#")
_ONLY_COMMENTS: Final = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:#[^\n]*)?")
_COMMA: Final = re.compile(r"\s*(?:,\s*)?")
_LEFT_ON_LINE: Final = re.compile(r"[ \t]*+(?:,[ \t]*+)?(?:#.*)?")
DASH: Final = re.compile(r" *-[ \t]+")


def fix(message: str, *parts: Edits | None) -> Fix | None:
    """Return a fix of all `parts`; None if one of them could not be made."""
    edits = [edit for part in parts for edit in part or ()]
    return Fix(message, tuple(edits)) if edits and None not in parts else None


def replace_value(document: YamlDocument, pointer: Pointer, yaml_text: str) -> Edits | None:
    """Write `yaml_text` in place of the value at `pointer`. The caller quotes it as YAML requires.

    A collection is replaced if it is written in braces or brackets with no comment inside.
    """
    place = EntryPlace.find(document, pointer)
    if place is None:
        return None
    start, stop = place.file.offsets(place.mark)
    old = place.file.text[start:stop]
    is_collection = isinstance(place.value, YamlMapping | YamlSequence) and not old.startswith("*")
    if old.startswith(("&", "!", "|", ">")) or (is_collection and not _is_plain_flow(old)):
        return None
    if not old and start and not place.file.text[start - 1].isspace():
        yaml_text = f" {yaml_text}"  # behind a colon or a dash with nothing after it
    return (place.edit(start, stop, yaml_text),)


def replace_word(policy: Policy, span: Span | None, old: str, new: str) -> Fix | None:
    """Return the fix that replaces `old` by `new` inside its quotes; None if another text is at `span`.

    For words that need no escapes in YAML. Without quotes, `new` must not need any.
    """
    file = policy.files.get(span.file) if span else None
    if file is None or span is None:
        return None
    written = file.written(span)
    for quote in ('"', "'", ""):
        if written == f"{quote}{old}{quote}" and (quote or _needs_no_quotes(new)):
            return Fix(f"write {new}", (Edit(span, f"{quote}{new}{quote}"),))
    return None


def _needs_no_quotes(word: str) -> bool:
    return all(letter.isalnum() or letter in ":-_./" for letter in word) and word[:1].isalpha() and word[-1:] != ":"


def rename_key(document: YamlDocument, pointer: Pointer, new: str) -> Edits | None:
    """Write `new` in place of the key that ends `pointer`; None if its mapping has that key already."""
    place = EntryPlace.find(document, pointer)
    if place is None or not isinstance(place.parent, YamlMapping) or new in place.parent:
        return None
    start, stop = place.file.offsets(place.parent.key_marks[str(place.step)])
    if place.file.text[start : start + 1] in ("&", "!", "*", ""):
        return None
    return (place.edit(start, stop, new),)


def remove_entry(document: YamlDocument, pointer: Pointer, *, climb: bool = False) -> Edits | None:
    """Remove the entry of a mapping or the item of a list, with its comma or its lines.

    Its comments are removed, too: behind it, inside it, and on the lines directly above it. The only entry of a
    collection stays; with `climb` the entry of that collection is removed instead.
    """
    place = EntryPlace.find(document, pointer)
    if place is None:
        return None
    if len(place.parent) == 1:
        can_climb = climb and isinstance(place.parent, YamlMapping) and len(pointer) > 1
        can_climb = can_climb and not isinstance(pointer[-2], int)
        return remove_entry(document, pointer[:-1], climb=True) if can_climb else None
    start, stop = place.entry(place.number)
    if stop is None or ANCHOR.search(place.file.text[start:stop]):
        return None
    return place.without_in_flow() if place.is_flow else place.without_lines()


def remove_document(document: YamlDocument) -> Edits | None:
    """Remove a document with its `---` and the comments below that; None for the first one of a file.

    Comments after it that are not indented stay: they may belong to the next document.
    """
    file = document.source
    begin, end = file.offsets(document.mark)
    line = document.mark[0] - 1
    while line and (not file.line(line).strip() or is_comment(file.line(line))):
        line -= 1
    if not line or file.line(line).rstrip() != "---" or ANCHOR.search(file.text[begin:end]):
        return None
    behind = file.text[end:].lstrip("\n\r \t")
    if behind and not behind.startswith("---"):
        return None  # an end mark, or something of the next document
    last = last_end(file, document.root, document.mark)
    stop = len(file.text) - len(behind)
    if last is not None:
        at_margin = (item.start for item in file.comments if item.start > last and file.text[item.start - 1] in BREAKS)
        stop = next(at_margin, stop)
    return (Edit(file.span(file.starts[line - 1], stop), ""),)


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """An entry of a collection, in its source text."""

    file: SourceFile
    parent: YamlMapping | YamlSequence
    step: str | int
    value: Any
    mark: Mark
    is_flow: bool
    at_root: bool

    @classmethod
    def find(cls, document: YamlDocument, pointer: Pointer) -> EntryPlace | None:
        """Return the entry at `pointer`; None if there is none, or if an edit would change other places, too."""
        file, value, mark, is_flow = document.source, document.root, document.mark, False
        for number, step in enumerate(pointer):
            if not isinstance(value, YamlMapping | YamlSequence) or not _has(value, step):
                return None
            begin = file.text[(at := file.offset(*mark[:2])) : at + 1]
            if begin in ("&", "*", "!"):
                return None
            if is_flow and begin not in ("{", "["):
                return None  # the pair of [a: 1], which has no braces
            is_flow = begin in ("{", "[")
            parent = value
            mark = parent.value_marks[str(step)] if isinstance(parent, YamlMapping) else parent.marks[int(step)]
            value = _below(parent, step)
            if number == len(pointer) - 1:
                return cls(file, parent, step, value, mark, is_flow, at_root=number == 0)
        return None

    @property
    def number(self) -> int:
        """The place of the entry among its siblings."""
        return self.step if isinstance(self.step, int) else list(self.parent).index(self.step)

    def edit(self, start: int, stop: int, text: str) -> Edit:
        """Return the edit that writes `text` between two offsets."""
        return Edit(self.file.span(start, stop), text)

    def line_of(self, place: int) -> int:
        """Return the line of an offset."""
        return self.file.line_and_column(place)[0]

    def entry(self, number: int) -> tuple[int, int | None]:
        """Return where an entry begins and where its last character ends; None for an unknown end."""
        begin, value, mark = self.parent.entries()[number]
        return self.file.offsets(begin)[0], last_end(self.file, value, mark)

    # --- in braces and brackets --------------------------------------------------------------------------------

    def without_in_flow(self) -> Edits | None:
        """Return the removal of the entry from braces or brackets."""
        whole_lines = self._without_flow_lines()
        if whole_lines is not None:
            return whole_lines
        number, last = self.number, len(self.parent) - 1
        start, stop = self.entry(number)
        opening = next(
            (letter for letter in reversed(self.file.text[max(start - 1000, 0) : start]) if not letter.isspace()), ""
        )
        if opening not in ("{", "[", ","):
            return None  # a comment, or the ? of a key
        behind, before = None, None
        if number < last:
            following = self.entry(number + 1)[0]
            behind = self._comma_between(stop, following)
            if behind is not None and "\n" not in behind:
                return (self.edit(start, following, ""),)
        if number > 0:
            previous = self.entry(number - 1)[1]
            before = self._comma_between(previous, start)
            if before is not None and previous is not None and stop is not None:
                return (self.edit(previous, stop, ""),)
        return (self.edit(start, following, ""),) if behind is not None else None

    def _comma_between(self, start: int | None, stop: int) -> str | None:
        """Return the text between two entries if it is only a comma and blanks."""
        text = "" if start is None else self.file.text[start:stop]
        return text if "," in text and _COMMA.fullmatch(text) else None

    def _without_flow_lines(self) -> Edits | None:
        """Remove an entry that does not share its lines; None if it does."""
        start, stop = self.entry(self.number)
        if stop is None or self.file.text[self.file.offset(self.line_of(start), 1) : start].strip(" "):
            return None
        last_line = self.line_of(stop)
        left = self.file.line(last_line)[stop - self.file.offset(last_line, 1) :]
        if not _LEFT_ON_LINE.fullmatch(left):
            return None
        lines = (self._lines(self._first_comment(self.line_of(start)), last_line),)
        previous = self.entry(self.number - 1)[1] if self.number else None
        if self.number < len(self.parent) - 1 or previous is None or "," in left.partition("#")[0]:
            return lines
        comma = re.compile(r"[ \t]*,").match(self.file.text, previous)
        return (self.edit(previous, comma.end(), ""), *lines) if comma else lines

    # --- in lines ----------------------------------------------------------------------------------------------

    def without_lines(self) -> Edits | None:
        """Return the removal of the entry with its lines."""
        start, stop = self.entry(self.number)
        if stop is None:
            return None
        first, last = self.line_of(start), self.line_of(stop)
        before = self.file.text[self.file.offset(first, 1) : start]
        left = self.file.line(last)[stop - self.file.offset(last, 1) :]
        if not re.fullmatch(r"[ \t]*(?:#.*)?", left):
            return None
        if isinstance(self.parent, YamlSequence):
            if not DASH.fullmatch(before):
                return None
            column = before.index("-") + 1
        elif before.strip(" "):
            return self._without_first_of_item(start, stop)
        else:
            column = len(before) + 1
        while is_comment(deeper := self.file.line(last + 1)) and indentation_of(deeper) >= column:
            last += 1
        return (self._lines(self._first_comment(first), last),)

    def _without_first_of_item(self, start: int, stop: int) -> Edits | None:
        """Remove the first key of a mapping that begins on the line of its dash: the second key moves there."""
        line = self.line_of(start)
        before = self.file.line(line)[: start - self.file.offset(line, 1)]
        if self.number != 0 or not DASH.fullmatch(before):
            return None
        following = self.entry(1)[0]
        return None if self.file.text[stop:following].strip() else (self.edit(start, following, ""),)

    def _first_comment(self, first: int) -> int:
        """Return the first of the comment lines directly above an entry, without the head of the document."""
        if self.number == 0 and self.at_root:
            return first
        previous = self.entry(self.number - 1)[1] if self.number else 0
        if previous is None:
            return first
        floor = self.line_of(previous) if previous else 0
        indentation = indentation_of(self.file.line(first))
        while (
            first - 1 > floor
            and is_comment(above := self.file.line(first - 1))
            and indentation_of(above) == indentation
        ):
            first -= 1
        return first

    def _lines(self, first: int, last: int) -> Edit:
        """Return the removal of whole lines, and of one of two blank lines that would meet."""
        starts = self.file.starts
        above = first == 1 or not self.file.line(first - 1).strip()
        if above and last + 1 < len(starts) and not self.file.line(last + 1).strip():
            last += 1
        return self.edit(starts[first - 1], starts[last] if last < len(starts) else len(self.file.text), "")


def last_end(file: SourceFile, value: Any, mark: Mark) -> int | None:
    """Return the offset behind the last character of a value; the parser's mark may include what follows."""
    start, stop = file.offsets(mark)
    if file.text.startswith(("|", ">"), start):
        return start + len(file.text[start:stop].rstrip())
    if not isinstance(value, YamlMapping | YamlSequence) or file.text.startswith(("{", "[", "*"), start):
        return stop
    entries = value.entries()
    end = last_end(file, *entries[-1][1:]) if entries else None
    return end if end is not None and _ONLY_COMMENTS.fullmatch(file.text, end, stop) else None


def _has(value: YamlMapping | YamlSequence, step: str | int) -> bool:
    if isinstance(value, YamlMapping):
        return step in value
    return isinstance(step, int) and 0 <= step < len(value)


def _below(value: Any, step: str | int) -> Any:
    return value[step]


def _is_plain_flow(text: str) -> bool:
    return text.startswith(("{", "[")) and not _COMMENT.search(text) and not ANCHOR.search(text)


def is_comment(line: str) -> bool:
    """Return whether a line holds a comment only."""
    return line.lstrip().startswith("#")


def indentation_of(line: str) -> int:
    """Return the number of blanks before the text of a line."""
    return len(line) - len(line.lstrip())
