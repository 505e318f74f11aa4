"""Format the text of a policy file: write its tree in the canonical form, and check that nothing is lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gpolicy.findings import Finding
from gpolicy.formatting import reading
from gpolicy.policy.conformance import Schema, schema_of
from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.source_file import SourceFile
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.writing.yaml_text import BELOW, GLOB, LAST, TOP_LEVEL, WIDTH, is_ambiguous_word, quoted, scalar

_ODD_BREAK: Final = re.compile("\r|[\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """The formatted text, or the unchanged text if it cannot be formatted.

    `reason` tells why not, `line` where, from 1 (0: no particular place). `broken` are findings about the file's YAML.
    """

    text: str
    reason: str = ""
    line: int = 0
    broken: tuple[Finding, ...] = ()


def format_text(text: str, file: str) -> Formatted:
    """Return the canonical form of a policy file's text; findings name the file `file`.

    Our own reader finds the same values, no comment is lost, and formatting again changes nothing. If one of these
    fails, the text stays unchanged.
    """
    source = read_yaml(text, file)
    if source.findings:
        return Formatted(text=text, reason="it has a mistake", broken=tuple(source.findings))
    try:
        return Formatted(text=_formatted(source))
    except reading.CannotFormatError as error:
        return Formatted(text=text, reason=error.reason, line=error.line)


def _formatted(source: SourceFile) -> str:
    lines = source.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if odd := _ODD_BREAK.search(lines):
        raise reading.CannotFormatError("a line ends in CR", lines.count("\n", 0, odd.start()) + 1)
    tree = reading.read_file(source if lines == source.text else read_yaml(lines, source.name))
    for document in tree.documents:
        if not any(entry.key is not None and entry.key.text == "gpolicy" for entry in document.entries):
            raise reading.CannotFormatError("a document is not a policy document (it has no key gpolicy)")
    result = render(tree)
    _prove(result, source, tree)
    return result


def _prove(result: str, before: SourceFile, tree: reading.File) -> None:
    """Raise CannotFormatError unless the result means the same as the file before and is formatted."""
    after = read_yaml(result, "formatted")
    if after.findings or _values(after) != _values(before):
        has_alias = re.search(r"(?:^|[\s,\[{])\*\S", result) is not None
        raise reading.CannotFormatError(
            "an anchor would come behind its alias" if has_alias else "its values would change"
        )
    again = reading.read_file(after)
    if _comment_lines(again) != _comment_lines(tree):
        raise reading.CannotFormatError("a comment would be lost")
    if render(again) != result:
        raise reading.CannotFormatError("formatting it twice would differ from formatting it once")


def _values(source: SourceFile) -> str:
    """Return the values of the documents, without empty ones, as text that differs for 1, 1.0 and true."""
    return json.dumps([item.root for item in source.documents if item.root is not None], sort_keys=True)


def _comment_lines(tree: reading.File) -> Counter[str]:
    return Counter(text for comment in tree.comments for text in comment.texts)


_INDENT: Final = 2
_APART: Final = 2  # blanks before a comment behind other text
_HEADER: Final = re.compile(r"[|>][+-]?")
_SUPPRESSION: Final = "gpolicy: ignore"  # is about its own line, so that line is not broken

Ranks = dict[str, int]

_ITEM: Final = 0
_TEST: Final = ("tests", _ITEM)
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_CONDITIONAL: Final = ("if", "then", "else")


def render(file: reading.File) -> str:
    """Return the text of a file."""
    renderer = _Renderer()
    if not file.documents:
        renderer.comments(file.comments, 0)
    for place, document in enumerate(file.documents):
        if place:
            renderer.lines.append("---")
        renderer.document(document)
    return "".join(f"{line}\n" for line in renderer.lines)


class _Renderer:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def document(self, root: reading.TreeCollection) -> None:
        values = (entry.value for entry in root.entries if entry.key is not None and entry.key.text == "kind")
        order = _key_order(next((value.text for value in values if isinstance(value, reading.TreeScalar)), ""))
        entries = _sorted(root, order)
        if entries and entries[0] is not root.entries[0]:
            _part_head(root, root.entries[0], entries[0])
        self.comments(root.head, 0, first=True)
        self._entries(entries, 0, order, after_head=bool(root.head))
        self.comments(root.after, 0)

    def comments(self, comments: list[reading.CommentLines], indent: int, *, first: bool = False) -> None:
        """Write comments; `first`: no empty line before them."""
        for comment in comments:
            if comment.blank and not first:
                self._blank()
            self.lines += [f"{' ' * indent}{text}" for text in comment.texts]
            first = False

    def _blank(self) -> None:
        if self.lines and self.lines[-1].strip():
            self.lines.append("")

    def _entries(
        self, entries: list[reading.TreeEntry], indent: int, order: KeyOrder, *, after_head: bool = False
    ) -> None:
        for place, entry in enumerate(entries):
            self._write_entry(entry, indent, order, first=place == 0 and not after_head)

    def _write_entry(self, entry: reading.TreeEntry, indent: int, order: KeyOrder, *, first: bool) -> None:
        """Write an entry; `first`: no empty line before it."""
        below = order.item() if entry.key is None else order.below(entry.key.text)
        before = list(entry.before)
        one_line = self._one_line(entry, indent, below)
        if entry.opening and (one_line is not None or isinstance(entry.value, reading.TreeScalar)):
            before.append(entry.opening)
        if one_line is not None:  # comments between the key and the end of the value
            before += entry.value.after if isinstance(entry.value, reading.TreeCollection) else []
        self.comments(before, indent, first=first)
        if entry.blank and not (first and not before):
            self._blank()
        start = f"{' ' * indent}{_start(entry)}"
        if one_line is not None:
            self.lines += _with_comment(_joined(start, one_line), entry.behind)
        elif isinstance(entry.value, reading.TreeScalar):
            self._scalar(entry.value, start, indent + _INDENT, entry)
        else:
            self._block(entry, entry.value, start, indent, below)

    def _one_line(self, entry: reading.TreeEntry, indent: int, order: KeyOrder) -> str | None:
        """Return the value of an entry if it stands on the line of its key."""
        value = entry.value
        if isinstance(value, reading.TreeScalar):
            return None if value.is_block or "\n" in value.body else _scalar_text(value)
        if not value.flow:
            return None
        text = _flow(value, order)
        if text is None or (value.commented and value.entries):
            return None
        kept = entry.behind is not None and _SUPPRESSION in entry.behind.text
        fits = indent + len(_start(entry)) + 1 + len(text) <= WIDTH
        return text if fits or kept or not value.entries else None

    def _scalar(self, value: reading.TreeScalar, start: str, indent: int, entry: reading.TreeEntry) -> None:
        """Write a scalar of several lines."""
        if value.is_block:
            header, *lines = _block_lines(value, indent)
            self.lines += _with_comment(_joined(start, header), value.behind)
            self.lines += lines
            return
        first, *others = value.body.split("\n")  # of a plain or quoted scalar
        lines = [f"{' ' * indent}{line.strip()}".rstrip() for line in others]
        self.lines += [_joined(start, value.prefix, first.rstrip()), *lines]
        self.lines[-1:] = _with_comment(self.lines[-1], entry.behind)

    def _block(
        self, entry: reading.TreeEntry, value: reading.TreeCollection, start: str, indent: int, order: KeyOrder
    ) -> None:
        opening, after = entry.opening or entry.behind, value.after
        if entry.opening is not None and entry.behind is not None:
            after = [*after, entry.behind]
        head = _joined(start, value.prefix)
        entries = _sorted(value, order)
        inside = indent + _INDENT
        if entry.key is None and opening is None and not value.prefix:
            mark = len(self.lines)
            self._entries(entries, inside, order)
            while self.lines[mark].lstrip(" ")[:1] in ("#", ""):  # comments of the first key come before the dash
                self.lines[mark] = f"{' ' * indent}{self.lines[mark].lstrip(' ')}".rstrip()
                mark += 1
            self.lines[mark] = f"{head} {self.lines[mark].lstrip(' ')}"
        else:
            self.lines += _with_comment(head, opening)
            self._entries(entries, inside, order)
        self.comments(after, inside)


def _sorted(collection: reading.TreeCollection, order: KeyOrder) -> list[reading.TreeEntry]:
    """Return the entries in the order of their keys; items of a list keep theirs."""
    return sorted(collection.entries, key=lambda entry: order.rank(entry.key.text) if entry.key else 0)


def _part_head(document: reading.TreeCollection, first: reading.TreeEntry, new_first: reading.TreeEntry) -> None:
    """Separate the comments at the top, with the empty line after them, from those of the first key, which moves."""
    new_first.blank, first.blank = first.blank, False
    if new_first.blank:
        return
    for place in range(len(document.head) - 1, 0, -1):
        if document.head[place].blank:
            document.head, first.before = document.head[:place], document.head[place:]
            return


def _start(entry: reading.TreeEntry) -> str:
    return "-" if entry.key is None else f"{_scalar_text(entry.key)}:"


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _with_comment(line: str, comment: reading.CommentLines | None) -> list[str]:
    """Return a line with the comment behind it, in its own column if there is room, and the comment's other lines."""
    if comment is None:
        return [line]
    column = max(comment.column if comment.gap > _APART else 0, len(line) + _APART)
    return [f"{line:<{column}}{comment.text}", *(f"{' ' * column}{text}" for text in comment.more)]


