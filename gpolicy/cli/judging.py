"""What the verbs have in common that judge a policy: its settings, the baseline, and what is found by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpolicy.errors import UsageError
from gpolicy.findings import Accepted, Finding, Severity
from gpolicy.opening import Target
from gpolicy.policy.boundary import boundary
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy

if TYPE_CHECKING:
    from gpolicy.checking.baseline import Baseline
    from gpolicy.checking.checking import Checked
    from gpolicy.checking.rule import Hit
    from gpolicy.checking.settings import Settings
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What the command line says about the rules: it goes before what the settings file says.

    Words are as they were given; several in one stand between commas. `with_baseline` is off where one is written.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    fail_on: str | None = None
    config: Path | None = None
    isolated: bool = False
    baseline: Path | None = None
    with_baseline: bool = True


BY_THE_FILE: Final = Control()
"""The settings as the repository has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One policy, its settings, and what was found by them."""

    policy: Policy
    settings: Settings
    findings: list[Finding]
    accepted: list[Accepted]


class Judge:
    """Checks the policies at `roots` as often as is needed; settings and baselines are read once."""

    def __init__(self, roots: Sequence[Path], state: ClusterState | None, control: Control = BY_THE_FILE) -> None:
        self._roots = roots
        self._state = state
        self._settings = [settings_of(root, control) for root in roots]
        self._baselines: dict[Path, Baseline] = {}
        for settings in self._settings:
            if control.with_baseline and settings.baseline is not None:
                named = control.baseline is not None
                self._baselines.setdefault(settings.baseline, _baseline(settings.baseline, named=named))

    def judge(self, texts: Mapping[str, str] | None = None) -> list[Judged]:
        """Return what is found in each policy, with `texts` in place of what is in the files of these names."""
        policies = [load_policy(root, texts) for root in self._roots]
        return [
            self._judged(policy, settings, fleet)
            for policy, settings, fleet in zip(policies, self._settings, beside_others(policies), strict=True)
        ]

    def _judged(self, policy: Policy, settings: Settings, fleet: Iterable[Hit]) -> Judged:
        baseline = self._baselines.get(settings.baseline) if settings.baseline else None
        checked = examined(policy, self._state, settings, baseline, fleet)
        return Judged(policy=policy, settings=settings, findings=checked.findings, accepted=checked.accepted)


def examined(
    policy: Policy,
    state: ClusterState | None,
    settings: Settings,
    baseline: Baseline | None = None,
    fleet: Iterable[Hit] = (),
) -> Checked:
    """Return what is found and what is accepted today."""
    from gpolicy.checking.checking import examine  # noqa: PLC0415 (to show help it is not needed)

    today = date.today()  # noqa: DTZ011 (a waiver ends at the reader's midnight)
    return examine(policy, state=state, today=today, settings=settings, baseline=baseline, fleet=fleet)


def beside_others(policies: list[Policy]) -> list[list[Hit]]:
    """Return for each policy what it shows only beside the others."""
    if len(policies) < 2:
        return [[] for _ in policies]
    from gpolicy.checking.checking import check_fleet  # noqa: PLC0415 (as above)

    return check_fleet(policies)


def find(policy: Policy, state: ClusterState | None = None) -> list[Finding]:
    """Return what is found in a policy that was read from disk, by the settings of its repository."""
    settings = settings_of(policy.root or Path())
    baseline = _baseline(settings.baseline, named=False) if settings.baseline else None
    return examined(policy, state, settings, baseline).findings


def editable_files(policies: Iterable[Policy]) -> dict[str, Target]:
    """Return the files that a fix may be written to, with their places.

    Those of the policies that were named, not the bases of theirs that lie elsewhere; not what a link leads to, and of
    two names of one file the first.
    """
    names: dict[Target, str] = {}
    for policy in policies:
        within = boundary(policy.root or Path())
        for name in policy.paths:
            with suppress(OSError):
                names.setdefault(within.target(name), name)
    return {name: target for target, name in names.items()}


# --- settings ------------------------------------------------------------------------------------------------------


def settings_of(root: Path, control: Control = BY_THE_FILE) -> Settings:
    """Return the settings for the policy at `root`. Raise InputError or UsageError where they cannot be."""
    from gpolicy.checking.selection import ignored_codes, nothing_is_left, severities_by_code  # noqa: PLC0415
    from gpolicy.checking.settings import DEFAULT  # noqa: PLC0415
    from gpolicy.checking.settings_file import read_settings, settings_for  # noqa: PLC0415

    if control.isolated and control.config:
        raise UsageError("--isolated reads no settings, --config names some", hint="leave one of them out")
    named = read_settings(control.config) if control.config else None
    settings = named or (DEFAULT if control.isolated else settings_for(root))
    select = list(_words("--select", control.select))
    ignore = list(_words("--ignore", control.ignore))
    for word in ignore:
        _can_be_off(word, "--ignore", "ignored")
    if select and nothing_is_left(select, ignore):
        raise UsageError("--ignore takes away all that --select names: no rule is left", hint="leave one of them out")
    ignored = ignored_codes(select, ignore) if select else settings.ignored | ignored_codes(None, ignore)
    if settings.ignored and not select and settings.ignored != ignored == ignored_codes((), ()):
        message = f"--ignore takes away all that {settings.source} leaves: no rule is left"
        raise UsageError(message, hint="ignore less, or --select what is to count")
    severities = {**settings.severities, **severities_by_code(dict(_severities(control.severity)))}
    settings = replace(settings, ignored=ignored, severities=severities)
    if control.baseline is not None:
        settings = replace(settings, baseline=control.baseline)
    return settings if control.fail_on is None else replace(settings, fail_on=_fail_on(control.fail_on))


def _baseline(path: Path, *, named: bool) -> Baseline:
    from gpolicy.checking.baseline import read_baseline  # noqa: PLC0415 (most policies have none)

    return read_baseline(path, named=named)


def _words(option: str, given: Iterable[str]) -> Iterator[str]:
    """Yield the words of an option, each of which names rules."""
    from gpolicy.checking.selection import rules_named  # noqa: PLC0415

    for word in (part.strip() for text in given for part in text.split(",")):
        if not word:
            raise UsageError(f"{option} names no rule", hint="write codes, names or families: GP201,spec-order,GP3")
        infos, hint = rules_named(word)
        if not infos:
            raise UsageError(f"{option}: there is no rule {word[:60]!r}", hint=hint)
        yield word


def _can_be_off(word: str, option: str, what: str) -> None:
    from gpolicy.checking.selection import is_family, rules_named  # noqa: PLC0415
    from gpolicy.checking.settings import cannot_be_off  # noqa: PLC0415

    (info, *_), _ = rules_named(word)
    if not is_family(word) and (reason := cannot_be_off(info)):
        raise UsageError(f"{option}: {info.code} {info.name} cannot be {what}: {reason}", hint="mend what it finds")


def _severities(given: Iterable[str]) -> Iterator[tuple[str, Severity]]:
    levels = tuple(map(str, Severity))
    for text in (part for item in given for part in item.split(",")):
        word, separator, level = text.partition("=")
        if not separator or level.strip() not in levels:
            message = f"--severity {text[:60]!r} is not RULE=LEVEL"
            raise UsageError(message, hint=f"levels are {', '.join(levels)}: --severity GP201=info")
        for name in _words("--severity", [word]):
            if level.strip() != Severity.ERROR:
                _can_be_off(name, "--severity", "less than an error")
            yield name, Severity(level.strip())


def _fail_on(word: str) -> Severity | None:
    from gpolicy.checking.settings_file import FAIL_ON, NEVER  # noqa: PLC0415

    if word not in FAIL_ON:
        raise UsageError(f"--fail-on cannot be {word[:60]!r}", hint=f"write one of {', '.join(FAIL_ON)}")
    return None if word == NEVER else Severity(word)
