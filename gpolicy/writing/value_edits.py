"""A draft of a policy's files, on disk nothing yet: edits one after another, each read again; and values in documents.

Values are written in the form around them: edits add an entry or an item, or write another value.
The functions are like those of `gpolicy.policy.edits`: each returns None where it might change something else. Where a
value replaces a declared one, numbers keep their unit, lists their items and their order, sizes their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from itertools import product
from typing import Any, Final

from gpolicy.ganeti.amounts import parse_size_exact
from gpolicy.ganeti.parameters import unflatten
from gpolicy.ganeti.vocabulary import SPEC_SIZES, Parameter, Path, Type, Value
from gpolicy.policy.edits import ANCHOR, DASH, CollectionPlace, Edits, last_end, remove_entry, replace_value
from gpolicy.policy.source_file import Pointer, SourceFile, YamlDocument, YamlMapping, YamlSequence
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.writing.yaml_text import BELOW, LAST, TOP_LEVEL, Scalar, YamlNode, block_entry, block_item, flow, scalar

DocumentPlace = tuple[str, int]
"""A document: the name of its file, and its number there."""

ValuePlace = tuple[DocumentPlace, Pointer]
"""A value: its document, and where it stands there."""

_ANCHORED: Final = "the text there has anchors, aliases, comments or a form that an edit could break"


class UnwritableError(Exception):
    """Something cannot be written into a policy; the text says why."""


def place_of(document: YamlDocument) -> DocumentPlace:
    """Return the place of a document that was read whole."""
    return document.file, next(n for n, item in enumerate(document.source.documents) if item is document)


class Draft:
    """Files as they would be. `touched` are the places that were edited: documents, and pointers in them."""

    def __init__(self, files: Mapping[str, SourceFile]) -> None:
        self._original = files
        self._now = dict(files)
        self.touched: set[ValuePlace] = set()
        self.added: dict[str, int] = {}
        """The number of documents that were added to the end of each file."""
        self.created: dict[str, str] = {}
        """The texts of new files by name."""

    @property
    def texts(self) -> dict[str, str]:
        """The changed texts by the names of their files."""
        was = self._original
        edited = {name: file.text for name, file in self._now.items() if name in was and file.text != was[name].text}
        return edited | self.created

    def copy(self) -> Draft:
        """Return a draft that can be changed without changing this one."""
        other = Draft(self._original)
        other._now, other.touched = dict(self._now), set(self.touched)
        other.added, other.created = dict(self.added), dict(self.created)
        return other

    def document(self, place: DocumentPlace) -> YamlDocument:
        """Return a document as it is now."""
        return self._now[place[0]].documents[place[1]]

    def new_documents(self, name: str) -> list[DocumentPlace]:
        """Return the places of the documents that were added to a file, the last one last."""
        count = len(self._now[name].documents)
        return [(name, number) for number in range(count - self.added.get(name, 0), count)]

    def edit(self, place: DocumentPlace, pointer: Pointer, edits: Edits | None) -> None:
        """Make edits that change what is at `pointer`. Raise UnwritableError for None."""
        if not edits:
            raise UnwritableError(f"{place[0]}: {_ANCHORED}")
        self._read_edited(place[0], self._now[place[0]].edited(edits))
        self.touched.add((place, pointer))

    def create(self, name: str, text: str) -> None:
        """Add a file."""
        self.created[name] = text
        self._now[name] = read_yaml(text, name)

    def append(self, name: str, lines: list[str]) -> None:
        """Add a document to the end of a file."""
        text = self._now[name].text
        newline = self._now[name].newline
        text += "" if text.endswith("\n") else newline
        count = len(self._now[name].documents)
        self._read_edited(name, text + newline.join(["---", *lines, ""]))
        if len(self._now[name].documents) != count + 1:
            raise UnwritableError(f"{name}: no document can be added to its end")
        self.added[name] = self.added.get(name, 0) + 1

    def _read_edited(self, name: str, text: str) -> None:
        reading = read_yaml(text, name)
        if reading.findings or reading.unfinished:
            raise UnwritableError(f"{name}: {_ANCHORED}")
        self._now[name] = reading

    def stray_change(self) -> str:
        """Return the first file where another value, or a comment, changed than was to change; empty for none."""
        for name in self.texts.keys() - self.created.keys():
            before, after = self._original[name], self._now[name]
            was, now = ([item.text[slice(*place)].rstrip() for place in item.comments] for item in (before, after))
            if was != now:
                return f"{name}: a comment would be lost"
            count = len(before.documents)
            if len(after.documents) != count + self.added.get(name, 0):
                return f"{name}: its documents would change"
            for number in range(count):
                pointers = [pointer for place, pointer in self.touched if place == (name, number)]
                one, other = (_without(item.documents[number].root, pointers) for item in (before, after))
                if one != other:
                    return f"{name}: other values would change"
        return ""


def _without(value: Any, pointers: list[Pointer]) -> Any:
    """Return a value without what is at `pointers`, and without mappings that are empty then."""
    if () in pointers:
        return None
    if isinstance(value, YamlMapping):
        kept = {key: _without(item, [rest[1:] for rest in pointers if rest[0] == key]) for key, item in value.items()}
        return {key: below for key, below in kept.items() if below not in (None, {})} or None
    if isinstance(value, YamlSequence) and pointers:
        return [_without(below, [rest[1:] for rest in pointers if rest[0] == n]) for n, below in enumerate(value)]
    return value


_SIZE: Final = re.compile(r"""(["']?)[0-9.]+(\s*)([A-Za-z]*)(["']?)""", re.ASCII)
_LEAST_WITHOUT_UNIT: Final = 1024  # MiB; check doubts that a smaller number means MiB
_NO_VALUE_YET: Final = re.compile(r":\s*")


def add_entry(document: YamlDocument, pointer: Pointer, key: str, node: YamlNode) -> Edits | None:
    """Add `key: node` to the mapping at `pointer`, where `gpolicy fmt` would put the key."""
    place = CollectionPlace.find(document, pointer)
    if place is None or not isinstance(place.value, YamlMapping) or key in place.value:
        return None
    if place.is_flow:
        return _add_in_flow(place, flow({key: node}).removeprefix("{").removesuffix("}"))
    column = next(iter(place.value.key_marks.values()))[1]
    known = TOP_LEVEL if not pointer else BELOW.get(str(pointer[-1]), ())
    lines = block_entry(key, node, indent=column - 1)
    tries = (_add_lines(place, number, column, lines) for number in range(_place_of(key, place.value, known), -1, -1))
    return next((edits for edits in tries if edits is not None), None)


def add_item(document: YamlDocument, pointer: Pointer, node: YamlNode, *, after: int | None = None) -> Edits | None:
    """Add an item to the list at `pointer`, behind its item number `after` (None: the last one)."""
    place = CollectionPlace.find(document, pointer)
    if place is None or not isinstance(place.value, YamlSequence):
        return None
    if place.is_flow:
        return _add_in_flow(place, flow(node), after=after)
    if not place.value or after == -1:
        return None
    number = len(place.value) - 1 if after is None else after
    before = place.file.before(place.extent(number)[0])
    if not DASH.fullmatch(before):
        return None
    dash = before.index("-")
    return _add_lines(place, number, dash + 1, block_item(node, indent=dash))


def rewrite_value(document: YamlDocument, pointer: Pointer, node: YamlNode) -> Edits | None:
    """Write `node` in place of the value of a key, in the block form or in braces like the old one."""
    found = CollectionPlace.around(document, pointer)
    if found is None or not isinstance(found[0].value, YamlMapping):
        return None
    place, number = found
    file, (key, value, mark) = place.file, place.value.entries()[number]
    begin, end = file.offsets(key)
    start, stop = file.offset(*mark[:2]), last_end(file, value, mark)
    if stop is None or file.text.startswith(("&", "*", "!", "|", ">"), start) or ANCHOR.search(file.text[begin:stop]):
        return None
    if not _NO_VALUE_YET.fullmatch(file.text[end:start]):
        return None  # a comment, or a key without its value
    was_flow = place.is_flow or (isinstance(value, YamlSequence) and file.text.startswith("[", start))
    if isinstance(node, list) and node and not was_flow:
        lines = [line for item in node for line in block_item(item, indent=key[1] + 1)]
        return (file.edit(end, stop, f":{file.newline}{file.newline.join(lines)}"),)
    text = flow(node) if isinstance(node, list | dict) else scalar(node, flow=place.is_flow)
    return (file.edit(end, stop, f": {text}"),)


def _place_of(key: str, mapping: YamlMapping, known: Iterable[str]) -> int:
    order = list(known)
    last = len(mapping) - (1 if list(mapping)[-1:] != [LAST] or key == LAST or len(mapping) == 1 else 2)
    if key not in order:
        return last
    before = [number for number, name in enumerate(mapping) if name in order and order.index(name) < order.index(key)]
    return before[-1] if before else last


def _add_lines(place: CollectionPlace, number: int, column: int, lines: list[str]) -> Edits | None:
    """Add whole lines behind an entry and the comments below it from a column on."""
    file, mark = place.file, place.value.entries()[number][2]
    if file.text.startswith(("|", ">"), file.offset(*mark[:2])):
        return None  # blank lines below it may belong to it
    line = place.last_line(number, column)
    if line is None:
        return None
    at = file.starts[line] if line < len(file.starts) else len(file.text)
    text = file.newline.join(lines)
    is_open = at == len(file.text) and not file.text.endswith("\n")
    return (file.edit(at, at, f"{file.newline}{text}" if is_open else f"{text}{file.newline}"),)


def _add_in_flow(place: CollectionPlace, text: str, *, after: int | None = None) -> Edits | None:
    file = place.file
    if not place.value:
        start = file.offset(*place.mark[:2]) + 1
        return (file.edit(start, start, text),)
    if after == -1:
        start = place.extent(0)[0]
        return (file.edit(start, start, f"{text}, "),)
    start, stop = place.extent(len(place.value) - 1 if after is None else after)
    margin = file.before(start)
    separator = f",{file.newline}{margin}" if not margin.strip(" ") and file.line_of(start) > place.mark[0] else ", "
    return None if stop is None else (file.edit(stop, stop, f"{separator}{text}"),)


def add_value(draft: Draft, place: DocumentPlace, path: Path, node: YamlNode) -> ValuePlace:
    """Add a value to a document that lacks it, with the mappings around it, and return its place."""
    document = draft.document(place)
    depth, found = 0, document.root
    while depth < len(path) and isinstance(found, YamlMapping) and path[depth] in found:
        found = found[path[depth]]
        depth += 1
    if depth == len(path):
        raise UnwritableError(f"{place[0]}: it says {'.'.join(path)} already")
    draft.edit(place, path[: depth + 1], add_entry(document, path[:depth], *unflatten({path[depth:]: node}).popitem()))
    return place, path


class ValueWriter:
    """Writes values into one document of a draft."""

    def __init__(self, draft: Draft, place: DocumentPlace) -> None:
        self.draft = draft
        self.place = place

    @property
    def document(self) -> YamlDocument:
        """The document as it is now."""
        return self.draft.document(self.place)

    def write(self, pointer: Pointer, parameter: Parameter, node: YamlNode, values: tuple[Value, Value]) -> None:
        """Write `node` at `pointer`; `values` are the declared and the new one in normal form. UnwritableError."""
        written = self.document.value(pointer)
        if isinstance(written, list) and isinstance(node, list) and node:
            if parameter.type is Type.MINMAX:
                self._edit_pairs(pointer, node, values)
            else:
                self._edit_words(pointer, list(node), in_order=parameter.type is Type.LIST)
        elif isinstance(written, dict) and isinstance(node, dict) and node:
            self._entries(pointer, node)
        elif isinstance(written, list | dict) or isinstance(node, list | dict):
            self._edit(pointer, rewrite_value(self.document, pointer, node))
        else:
            self._scalar(pointer, node, is_size=parameter.type in (Type.SIZE, Type.MIB))

    def set_items(self, pointer: Pointer, items: list[str]) -> None:
        """Make the list at `pointer` hold these words; those that are there keep their places."""
        if items:
            self._edit_words(pointer, list(items), in_order=False)
        else:
            self._edit(pointer, rewrite_value(self.document, pointer, []))

    def _edit(self, pointer: Pointer, edits: Edits | None) -> None:
        self.draft.edit(self.place, pointer, edits)

    def _scalar(self, pointer: Pointer, node: Scalar, *, is_size: bool) -> None:
        old = self.document.written(pointer)
        text = _size_like(old, node) if is_size else None
        is_plain = isinstance(node, str) and node.isascii() and node.isprintable() and not {"'", '"', "\\"} & set(node)
        if is_plain and not is_size and old[:1] in ("'", '"'):
            text = f"{old[0]}{node}{old[0]}"
        text = scalar(node, flow=True) if text is None else text
        self._edit(pointer, replace_value(self.document, pointer, text))

    def _entries(self, pointer: Pointer, node: dict[str, YamlNode]) -> None:
        written = self.document.value(pointer)
        for key in [key for key in written if key not in node]:
            self._edit(pointer, remove_entry(self.document, (*pointer, key)))
        for key, below in node.items():
            if key not in written:
                self._edit(pointer, add_entry(self.document, pointer, key, below))
            elif str(written[key]) != str(below) and not isinstance(below, list | dict):
                self._edit(pointer, replace_value(self.document, (*pointer, key), scalar(below, flow=True)))

    def _edit_words(self, pointer: Pointer, new: list[YamlNode], *, in_order: bool) -> None:
        old = [_short_range(item) for item in self.document.value(pointer)]
        wanted = [_short_range(item) for item in new]
        if in_order and old != [item for item in wanted if item in old]:
            self._words_by_place(pointer, new, old, wanted)
            return
        kept = [item for item in old if item in wanted]
        if not kept:
            self._edit(pointer, rewrite_value(self.document, pointer, new))
            return
        for number in reversed([number for number, item in enumerate(old) if item not in wanted]):
            self._edit(pointer, remove_entry(self.document, (*pointer, number)))
        for number, item in enumerate(wanted):
            if item not in kept:
                at = number - 1 if in_order else None
                self._edit(pointer, add_item(self.document, pointer, new[number], after=at))

    def _words_by_place(self, pointer: Pointer, new: list[YamlNode], old: list[str], wanted: list[str]) -> None:
        """Write a list whose order means something, and changed: item by item."""
        for number in range(len(old) - 1, len(wanted) - 1, -1):
            self._edit(pointer, remove_entry(self.document, (*pointer, number)))
        for number, item in enumerate(new):
            if number >= len(old):
                self._edit(pointer, add_item(self.document, pointer, item))
            elif old[number] != wanted[number] and not isinstance(item, list | dict):
                self._edit(pointer, replace_value(self.document, (*pointer, number), scalar(item, flow=True)))

    def _edit_pairs(self, pointer: Pointer, node: list[YamlNode], values: tuple[Value, Value]) -> None:
        """Write sizes. Raise UnwritableError where nobody can tell which of the named pairs became which."""
        old, new = (list[Any](value) if isinstance(value, list) else [] for value in values)
        names = [pair.get("name") for pair in self.document.value(pointer)]
        before, after = ([json.dumps(pair, sort_keys=True) for pair in pairs] for pairs in (old, new))
        steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        changed = [step for step in steps if step[0] != "equal"]
        gone = [old[number] for _, low, high, _, _ in changed for number in range(low, high) if names[number]]
        if any(new[number] in gone for _, _, _, low, high in changed for number in range(low, high)):
            raise UnwritableError("the named sizes changed their order: write them in the order of the cluster")
        for _, low, high, start, stop in reversed(changed):
            both = min(high - low, stop - start)
            if high - low != stop - start and both and any(names[low:high]):
                named = ", ".join(str(name) for name in names[low:high] if name)
                raise UnwritableError(f"nobody can tell what the sizes {named} became: their number changed as well")
            for number in range(high - 1, low + both - 1, -1):
                self._edit(pointer, remove_entry(self.document, (*pointer, number)))
            for number in range(stop - 1, start + both - 1, -1):
                self._edit(pointer, add_item(self.document, pointer, node[number], after=low + both - 1))
            for number, bound in product(range(both), ("min", "max")):
                written: Any = node[start + number]
                for name, value in new[start + number][bound].items():
                    if old[low + number][bound].get(name) != value:
                        place = (*pointer, low + number, bound, name)
                        self._scalar(place, written[bound][name], is_size=name in SPEC_SIZES)


def _short_range(item: Any) -> str:
    low, dash, high = str(item).partition("-")
    return low if dash and low == high and low.isdigit() else str(item)


def _size_like(old: str, node: Scalar) -> str | None:
    """Return a size in the unit of the one that it replaces; None if it is no whole number of that."""
    found = _SIZE.fullmatch(old)
    try:
        mib, unit = int(parse_size_exact(str(node))), int(parse_size_exact(f"1{found[3]}")) if found else 0
    except ValueError:
        return None
    if found is None or (not found[3] and 0 < mib < _LEAST_WITHOUT_UNIT) or mib % unit:
        return None
    return f"{found[1]}{mib // unit}{found[2]}{found[3]}{found[4]}"
