"""Find and read the settings file of a repository: `gpolicy.toml`, or `[tool.gpolicy]` of a `pyproject.toml`.

What its tables mean is said where they are used: `[check]` and `[rules]` in `checking/`, the others here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpolicy.errors import InputError
from gpolicy.guessing import did_you_mean
from gpolicy.opening import OutsideError, path_meant, read_named, reason
from gpolicy.policy.boundary import Boundary, boundary

if TYPE_CHECKING:
    from gpolicy.findings import Span
    from gpolicy.settings.toml_places import Keys, TomlPlaces

OWN_NAME: Final = "gpolicy.toml"
PROJECT_NAME: Final = "pyproject.toml"
TABLES: Final = ("check", "rules", "clusters", "rollout")
CHECK_KEYS: Final = ("select", "ignore", "fail-on", "baseline", "severity", "per-file-ignores")
"""The keys of `[check]`."""
_MAX_BYTES: Final = 1024**2
_MAX_PARTS: Final = 32


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
    """A settings file that is TOML, and has only known tables. Its errors name the line of a key.

    `prefix` is where the settings begin: empty, or `tool.gpolicy`.
    """

    def __init__(self, path: Path, text: str, data: Any, prefix: Keys = ()) -> None:
        self.path = path
        self._text = text
        self._top = Place(prefix, data)
        self._places: TomlPlaces | None = None
        self.require_table(self._top, TABLES)

    def table(self, name: str) -> Place | None:
        """Return one of the tables, None if it is not there."""
        return self._top.below(name) if name in self._top.value else None

    def entries(self, place: Place | None) -> Iterator[Place]:
        """Yield what stands in a table. Raise InputError if it is none."""
        if place is None:
            return
        if not isinstance(place.value, dict):
            raise self.error(place, f"must be a table, not {shown(place.value)}", "write its keys below its heading")
        yield from (place.below(key) for key in place.value)

    def require_table(self, place: Place, known: tuple[str, ...]) -> None:
        """Raise InputError unless a value is a table of known keys."""
        for item in self.entries(place):
            key = item.path[-1]
            if key not in known:
                where = f"[{place.shown}]" if place.path else "the settings of gpolicy"
                elsewhere = key in CHECK_KEYS and known is TABLES
                hint = did_you_mean(key, known, f"known here: {', '.join(known)}")
                raise self.error(
                    Place(item.path, None),
                    f"unknown key in {where}",
                    f"it belongs under [{'.'.join((*place.path, 'check'))}]" if elsewhere else hint,
                )

    def error(self, place: Place, message: str, hint: str = "", word: str = "") -> SettingsError:
        """Return an error about a key, or about a word in its value, with its line."""
        line = self._all_places().line(place.path, word)
        what = _one_line(f"{place.shown[:200]}: {message}" if place.path else message)
        place_and_text = f"{_one_line(str(self.path))}:{line}: {what}"
        return SettingsError(place_and_text, _one_line(hint) or None, what, self.span(place))

    def span(self, place: Place) -> Span:
        """Return where a key stands in the file."""
        return self._all_places().span(str(self.path), place.path)

    def _all_places(self) -> TomlPlaces:
        if self._places is None:
            from gpolicy.settings.toml_places import toml_places  # noqa: PLC0415 (few settings need it)

            self._places = toml_places(self._text)
        return self._places


def settings_file(root: Path) -> SettingsFile | None:
    """Return the settings file of the policy at `root`: the nearest one above it, up to the top of its work tree.

    In one directory gpolicy.toml counts before pyproject.toml. Raise InputError for a file that is not as it should be.
    """
    within = boundary(root)
    for directory in (within.home, *within.home.parents):
        for name in (OWN_NAME, PROJECT_NAME):
            path = directory / name
            there = path.is_file() or (name == OWN_NAME and (path.is_symlink() or path.exists()))
            if there and (found := _read(path, within)) is not None:
                return found
        if directory == within.root:
            break
    return None


def named_settings_file(path: Path) -> SettingsFile:
    """Return the settings file `path`, which is read as a pyproject.toml if that is its name."""
    found = _read(path, None)
    assert found is not None  # noqa: S101 (it must be there)
    return found


def _read(path: Path, within: Boundary | None) -> SettingsFile | None:
    """Return a file, which must lie in a boundary, or was named (None).

    None for a pyproject.toml without settings, unless it was named.
    """
    text = _text(path, within)
    must = within is None
    if path.name == PROJECT_NAME and not must and "gpolicy" not in text:
        return None  # not ours to judge: whether it is TOML is for others to say
    found = _parsed(path, text)
    if found is None and must:
        raise InputError(f"{path}: no [tool.gpolicy] in it", hint="name another file, or use --isolated")
    return found


@lru_cache(maxsize=64)  # one file is the settings of many policies
def _parsed(path: Path, text: str) -> SettingsFile | None:
    """Return the file `path` with this text; None for a pyproject.toml without settings."""
    import tomllib  # noqa: PLC0415 (most policies have no settings)

    from gpolicy.settings.toml_places import longest_key  # noqa: PLC0415 (as above)

    parts, line = longest_key(text)
    if parts > _MAX_PARTS:  # which Python's reader would need memory for by the square
        raise InputError(f"{path}:{line}: a key of {parts} parts", hint="keys of settings have at most three parts")
    try:
        data: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_not_toml(path, error)) from None
    if path.name != PROJECT_NAME:
        return SettingsFile(path, text, data)
    tool = data.get("tool", {})
    if isinstance(tool, dict) and "gpolicy" in tool:
        return SettingsFile(path, text, tool["gpolicy"], ("tool", "gpolicy"))
    return None


def _text(path: Path, within: Boundary | None) -> str:
    try:
        data = read_named(path, _MAX_BYTES) if within is None else within.read(path, _MAX_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint=path_meant(path)) from None
    except OSError as error:
        outside = isinstance(error, OutsideError)
        hint = "name the settings with --config, or use --isolated" if outside else "are these the settings of gpolicy?"
        raise InputError(f"{path}: {reason(error)}", hint=hint) from None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _not_toml(path: Path, error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return f"{path}: nested too deep"
    if type(error) is ValueError:  # what Python says of a number with thousands of digits
        return f"{path}: holds a number with thousands of digits"
    found = re.fullmatch(r"(.*) \(at line ([0-9]+), column ([0-9]+)\)", str(error), re.DOTALL)
    if found is None:
        return f"{path}: not TOML: {error}"
    return f"{path}:{found[2]}:{found[3]}: not TOML: {found[1]}"


def shown(value: Any) -> str:
    """Return a value as a message names it."""
    match value:
        case dict():
            return "a table"
        case list():
            return "a list"
        case bool():
            return str(value).lower()
        case str():
            return repr(value[:60])
    return str(value)[:60]


def _one_line(text: str) -> str:
    return " ".join(text.split())
