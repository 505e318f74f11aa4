"""Edits that add an entry to a mapping or an item to a list, or write another value there, in the form around them.

Like those of `gpolicy.policy.edits`: each returns None where it might change something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from gpolicy.findings import Edit
from gpolicy.policy.edits import ANCHOR, DASH, Edits, EntryPlace, indentation_of, is_comment, last_end
from gpolicy.policy.source_file import Mark, Pointer, SourceFile, YamlDocument, YamlMapping, YamlSequence
from gpolicy.writing.first_keys import BELOW, LAST, TOP_LEVEL
from gpolicy.writing.yaml_text import Node, entry, flow, scalar

_ONLY_COMMENT: Final = re.compile(r"[ \t]*(?:#.*)?")
_NO_VALUE_YET: Final = re.compile(r":\s*")
_SPECIAL: Final = ("&", "*", "!")


def add_entry(document: YamlDocument, pointer: Pointer, key: str, node: Node) -> Edits | None:
    """Add `key: node` to the mapping at `pointer`, where `gpolicy fmt` would put the key."""
    found = _collection(document, pointer)
    if found is None or not isinstance(found[0], YamlMapping) or key in found[0]:
        return None
    mapping, mark = found
    file = document.source
    if file.text.startswith("{", file.offsets(mark)[0]):
        return _add_in_flow(file, mapping, mark, flow({key: node}).removeprefix("{").removesuffix("}"))
    column = next(iter(mapping.key_marks.values()))[1]
    known = TOP_LEVEL if not pointer else BELOW.get(str(pointer[-1]), ())
    for number in range(_place_of(key, mapping, known), -1, -1):
        stop = _end_of_line(file, mapping.entries()[number], column)
        if stop is not None:
            return (_insert_lines(file, stop, block_entry(key, node, indent=column - 1)),)
    return None


def add_item(document: YamlDocument, pointer: Pointer, node: Node, *, after: int | None = None) -> Edits | None:
    """Add an item to the list at `pointer`, behind its item number `after` (None: the last one)."""
    found = _collection(document, pointer)
    if found is None or not isinstance(found[0], YamlSequence):
        return None
    items, mark = found
    file = document.source
    if file.text.startswith("[", file.offsets(mark)[0]):
        return _add_in_flow(file, items, mark, flow(node), after=after)
    if not items or after == -1:
        return None
    place = items.entries()[len(items) - 1 if after is None else after]
    start = file.offsets(place[0])[0]
    line = file.line_and_column(start)[0]
    before = file.text[file.offset(line, 1) : start]
    if not DASH.fullmatch(before):
        return None
    dash = before.index("-")
    stop = _end_of_line(file, place, dash + 1)
    return None if stop is None else (_insert_lines(file, stop, block_item(node, indent=dash)),)


def rewrite_value(document: YamlDocument, pointer: Pointer, node: Node) -> Edits | None:
    """Write `node` in place of the value of a key, in the block form or in braces like the old one."""
    place = EntryPlace.find(document, pointer)
    if place is None or not isinstance(place.parent, YamlMapping):
        return None
    file = place.file
    begin, end = file.offsets(place.parent.key_marks[str(place.step)])
    start, stop = file.offsets(place.mark)[0], last_end(file, place.value, place.mark)
    if stop is None or file.text.startswith((*_SPECIAL, "|", ">"), start) or ANCHOR.search(file.text[begin:stop]):
        return None
    if not _NO_VALUE_YET.fullmatch(file.text[end:start]):
        return None  # a comment, or a key without its value
    was_flow = place.is_flow or (isinstance(place.value, YamlSequence) and file.text.startswith("[", start))
    if isinstance(node, list) and node and not was_flow:
        lines = [
            line for item in node for line in block_item(item, indent=place.parent.key_marks[str(place.step)][1] + 1)
        ]
        return (Edit(file.span(end, stop), f":{_newline(file)}{_newline(file).join(lines)}"),)
    text = flow(node) if isinstance(node, list | dict) else scalar(node, flow=place.is_flow)
    return (Edit(file.span(end, stop), f": {text}"),)


def block_entry(key: str, node: Node, *, indent: int) -> list[str]:
    """Return the lines of `key: node`; lists of spec pairs with min and max on lines of their own."""
    if isinstance(node, dict) and node:
        below = [line for name, value in node.items() for line in block_entry(name, value, indent=indent + 2)]
        return [f"{' ' * indent}{scalar(key)}:", *below]
    if isinstance(node, list) and any(isinstance(item, dict) for item in node):
        return [
            f"{' ' * indent}{scalar(key)}:",
            *(line for item in node for line in block_item(item, indent=indent + 2)),
        ]
    return entry(key, node, indent=indent, as_flow=True)


def block_item(node: Node, *, indent: int) -> list[str]:
    """Return the lines of an item of a list; a spec pair has two."""
    margin = " " * indent
    if isinstance(node, dict) and node.keys() == {"min", "max"}:
        return [f"{margin}- min: {flow(node['min'])}", f"{margin}  max: {flow(node['max'])}"]
    return [f"{margin}- {flow(node) if isinstance(node, list | dict) else scalar(node)}"]


def _collection(document: YamlDocument, pointer: Pointer) -> tuple[Any, Mark] | None:
    """Return the collection at `pointer` with its place; None if its text stands for another one's as well."""
    if not pointer:
        found, mark = document.root, document.mark
    else:
        place = EntryPlace.find(document, pointer)
        if place is None:
            return None
        found, mark = place.value, place.mark
    return None if document.source.text.startswith(_SPECIAL, document.source.offsets(mark)[0]) else (found, mark)


