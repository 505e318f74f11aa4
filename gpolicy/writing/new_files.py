"""Write the files of a policy to disk, new ones and new contents: of all or of none, and never partially.

Also the workflow that checks and plans a policy in CI, from a template of each service.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Final

from gpolicy import opening
from gpolicy.data import data_directory
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy.files import boundary
from gpolicy.policy.kinds import Policy
from gpolicy.policy.yaml_reader import MAX_BYTES
from gpolicy.writing.documents import SCHEMA_FILE, led_to, schema_for
from gpolicy.writing.yaml_text import scalar


def write_files(files: Mapping[str, str], directory: Path) -> list[Path]:
    """Write `files` (text by relative path) to `directory` and return their paths.

    The directory must be new or empty; a `.git` in it does not count. The files are written to a hidden directory and
    get their names when all are on disk: a killed run leaves no partial file, and in a new directory no partial policy.
    Raise RequestError if the directory cannot be used, GpolicyError if writing fails.
    """
    try:
        opening.refuse_planted_links(directory)
        target = opening.real_path(directory)
    except (OSError, ValueError) as error:
        raise RequestError(f"{directory}: {opening.reason(error)}", hint="name the directory itself") from None
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
        opening.sync_directory(target.parent)
    except (OSError, ValueError) as error:
        raise GpolicyError(f"{directory}: cannot be written: {opening.reason(error)}") from None
    return [directory / name for name in files]


def write_policy(files: Mapping[str, str], directory: Path) -> list[Path]:
    """Write a new policy as `write_files` does, but its schema once for the whole repository: at the top."""
    schema = schema_for(directory)
    texts = {name: led_to(schema, text, directory / name) for name, text in files.items()}
    if schema == opening.real_path(directory) / SCHEMA_FILE:
        return write_files(texts, directory)
    text = texts.pop(SCHEMA_FILE)
    written = write_files(texts, directory)
    if not schema.exists():
        schema.parent.mkdir(exist_ok=True)
        opening.write_public(schema, text.encode())
        written.append(Path(relpath(schema)))
    return written


def write_new_file(path: Path, text: str) -> None:
    """Write `text` to `path`, which must not exist, completely or not at all. Raise RequestError or GpolicyError."""
    try:
        opening.refuse_planted_links(path.parent)
        target = opening.FileToWrite(opening.real_path(path.parent), path.name)
        beside = opening.write_beside(target, text.encode(), opening.new_mode())
        try:
            opening.take_new_place(target, beside)  # unlike a rename, this never replaces a file
        finally:
            opening.drop(target, beside)
        opening.sync_directory(target.directory)
    except FileExistsError:
        raise RequestError(f"{path}: exists already", hint="name a new file; gpolicy overwrites nothing") from None
    except (OSError, ValueError) as error:
        raise GpolicyError(f"{path}: cannot be written: {opening.reason(error)}") from None


def _check_free(directory: Path, target: Path) -> bool:
    """Return whether `target` exists; raise RequestError if it is not empty or not a directory."""
    try:
        entries = [entry.name for entry in target.iterdir()]
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        raise RequestError(f"{directory}: is a file, not a directory", hint="name a new directory") from None
    except OSError as error:
        raise RequestError(f"{directory}: {error.strerror}") from None
    if set(entries) - {".git"}:
        hint = "name a new directory; gpolicy overwrites nothing"
        raise RequestError(f"{directory}: the directory is not empty", hint=hint)
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
    opening.sync_directory(target)


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
        opening.sync_directory(parent)


_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Replacement:
    """New contents of a file. `old` is the content that it must still have; None for any, or for no file."""

    path: Path
    old: bytes | None
    new: bytes
    target: opening.FileToWrite | None = None
    """The place of the file, if it is known."""


def replace_files(replacements: Iterable[Replacement]) -> None:
    """Write the new contents of all files, or of none.

    A file keeps its mode and, where that is allowed, its owner; links are not followed. All new contents are on disk
    before the first file is replaced. Raise GpolicyError, with the name of the file, if one cannot be written or has
    changed.
    """
    written: list[_Written] = []
    try:
        for replacement in replacements:
            with _naming(replacement.path):
                written.append(_write_beside(replacement))
        _take_their_places(written)
    finally:
        for item in written:
            opening.drop(item.target, item.beside)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an OSError into a GpolicyError that names the file."""
    try:
        yield
    except OSError as error:
        raise GpolicyError(f"{path}: cannot be written: {opening.reason(error)}", hint="nothing was changed") from None


@dataclass(frozen=True, slots=True)
class _Written:
    """A new file on disk for replacing another one, whose content is `before`."""

    path: Path
    target: opening.FileToWrite
    beside: str
    before: bytes | None
    mode: int


