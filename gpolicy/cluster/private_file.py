"""Files written as a whole or not at all: private ones, that only their owner may read, and public ones."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from gpolicy.errors import GpolicyError, InputError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = 0o600
_PUBLIC = 0o644


def write_private(path: Path, data: bytes) -> None:
    """Put `data` into the file at `path`, mode 0600, so that at any time it holds all of the old or all of the new.

    Raise GpolicyError when it cannot be written; what was there before is then untouched.
    """
    _write(path, data, _PRIVATE)


def write_public(path: Path, data: bytes) -> None:
    """Do the same with a file that everybody may read, mode 0644: for what another user's program picks up."""
    _write(path, data, _PUBLIC)


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        if path.exists() and not path.is_file():
            raise GpolicyError(f"{path}: cannot be written: it is there and is no ordinary file")
        _replace(path, data, mode)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise GpolicyError(f"{str(path)!r}: cannot be written: {reason}") from None


def _replace(path: Path, data: bytes, mode: int) -> None:
    path = path.resolve()  # through a symbolic link, to the file that it names
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def check_private(path: Path, descriptor: int) -> None:
    """Raise InputError if others than the owner can read the open file, which holds a secret."""
    if os.fstat(descriptor).st_mode & _OTHERS:
        raise InputError(f"{path}: others can read this file with a password in it", hint=f"chmod 600 {path}")
