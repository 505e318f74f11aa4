"""GP916: globs of `per-file-ignores` that match no file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpolicy.checking.settings import Settings
from gpolicy.findings import Finding, warning_rule
from gpolicy.guessing import did_you_mean
from gpolicy.policy.files import SUFFIXES
from gpolicy.policy.model import Policy

_MOST_GLOBS: Final = 100
_MOST_FILES: Final = 50_000
_LONGEST: Final = 1000

IDLE_GLOB: Final = warning_rule("GP916", "ignored-files-missing")(
    summary="A glob of `per-file-ignores` matches no file below the settings file.",
    rationale="The rules count everywhere, and the glob would hide findings of a file that somebody adds later. Most"
    " likely the path is mistyped: it begins at the directory of the settings file.",
)


def idle_globs(settings: Settings, policy: Policy) -> Iterator[Finding]:
    """Yield a finding for each glob of the settings that matches neither a file of the policy nor any other policy's.

    None in a tree that is too large to be looked through.
    """
    idle = [item for item in settings.per_file[:_MOST_GLOBS] if len(item.glob) < _LONGEST]
    idle = [item for item in idle if not any(item.matches(file) for file in policy.paths)]
    if not idle:
        return
    top = idle[0].directory
    files = _yaml_below(top)
    for item in idle if files is not None else ():
        if not any(map(item.matches_path, files or ())):
            known = {part for path in files or () for part in (path, f"{Path(path).parent.as_posix()}/*")}
            hint = did_you_mean(item.glob, known, f"write the path from {top.name}/, the directory of this file")
            yield IDLE_GLOB.finding(f"{item.glob!r} matches no file of a policy", item.span, hint=hint)


def _yaml_below(top: Path) -> list[str] | None:
    """Return the paths of all YAML files below a directory, from there on; None if it holds too many files."""
    found, seen = list[str](), 0
    for directory, below, names in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        here = Path(os.path.relpath(directory, top))
        found += [(here / name).as_posix() for name in names if name.endswith(SUFFIXES)]
        seen += len(names) + len(below)
        if seen > _MOST_FILES:
            return None
    return found
