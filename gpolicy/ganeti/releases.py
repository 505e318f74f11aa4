"""The releases of Ganeti that gpolicy knows."""

from __future__ import annotations

from functools import cache
from typing import Final

VERSIONS: Final = ("2.15", "2.16", "3.0", "3.1")
DEFAULT_VERSION: Final = "3.0"


@cache
def release_key(version: str) -> tuple[int, ...]:
    """Return a sort key for a release number such as "3.0" or "3.0.2"."""
    return tuple(int(part) for part in version.split("."))
