"""Read `gpolicy.toml`, or `[tool.gpolicy]` of a `pyproject.toml`: what a repository wants of the rules."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpolicy.checking.selection import (
    house_rules_kept,
    ignored_codes,
    is_family,
    rules_named,
    selects_nothing,
    severities_by_code,
)
from gpolicy.checking.settings import DEFAULT, PerFile, Settings, reason_to_keep
from gpolicy.errors import InputError
from gpolicy.findings import RuleInfo, Severity
from gpolicy.guessing import did_you_mean
from gpolicy.opening import OutsideError, read_named, reason
from gpolicy.policy.boundary import Boundary, boundary

if TYPE_CHECKING:
    from gpolicy.checking.toml_places import Keys, TomlPlaces

OWN_NAME: Final = "gpolicy.toml"
PROJECT_NAME: Final = "pyproject.toml"
_MAX_BYTES: Final = 1024**2
_MAX_WORDS: Final = 10_000
_MAX_PARTS: Final = 32

NEVER: Final = "never"
FAIL_ON: Final = (*map(str, Severity), NEVER)
CHECK_KEYS: Final = ("select", "ignore", "fail-on", "baseline", "severity", "per-file-ignores")
_TOP_KEYS: Final = ("check", "rules")


def settings_for(root: Path) -> Settings:
    """Return the settings of the policy at `root`: of the nearest file above it, up to the top of its work tree.

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
    return DEFAULT


def read_settings(path: Path) -> Settings:
    """Return the settings in the file `path`, which is read as a pyproject.toml if that is its name."""
    settings = _read(path, None)
    assert settings is not None  # noqa: S101 (it must be there)
    return settings


def _read(path: Path, within: Boundary | None) -> Settings | None:
    """Return the settings in a file, which must lie in a boundary, or was named (None).

    None for a pyproject.toml without any, unless it was named.
    """
    text = _text(path, within)
    must = within is None
    is_project = path.name == PROJECT_NAME
    if is_project and not must and "gpolicy" not in text:
        return None  # not ours to judge: whether it is TOML is for others to say
    import tomllib  # noqa: PLC0415 (most policies have no settings)

    from gpolicy.checking.toml_places import longest_key  # noqa: PLC0415 (as above)

    parts, line = longest_key(text)
    if parts > _MAX_PARTS:  # which Python's reader would need memory for by the square
        raise InputError(f"{path}:{line}: a key of {parts} parts", hint="keys of settings have at most three parts")
    try:
        data: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_not_toml(path, error)) from None
    prefix: Keys = ()
    if is_project:
        tool = data.get("tool", {})
        if not isinstance(tool, dict) or "gpolicy" not in tool:
            if must:
                raise InputError(f"{path}: no [tool.gpolicy] in it", hint="name another file, or use --isolated")
            return None
        data, prefix = tool["gpolicy"], ("tool", "gpolicy")
    return _Reader(path, text, prefix).settings(data)


