"""The options about rules: they override the settings file of the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpolicy.checking.selection import (
    house_rules_kept,
    ignored_codes,
    is_family,
    rules_named,
    selects_nothing,
    severities_by_code,
)
from gpolicy.checking.settings import DEFAULT, Settings
from gpolicy.checking.settings_tables import FAIL_ON, NEVER, read_settings, settings_for
from gpolicy.errors import UsageError
from gpolicy.findings import Severity
from gpolicy.ganeti.releases import check_release, release_of
from gpolicy.guessing import did_you_mean


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


def settings_of(root: Path, overrides: Overrides = NONE) -> Settings:
    """Return the settings for the policy at `root`. Raise InputError or UsageError for settings that are wrong."""
    return settings_of_each([root], overrides)[0]


def settings_of_each(roots: Sequence[Path], overrides: Overrides = NONE) -> list[Settings]:
    """Return the settings for each of the policies; those that have one settings file share them."""
    if overrides.isolated and overrides.config:
        raise UsageError("--isolated reads no settings, --config names some", hint="leave one of them out")
    named = read_settings(overrides.config) if overrides.config else None
    written = [named or (DEFAULT if overrides.isolated else settings_for(root)) for root in roots]
    different = {id(settings): settings for settings in written}
    made = {key: _overridden(settings, overrides) for key, settings in different.items()}
    return [made[id(settings)] for settings in written]


def _overridden(settings: Settings, overrides: Overrides) -> Settings:
    select = list(_words("--select", overrides.select))
    ignore = list(_words("--ignore", overrides.ignore))
    for word in ignore:
        _refuse_if_always_on(word, "--ignore", "ignored")
    if select and selects_nothing(select, ignore):
        raise UsageError("--ignore excludes all that --select names: no rule is left", hint="leave one of them out")
    ignored = ignored_codes(select, ignore) if select else settings.ignored | ignored_codes(None, ignore)
    everything = ignored_codes((), ())
    if settings.ignored and not select and everything <= ignored and not everything <= settings.ignored:
        message = f"--ignore excludes all that {settings.source} leaves: no rule is left"
        raise UsageError(message, hint="ignore less, or name rules with --select")
    given = dict[str, Severity]()
    for word, severity in _severities(overrides.severity):
        given.pop(word, None)  # so that the last one stands last
        given[word] = severity
    severities = {**settings.severities, **severities_by_code(given)}
    kept = house_rules_kept(select, ignored) if select else settings.kept
    settings = replace(settings, ignored=ignored, kept=kept, severities=severities)
    if overrides.baseline is not None:
        settings = replace(settings, baseline=overrides.baseline)
    if overrides.ganeti_version is not None:
        settings = replace(
            settings, ganeti_version=release_of(check_release(overrides.ganeti_version, "--ganeti-version"))
        )
    return settings if overrides.fail_on is None else replace(settings, fail_on=_fail_on(overrides.fail_on))


def _words(option: str, given: Iterable[str]) -> Iterator[str]:
    """Yield the words of an option, each of which names rules."""
    for word in (part.strip() for text in given for part in text.split(",")):
        if not word:
            raise UsageError(f"{option} names no rule", hint="write codes, names or families: GP201,spec-order,GP3")
        infos, hint = rules_named(word)
        if not infos:
            raise UsageError(f"{option}: there is no rule {word[:60]!r}", hint=hint)
        yield word


def _refuse_if_always_on(word: str, option: str, what: str) -> None:
    (info, *_), _ = rules_named(word)
    if not is_family(word) and (reason := info.stays):
        raise UsageError(f"{option}: {info.code} {info.name} cannot be {what}: {reason}", hint="fix what it finds")


def _severities(given: Iterable[str]) -> Iterator[tuple[str, Severity]]:
    levels = tuple(map(str, Severity))
    for text in (part for item in given for part in item.split(",")):
        word, separator, level = text.partition("=")
        if not separator or level.strip() not in levels:
            message = f"--severity {text[:60]!r} is not RULE=LEVEL"
            hint = f"levels are {', '.join(levels)}: --severity GP201=info"
            raise UsageError(message, hint=did_you_mean(level, levels, hint) if level else hint)
        for name in _words("--severity", [word]):
            if level.strip() != Severity.ERROR:
                _refuse_if_always_on(name, "--severity", "less than an error")
            yield name, Severity(level.strip())


def _fail_on(word: str) -> Severity | None:
    if word not in FAIL_ON:
        raise UsageError(f"--fail-on cannot be {word[:60]!r}", hint=f"write one of {', '.join(FAIL_ON)}")
    return None if word == NEVER else Severity(word)
