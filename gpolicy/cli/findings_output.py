"""The forms in which `check` writes what it found."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gpolicy.cli.terminal import wants_colour
from gpolicy.errors import UsageError
from gpolicy.findings import Accepted, Finding
from gpolicy.opening import real_path
from gpolicy.policy.source_file import Files
from gpolicy.report.budget import LEAST_BUDGET
from gpolicy.report.findings_json import findings_json
from gpolicy.report.findings_text import findings_text

CHECK_FORMATS = ("text", "json", "markdown", "github", "sarif", "junit", "gitlab")


def shown(
    findings: list[Finding],
    sources: Files,
    form: str,
    *,
    budget: int,
    fails: Callable[[Finding], bool],
    fixable: int = 0,
    accepted: Sequence[Accepted] = (),
) -> str:
    """Return findings in one of CHECK_FORMATS. `sources` holds the text of all files that were checked.

    `fails` says which make the check fail, `fixable` how many can be mended, `accepted` are those that the repository
    accepts.
    """
    match form:
        case "json":
            return findings_json(findings, accepted)
        case "markdown":
            from gpolicy.report.findings_markdown import findings_markdown  # noqa: PLC0415

            return findings_markdown(from_the_top(findings), budget=budget, fails=fails)
        case "github":
            from gpolicy.report.github import findings_github  # noqa: PLC0415

            return findings_github(findings, locate=repository_path)
        case "junit":
            from gpolicy.report.findings_junit import findings_junit  # noqa: PLC0415

            return findings_junit(findings, sources, fails=fails, locate=repository_path)
        case "sarif":
            return _sarif(findings, sources)
        case "gitlab":
            from gpolicy.report.findings_gitlab import findings_gitlab  # noqa: PLC0415

            known = _fingerprints(findings, sources)
            first = min(sources, default="")
            return findings_gitlab(findings, fingerprint=known.__getitem__, locate=repository_path, without_place=first)
        case _:
            colour = wants_colour(sys.stdout)
            return findings_text(findings, sources, colour=colour, fixable=fixable, accepted=len(accepted))


def _sarif(findings: list[Finding], sources: Files) -> str:
    from gpolicy import __version__  # noqa: PLC0415
    from gpolicy.checking.catalogue import CATALOGUE, FAMILIES  # noqa: PLC0415
    from gpolicy.report.findings_sarif import Catalogue, findings_sarif  # noqa: PLC0415

    return findings_sarif(
        findings,
        Catalogue(rules=CATALOGUE, families=FAMILIES, version=__version__),
        fingerprint=_fingerprints(findings, sources).__getitem__,
        locate=repository_path,
        without_place=min(sources, default=""),
    )


def _fingerprints(findings: list[Finding], sources: Files) -> dict[Finding, str]:
    from gpolicy.checking.fingerprint import unique_fingerprints  # noqa: PLC0415

    found = list(dict.fromkeys(findings))  # what two policies share is one finding
    return dict(zip(found, unique_fingerprints(found, sources, locate=repository_path), strict=True))


def known_budget(budget: int) -> None:
    """Raise UsageError for a budget that not even a verdict fits in."""
    if budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} bytes is too small", hint=f"the least is {LEAST_BUDGET}")


def from_the_top(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with their files named from the top of the checkout."""
    return tuple(
        replace(item, span=replace(item.span, file=repository_path(item.span.file))) if item.span else item
        for item in findings
    )


def repository_path(file: str) -> str:
    """Return the path of a file from the top of the checkout; as it is if it lies elsewhere.

    CI services name the top of the checkout in the environment; else it is the current directory.
    """
    named = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR")
    top, whole = real_path(named or Path.cwd()), real_path(file)
    return whole.relative_to(top).as_posix() if whole.is_relative_to(top) else file
