"""Write a new policy, or one new document, to disk, completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from gpolicy.errors import GpolicyError, UsageError
from gpolicy.opening import (
    FileToWrite,
    drop,
    new_mode,
    real_path,
    reason,
    refuse_planted_links,
    sync_directory,
    take_new_place,
    write_beside,
)


def write_files(files: Mapping[str, str], directory: Path) -> list[Path]:
    """Write `files` (text by relative path) to `directory` and return their paths.

    The directory must be new or empty; a `.git` in it does not count. The files are written to a hidden directory and
    get their names when all are on disk: a killed run leaves no partial file, and in a new directory no partial policy.
    Raise UsageError if the directory cannot be used, GpolicyError if writing fails.
    """
    try:
        refuse_planted_links(directory)
        target = real_path(directory)
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory}: {reason(error)}", hint="name the directory itself") from None
    in_place = _check_free(directory, target)
    unique = f"gpolicy-{secrets.token_hex(4)}"
    beside = target / f".{unique}" if in_place else target.parent / f".{target.name}.{unique}"
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        try:
            _fill(beside, files)
            if in_place:
                _move_entries(beside, target)
            else:
                beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        sync_directory(target.parent)
    except (OSError, ValueError) as error:
        raise GpolicyError(f"{directory}: cannot be written: {reason(error)}") from None
    return [directory / name for name in files]


def write_new_file(path: Path, text: str) -> None:
    """Write `text` to `path`, which must not exist, completely or not at all. Raise UsageError or GpolicyError."""
    try:
        refuse_planted_links(path.parent)
        target = FileToWrite(real_path(path.parent), path.name)
        beside = write_beside(target, text.encode(), new_mode())
        try:
            take_new_place(target, beside)  # unlike a rename, this never replaces a file
        finally:
            drop(target, beside)
        sync_directory(target.directory)
    except FileExistsError:
        raise UsageError(f"{path}: exists already", hint="name a new file; gpolicy overwrites nothing") from None
    except (OSError, ValueError) as error:
        raise GpolicyError(f"{path}: cannot be written: {reason(error)}") from None


def _check_free(directory: Path, target: Path) -> bool:
    """Return whether `target` exists; raise UsageError if it is not empty or not a directory."""
    try:
        entries = [entry.name for entry in target.iterdir()]
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise UsageError(f"{directory}: is a file, not a directory", hint="name a new directory") from None
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}") from None
    if set(entries) - {".git"}:
        hint = "name a new directory; gpolicy overwrites nothing"
        raise UsageError(f"{directory}: the directory is not empty", hint=hint)
    return True


def _move_entries(source: Path, target: Path) -> None:
    """Move all entries of `source` to `target`, or none; a killed run may have moved some."""
    moved: list[Path] = []
    try:
        for entry in sorted(source.iterdir()):
            place = target / entry.name
            entry.rename(place)
            moved.append(place)
    except OSError:
        for place in moved:
            place.rename(source / place.name)
        raise
    sync_directory(target)


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
        sync_directory(parent)