def _write_beside(replacement: Replacement) -> _Written:
    target = replacement.target or opening.file_to_write(replacement.path)
    known = opening.check_target(target)
    if known is None:
        if replacement.old is not None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        beside = opening.write_beside(target, replacement.new, opening.new_mode())
        return _Written(replacement.path, target, beside, None, 0)
    before = opening.read_below(target.directory, target.directory / target.name, known.st_size)
    if replacement.old is not None and before != replacement.old:
        raise OSError("it has changed since it was read")
    with opening.opened_directory(target.directory) as directory:  # a read-only file must not be replaced
        os.close(os.open(target.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory))
    mode = stat.S_IMODE(known.st_mode)
    beside = opening.write_beside(target, replacement.new, mode, (known.st_uid, known.st_gid))
    return _Written(replacement.path, target, beside, before, mode)


def _take_their_places(written: list[_Written]) -> None:
    """Rename each new file; if one fails, restore the others."""
    done: list[_Written] = []
    try:
        for item in written:
            with _naming(item.path):
                opening.take_place(item.target, item.beside)
                done.append(item)
    except GpolicyError:
        for item in done:
            if item.before is None:
                opening.drop(item.target, item.target.name)
            else:
                opening.take_place(item.target, opening.write_beside(item.target, item.before, item.mode))
        raise
    for directory in {item.target.directory for item in done}:
        opening.sync_directory(directory)


def write_texts(texts: Mapping[str, str], *policies: Policy) -> None:
    """Write new texts of the files of policies, of their bases and of new files, by name: all or none.

    A byte order mark stays. Raise GpolicyError if a file cannot be written, or has changed since it was read.
    """
    replacements = []
    for name, text in texts.items():
        policy = next((policy for policy in policies if name in policy.paths), policies[0])
        try:
            Path(name).parent.mkdir(exist_ok=True)
            target = boundary(policy.root or Path()).target(name)
        except OSError as error:
            raise GpolicyError(f"{name}: {opening.reason(error)}", hint="nothing was changed") from None
        before = _read_again(name, policy, target) if name in policy.files else None
        mark = _BYTE_ORDER_MARK if (before or b"").startswith(_BYTE_ORDER_MARK) else b""
        replacements.append(Replacement(Path(name), before, mark + text.encode(), target))
    replace_files(replacements)


def _read_again(name: str, policy: Policy, target: opening.FileToWrite) -> bytes:
    """Return what a file of a policy holds. Raise GpolicyError if that is not what was read."""
    try:
        found = opening.read_below(target.directory, target.directory / target.name, 2 * MAX_BYTES)
    except OSError as error:
        raise GpolicyError(f"{name}: {opening.reason(error)}", hint="nothing was changed") from None
    if found.removeprefix(_BYTE_ORDER_MARK) != policy.files[name].text.encode():
        raise GpolicyError(f"{name}: it has changed since it was read", hint="nothing was changed; run it again")
    return found


_PLACES: Final = {"github": ".github/workflows/policy.yml", "gitlab": ".gitlab-ci.yml"}
_TO_SET: Final = "# set: "
_STATE: Final = re.compile(r"(?m)(?:^ *# set: where your cluster is.*\n)?^( *)state: .*\n")
"""The address of one cluster, with what there is to say of it."""


def workflow_file(service: str, policy: Path) -> Path:
    """Return the file for the workflow of a policy: at the top of its git work tree, or here; RequestError if taken."""
    if service not in _PLACES:
        hint = did_you_mean_one_of(service, "services", _PLACES)
        raise RequestError(f"there is no CI service `{service}`", hint=hint)
    file = (opening.work_tree(opening.real_path(policy)) or opening.real_path(Path())) / _PLACES[service]
    if file.exists():
        hint = "gpolicy overwrites nothing: move it away, or add to it what docs/guides/ci.md shows"
        raise RequestError(f"{relpath(file)}: exists already", hint=hint)
    return file


def write_workflow(service: str, policy: Path, file: Path, *, clusters: bool) -> Iterator[str]:
    """Write the workflow of a policy to a new file, and yield what to set in it, by line.

    `clusters`: settings beside the policy name clusters, all of which are planned.
    """
    top = file.parents[_PLACES[service].count("/")]
    text = (data_directory("templates") / f"workflow.{service}.yml").read_text(encoding="utf-8")
    text = text.replace("path: policies", f"path: {scalar(relpath(opening.real_path(policy), top))}")
    text = _STATE.sub(r"\1clusters: all\n", text) if clusters else text
    file.parent.mkdir(parents=True, exist_ok=True)
    write_new_file(file, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if _TO_SET in line:
            below = line.lstrip().startswith("#") and not line.startswith("#")  # it is about the line below
            yield f"  line {number + below}: {line.partition(_TO_SET)[2]}"
