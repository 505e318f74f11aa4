"""Replace the contents of existing files: of all, or of none; no file is ever half written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpolicy.errors import GpolicyError
from gpolicy.opening import (
    Target,
    check_target,
    drop,
    new_mode,
    opened_directory,
    read_below,
    reason,
    sync_directory,
    take_place,
    target_of,
    write_beside,
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """New contents of a file. `old` is what it must still hold, or None if that does not matter, or there is none."""

    path: Path
    old: bytes | None
    new: bytes
    target: Target | None = None
    """Where the file is, if that is known already."""


def replace_files(replacements: Iterable[Replacement]) -> None:
    """Write the new contents of all files, or of none.

    A file keeps its mode and, where that is allowed, its owner; nothing is written through a link. All new contents are
    on disk before the first file takes them. Raise GpolicyError, naming the file, if one cannot be written or does not
    hold any more what it held.
    """
    written: list[_Written] = []
    try:
        for replacement in replacements:
            with _naming(replacement.path):
                written.append(_write_beside(replacement))
        _take_their_places(written)
    finally:
        for item in written:
            drop(item.target, item.beside)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError about a file into one line that names it."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {reason(error)}"
        raise GpolicyError(message, hint="nothing was changed") from None


@dataclass(frozen=True, slots=True)
class _Written:
    """A new file on disk that is to take the place of another, which holds `before`."""

    path: Path
    target: Target
    beside: str
    before: bytes | None
    mode: int


def _write_beside(replacement: Replacement) -> _Written:
    target = replacement.target or target_of(replacement.path)
    known = check_target(target)
    if known is None:
        if replacement.old is not None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return _Written(replacement.path, target, write_beside(target, replacement.new, new_mode()), None, 0)
    before = read_below(target.directory, target.directory / target.name, known.st_size)
    if replacement.old is not None and before != replacement.old:
        raise OSError("it has changed since it was read")
    with opened_directory(target.directory) as directory:  # what may not be written is not to be replaced either
        os.close(os.open(target.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory))
    mode = stat.S_IMODE(known.st_mode)
    beside = write_beside(target, replacement.new, mode, (known.st_uid, known.st_gid))
    return _Written(replacement.path, target, beside, before, mode)


def _take_their_places(written: list[_Written]) -> None:
    """Rename each new file; if one cannot be, give the others back what they held."""
    done: list[_Written] = []
    try:
        for item in written:
            with _naming(item.path):
                take_place(item.target, item.beside)
                done.append(item)
    except GpolicyError:
        for item in done:
            if item.before is None:
                drop(item.target, item.target.name)
            else:
                take_place(item.target, write_beside(item.target, item.before, item.mode))
        raise
    for directory in {item.target.directory for item in done}:
        sync_directory(directory)
