"""The places of the keys and words of a TOML file, which Python's own reader does not give."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gpolicy.findings import Span

Keys = tuple[str, ...]
At = tuple[int, int, int]
"""Line and column, from 1, and the column behind the end."""

_TOKEN: Final = re.compile(
    r"""
      (?P<comment>\#[^\n]*+)
    | (?P<text>\"{3}(?:\\.|[^\\])*?(?:\"{3,5}|\Z) | '{3}.*?(?:'{3,5}|\Z) | "(?:\\.|[^"\\\n])*+"?+ | '[^'\n]*+'?+)
    | (?P<newline>\n)
    | (?P<space>[ \t\r]++)
    | (?P<mark>[][{}=.,])
    | (?P<word>[^][{}=.,\s\#"']++)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class TomlPlaces:
    """Places of keys by their path, and of texts by the path of the key whose value they are in."""

    keys: dict[Keys, At] = field(default_factory=dict)
    words: dict[tuple[Keys, str], At] = field(default_factory=dict)

    def line(self, path: Keys, word: str = "") -> int:
        """Return the line of `word` in the value at `path`; else of the key, or of the nearest one above it."""
        return self.words[path, word][0] if (path, word) in self.words else self._key(path)[0]

    def span(self, file: str, path: Keys) -> Span:
        """Return the place, in `file`, of the key at `path`, or of the nearest one above it."""
        line, column, end = self._key(path)
        return Span(file, line, column, line, end)

    def _key(self, path: Keys) -> At:
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, (1, 1, 1))


def longest_key(text: str) -> tuple[int, int]:
    """Return of how many parts the longest dotted key of a text is, which may be no TOML, and on which line."""
    longest, place, parts, dotted = 0, 1, 0, False
    for kind, piece, (line, *_) in _tokens(text):
        if kind in ("word", "text"):
            parts = parts + 1 if dotted else 1
            dotted = False
            if parts > longest:
                longest, place = parts, line
        elif piece == ".":
            dotted = True
        elif kind != "space":
            parts, dotted = 0, False
    return longest, place


def toml_places(text: str) -> TomlPlaces:
    """Return the places in a text that is known to be TOML."""
    places = TomlPlaces()
    tokens = [(kind, piece, at) for kind, piece, at in _tokens(text) if kind not in ("space", "comment")]
    table: Keys = ()
    position = 0
    while position < len(tokens):
        kind, piece, at = tokens[position]
        if kind == "newline":
            position += 1
        elif piece == "[":
            end = next(n for n in range(position, len(tokens) + 1) if n == len(tokens) or tokens[n][0] == "newline")
            table = tuple(_word(*item[:2]) for item in tokens[position:end] if item[0] in ("word", "text"))
            _put(places, table, at)
            position = end
        else:
            position = _statement(tokens, position, table, places)
    return places


def _tokens(text: str) -> Iterator[tuple[str, str, At]]:
    line, begin = 1, 0
    for found in _TOKEN.finditer(text):
        piece, column = found.group(), found.start() - begin + 1
        yield found.lastgroup or "", piece, (line, column, column + len(piece))
        if "\n" in piece:
            line += piece.count("\n")
            begin = found.start() + piece.rindex("\n") + 1


def _statement(tokens: list[tuple[str, str, At]], position: int, table: Keys, places: TomlPlaces) -> int:
    """Note the keys and words of `key = value` from `position` on, and return where the next statement begins."""
    around: list[Keys] = [table]  # the path of each brace or bracket that is open, and of the table
    path, pending = table, list[tuple[str, At]]()
    depth = 0
    while position < len(tokens):
        kind, piece, at = tokens[position]
        position += 1
        if kind == "newline" and depth == 0:
            break
        if kind in ("word", "text"):
            pending.append((_word(kind, piece), at))
        elif piece == "=":
            path = (*around[-1], *(word for word, _ in pending))
            _put(places, path, pending[-1][1] if pending else at)
            pending = []
        elif piece in ("{", "["):
            around.append(path)
            depth += 1
        elif piece in (",", "}", "]"):
            _note(places, path, pending)
            pending = []
            if piece != "," and depth:
                depth -= 1
                path = around.pop()
    _note(places, path, pending)
    return position


def _note(places: TomlPlaces, path: Keys, pending: list[tuple[str, At]]) -> None:
    for word, at in pending:
        places.words.setdefault((path, word), at)


def _put(places: TomlPlaces, path: Keys, at: At) -> None:
    for length in range(1, len(path) + 1):
        places.keys.setdefault(path[:length], at)


def _word(kind: str, piece: str) -> str:
    return str(tomllib.loads(f"x = {piece}")["x"]) if kind == "text" else piece
