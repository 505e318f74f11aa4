"""The releases of Ganeti that gpolicy knows."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

VERSIONS: Final = ("2.15", "2.16", "3.0", "3.1")
DEFAULT_VERSION: Final = "3.0"
_NUMBERS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*(?=[~-]|$)")  # 3.1.0~rc2 counts as 3.1.0


@cache
def release_key(version: str) -> tuple[int, ...]:
    """Return a sort key for a release number such as "3.0" or "3.0.2"."""
    return tuple(int(part) for part in version.split("."))


def release_of(software_version: str | None) -> str | None:
    """Return the newest release that gpolicy knows and that is not newer than a cluster's; None if it is unknown."""
    numbers = _NUMBERS.match(software_version or "")
    known = [version for version in VERSIONS if numbers and release_key(version) <= release_key(numbers[0])]
    return known[-1] if known else None


def unknown_release(software_version: str | None) -> str:
    """Return a sentence on a cluster's release if gpolicy does not know it: which one it is judged by."""
    numbers = _NUMBERS.match(software_version or "")
    if not software_version or (numbers and ".".join(numbers[0].split(".")[:2]) in VERSIONS):
        return ""
    by = release_of(software_version)
    if by == VERSIONS[-1]:
        known, by = f"up to {by}", "that"
    else:
        known, by = ", ".join(VERSIONS), by or f"ganeti_version of the policy, or by {DEFAULT_VERSION}"
    return f"the cluster runs Ganeti {software_version}; gpolicy knows {known} and judges by {by}"