def _flow(node: reading.TreeNode, order: KeyOrder) -> str | None:
    """Return a node in the form for braces or brackets; None if it does not fit on one line."""
    if isinstance(node, reading.TreeScalar):
        return None if "\n" in node.body else _scalar_text(node, flow=True)
    parts = [part for entry in _sorted(node, order) if (part := _flow_entry(entry, order)) is not None]
    shown = ", ".join(parts)
    complete = len(parts) == len(node.entries)
    return _joined(node.prefix, f"{{{shown}}}" if node.is_mapping else f"[{shown}]") if complete else None


def _flow_entry(entry: reading.TreeEntry, order: KeyOrder) -> str | None:
    if entry.key is None:
        return _flow(entry.value, order.item())
    value = _flow(entry.value, order.below(entry.key.text))
    key = _scalar_text(entry.key, flow=True)
    return None if value is None else f"{key}: {value}" if value else key


def _scalar_text(value: reading.TreeScalar, *, flow: bool = False) -> str:
    return _joined(value.prefix, _without_prefix(value, flow=flow))


def _without_prefix(value: reading.TreeScalar, *, flow: bool) -> str:
    if "!" in value.prefix or value.style == "*" or not value.body:
        return value.body
    if not value.style:
        return quoted(value.text) if is_ambiguous_word(value.text) else value.body
    plain = scalar(value.text, flow=flow)
    if not plain.startswith('"') and not GLOB & set(value.text):
        return plain
    if value.style == "'" and value.text.isprintable() and not {'"', "\\"} & set(value.text):
        return quoted(value.text)
    return value.body


