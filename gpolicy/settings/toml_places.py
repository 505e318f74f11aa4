"""The lines of the keys and words of a TOML file, which Python's own reader does not give."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

Keys = tuple[str, ...]

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
    """Lines, from 1, of keys by their path, and of texts by the path of the key whose value they are in."""

    keys: dict[Keys, int] = field(default_factory=dict)
    words: dict[tuple[Keys, str], int] = field(default_factory=dict)

    def line(self, path: Keys, word: str = "") -> int:
        """Return the line of `word` in the value at `path`; else of the key, or of the nearest one above it."""
        if (path, word) in self.words:
            return self.words[path, word]
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, 1)


def longest_key(text: str) -> tuple[int, int]:
    """Return of how many parts the longest dotted key of a text is, which may be no TOML, and on which line."""
    longest, place, parts, dotted = 0, 1, 0, False
    for kind, piece, line in _tokens(text):
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
    tokens = [(kind, piece, line) for kind, piece, line in _tokens(text) if kind not in ("space", "comment")]
    table: Keys = ()
    position = 0
    while position < len(tokens):
        kind, piece, line = tokens[position]
        if kind == "newline":
            position += 1
        elif piece == "[":
            end = next(n for n in range(position, len(tokens) + 1) if n == len(tokens) or tokens[n][0] == "newline")
            table = tuple(_word(*item[:2]) for item in tokens[position:end] if item[0] in ("word", "text"))
            _put(places, table, line)
            position = end
        else:
            position = _statement(tokens, position, table, places)
    return places


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for found in _TOKEN.finditer(text):
        yield found.lastgroup or "", found.group(), line
        line += found.group().count("\n")


def _statement(tokens: list[tuple[str, str, int]], position: int, table: Keys, places: TomlPlaces) -> int:
    """Note the keys and words of `key = value` from `position` on, and return where the next statement begins."""
    around: list[Keys] = [table]  # the path of each brace or bracket that is open, and of the table
    path, pending = table, list[tuple[str, int]]()
    depth = 0
    while position < len(tokens):
        kind, piece, line = tokens[position]
        position += 1
        if kind == "newline" and depth == 0:
            break
        if kind in ("word", "text"):
            pending.append((_word(kind, piece), line))
        elif piece == "=":
            path = (*around[-1], *(word for word, _ in pending))
            _put(places, path, pending[0][1] if pending else line)
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


def _note(places: TomlPlaces, path: Keys, pending: list[tuple[str, int]]) -> None:
    for word, line in pending:
        places.words.setdefault((path, word), line)


def _put(places: TomlPlaces, path: Keys, line: int) -> None:
    for length in range(1, len(path) + 1):
        places.keys.setdefault(path[:length], line)


def _word(kind: str, piece: str) -> str:
    return str(tomllib.loads(f"x = {piece}")["x"]) if kind == "text" else piece