def _text(path: Path, within: Boundary | None) -> str:
    try:
        data = read_named(path, _MAX_BYTES) if within is None else within.read(path, _MAX_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
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


@dataclass(frozen=True, slots=True)
class _Place:
    """A key in the file, and the value of it."""

    path: Keys
    value: Any

    @property
    def shown(self) -> str:
        return ".".join(self.path)

    def below(self, key: str) -> _Place:
        return _Place((*self.path, key), self.value[key])


class _Reader:
    """Makes settings of what a file says; the first thing that is wrong ends it, with an InputError at its line."""

    def __init__(self, path: Path, text: str, prefix: Keys) -> None:
        self._path = path
        self._text = text
        self._prefix = prefix
        self._places: TomlPlaces | None = None

    def settings(self, data: Any) -> Settings:
        top = _Place(self._prefix, data)
        self._table(top, _TOP_KEYS)
        check = top.below("check") if "check" in data else _Place((*self._prefix, "check"), {})
        self._table(check, CHECK_KEYS)
        given = {key: check.below(key) for key in check.value}
        select = self._rules(given["select"]) if "select" in given else None
        ignore = self._rules(given["ignore"]) if "ignore" in given else []
        for word in ignore:
            self._refuse_if_always_on(word, given["ignore"], "ignored")
        if select is not None and selects_nothing(select, ignore):
            what = "ignore excludes all of these rules" if select else "names no rule: nothing would count"
            raise self._error(given["select"], what, "leave it out to have every rule count")
        ignored = ignored_codes(select, ignore)
        return Settings(
            ignored=ignored,
            kept=house_rules_kept(select, ignored),
            severities=severities_by_code(self._severities(given.get("severity"))),
            per_file=tuple(self._per_file(given.get("per-file-ignores"))),
            fail_on=self._fail_on(given["fail-on"]) if "fail-on" in given else Severity.ERROR,
            baseline=self._baseline(given["baseline"]) if "baseline" in given else None,
            parameters=dict(self._parameters(top.below("rules"))) if "rules" in data else {},
            source=self._path,
        )

    def _rules(self, place: _Place) -> list[str]:
        """Return the words of a list of rules, each of which is known."""
        words = place.value
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise self._error(place, f"must be a list of rules, not {_shown(words)}", 'write ["GP201", "spec-order"]')
        if len(words) > _MAX_WORDS:
            raise self._error(place, f"names {len(words)} rules", f"there are fewer than {_MAX_WORDS}")
        for word in words:
            self._known(word, place, word)
        return words

    def _known(self, word: str, place: _Place, at: str = "") -> tuple[RuleInfo, ...]:
        infos, hint = rules_named(word)
        if not infos:
            raise self._error(place, f"there is no rule {_shown(word)}", hint, at)
        return infos

    def _refuse_if_always_on(self, word: str, place: _Place, what: str) -> None:
        infos = rules_named(word)[0]
        if reason := next((reason_to_keep(info) for info in infos if not is_family(word)), ""):
            message = f"{infos[0].code} {infos[0].name} cannot be {what}: {reason}"
            raise self._error(place, message, "fix what it finds", word)

    def _severities(self, place: _Place | None) -> dict[str, Severity]:
        result: dict[str, Severity] = {}
        for item in self._entries(place):
            word = item.path[-1]
            self._known(word, item)
            if item.value not in tuple(map(str, Severity)):
                raise self._error(item, f"cannot be {_shown(item.value)}", f"write {_one_of(tuple(Severity))}")
            result[word] = Severity(item.value)
            if result[word] is not Severity.ERROR:
                self._refuse_if_always_on(word, item, "less than an error")
        return result

    def _per_file(self, place: _Place | None) -> Iterator[PerFile]:
        for item in self._entries(place):
            words = self._rules(item)
            for word in words:
                self._refuse_if_always_on(word, item, "ignored")
            every = (info for word in words for info in rules_named(word)[0])
            codes = frozenset(info.key for info in every if not reason_to_keep(info))
            yield PerFile(glob=item.path[-1], codes=codes, directory=self._path.parent.resolve())

    def _fail_on(self, place: _Place) -> Severity | None:
        if place.value not in FAIL_ON:
            raise self._error(place, f"cannot be {_shown(place.value)}", f"write {_one_of(FAIL_ON)}")
        return None if place.value == NEVER else Severity(place.value)

    def _baseline(self, place: _Place) -> Path:
        if not isinstance(place.value, str) or not place.value.strip() or "\0" in place.value:
            raise self._error(place, f"cannot be {_shown(place.value)}", "write the name of a file")
        path = self._path.parent / place.value
        try:
            boundary(self._path).real(path)
        except OSError as error:
            hint = "keep it in the repository, or name it with --baseline"
            raise self._error(place, f"{_shown(place.value)} {reason(error)}", hint) from None
        return path

    def _parameters(self, place: _Place) -> Iterator[tuple[str, dict[str, float]]]:
        for item in self._entries(place):
            word = item.path[-1]
            infos = self._known(word, item)
            if is_family(word):
                raise self._error(item, "parameters belong to one rule", "write its code or name")
            (info,) = infos
            known = {parameter.name: parameter for parameter in info.parameters}
            if not known:
                raise self._error(
                    item, f"{info.code} {info.name} has no parameters", f"see `gpolicy explain {info.code}`"
                )
            self._table(item, tuple(known))
            for key in item.value:
                number, parameter = item.below(key), known[key]
                if not _is_number(number.value) or not parameter.least <= number.value <= parameter.most:
                    hint = f"write a number from {parameter.least:g} to {parameter.most:g}; the default is "
                    raise self._error(number, f"cannot be {_shown(number.value)}", f"{hint}{parameter.default:g}")
            yield info.code, {key: float(value) for key, value in item.value.items()}

    def _entries(self, place: _Place | None) -> Iterator[_Place]:
        if place is None:
            return
        if not isinstance(place.value, dict):
            raise self._error(place, f"must be a table, not {_shown(place.value)}")
        yield from (place.below(key) for key in place.value)

    def _table(self, place: _Place, known: tuple[str, ...]) -> None:
        """Raise InputError unless a value is a table of known keys."""
        if not isinstance(place.value, dict):
            raise self._error(place, f"must be a table, not {_shown(place.value)}")
        for key in place.value:
            if key not in known:
                where = f"[{place.shown}]" if place.path else "the settings of gpolicy"
                elsewhere = key in CHECK_KEYS and known is _TOP_KEYS
                hint = did_you_mean(key, known, f"known here: {', '.join(known)}")
                raise self._error(
                    _Place((*place.path, key), None),
                    f"unknown key in {where}",
                    f"it belongs under [{'.'.join((*place.path, 'check'))}]" if elsewhere else hint,
                )

    def _error(self, place: _Place, message: str, hint: str = "", word: str = "") -> InputError:
        if self._places is None:
            from gpolicy.checking.toml_places import toml_places  # noqa: PLC0415 (only an error needs it)

            self._places = toml_places(self._text)
        line = self._places.line(place.path, word)
        what = f"{place.shown[:200]}: " if place.path else ""
        return InputError(_one_line(f"{self._path}:{line}: {what}{message}"), hint=_one_line(hint) or None)


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or type(value) is int


def _shown(value: Any) -> str:
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


def _one_of(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
