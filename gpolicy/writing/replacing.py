"""Replace the contents of files that are there: of all of them, or of none; none is ever half written."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpolicy.errors import GpolicyError


@dataclass(frozen=True, slots=True)
class Replacement:
    """New contents of a file. `old` is what it must still hold, or None if that does not matter, or there is none."""

    path: Path
    old: bytes | None
    new: bytes


def replace_files(replacements: Iterable[Replacement]) -> None:
    """Write the new contents of all files, or of none.

    A file keeps its mode and, where that is allowed, its owner; of a link the file that it leads to is replaced. All
    new contents are on disk before the first file takes them. Raise GpolicyError, naming the file, if one cannot be
    written or does not hold any more what it held.
    """
    written: list[tuple[Path, Path, Replacement]] = []
    try:
        for replacement in replacements:
            target = replacement.path.resolve()
            written.append((_beside(target), target, replacement))
            with _naming(replacement.path):
                _write_beside(*written[-1])
        _take_their_places(written)
    finally:
        for beside, _, _ in written:
            with suppress(OSError):
                beside.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError about a file into one line that names it."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise GpolicyError(message, hint="nothing was changed") from None


def _beside(target: Path) -> Path:
    return target.parent / f".{target.name[:100]}.gpolicy-{secrets.token_hex(4)}"


def _write_beside(beside: Path, target: Path, replacement: Replacement) -> None:
    try:
        known = target.stat()
    except FileNotFoundError:
        if replacement.old is not None:
            raise
        known = None
    if known is not None:
        if not stat.S_ISREG(known.st_mode):
            raise OSError("not a regular file")
        if replacement.old is not None and target.read_bytes() != replacement.old:
            raise OSError("it has changed since it was read")
        with target.open("r+b"):
            pass  # a file that may not be written is not to be replaced either
    with beside.open("xb") as file:
        file.write(replacement.new)
        file.flush()
        if known is not None:
            with suppress(OSError):
                os.fchown(file.fileno(), known.st_uid, known.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(known.st_mode))
        os.fsync(file.fileno())


def _take_their_places(written: list[tuple[Path, Path, Replacement]]) -> None:
    """Rename each new file; if one cannot be, give the others back what they held."""
    done: list[tuple[Path, bytes | None]] = []
    try:
        for beside, target, replacement in written:
            with _naming(replacement.path):
                before = target.read_bytes() if target.exists() else None
                beside.replace(target)
                done.append((target, before))
    except GpolicyError:
        for target, before in done:
            if before is None:
                target.unlink()
            else:
                again = _beside(target)
                again.write_bytes(before)
                again.chmod(stat.S_IMODE(target.stat().st_mode))
                again.replace(target)
        raise
    for directory in {target.parent for target, _ in done}:
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
