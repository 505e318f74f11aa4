"""Put an adopted or a new policy on disk: all of it, or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from gpolicy.adopt.adopting import Adopted
from gpolicy.errors import GpolicyError, UsageError


def write_adopted(adopted: Adopted, directory: Path) -> list[Path]:
    """Write the policy to `directory` and return the files. See `write_files`."""
    return write_files(adopted.files, directory)


def write_files(files: Mapping[str, str], directory: Path) -> list[Path]:
    """Write `files` (text by relative path) to `directory`, which must be new or empty. Return their paths.

    They are written to a directory beside it, which takes its name when all is on disk: a run that is killed leaves
    no half policy. Raise UsageError if the directory cannot be taken, GpolicyError if writing fails.
    """
    target = directory.resolve()
    _check_free(directory, target)
    beside = target.parent / f".{target.name}.gpolicy-{secrets.token_hex(4)}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        try:
            _fill(beside, files)
            if target.is_dir():
                beside.chmod(target.stat().st_mode & 0o7777)
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        _sync(target.parent)
    except OSError as error:
        raise GpolicyError(f"{directory}: cannot be written: {error.strerror or error}") from None
    return [directory / name for name in files]


def _check_free(directory: Path, target: Path) -> None:
    try:
        entries = next(target.iterdir(), None)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise UsageError(f"{directory}: is a file, not a directory", hint="name a new directory") from None
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}") from None
    if entries is not None:
        hint = "name a new directory; gpolicy overwrites no policy"
        raise UsageError(f"{directory}: the directory is not empty", hint=hint)
    if target == Path.cwd():
        hint = "name a new directory: one that somebody works in cannot be replaced as a whole"
        raise UsageError(f"{directory}: is the current directory", hint=hint)


def _fill(directory: Path, files: Mapping[str, str]) -> None:
    parents = {directory}
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parents.add(path.parent)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    for parent in parents:
        _sync(parent)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
