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
from gpolicy.policy.source_file import BREAKS, Mark, Pointer, SourceFile, YamlDocument, YamlMapping, YamlSequence

Edits = tuple[Edit, ...]

ANCHOR: Final = re.compile(r"(?:^|[\s\[{,])&\S")
_COMMENT: Final = re.compile(r"(?:^|\s)#")
_ONLY_COMMENTS: Final = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:#[^\n]*)?")
_ONLY_COMMENT: Final = re.compile(r"[ \t]*(?:#.*)?")
_COMMA: Final = re.compile(r"\s*(?:,\s*)?")
_LEFT_ON_LINE: Final = re.compile(r"[ \t]*+(?:,[ \t]*+)?(?:#.*)?")
DASH: Final = re.compile(r" *-[ \t]+")


def fix(message: str, edits: Edits | None) -> Fix | None:
    """Return the fix that makes `edits`; None if they could not be made."""
    return Fix(message, edits) if edits else None


def replace_value(document: YamlDocument, pointer: Pointer, yaml_text: str) -> Edits | None:
    """Write `yaml_text`, quoted by the caller, for a scalar, or for braces or brackets with no comment inside."""
    found = CollectionPlace.around(document, pointer)
    if found is None:
        return None
    place, number = found
    file, (_, value, mark) = place.file, place.value.entries()[number]
    start, stop = file.offsets(mark)
    old = file.text[start:stop]
    is_collection = isinstance(value, YamlMapping | YamlSequence) and not old.startswith("*")
    is_plain = old.startswith(("{", "[")) and not _COMMENT.search(old) and not ANCHOR.search(old)
    if old.startswith(("&", "!", "|", ">")) or (is_collection and not is_plain):
        return None
    if not old and start and not file.text[start - 1].isspace():
        yaml_text = f" {yaml_text}"  # behind a colon or a dash with nothing after it
    return (file.edit(start, stop, yaml_text),)


def replace_word(files: dict[str, SourceFile], span: Span | None, old: str, new: str) -> Fix | None:
    """Return the fix that writes `new` for `old` in its quotes; None for another text. Neither needs escapes."""
    file = files.get(span.file) if span else None
    if file is None or span is None:
        return None
    written = file.written(span)
    for quote in ('"', "'", ""):
        plain = all(letter.isalnum() or letter in ":-_./" for letter in new) and new[:1].isalpha() and new[-1:] != ":"
        if written == f"{quote}{old}{quote}" and (quote or plain):
            return Fix(f"write {new}", (Edit(span, f"{quote}{new}{quote}"),))
    return None


def rename_key(document: YamlDocument, pointer: Pointer, new: str) -> Edits | None:
    """Write `new` in place of the key that ends `pointer`; None if its mapping has that key already."""
    found = CollectionPlace.around(document, pointer)
    if found is None or not isinstance(found[0].value, YamlMapping) or new in found[0].value:
        return None
    file = document.source
    start, stop = file.offsets(found[0].value.key_marks[str(pointer[-1])])
    return None if file.text[start : start + 1] in ("&", "!", "*", "") else (file.edit(start, stop, new),)


def remove_entry(document: YamlDocument, pointer: Pointer, *, climb: bool = False) -> Edits | None:
    """Remove the entry of a mapping or the item of a list, with its comma or its lines.

    Its comments are removed, too: behind it, inside it, and on the lines directly above it. The only entry of a
    collection stays; with `climb` the entry of that collection is removed instead.
    """
    found = CollectionPlace.around(document, pointer)
    if found is None:
        return None
    place, number = found
    if len(place.value) == 1:
        can_climb = climb and isinstance(place.value, YamlMapping) and len(pointer) > 1
        can_climb = can_climb and not isinstance(pointer[-2], int)
        return remove_entry(document, pointer[:-1], climb=True) if can_climb else None
    start, stop = place.extent(number)
    if stop is None or ANCHOR.search(place.file.text[start:stop]):
        return None
    return place.without_in_flow(number) if place.is_flow else place.without_lines(number)


def remove_document(document: YamlDocument) -> Edits | None:
    """Remove a document with its `---` and the comments below that; None for the first one of a file.

    Comments after it that are not indented stay: they may belong to the next document.
    """
    file = document.source
    begin, end = file.offsets(document.mark)
    line = document.mark[0] - 1
    while line and (not file.line(line).strip() or _is_comment(file.line(line))):
        line -= 1
    if not line or file.line(line).rstrip() != "---" or ANCHOR.search(file.text[begin:end]):
        return None
    behind = file.text[end:].lstrip("\n\r \t")
    if behind and not behind.startswith("---"):
        return None  # an end mark, or something of the next document
    last = last_end(file, document.root, document.mark)
    stop = len(file.text) - len(behind)
    if last is not None:
        at_margin = (start for start, _ in file.comments if start > last and file.text[start - 1] in BREAKS)
        stop = next(at_margin, stop)
    return (file.edit(file.starts[line - 1], stop, ""),)


