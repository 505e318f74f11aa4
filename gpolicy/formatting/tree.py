"""The tree of a file: values as they are written, each with its comments."""

from __future__ import annotations

from dataclasses import dataclass, field


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
class Scalar:
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
class Collection:
    """A mapping or a sequence, in the order of the file. `column` is that of its first key or dash, from 0.

    `after` are the comments on their own lines after the last entry. `commented`: a comment is inside a collection
    in braces or brackets, so that it cannot stand on one line.
    """

    is_mapping: bool
    flow: bool
    prefix: str
    column: int = -1
    entries: list[TreeEntry] = field(default_factory=list)
    after: list[CommentLines] = field(default_factory=list)
    commented: bool = False


@dataclass(slots=True)
class TreeEntry:
    """A key with its value, or an item of a sequence (`key` is None).

    `before` are the comments on their own lines before it, `opening` is the one behind the key or dash, `behind` the
    one behind the value. `blank`: an empty line comes before the key or dash.
    """

    key: Scalar | None
    value: Node
    before: list[CommentLines]
    blank: bool
    opening: CommentLines | None = None
    behind: CommentLines | None = None


Node = Scalar | Collection


@dataclass(slots=True)
class Document:
    """One document. `head` are the comments at its top."""

    root: Collection
    head: list[CommentLines] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A file. `comments` are all its comments, in order; a file without documents has nothing else."""

    documents: list[Document]
    comments: list[CommentLines]
