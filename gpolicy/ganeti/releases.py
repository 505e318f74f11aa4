"""The releases of Ganeti that gpolicy knows, and what a release decides of the allocator."""

from __future__ import annotations

import re
from functools import cache, lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

VERSIONS: Final = ("2.15", "2.16", "3.0", "3.1", "3.2")
_READ: Final = {"3.2": "3.2.0~alpha1"}  # releases that nobody has run yet, and which source of them was read
DEFAULT_VERSION: Final = "3.0"
RELEASE_VARIABLE: Final = "GPOLICY_GANETI_VERSION"
"""Environment variable with the release by which is counted where nothing else says it."""
RELEASE_FILE: Final = "ssconf_release_version"
"""The file beside config.data in which each node of Ganeti has its release."""
RELEASE_PATH: Final = f"/var/lib/ganeti/{RELEASE_FILE}"
POINT_RELEASE: Final = (
    rf"^({'|'.join(map(re.escape, VERSIONS))})\.(0|[1-9][0-9]{{0,2}})(~(alpha|beta|rc)[0-9]{{1,2}})?$"
)
"""3.1.1 or 3.1.0~rc2, beside VERSIONS, of which each stands for its newest."""
_NUMBERS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*(?=[~-]|$)")  # 3.1.0~rc2 counts as 3.1.0
_NEW_N1: Final = (3, 1, 0)
AMBIGUOUS: Final = "3.1"
"""What config.data says of releases that judge nodes for N+1 in two ways (`n1_by_unallocated`)."""


@cache
def release_key(version: str) -> tuple[int, ...]:
    """Return a sort key for a release number such as "3.0" or "3.0.2"."""
    return tuple(int(part) for part in version.split("."))


def release_numbers(software_version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a release ("3.1.0~rc2" counts as 3.1.0), None where it is not known."""
    numbers = _NUMBERS.match(software_version or "")
    return release_key(numbers[0]) if numbers else None


@lru_cache(maxsize=64)  # rules ask it of every group
def release_of(software_version: str | None) -> str | None:
    """Return the newest release that gpolicy knows and that is not newer than a cluster's; None if it is unknown."""
    numbers = release_numbers(software_version)
    known = [version for version in VERSIONS if numbers and release_key(version) <= numbers]
    return known[-1] if known else None


def unknown_release(software_version: str | None) -> str:
    """Return a sentence on a release that gpolicy does not know, or knows from its source only; else nothing."""
    numbers = _NUMBERS.match(software_version or "")
    own = ".".join(numbers[0].split(".")[:2]) if numbers else ""
    if own in _READ:
        return f"the cluster runs Ganeti {software_version}; gpolicy knows {own} from the source of {_READ[own]} only"
    if not software_version or own in VERSIONS:
        return ""
    by = release_of(software_version)
    if by == VERSIONS[-1]:
        known, by = f"up to {by}", "that"
    else:
        known, by = ", ".join(VERSIONS), by or f"ganeti_version of the policy, or by {DEFAULT_VERSION}"
    return f"the cluster runs Ganeti {software_version}; gpolicy knows {known} and judges by {by}"


def is_release(word: str) -> bool:
    """Return whether somebody wrote a release that gpolicy knows."""
    return word in VERSIONS or re.fullmatch(POINT_RELEASE, word) is not None


def check_release(word: str, where: str) -> str:
    """Return a release that somebody wrote. Raise RequestError, which begins with `where`, for another word.

    Where it is given to a function, that is the argument's name: ArgumentError.
    """
    if not is_release(word):
        from gpolicy.errors import ArgumentError, RequestError  # noqa: PLC0415 (`gpolicy --version` needs none)

        hint = f"gpolicy knows {', '.join(VERSIONS)}, and their minor releases, such as 3.0.2"
        kind = RequestError if where.isupper() else ArgumentError
        raise kind(f"{where}: gpolicy does not know the release {word[:60]!r}", hint=hint)
    return word


def most_exact(software_version: str | None, declared: str | None) -> str:
    """Return the release that counts: what the cluster says of itself, else what is `declared`, else the default.

    config.data says only 3.1, not which: a declared release of these is more exact.
    """
    if software_version is None or release_numbers(software_version) is None:
        return declared or DEFAULT_VERSION
    return declared if declared is not None and release_of(declared) == software_version else software_version


def n1_by_unallocated(release: str) -> bool:
    """Return whether htools of a release judge nodes for N+1 by their unallocated memory when they load a cluster.

    Those of 3.1.0 and later do: a node fails whose unallocated memory is not above its largest reservation for one
    peer. Earlier ones, and pre-releases of 3.1.0, compare the memory that the node reports as free, and equality is
    enough. "3.1" means the newest. Seen by running 3.0.2 and 3.1.1; of 3.1.0~rc2 in its source.
    """
    key = release_numbers(release)
    return key is not None and key[:2] >= _NEW_N1[:2] and (key[:3] != _NEW_N1 or "~" not in release)
