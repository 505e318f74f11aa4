"""How far a policy reaches: the directories that what belongs to it may lie in."""

from __future__ import annotations

from functools import cache
from os.path import relpath
from pathlib import Path


def home(root: Path) -> Path:
    """Return the directory that a policy lies in, links followed."""
    resolved = root.resolve()
    return resolved if resolved.is_dir() else resolved.parent


def boundary(root: Path) -> Path:
    """Return the directory that a policy may reach: the git work tree around it, or its directory's parent."""
    start = home(root)
    for directory in (start, *start.parents):
        if (directory / ".git").exists():
            return directory
    return start.parent


def relative_path(file: str, directory: Path) -> str:
    """Return the path of a file from a directory, with slashes; links to directories followed."""
    path = Path(file).absolute()
    return Path(relpath(_real(path.parent) / path.name, _real(directory.absolute()))).as_posix()


@cache
def _real(directory: Path) -> Path:
    return directory.resolve()
