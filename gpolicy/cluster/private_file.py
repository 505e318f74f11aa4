"""Files written completely or not at all: private ones, which only their owner may read, and public ones."""

from __future__ import annotations

import os
import stat
from functools import partial
from pathlib import Path
from typing import Final

from gpolicy.errors import GpolicyError, InputError
from gpolicy.opening import drop, file_to_write, reason, sync_directory, take_place, write_beside

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def _write(path: Path, data: bytes, mode: int) -> None:
    """Replace the file at `path` by `data` in one step. Symbolic links are not followed.

    Raise GpolicyError when it cannot be written; the old content then stays.
    """
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


write_private: Final = partial(_write, mode=0o600)
write_public: Final = partial(_write, mode=0o644)
"""For a file that a program of another user reads."""
write_program: Final = partial(_write, mode=0o700)
"""For a program that only its owner may read and run."""


def check_private(path: Path, descriptor: int) -> None:
    """Raise InputError if others than the owner can read the open file, which holds a secret."""
    if os.fstat(descriptor).st_mode & _OTHERS:
        raise InputError(f"{path}: others can read this file with a password in it", hint=f"chmod 600 {path}")