@dataclass(frozen=True, slots=True)
class CollectionPlace:
    """A mapping or a list in its source text. Its entries are known by their numbers, from 0."""

    file: SourceFile
    value: YamlMapping | YamlSequence
    mark: Mark
    is_flow: bool
    is_root: bool

    @classmethod
    def find(cls, document: YamlDocument, pointer: Pointer) -> CollectionPlace | None:
        """Return the collection at `pointer`; None if there is none, or if an edit would change other places, too."""
        file, value, mark, is_flow = document.source, document.root, document.mark, False
        for step in (*pointer, None):
            start = file.offset(*mark[:2])
            begin = file.text[start : start + 1]
            if not isinstance(value, YamlMapping | YamlSequence) or begin in ("&", "*", "!"):
                return None
            if is_flow and begin not in ("{", "["):
                return None  # the pair of [a: 1], which has no braces
            is_flow = begin in ("{", "[")
            if step is not None:
                entry = value.entry(step)
                if entry is None:
                    return None
                _, value, mark = entry
        return cls(file, value, mark, is_flow, is_root=not pointer)

    @classmethod
    def around(cls, document: YamlDocument, pointer: Pointer) -> tuple[CollectionPlace, int] | None:
        """Return the collection around the entry at `pointer`, and the number of the entry; None as above."""
        place = cls.find(document, pointer[:-1]) if pointer else None
        if place is None or place.value.entry(step := pointer[-1]) is None:
            return None
        return place, step if isinstance(step, int) else list(place.value).index(step)

    def extent(self, number: int) -> tuple[int, int | None]:
        """Return where an entry begins and where its last character ends; None for an unknown end."""
        first, value, mark = self.value.entries()[number]
        return self.file.offset(*first[:2]), last_end(self.file, value, mark)

    def last_line(self, number: int, column: int) -> int | None:
        """Return an entry's last line, with comments below it from `column` on; None for an unknown or shared end."""
        stop = self.extent(number)[1]
        if stop is None or not _ONLY_COMMENT.fullmatch(self.file.behind(stop)):
            return None
        line = self.file.line_of(stop)
        while _is_comment(deeper := self.file.line(line + 1)) and _indentation_of(deeper) >= column:
            line += 1
        return line

    def without_in_flow(self, number: int) -> Edits | None:
        """Return the removal of an entry from braces or brackets."""
        if (whole_lines := self._without_flow_lines(number)) is not None:
            return whole_lines
        start, stop = self.extent(number)
        if self.file.text[max(start - 1000, 0) : start].rstrip()[-1:] not in ("{", "[", ","):
            return None  # a comment, or the ? of a key
        behind = None
        if number < len(self.value) - 1:
            following = self.extent(number + 1)[0]
            behind = self._comma_between(stop, following)
            if behind is not None and "\n" not in behind:
                return (self.file.edit(start, following, ""),)
        previous = self.extent(number - 1)[1] if number else None
        if previous is not None and stop is not None and self._comma_between(previous, start) is not None:
            return (self.file.edit(previous, stop, ""),)
        return (self.file.edit(start, following, ""),) if behind is not None else None

    def _comma_between(self, start: int | None, stop: int) -> str | None:
        """Return the text between two entries if it is only a comma and blanks."""
        text = "" if start is None else self.file.text[start:stop]
        return text if "," in text and _COMMA.fullmatch(text) else None

    def _without_flow_lines(self, number: int) -> Edits | None:
        """Remove an entry that does not share its lines; None if it does."""
        start, stop = self.extent(number)
        if stop is None or self.file.before(start).strip(" "):
            return None
        left = self.file.behind(stop)
        if not _LEFT_ON_LINE.fullmatch(left):
            return None
        lines = (self._lines(self._first_comment(number), self.file.line_of(stop)),)
        previous = self.extent(number - 1)[1] if number else None
        if number < len(self.value) - 1 or previous is None or "," in left.partition("#")[0]:
            return lines
        comma = re.compile(r"[ \t]*,").match(self.file.text, previous)
        return (self.file.edit(previous, comma.end(), ""), *lines) if comma else lines

    def without_lines(self, number: int) -> Edits | None:
        """Return the removal of an entry with its lines."""
        start = self.extent(number)[0]
        before = self.file.before(start)
        is_item = DASH.fullmatch(before) is not None
        if isinstance(self.value, YamlSequence) and not is_item:
            return None
        last = self.last_line(number, before.index("-") + 1 if is_item else len(before) + 1)
        if last is None:
            return None
        if isinstance(self.value, YamlSequence) or not before.strip(" "):
            return (self._lines(self._first_comment(number), last),)
        # the first key of a mapping that begins on the line of its dash: the second key moves there
        start, stop = self.extent(number)
        following = self.extent(1)[0]
        stays = not is_item or number or self.file.text[stop:following].strip()
        return None if stays else (self.file.edit(start, following, ""),)

    def _first_comment(self, number: int) -> int:
        """Return the first line of an entry with the comment lines directly above, without the head of the document."""
        first = self.file.line_of(self.extent(number)[0])
        previous = self.extent(number - 1)[1] if number else 0
        if previous is None or (number == 0 and self.is_root):
            return first
        floor = self.file.line_of(previous) if previous else 0
        indentation = _indentation_of(self.file.line(first))
        while first - 1 > floor and _is_comment(above := self.file.line(first - 1)):
            if _indentation_of(above) != indentation:
                break
            first -= 1
        return first

    def _lines(self, first: int, last: int) -> Edit:
        """Return the removal of whole lines, and of one of two blank lines that would meet."""
        starts = self.file.starts
        above = first == 1 or not self.file.line(first - 1).strip()
        if above and last + 1 < len(starts) and not self.file.line(last + 1).strip():
            last += 1
        return self.file.edit(starts[first - 1], starts[last] if last < len(starts) else len(self.file.text), "")


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


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _indentation_of(line: str) -> int:
    return len(line) - len(line.lstrip())
