"""Find and read the settings file of a repository: `gpolicy.toml`, or `[tool.gpolicy]` of a `pyproject.toml`.

What its tables mean is said where they are used: `[check]` and `[rules]` in `checking/`, the others here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

from gpolicy.errors import InputError, argument
from gpolicy.findings import Span
from gpolicy.guessing import did_you_mean
from gpolicy.opening import SETTINGS_NAME, OutsideError, path_meant, read_named, reason
from gpolicy.policy.files import Boundary, boundary

Keys = tuple[str, ...]
At = tuple[int, int, int]
"""Line and column, from 1, and the column behind the end."""
PROJECT_NAME: Final = "pyproject.toml"
TABLES: Final = ("exclude", "check", "rules", "clusters", "rollout")
CHECK_KEYS: Final = ("select", "ignore", "fail-on", "baseline", "severity", "per-file-ignores")
"""The keys of `[check]`."""
_MAX_BYTES: Final = 1024**2
_MAX_PARTS: Final = 32
_MOST_OF_GLOBS: Final = 4000  # letters; each glob is compared with each file


@dataclass(frozen=True, slots=True)
class Place:
    """A key in the file, and the value of it."""

    path: Keys
    value: Any

    @property
    def shown(self) -> str:
        """The key, dotted."""
        return ".".join(self.path)

    def below(self, key: str) -> Place:
        """Return the place of a key of this table."""
        return Place((*self.path, key), self.value[key])


class SettingsError(InputError):
    """A mistake at a key of the settings file: what is wrong there, and where."""

    def __init__(self, message: str, hint: str | None, what: str, span: Span) -> None:
        super().__init__(message, hint=hint)
        self.what, self.span = what, span


class SettingsFile:
    """A TOML file of known tables, whose errors name a key's line. `prefix`: its beginning, none or `tool.gpolicy`."""

    def __init__(self, path: Path, text: str, data: Any, prefix: Keys = ()) -> None:
        self.path = path
        self._text = text
        self._tables = self.keys_in(Place(prefix, data), TABLES)
        self.exclude = self._globs(self._tables.get("exclude"))

    def table(self, name: str) -> Place | None:
        """Return one of the tables, None if it is not there."""
        return self._tables.get(name)

    def _globs(self, place: Place | None) -> tuple[str, ...]:
        if place is None:
            return ()
        globs = place.value
        if not isinstance(globs, list) or not all(isinstance(glob, str) and glob.strip("./") for glob in globs):
            raise self.error(place, f"must be a list of globs, not {shown(globs)}", 'write ["mkdocs.yml", "charts/**"]')
        if sum(map(len, globs)) > _MOST_OF_GLOBS:
            raise self.error(place, f"is longer than {_MOST_OF_GLOBS} letters", "name directories: charts/**")
        if any(glob.startswith("/") for glob in globs):
            raise self.error(place, "matches no file: paths are relative to this file", "leave out the slash")
        return tuple(globs)

    def entries(self, place: Place | None) -> Iterator[Place]:
        """Yield what stands in a table. Raise InputError if it is none."""
        if place is None:
            return
        if not isinstance(place.value, dict):
            raise self.error(place, f"must be a table, not {shown(place.value)}", "write its keys below its heading")
        yield from (place.below(key) for key in place.value)

    def keys_in(self, place: Place, known: Collection[str]) -> dict[str, Place]:
        """Return what stands in a table, by key. Raise InputError unless it is a table of known keys."""
        given = {item.path[-1]: item for item in self.entries(place)}
        for unknown in (key for key in given if key not in known):
            hint = did_you_mean(unknown, known, f"known here: {', '.join(known)}")
            if unknown in CHECK_KEYS and known is TABLES:
                hint = f"it belongs under [{'.'.join((*place.path, 'check'))}]"
            where = f"[{place.shown}]" if place.path else "the settings of gpolicy"
            raise self.error(given[unknown], f"unknown key in {where}", hint)
        return given

    def path_in_tree(self, place: Place, text: str, hint: str = "keep it in the repository") -> Path:
        """Return a path from the directory of the file. Raise InputError if it leads out of the work tree."""
        path = self.path.parent / text
        try:
            self._within.real(path)
        except OSError as error:
            raise self.error(place, f"{shown(text)} {reason(error)}", hint) from None
        return path

    def error(self, place: Place, message: str, hint: str = "", word: str = "") -> SettingsError:
        """Return an error about a key, or about a word in its value, with its line."""
        line = self._places_of_keys.line(place.path, word)
        what = _one_line(f"{place.shown[:200]}: {message}" if place.path else message)
        place_and_text = f"{_one_line(str(self.path))}:{line}: {what}"
        return SettingsError(place_and_text, _one_line(hint) or None, what, self.span(place))

    def span(self, place: Place) -> Span:
        """Return where a key stands in the file."""
        return self._places_of_keys.span(str(self.path), place.path)

    @cached_property
    def _within(self) -> Boundary:
        return boundary(self.path)

    @cached_property
    def _places_of_keys(self) -> TomlPlaces:
        return toml_places(self._text)


