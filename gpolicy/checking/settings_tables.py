"""The tables `[check]` and `[rules]` of the settings file, and the options about rules, which override them."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from gpolicy.checking import catalogue
from gpolicy.checking.settings import DEFAULT, PerFile, Settings
from gpolicy.errors import ArgumentError, GpolicyError, argument
from gpolicy.findings import RuleInfo, Severity
from gpolicy.ganeti.releases import check_release, release_of
from gpolicy.guessing import did_you_mean
from gpolicy.policy.settings_file import CHECK_KEYS, Place, SettingsFile, named_settings_file, settings_file, shown
from gpolicy.printable import listed

_MAX_WORDS: Final = 10_000

NEVER: Final = "never"
_LEAST_FAILING: Final[dict[str, Severity | None]] = {**{str(item): item for item in Severity}, NEVER: None}
FAIL_ON: Final = tuple(_LEAST_FAILING)


def settings_for(root: Path) -> Settings:
    """Return the settings of the policy at `root`. Raise InputError for a file that is not as it should be."""
    found = settings_file(root)
    return DEFAULT if found is None else _settings_in(found)


def read_settings(path: Path) -> Settings:
    """Return the settings in the file `path`."""
    return _settings_in(named_settings_file(path))


@lru_cache(maxsize=64)  # one file is the settings of many policies
def _settings_in(file: SettingsFile) -> Settings:
    """Return what a file says; the first thing that is wrong ends it, with an InputError at its line."""
    given = file.keys_in(file.table("check") or Place(("check",), {}), CHECK_KEYS)
    select = _rules(file, given["select"]) if "select" in given else None
    ignore = _rules(file, given["ignore"]) if "ignore" in given else []
    for word in ignore:
        _refuse_if_always_on(word, "ignored", partial(file.error, given["ignore"], word=word))
        if select is None and catalogue.family_of(word) == catalogue.EVERY_RULE:
            hint = "name the rules or families that are not wanted"
            raise file.error(given["ignore"], "names every rule: nothing would count", hint, word)
    if select is not None and catalogue.selects_nothing(select, ignore):
        what = "ignore excludes all of these rules" if select else "names no rule: nothing would count"
        raise file.error(given["select"], what, "leave it out to have every rule count")
    ignored = catalogue.ignored_codes(select, ignore)
    severities = _written_severities(file, given.get("severity"))
    return Settings(
        ignored=ignored,
        kept=catalogue.house_rules_kept(select, ignored),
        asked=catalogue.asked_codes([*(select or ()), *severities]),
        severities=catalogue.severities_by_code(severities),
        per_file=(*_per_file(file, given.get("per-file-ignores")), *_excluded(file)),
        fail_on=_LEAST_FAILING[_fail_on(file, given["fail-on"])] if "fail-on" in given else Severity.ERROR,
        baseline=_baseline(file, given["baseline"]) if "baseline" in given else None,
        parameters=dict(_parameters(file, file.table("rules"))),
        source=file.path,
    )


_Error = Callable[[str, str], GpolicyError]
"""Makes an error of a message and a hint: at a place of the settings file, or about an option."""


def _known(word: str, error: _Error) -> tuple[RuleInfo, ...]:
    infos, hint = catalogue.rules_named(word)
    if not infos:
        raise error(f"there is no rule {shown(word)}", hint)
    return infos


def _refuse_if_always_on(word: str, what: str, error: _Error) -> None:
    info = catalogue.rules_named(word)[0][0]
    if info.stays and not catalogue.is_family(word):
        raise error(f"{info.code} {info.name} cannot be {what}: {info.stays}", "fix what it finds")


def _rules(file: SettingsFile, place: Place) -> list[str]:
    words = place.value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise file.error(place, f"must be a list of rules, not {shown(words)}", 'write ["GP201", "spec-order"]')
    if len(words) > _MAX_WORDS:
        raise file.error(place, f"names {len(words)} rules", f"there are fewer than {_MAX_WORDS}")
    for word in words:
        _known(word, partial(file.error, place, word=word))
    return words


def _written_severities(file: SettingsFile, place: Place | None) -> dict[str, Severity]:
    result: dict[str, Severity] = {}
    for item in file.entries(place):
        word, error = item.path[-1], partial(file.error, item)
        _known(word, error)
        if item.value not in tuple(map(str, Severity)):
            raise error(f"cannot be {shown(item.value)}", f"write {listed(Severity, 'or')}")
        result[word] = Severity(item.value)
        if result[word] is not Severity.ERROR:
            _refuse_if_always_on(word, "less than an error", error)
    return result


def _per_file(file: SettingsFile, place: Place | None) -> Iterator[PerFile]:
    for item in file.entries(place):
        if item.path[-1].startswith("/"):
            raise file.error(item, "matches no file: paths are relative to this file", "leave out the slash")
        words = _rules(file, item)
        for word in words:
            _refuse_if_always_on(word, "ignored", partial(file.error, item, word=word))
        every = (info for word in words for info in catalogue.rules_named(word)[0])
        codes = frozenset(info.key for info in every if not info.stays)
        yield PerFile(glob=item.path[-1], codes=codes, directory=file.path.parent.resolve(), span=file.span(item))


def _excluded(file: SettingsFile) -> Iterator[PerFile]:
    place = file.table("exclude")
    span = file.span(place) if place is not None else None
    for glob in file.exclude:
        yield PerFile(glob=glob, codes=frozenset(), directory=file.path.parent.resolve(), span=span)


def _fail_on(file: SettingsFile, place: Place) -> str:
    if place.value not in FAIL_ON:
        hint = did_you_mean(str(place.value), FAIL_ON, f"write {listed(FAIL_ON, 'or')}")
        raise file.error(place, f"cannot be {shown(place.value)}", hint)
    return str(place.value)


def _baseline(file: SettingsFile, place: Place) -> Path:
    if not isinstance(place.value, str) or not place.value.strip() or "\0" in place.value:
        raise file.error(place, f"cannot be {shown(place.value)}", "write the name of a file")
    return file.path_in_tree(place, place.value, f"keep it in the repository, or name it with {argument('baseline')}")


def _parameters(file: SettingsFile, place: Place | None) -> Iterator[tuple[str, dict[str, float]]]:
    for item in file.entries(place):
        word, error = item.path[-1], partial(file.error, item)
        info = _known(word, error)[0]
        if catalogue.is_family(word):
            raise error("parameters belong to one rule", "write its code or name")
        known = {parameter.name: parameter for parameter in info.parameters}
        if not known:
            raise error(f"{info.code} {info.name} has no parameters", f"see `gpolicy explain {info.code}`")
        for key, number in file.keys_in(item, known).items():
            parameter, value = known[key], number.value
            is_number = (isinstance(value, float) and math.isfinite(value)) or type(value) is int
            if not is_number or not parameter.least <= value <= parameter.most:
                hint = f"write a number from {parameter.least:g} to {parameter.most:g}; the default is "
                raise file.error(number, f"cannot be {shown(number.value)}", f"{hint}{parameter.default:g}")
        yield info.code, {key: float(value) for key, value in item.value.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """The options as they were given; one may hold several words with commas between them."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    fail_on: str | None = None
    config: Path | None = None
    isolated: bool = False
    baseline: Path | None = None
    ganeti_version: str | None = None


