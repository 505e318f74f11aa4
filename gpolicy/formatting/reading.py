"""Read a file into its tree: each value as it is written, with the comments that describe it.

A comment on its own line belongs to the next entry; at the end of a nested part it belongs to that part if it has the
same indentation. A comment behind a key or value belongs to that key or value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from gpolicy.policy.source_file import Mark, SourceFile, YamlDocument, YamlMapping, YamlSequence

_PREFIX: Final = re.compile(r"(?:(?:&[\w-]+|!\S*)[ \t]*)*", re.ASCII)
_BETWEEN: Final = re.compile(r"(?:[\s:,\[\]{}-]|[&*][\w-]+|!\S*|\.\.\.)*+", re.ASCII)
_HEADER: Final = re.compile(r"([|>])([+-]?)([ \t]*)(#[^\n]*)?")
_PASSED: Final = re.compile(r"(?:[\s:]|#[^\n]*)*+")
_STYLES: Final = ("'", '"', "|", ">", "*")
_FAR: Final = 100  # comments to look past; no comment goes on for so long
_MAY_TOUCH: Final = frozenset(" \t\n,[]{}:")


class CannotFormatError(Exception):
    """The file cannot be formatted safely. `line` from 1, or 0 without a place."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(slots=True)
class CommentLines:
    """A comment with all its lines, from offset `start` on.

    `column` counts from 0; `gap` is the number of blanks before the comment on its line. `blank`: an empty line comes
    before it. `more` are further lines of a comment behind other text.
    """

    start: int
    text: str
    line: int
    column: int
    gap: int
    own_line: bool
    blank: bool
    more: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All its lines."""
        return [self.text, *self.more]


@dataclass(slots=True)
class TreeScalar:
    """A scalar or an alias. `text` is its value, `body` how it is written, `prefix` its anchor and tag.

    `style` is that of YAML's events: empty, a quote, `|` or `>`, and `*` for an alias. `behind` is the comment in the
    first line of a block scalar.
    """

    text: str
    body: str
    prefix: str
    style: str
    behind: CommentLines | None = None

    @property
    def is_block(self) -> bool:
        """Whether it is a block of text under its key."""
        return self.style in ("|", ">")


@dataclass(slots=True)
class TreeCollection:
    """A mapping or a sequence, in the order of the file. `column` is that of its first key or dash, from 0.

    `after` are the comments on their own lines after the last entry, `head` those at the top of a whole document.
    `commented`: a comment is inside a collection in braces or brackets, so that it cannot stand on one line.
    """

    is_mapping: bool
    flow: bool
    prefix: str
    column: int = -1
    entries: list[TreeEntry] = field(default_factory=list)
    after: list[CommentLines] = field(default_factory=list)
    head: list[CommentLines] = field(default_factory=list)
    commented: bool = False


@dataclass(slots=True)
class TreeEntry:
    """A key with its value, or an item of a sequence (`key` is None).

    `before` are the comments on their own lines before it, `opening` is the one behind the key or dash, `behind` the
    one behind the value. `blank`: an empty line comes before the key or dash.
    """

    key: TreeScalar | None
    value: TreeNode
    before: list[CommentLines]
    blank: bool
    opening: CommentLines | None = None
    behind: CommentLines | None = None


TreeNode = TreeScalar | TreeCollection


@dataclass(slots=True)
class File:
    """The mappings of a file's documents, and all its comments in order; a file without documents has nothing else."""

    documents: list[TreeCollection]
    comments: list[CommentLines]


def read_file(source: SourceFile) -> File:
    """Return the tree of a file without findings whose lines end in line feeds. Raise CannotFormatError."""
    for line in source.document_lines:
        if source.line(line).startswith("%"):
            raise CannotFormatError("it has a %directive", line)
    return _TreeReader(source).file()


