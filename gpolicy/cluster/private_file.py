"""Files written as a whole or not at all: private ones, that only their owner may read, and public ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gpolicy.errors import GpolicyError, InputError
from gpolicy.opening import drop, reason, sync_directory, take_place, target_of, write_beside

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = 0o600
_PUBLIC = 0o644
_PROGRAM = 0o700


def write_private(path: Path, data: bytes) -> None:
    """Put `data` into the file at `path`, mode 0600, so that at any time it holds all of the old or all of the new.

    Raise GpolicyError when it cannot be written; what was there before is then untouched. Nothing is written through a
    symbolic link.
    """
    _write(path, data, _PRIVATE)


def write_public(path: Path, data: bytes) -> None:
    """Do the same with a file that everybody may read, mode 0644: for what another user's program picks up."""
    _write(path, data, _PUBLIC)


def write_program(path: Path, data: bytes) -> None:
    """Do the same with a file that its owner, and nobody else, may read and run, mode 0700."""
    _write(path, data, _PROGRAM)


def _write(path: Path, data: bytes, mode: int) -> None:
    try:
        target = target_of(path)
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