def _place_of(key: str, mapping: YamlMapping, known: Iterable[str]) -> int:
    """Return the number of the entry to put a key behind."""
    order = list(known)
    last = len(mapping) - (1 if list(mapping)[-1:] != [LAST] or key == LAST or len(mapping) == 1 else 2)
    if key not in order:
        return last
    before = [number for number, name in enumerate(mapping) if name in order and order.index(name) < order.index(key)]
    return before[-1] if before else last


def _end_of_line(file: SourceFile, place: tuple[Mark, Any, Mark], column: int) -> int | None:
    """Return the last line of an entry with its comments; None if its end is unknown or shares its line."""
    _, value, mark = place
    if file.text.startswith(("|", ">"), file.offsets(mark)[0]):
        return None  # blank lines below it may belong to it
    stop = last_end(file, value, mark)
    if stop is None:
        return None
    line = file.line_and_column(stop)[0]
    if not _ONLY_COMMENT.fullmatch(file.line(line)[stop - file.offset(line, 1) :]):
        return None
    while is_comment(deeper := file.line(line + 1)) and indentation_of(deeper) >= column:
        line += 1
    return line


def _insert_lines(file: SourceFile, line: int, lines: list[str]) -> Edit:
    """Return the insertion of whole lines behind a line."""
    newline = _newline(file)
    place = file.starts[line] if line < len(file.starts) else len(file.text)
    text = newline.join(lines)
    is_open = place == len(file.text) and not file.text.endswith("\n")
    return Edit(file.span(place, place), f"{newline}{text}" if is_open else f"{text}{newline}")


def _add_in_flow(
    file: SourceFile, value: YamlMapping | YamlSequence, mark: Mark, text: str, *, after: int | None = None
) -> Edits | None:
    entries = value.entries()
    if not entries:
        start = file.offsets(mark)[0] + 1
        return (Edit(file.span(start, start), text),)
    if after == -1:
        start = file.offsets(entries[0][0])[0]
        return (Edit(file.span(start, start), f"{text}, "),)
    place = entries[-1 if after is None else after]
    stop = last_end(file, *place[1:])
    line, column = file.line_and_column(file.offsets(place[0])[0])
    margin = file.line(line)[: column - 1]
    separator = f",{_newline(file)}{margin}" if not margin.strip(" ") and line > mark[0] else ", "
    return None if stop is None else (Edit(file.span(stop, stop), f"{separator}{text}"),)


def _newline(file: SourceFile) -> str:
    return "\r\n" if "\r\n" in file.text else "\n"