def settings_file(root: Path, within: Boundary | None = None) -> SettingsFile | None:
    """Return the settings file of the policy at `root`: the nearest one above it, up to the top of its work tree.

    In one directory gpolicy.toml counts before pyproject.toml. `within` is the boundary, where it is known. Raise
    InputError for a file that is not as it should be.
    """
    within = within or boundary(root)
    for directory in (within.home, *within.home.parents):
        for name in (SETTINGS_NAME, PROJECT_NAME):
            path = directory / name
            there = path.is_file() or (name == SETTINGS_NAME and (path.is_symlink() or path.exists()))
            if there and (found := _parsed(path, _content(path, within), is_named=False)) is not None:
                return found
        if directory == within.root:
            break
    return None


def excluded_at(path: Path, within: Boundary) -> tuple[Path, tuple[str, ...]]:
    """Return the globs of files that are no part of the policy at `path`, and the settings file that has them.

    The file need not be there. What is wrong with the settings, their other readers say.
    """
    with suppress(InputError):
        if (file := settings_file(path, within)) is not None:
            return file.path, file.exclude
    return path / SETTINGS_NAME, ()


def named_settings_file(path: Path) -> SettingsFile:
    """Return the settings file `path`, which is read as a pyproject.toml if that is its name."""
    found = _parsed(path, _content(path, None), is_named=True)
    if found is None:
        raise InputError(f"{path}: no [tool.gpolicy] in it", hint=f"name another file, or use {argument('isolated')}")
    return found


@lru_cache(maxsize=64)  # one file is the settings of many policies
def _parsed(path: Path, content: bytes, *, is_named: bool) -> SettingsFile | None:
    """Return the file `path` with this content; None for a pyproject.toml without settings."""
    import tomllib  # noqa: PLC0415 (most policies have no settings)

    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    if path.name == PROJECT_NAME and not is_named and "gpolicy" not in text:
        return None  # not ours to judge: whether it is TOML is for others to say
    parts, line = longest_key(text)
    if parts > _MAX_PARTS:  # which Python's reader would need memory for by the square
        raise InputError(f"{path}:{line}: a key of {parts} parts", hint="keys of settings have at most three parts")
    try:
        data: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}{_not_toml(error)}") from None
    if path.name != PROJECT_NAME:
        return SettingsFile(path, text, data)
    tool = data.get("tool", {})
    is_ours = isinstance(tool, dict) and "gpolicy" in tool
    return SettingsFile(path, text, tool["gpolicy"], ("tool", "gpolicy")) if is_ours else None


def _content(path: Path, within: Boundary | None) -> bytes:
    try:
        return read_named(path, _MAX_BYTES) if within is None else within.read(path, _MAX_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint=path_meant(path)) from None
    except OSError as error:
        outside = isinstance(error, OutsideError)
        way = f"name the settings with {argument('config')}, or use {argument('isolated')}"
        hint = way if outside else "are these the settings of gpolicy?"
        raise InputError(f"{path}: {reason(error)}", hint=hint) from None


