"""A draft of a policy's files: edits one after another, each read again, on disk nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpolicy.policy.edits import Edits
from gpolicy.policy.source_file import Pointer, SourceFile, YamlDocument, YamlMapping, YamlSequence
from gpolicy.policy.yaml_reader import read_yaml

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
        file = self._now[place[0]]
        self._read(place[0], file.edited(edits))
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
        self._read(name, text + newline.join(["---", *lines, ""]))
        if len(self._now[name].documents) != count + 1:
            raise UnwritableError(f"{name}: no document can be added to its end")
        self.added[name] = self.added.get(name, 0) + 1

    def _read(self, name: str, text: str) -> None:
        reading = read_yaml(text, name)
        if reading.findings or reading.unfinished:
            raise UnwritableError(f"{name}: {_ANCHORED}")
        self._now[name] = reading

    def stray_change(self) -> str:
        """Return the first file in which anything else changed than what was to change; empty for none.

        Compared are all values of all documents, and all comments.
        """
        for name in self.texts.keys() - self.created.keys():
            before, after = self._original[name], self._now[name]
            if [item.text for item in before.comments] != [item.text for item in after.comments]:
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
