"""File names for objects whose names can be anything."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gpolicy.printable import free_name

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST: Final = 100
_SUFFIXES_OF_YAML: Final = re.compile(r"\.ya?ml\Z", re.IGNORECASE)
_DEVICES: Final = frozenset({"aux", "con", "nul", "prn"})  # names that no checkout on Windows can have


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return a file name (without suffix) for each of `names`, no two the same, upper and lower case aside.

    Only ASCII letters, digits, `.`, `_` and `-` are used, and neither `.` nor `-` to begin with: a hidden file would
    be no part of the policy. A name that is such already stays as it is.
    """
    result: dict[str, str] = {}
    taken: set[str] = set()
    plain_first = sorted(names, key=lambda name: (_plain(name) != name, name))
    for name in plain_first:
        result[name] = free_name(_plain(name), lambda text: text.lower() in taken)
        taken.add(result[name].lower())
    return result


def _plain(name: str) -> str:
    text = _UNSAFE.sub("-", name).lstrip(".-").rstrip(".-")[:_LONGEST].rstrip(".-")
    text = _SUFFIXES_OF_YAML.sub("", text)
    if not text or text.lower() in _DEVICES:
        return f"group-{text}".rstrip("-")
    return text