def _not_toml(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return ": nested too deep"
    if type(error) is ValueError:  # what Python says of a number with thousands of digits
        return ": holds a number with thousands of digits"
    found = re.fullmatch(r"(.*) \(at line ([0-9]+), column ([0-9]+)\)", str(error), re.DOTALL)
    return f":{found[2]}:{found[3]}: not TOML: {found[1]}" if found else f": not TOML: {error}"


def shown(value: Any) -> str:
    """Return a value as a message names it."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value[:60])
    return str(value).lower() if isinstance(value, bool) else str(value)[:60]


def _one_line(text: str) -> str:
    return " ".join(text.split())


_PIECE: Final = r"""(?xs)
      (?P<comment>\#[^\n]*+)
    | (?P<text>\"{3}(?:\\.|[^\\])*?(?:\"{3,5}|\Z) | '{3}.*?(?:'{3,5}|\Z) | "(?:\\.|[^"\\\n])*+"?+ | '[^'\n]*+'?+)
    | (?P<newline>\n)
    | (?P<space>[ \t\r]++)
    | (?P<mark>[][{}=.,])
    | (?P<word>[^][{}=.,\s\#"']++)
    | (?P<other>.)
    """


@dataclass(slots=True)
class TomlPlaces:
    """Places of keys by their path, and of texts by the path of the key whose value they are in."""

    keys: dict[Keys, At] = field(default_factory=dict)
    words: dict[tuple[Keys, str], At] = field(default_factory=dict)

    def put(self, path: Keys, at: At) -> None:
        """Note the place of a key, and of those above it that have none yet."""
        for length in range(1, len(path) + 1):
            self.keys.setdefault(path[:length], at)

    def note(self, path: Keys, words: Iterable[tuple[str, At]]) -> None:
        """Note the places of words in the value at `path`."""
        for word, at in words:
            self.words.setdefault((path, word), at)

    def line(self, path: Keys, word: str = "") -> int:
        """Return the line of `word` in the value at `path`; else of the key, or of the nearest one above it."""
        return self.words[path, word][0] if (path, word) in self.words else self._find_key(path)[0]

    def span(self, file: str, path: Keys) -> Span:
        """Return the place, in `file`, of the key at `path`, or of the nearest one above it."""
        line, column, end = self._find_key(path)
        return Span(file, line, column, line, end)

    def _find_key(self, path: Keys) -> At:
        while path and path not in self.keys:
            path = path[:-1]
        return self.keys.get(path, (1, 1, 1))


def longest_key(text: str) -> tuple[int, int]:
    """Return of how many parts the longest dotted key of a text is, which may be no TOML, and on which line."""
    runs = groupby(_tokens(text), lambda token: token[0] in ("word", "text", "space") or token[1] == ".")
    dots = ([line for _, piece, (line, *_) in run if piece == "."] for is_key, run in runs if is_key)
    most = max(dots, key=len, default=[])
    return len(most) + 1, most[-1] if most else 1


def toml_places(text: str) -> TomlPlaces:
    """Return the places in a text that is known to be TOML."""
    places = TomlPlaces()
    table: Keys = ()
    heading: At | None = None  # where the heading of a table begins
    path, pending, is_begun = table, list[tuple[str, At]](), False
    around: list[Keys] = []  # the path of each brace or bracket that is open
    for kind, piece, at in chain(_tokens(text), [("newline", "", (0, 0, 0))]):
        if kind == "newline" and not around:
            if heading is not None:
                table = tuple(word for word, _ in pending)
                places.put(table, heading)
            else:
                places.note(path, pending)
            path, pending, is_begun, heading = table, [], False, None
        elif piece == "[" and not is_begun:
            heading, is_begun = at, True
        elif kind in ("word", "text"):
            pending.append((_read_key_word(kind, piece), at))
            is_begun = True
        elif piece == "=":
            path = (*(around[-1] if around else table), *(word for word, _ in pending))
            places.put(path, pending[-1][1])
            pending = []
        elif piece in ("{", "[") and heading is None:
            around.append(path)
        elif piece in (",", "}", "]") and heading is None:
            places.note(path, pending)
            pending = []
            path = path if piece == "," else around.pop()
    return places


def _tokens(text: str) -> Iterator[tuple[str, str, At]]:
    line, begin = 1, 0
    for found in re.finditer(_PIECE, text):
        piece, column = found.group(), found.start() - begin + 1
        yield found.lastgroup or "", piece, (line, column, column + len(piece))
        if "\n" in piece:
            line += piece.count("\n")
            begin = found.start() + piece.rindex("\n") + 1


def _read_key_word(kind: str, piece: str) -> str:
    import tomllib  # noqa: PLC0415 (most policies have no settings)

    return str(tomllib.loads(f"x = {piece}")["x"]) if kind == "text" else piece