def _block_lines(value: reading.TreeScalar, indent: int) -> list[str]:
    """Return the header of a block scalar and its lines, indented. Raise CannotFormatError if it is ambiguous."""
    header = _HEADER.match(value.body)
    assert header is not None  # noqa: S101 (reading has seen to it)
    _, *lines = value.body.split("\n")
    text = [line for line in lines if line.strip(" ")]
    old = len(text[0]) - len(text[0].lstrip(" ")) if text else 0
    if any(line.strip(" ") and not line.startswith(" " * old) for line in lines):
        raise reading.CannotFormatError("a block of text is not indented evenly")
    moved = [f"{' ' * indent}{line[old:]}" if line[old:] else "" for line in lines]
    if not header.group().endswith("+"):
        while moved and not moved[-1]:  # a line of blanks is a part of the text
            moved.pop()
    elif moved and not moved[-1]:
        moved.pop()  # the rest behind the end of the last line
    return [_joined(value.prefix, header.group()), *moved]


class KeyOrder:
    """The order of keys at one place of a document, with access to the places below it."""

    def __init__(self, schema: Schema, nodes: tuple[Schema, ...], path: tuple[str | int, ...]) -> None:
        self._schema = schema
        self._nodes = nodes
        self._path = path
        self._below: dict[str | int, KeyOrder] = {}
        self._ranks: Ranks = _ranks(path, [key for node in nodes for key in node.get("properties", {})])

    def rank(self, key: str) -> int:
        """Return the position of a key; unknown keys come last, in their written order."""
        return self._ranks.get(key, len(self._ranks))

    def below(self, key: str) -> KeyOrder:
        """Return the order in the value of a key."""
        found = [node.get("properties", {}).get(key, node.get("additionalProperties")) for node in self._nodes]
        return self._at(key, found)

    def item(self) -> KeyOrder:
        """Return the order in the items of a list."""
        return self._at(_ITEM, [node.get("items") for node in self._nodes])

    def _at(self, step: str | int, found: list[Any]) -> KeyOrder:
        if step not in self._below:
            if self._path == _TEST:  # scenarios keep their written order
                found = []
            nodes = _resolved([node for node in found if isinstance(node, dict)], self._schema)
            self._below[step] = KeyOrder(self._schema, nodes, (*self._path, step))
        return self._below[step]


@cache
def _key_order(kind: str) -> KeyOrder:
    """Return the order of keys in documents of a kind; of an unknown kind only that of the first keys."""
    schema = schema_of(kind) if kind in KIND_NAMES else {}
    return KeyOrder(schema, _resolved([schema], schema), ())


def _resolved(nodes: list[Schema], schema: Schema) -> tuple[Schema, ...]:
    """Return `nodes` with all schemas that they refer to or combine."""
    found: list[Schema] = []
    todo = list(nodes)
    while todo:
        node = todo.pop(0)
        if any(node is known for known in found):
            continue
        found.append(node)
        if "$ref" in node:
            todo.append(schema.get("definitions", {}).get(node["$ref"].rpartition("/")[2], {}))
        todo += [below for word in _COMBINED for below in node.get(word, ())]
        todo += [node[word] for word in _CONDITIONAL if word in node]
    return tuple(found)


def _ranks(path: tuple[str | int, ...], keys: list[str]) -> Ranks:
    if path == ():
        keys = [*TOP_LEVEL, *(key for key in keys if key != LAST), *(key for key in keys if key == LAST)]
    elif len(path) == 1:
        keys = [*BELOW.get(str(path[0]), ()), *keys]
    return {key: place for place, key in enumerate(dict.fromkeys(keys))}