NONE: Final = Overrides()
"""No option: the settings of the repository hold."""


def settings_of_each(roots: Sequence[Path], overrides: Overrides = NONE) -> list[Settings]:
    """Return the settings for each of the policies; those that have one settings file share them.

    Raise InputError or RequestError for settings that are wrong.
    """
    if overrides.isolated and overrides.config:
        message = f"isolated reads no settings, {argument('config')} names some"
        raise ArgumentError(message, hint="leave one of them out")
    named = read_settings(overrides.config) if overrides.config else None
    written = [named or (DEFAULT if overrides.isolated else settings_for(root)) for root in roots]
    different = {id(settings): settings for settings in written}
    made = {key: _overridden(settings, overrides) for key, settings in different.items()}
    return [made[id(settings)] for settings in written]


def _overridden(settings: Settings, overrides: Overrides) -> Settings:
    select = list(_rule_words("select", overrides.select))
    ignore = list(_rule_words("ignore", overrides.ignore))
    for word in ignore:
        _refuse_if_always_on(word, "ignored", partial(_option_error, "ignore"))
    if select and catalogue.selects_nothing(select, ignore):
        message = f"ignore excludes all that {argument('select')} names: no rule is left"
        raise ArgumentError(message, hint="leave one of them out")
    ignored = catalogue.ignored_codes(select, ignore) if select else settings.ignored
    if ignore and not select:
        ignored |= catalogue.ignored_codes(None, ignore)
        everything = catalogue.ignored_codes((), ())
        if settings.ignored and everything <= ignored and not everything <= settings.ignored:
            message = f"ignore excludes all that {settings.source} leaves: no rule is left"
            raise ArgumentError(message, hint=f"ignore less, or name rules with {argument('select')}")
    given = dict[str, Severity]()
    for word, severity in _severities(overrides.severity):
        given.pop(word, None)  # so that the last one stands last
        given[word] = severity
    release, fail_on = overrides.ganeti_version, overrides.fail_on
    version = settings.ganeti_version if release is None else release_of(check_release(release, "ganeti_version"))
    if fail_on is not None and fail_on not in FAIL_ON:
        raise ArgumentError(f"fail_on cannot be {fail_on[:60]!r}", hint=f"write one of {', '.join(FAIL_ON)}")
    return replace(
        settings,
        ignored=ignored,
        kept=catalogue.house_rules_kept(select, ignored) if select else settings.kept,
        asked=catalogue.asked_codes([*select, *given]) | (frozenset() if select else settings.asked),
        severities={**settings.severities, **catalogue.severities_by_code(given)},
        baseline=overrides.baseline or settings.baseline,
        ganeti_version=version,
        fail_on=settings.fail_on if fail_on is None else _LEAST_FAILING[fail_on],
    )


def _rule_words(option: str, given: Iterable[str]) -> Iterator[str]:
    for word in (part.strip() for text in given for part in text.split(",")):
        if not word:
            raise ArgumentError(f"{option} names no rule", hint="write codes, names or families: GP201,spec-order,GP3")
        _known(word, partial(_option_error, option))
        yield word


def _option_error(option: str, message: str, hint: str) -> ArgumentError:
    return ArgumentError(f"{option}: {message}", hint=hint)


def _severities(given: Iterable[str]) -> Iterator[tuple[str, Severity]]:
    levels = tuple(map(str, Severity))
    for text in (part for item in given for part in item.split(",")):
        word, separator, level = text.partition("=")
        if not separator or level.strip() not in levels:
            message = f"severity {text[:60]!r} is not RULE=LEVEL"
            hint = f"levels are {', '.join(levels)}: {argument('severity')} GP201=info"
            raise ArgumentError(message, hint=did_you_mean(level, levels, hint) if level else hint)
        for name in _rule_words("severity", [word]):
            if level.strip() != Severity.ERROR:
                _refuse_if_always_on(name, "less than an error", partial(_option_error, "severity"))
            yield name, Severity(level.strip())
