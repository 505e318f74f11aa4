"""Read a file into its tree: each value as written, each comment with what it describes.

A comment on its own line belongs to the next entry; at the end of a nested part it belongs to that part if it has the
same indentation. A comment behind a key or value belongs to that key or value.
"""

from __future__ import annotations

from typing import Any, Final

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gpolicy.formatting.comments import Events, comments_of, events_of, is_blank, line_of, prefix_at
from gpolicy.formatting.tree import (
    Block,
    CannotFormatError,
    Collection,
    CommentLines,
    Document,
    File,
    Mapping,
    Node,
    Scalar,
    Sequence,
    TreeEntry,
)
from gpolicy.policy.source_file import SourceFile

_ENDS: Final = (MappingEndEvent, SequenceEndEvent)


def read_file(source: SourceFile) -> File:
    """Return the tree of a file whose lines end in line feeds. Raise CannotFormatError."""
    events = events_of(source.text)
    return _Reader(source, events, comments_of(source, events)).file()


class _Reader:
    """Walks the events and takes each comment at its place."""

    def __init__(self, source: SourceFile, events: Events, comments: list[CommentLines]) -> None:
        self._source = source
        self._text = source.text
        self._events = events
        self._next = 1  # the first is the start of the stream
        self._comments = comments
        self._taken = 0
        self._place = 0  # behind the last text or dash

    def file(self) -> File:
        documents: list[Document] = []
        while self._next < len(self._events):
            start, offset, _ = self._pop()
            assert type(start) is DocumentStartEvent  # noqa: S101 (the parser's grammar)
            if documents:
                self._finish(documents[-1], offset)
            event, begin, end = self._events[self._next]
            if type(event) is ScalarEvent and begin == end:
                self._pop()  # nothing between two ---, or comments alone
            else:
                documents.append(self._document())
            self._pop()  # the document's end
        if documents:
            self._finish(documents[-1], len(self._text))
        return File(documents, self._comments)

    def _document(self) -> Document:
        event, start, end = self._pop()
        if type(event) is not MappingStartEvent:
            raise CannotFormatError("a document is not a policy document", line_of(event))
        if start < end and not event.flow_style:
            raise CannotFormatError("a whole document has an anchor or a tag", line_of(event))
        root = self._node(event, start, end)
        assert isinstance(root, Mapping)  # noqa: S101
        document = Document(root)
        if root.entries:
            document.head, root.entries[0].before = root.entries[0].before, []
        return document

    def _finish(self, document: Document, offset: int) -> None:
        """Attach the comments up to `offset` to the end of a document or of its last parts."""
        root = document.root
        left = self._to_last(root.entries, self._take(offset), -1)
        root.after += left

    # --- events and comments -------------------------------------------------------------------------------------

    def _pop(self) -> tuple[Any, int, int]:
        event = self._events[self._next]
        self._next += 1
        return event

    def _ends_here(self) -> bool:
        return isinstance(self._events[self._next][0], _ENDS)

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

    def _line_is_blank_before(self, event_line: int) -> bool:
        return is_blank(self._source, event_line - 1)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, event: Any, start: int, end: int) -> Node:
        """Return the node that begins with an event."""
        match event:
            case AliasEvent():
                self._place = end
                return Scalar("", self._text[start:end], "", "*", tagged=False)
            case ScalarEvent():
                return self._scalar(event, start, end)
            case MappingStartEvent() | SequenceStartEvent() if event.flow_style:
                return self._flow(event, start, end)
            case MappingStartEvent():
                return self._block_mapping(event, start, end)
        return self._block_sequence(event, start, end)

    def _scalar(self, event: Any, start: int, end: int) -> Scalar:
        prefix = prefix_at(self._text, start) if event.anchor is not None or event.tag is not None else ""
        body = self._text[start + len(prefix) : end]
        if prefix and not body.strip():
            raise CannotFormatError("an anchor or a tag has no value", line_of(event))
        self._place = end
        scalar = Scalar(event.value, body, prefix.strip(), event.style or "", tagged=event.tag is not None)
        if scalar.style in ("|", ">"):
            scalar.behind = self._take_behind(line_of(event))
        return scalar

    def _prefix(self, event: Any, start: int) -> str:
        named = event.anchor is not None or event.tag is not None
        return prefix_at(self._text, start).strip() if named else ""

    def _key(self, event: Any, start: int, end: int) -> Scalar:
        line = line_of(event)
        if type(event) is not ScalarEvent or start == end:
            raise CannotFormatError("a key is not a plain word", line)
        key = self._scalar(event, start, end)
        if "\n" in key.body:
            raise CannotFormatError("a key spans several lines", line)
        return key

    def _block_mapping(self, event: Any, start: int, end: int) -> Mapping:
        self._place = max(self._place, end)
        mapping = Mapping(flow=False, prefix=self._prefix(event, start), column=-1)
        while not self._ends_here():
            key_event, key_start, key_end = self._pop()
            if mapping.column < 0:
                mapping.column = key_event.start_mark.column
            before = self._to_last(mapping.entries, self._take(key_start), mapping.column)
            key = self._key(key_event, key_start, key_end)
            blank = self._line_is_blank_before(line_of(key_event))
            mapping.entries.append(self._value(key, before, blank=blank, line=key_event.end_mark.line + 1))
        self._pop()
        if mapping.column > 0:
            _without_blank(mapping.entries[0])
        return mapping

    def _block_sequence(self, event: Any, start: int, end: int) -> Sequence:
        self._place = max(self._place, end)
        sequence = Sequence(flow=False, prefix=self._prefix(event, start), column=-1)
        while not self._ends_here():
            dash = self._dash()
            line, column = self._source.line_and_column(dash)
            column -= 1
            if sequence.column < 0:
                sequence.column = column
            before = self._to_last(sequence.entries, self._take(dash), sequence.column)
            self._place = dash + 1
            blank = not self._text[dash - column : dash].strip() and self._line_is_blank_before(line)
            sequence.entries.append(self._value(None, before, blank=blank, line=line))
        self._pop()
        return sequence

    def _dash(self) -> int:
        """Return the offset of the dash of the next item."""
        place = self._text.find("-", self._place)
        first = self._taken
        while first and self._comments[first - 1].start >= self._place:
            first -= 1
        for number in range(first, len(self._comments)):
            comment = self._comments[number]
            if comment.start > place:
                break
            place = self._text.find("-", comment.stop)
        if place < 0:
            raise CannotFormatError("an item of a list was not found", self._line_of(self._place))
        return place

    def _line_of(self, offset: int) -> int:
        return self._source.line_and_column(offset)[0]

    def _value(self, key: Scalar | None, before: list[CommentLines], *, blank: bool, line: int) -> TreeEntry:
        """Return the entry whose key or dash, on `line`, was read last."""
        event, start, end = self._pop()
        is_block = isinstance(event, MappingStartEvent | SequenceStartEvent) and not event.flow_style
        opening = self._take_behind(line, start)
        if not is_block and start < end:
            before = before + self._take(start)  # between a key and its value on a line of its own
        elif is_block and end > start:
            opening = opening or self._take_behind(line_of(event))  # behind its anchor
        value = self._node(event, start, end)
        entry = TreeEntry(key, value, before, blank, opening)
        if isinstance(value, Scalar) and value.style not in ("|", ">"):
            entry.behind = self._take_behind(event.end_mark.line + 1 if start < end else line)
        elif isinstance(value, Collection) and value.flow:
            entry.behind = self._take_behind(self._line_of(self._place - 1))
        return entry

    def _to_last(self, entries: list[TreeEntry], comments: list[CommentLines], column: int) -> list[CommentLines]:
        """Attach comments with the indentation of a nested part that has just ended to that part; return the others."""
        nested: list[Block] = []
        value: Node | None = entries[-1].value if entries else None
        while isinstance(value, Collection) and not value.flow and value.entries:
            nested.append(value)
            value = value.entries[-1].value
        left: list[Block] = []
        for part in nested:  # if dashes are below the key of their list, the outer part counts
            if part.column > (left[-1].column if left else column):
                left.append(part)
        for place, comment in enumerate(comments):
            left = [part for part in left if part.column <= comment.column]
            if not left:
                return comments[place:]
            left[-1].after.append(comment)
        return []

    # --- in braces and brackets ----------------------------------------------------------------------------------

    def _flow(self, event: Any, start: int, end: int) -> Node:
        is_mapping = type(event) is MappingStartEvent
        made = Mapping if is_mapping else Sequence
        collection = made(flow=True, prefix=self._prefix(event, start), column=event.start_mark.column)
        self._place = end
        line = event.end_mark.line + 1
        while not self._ends_here():
            item, item_start, item_end = self._pop()
            before = self._between(collection, item_start if item_start < item_end else self._place, line)
            key = None
            if is_mapping:
                key = self._key(item, item_start, item_end)
                item, item_start, item_end = self._pop()
                if item_start < item_end:
                    before += self._comments_in(collection, item_start)
            value = self._node(item, item_start, item_end)
            if isinstance(value, Collection):
                collection.commented |= value.commented
            collection.entries.append(TreeEntry(key, value, before, blank=False))
            line = self._line_of(max(self._place - 1, 0))
        _, end_start, end_end = self._pop()
        if end_start < end_end:
            collection.after += self._between(collection, end_start, line)
            self._place = end_end
        return collection

    def _comments_in(self, collection: Block, offset: int) -> list[CommentLines]:
        found = self._take(offset)
        collection.commented |= bool(found)
        return found

    def _between(self, collection: Block, offset: int, line: int) -> list[CommentLines]:
        """Return the comments before an item or the end; one on the line of the previous item belongs to it."""
        found = self._comments_in(collection, offset)
        if found and found[0].line == line and collection.entries and collection.entries[-1].behind is None:
            collection.entries[-1].behind = found[0]
            return found[1:]
        return found


def _without_blank(first: TreeEntry) -> None:
    """Drop the empty line at the beginning of a nested part, before its first entry moves."""
    if first.before:
        first.before[0].blank = False
    else:
        first.blank = False
