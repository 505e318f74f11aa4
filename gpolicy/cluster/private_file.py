"""Files written completely or not at all: private ones, which only their owner may read, and public ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpolicy.errors import GpolicyError, InputError
from gpolicy.opening import drop, file_to_write, reason, sync_directory, take_place, write_beside

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = 0o600
_PUBLIC = 0o644
_PROGRAM = 0o700


def write_private(path: Path, data: bytes) -> None:
    """Replace the file at `path` by `data`, mode 0600, in one step.

    Raise GpolicyError when it cannot be written; the old content then stays. Symbolic links are not followed.
    """
    _write(path, data, _PRIVATE)


def write_public(path: Path, data: bytes) -> None:
    """Do the same with mode 0644, for a file that a program of another user reads."""
    _write(path, data, _PUBLIC)


def write_program(path: Path, data: bytes) -> None:
    """Do the same with mode 0700, for a program that only its owner may read and run."""
    _write(path, data, _PROGRAM)


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        target = file_to_write(path)
        beside = write_beside(target, data, mode)
        try:
            take_place(target, beside)
        finally:
            drop(target, beside)
        sync_directory(target.directory)
    except OSError as error:
        raise GpolicyError(f"{str(path)!r}: cannot be written: {reason(error)}") from None


def check_private(path: Path, descriptor: int) -> None:
    """Raise InputError if others than the owner can read the open file, which holds a secret."""
    if os.fstat(descriptor).st_mode & _OTHERS:
        raise InputError(f"{path}: others can read this file with a password in it", hint=f"chmod 600 {path}")