class _TreeReader:
    """Walks the values of a file and takes each comment at its place."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._text = source.text
        self._comments = _comments_of(source)
        self._taken = 0
        self._place = 0  # behind the last text or dash

    def file(self) -> File:
        documents: list[TreeCollection] = []
        for line, document in zip(self._source.document_lines, self._source.documents, strict=True):
            if documents:
                self._finish(documents[-1], self._source.offset(line, 1))
            if document.mark[:2] != document.mark[2:]:  # else nothing is between two ---, or comments alone
                documents.append(self._document(document))
        if documents:
            self._finish(documents[-1], len(self._text))
        return File(documents, self._comments)

    def _document(self, document: YamlDocument) -> TreeCollection:
        root = self._begin(document.root, document.mark)
        if root is None or not root.is_mapping:
            raise CannotFormatError("a document is not a policy document", document.mark[0])
        if root.prefix and not root.flow:
            raise CannotFormatError("a whole document has an anchor or a tag", document.mark[0])
        self._tree_node(root, document.root, document.mark)
        if root.entries:
            root.head, root.entries[0].before = root.entries[0].before, []
        return root

    def _finish(self, root: TreeCollection, offset: int) -> None:
        """Attach the comments up to `offset` to the end of a document or of its last parts."""
        root.after += self._to_last(root.entries, self._take(offset), -1)

    def _take(self, offset: int) -> list[CommentLines]:
        """Return the comments before an offset that are not taken yet."""
        first = self._taken
        while self._taken < len(self._comments) and self._comments[self._taken].start < offset:
            self._taken += 1
        return self._comments[first : self._taken]

    def _take_behind(self, line: int, offset: int | None = None) -> CommentLines | None:
        """Return the next comment if it is behind other text on this line, from 1, and before an offset."""
        if self._taken < len(self._comments):
            comment = self._comments[self._taken]
            if comment.line == line and not comment.own_line and (offset is None or comment.start < offset):
                self._taken += 1
                return comment
        return None

    def _begin(self, value: Any, mark: Mark, *, in_flow: bool = False) -> TreeCollection | None:
        """Return the collection that begins at a mark, still empty; None for a scalar or an alias."""
        prefix, letter = _beginning(self._text, self._source.offset(*mark[:2]))
        if not isinstance(value, YamlMapping | YamlSequence) or letter == "*":
            return None
        if any(first[:2] == mark[:2] for first, _, _ in value.entries()[:1]):
            prefix = ""  # that of the first key
        flow = in_flow or self._brace(mark) is not None
        return TreeCollection(is_mapping=isinstance(value, YamlMapping), flow=flow, prefix=prefix.strip())

    def _brace(self, mark: Mark) -> int | None:
        """Return the offset of the brace or bracket that opens a collection; None if it has none."""
        start = self._source.offset(*mark[:2])
        place = start + len(_beginning(self._text, start)[0])
        place = place if place == start else _passed(self._text, place)
        return place if self._text.startswith(("{", "["), place) else None

    def _tree_node(self, begun: TreeCollection | None, value: Any, mark: Mark) -> TreeNode:
        if begun is None:
            return self._scalar(value, mark)
        if begun.flow:
            self._flow(begun, value, mark)
        elif begun.is_mapping:
            self._block_mapping(begun, value)
        else:
            self._block_sequence(begun, value, mark)
        return begun

    def _scalar(self, value: Any, mark: Mark) -> TreeScalar:
        start, end = self._source.offsets(mark)
        self._place = end
        if start == end:
            return TreeScalar("", "", "", "")
        prefix, letter = _beginning(self._text, start)
        body = self._text[start + len(prefix) : end]
        if prefix and not body.strip():
            raise CannotFormatError("an anchor or a tag has no value", mark[0])
        style = letter if letter in _STYLES else ""
        scalar = TreeScalar(value if isinstance(value, str) else body, body, prefix.strip(), style)
        if scalar.is_block:
            scalar.behind = self._take_behind(mark[0])
        return scalar

    def _tree_key(self, key: str, mark: Mark) -> TreeScalar:
        start, end = self._source.offsets(mark)
        if start == end or self._text.startswith("*", start):
            raise CannotFormatError("a key is not a plain word", mark[0])
        scalar = self._scalar(key, mark)
        if "\n" in scalar.body:
            raise CannotFormatError("a key spans several lines", mark[0])
        return scalar

    def _block_mapping(self, mapping: TreeCollection, values: YamlMapping) -> None:
        for key, (key_mark, value, mark) in zip(values, values.entries(), strict=True):
            if mapping.column < 0:
                mapping.column = key_mark[1] - 1
            before = self._to_last(mapping.entries, self._take(self._source.offset(*key_mark[:2])), mapping.column)
            scalar = self._tree_key(key, key_mark)
            blank = _is_blank(self._source, key_mark[0] - 1)
            mapping.entries.append(self._tree_entry(scalar, before, value, mark, blank=blank, line=key_mark[2]))
        if mapping.column > 0:  # the empty line at the beginning of a nested part goes, before its first entry moves
            first = mapping.entries[0]
            (first.before[0] if first.before else first).blank = False

    def _block_sequence(self, sequence: TreeCollection, values: YamlSequence, mark: Mark) -> None:
        start = self._source.offset(*mark[:2])
        self._place = max(self._place, start + len(_beginning(self._text, start)[0]))
        for _, value, item_mark in values.entries():
            dash = _passed(self._text, self._place)
            if not self._text.startswith("-", dash):
                raise CannotFormatError("an item of a list was not found", self._source.line_of(self._place))
            line, column = self._source.line_and_column(dash)
            column -= 1
            if sequence.column < 0:
                sequence.column = column
            before = self._to_last(sequence.entries, self._take(dash), sequence.column)
            self._place = dash + 1
            blank = not self._text[dash - column : dash].strip() and _is_blank(self._source, line - 1)
            sequence.entries.append(self._tree_entry(None, before, value, item_mark, blank=blank, line=line))

    def _tree_entry(
        self, key: TreeScalar | None, before: list[CommentLines], value: Any, mark: Mark, *, blank: bool, line: int
    ) -> TreeEntry:
        """Return the entry whose key or dash, on `line`, was read last."""
        start, end = self._source.offsets(mark)
        opening = self._take_behind(line, start)
        begun = self._begin(value, mark)
        if begun is None or begun.flow:
            before = before + self._take(start if start < end else 0)  # between a key and its value on its own line
        elif begun.prefix:
            opening = opening or self._take_behind(mark[0])  # behind its anchor
        node = self._tree_node(begun, value, mark)
        behind = None
        if isinstance(node, TreeCollection):
            behind = self._take_behind(self._source.line_of(self._place - 1)) if node.flow else None
        elif not node.is_block:
            behind = self._take_behind(mark[2] if start < end else line)
        return TreeEntry(key, node, before, blank, opening, behind)

    def _to_last(self, entries: list[TreeEntry], comments: list[CommentLines], column: int) -> list[CommentLines]:
        """Attach comments with the indentation of a nested part that has just ended to that part; return the others."""
        nested: list[TreeCollection] = []
        value: TreeNode | None = entries[-1].value if entries else None
        while isinstance(value, TreeCollection) and not value.flow and value.entries:
            nested.append(value)
            value = value.entries[-1].value
        left: list[TreeCollection] = []
        for part in nested:  # if dashes are below the key of their list, the outer part counts
            if part.column > (left[-1].column if left else column):
                left.append(part)
        for place, comment in enumerate(comments):
            left = [part for part in left if part.column <= comment.column]
            if not left:
                return comments[place:]
            left[-1].after.append(comment)
        return []

    def _flow(self, collection: TreeCollection, values: YamlMapping | YamlSequence, mark: Mark) -> None:
        start, end = self._source.offsets(mark)
        brace = self._brace(mark)
        self._place = start if brace is None else brace + 1
        line = self._source.line_of(self._place)
        keys = values if isinstance(values, YamlMapping) else [None] * len(values)
        for name, (key_mark, value, value_mark) in zip(keys, values.entries(), strict=True):
            begun = self._begin(value, value_mark, in_flow=True)
            is_pair = name is None and begun is not None and self._brace(value_mark) is None
            first = self._place if is_pair or key_mark[:2] == key_mark[2:] else self._source.offset(*key_mark[:2])
            before = self._between(collection, first, line)
            key = None if name is None else self._tree_key(name, key_mark)
            if key is not None and value_mark[:2] != value_mark[2:]:
                before += self._comments_in(collection, self._source.offset(*value_mark[:2]))
            node = self._tree_node(begun, value, value_mark)
            if isinstance(node, TreeCollection):
                collection.commented |= node.commented
            collection.entries.append(TreeEntry(key, node, before, blank=False))
            line = self._source.line_of(max(self._place - 1, 0))
        if brace is not None:
            collection.after += self._between(collection, end - 1, line)
            self._place = end

    def _comments_in(self, collection: TreeCollection, offset: int) -> list[CommentLines]:
        found = self._take(offset)
        collection.commented |= bool(found)
        return found

    def _between(self, collection: TreeCollection, offset: int, line: int) -> list[CommentLines]:
        """Return the comments before an item or the end; one on the line of the previous item belongs to it."""
        found = self._comments_in(collection, offset)
        if found and found[0].line == line and collection.entries and collection.entries[-1].behind is None:
            collection.entries[-1].behind = found[0]
            return found[1:]
        return found


def _beginning(text: str, start: int) -> tuple[str, str]:
    """Return the anchor and the tag at an offset, with the blanks behind them, and the first letter of their value."""
    found = _PREFIX.match(text, start)
    prefix = found.group() if found else ""
    place = _passed(text, start + len(prefix)) if prefix else start
    return prefix, text[place : place + 1]


def _passed(text: str, place: int) -> int:
    """Return the offset behind the blanks, colons and comments at an offset."""
    found = _PASSED.match(text, place)
    return found.end() if found else place


def _is_blank(source: SourceFile, line: int) -> bool:
    return line > 0 and not source.line(line).strip()


def _comments_of(source: SourceFile) -> list[CommentLines]:
    """Return all comments in their order. Raise CannotFormatError where what lies between the values is not clear."""
    text, last = source.text, 0
    scalars = [source.offsets(mark) for mark in source.scalars]
    places = sorted([*scalars, *source.comments])
    for start, end in [*places, (len(text), len(text))]:
        between = _BETWEEN.match(text, last, max(start, last))
        if between is not None and between.end() < start:
            raise CannotFormatError("it has YAML that gpolicy does not format", source.line_of(between.end()))
        last = max(last, end)
    for start, end in scalars:
        prefix, letter = _beginning(text, start)
        if letter in ("|", ">") and start < end:
            header = _HEADER.match(text, start + len(prefix))
            if header is None or text[header.end() : header.end() + 1] not in ("", "\n"):
                place = source.line_of(start + len(prefix))
                raise CannotFormatError("a block of text has an indentation indicator", place)
    return _joined([_on_its_line(source, *place) for place in source.comments], source)


def _on_its_line(source: SourceFile, start: int, stop: int) -> CommentLines:
    line, column = source.line_and_column(start)
    if start and source.text[start - 1] not in _MAY_TOUCH:
        raise CannotFormatError("a comment has no blank before it", line)
    before = source.text[start - column + 1 : start]
    return CommentLines(
        start=start,
        text=source.text[start:stop].rstrip(),
        line=line,
        column=len(before),
        gap=len(before) - len(before.rstrip()),
        own_line=not before.strip(),
        blank=_is_blank(source, line - 1),
    )


def _joined(comments: list[CommentLines], source: SourceFile) -> list[CommentLines]:
    """Join each comment behind other text with the comment lines directly below it in the same column."""
    joined: list[CommentLines] = []
    for place, comment in enumerate(comments):
        last = joined[-1] if joined else None
        if (
            last is not None
            and comment.own_line
            and not last.own_line
            and comment.column == last.column
            and comment.line == last.line + len(last.texts)
            and comment.column > _next_column(comments, place, source)
        ):
            last.more.append(comment.text)
        else:
            joined.append(comment)
    return joined


def _next_column(comments: list[CommentLines], place: int, source: SourceFile) -> int:
    """Return the column of what comes next behind a comment that stands on a line of its own; -1 at the end."""
    passed = {comment.line for comment in comments[place : place + _FAR] if comment.own_line}
    for line in range(comments[place].line + 1, source.line_count + 1):
        if line not in passed and not _is_blank(source, line):
            return len(source.line(line)) - len(source.line(line).lstrip(" \t"))
    return -1
