"""Open files whose names strangers may have chosen: only regular ones, below one directory, of bounded size.

The files of a pull request may be links to anywhere, pipes that block, or have impossible names. So a name is resolved,
the result must lie below the directory, and it is opened component by component without following a link: a change in
between is an error, and never leads to another file. All failures to open are OSErrors whose text is fit for a
message. Files are written completely or not at all: private ones, which only their owner may read, and public ones.
"""

import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from gpolicy.errors import GpolicyError
from gpolicy.guessing import MOST_KNOWN, closest

YAML_SUFFIXES: Final = (".yaml", ".yml")
"""The suffixes of policy files."""

SETTINGS_NAME: Final = "gpolicy.toml"

_SEARCH: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_GIT_FILE: Final = 64 * 1024  # bytes of a `.git` that is a file; it holds one path
_real_home: Final = lru_cache(maxsize=1)(partial(os.path.realpath, strict=False))
"""Each directory above each policy is compared with it."""
_LONGEST_PREFIX: Final = 50  # letters of a name that a temporary name begins with; up to four bytes each


class OutsideError(OSError):
    """A name leads out of the directory that it must stay in."""


def reason(error: OSError | ValueError) -> str:
    """Return the error about a file, without its name. Python raises ValueError for impossible names."""
    return "no file can have this name" if isinstance(error, ValueError) else error.strerror or str(error)


def path_meant(path: Path) -> str | None:
    """Return the hint that names what lies beside where `path` would be, under a name that is like its own."""
    try:
        there = {other.name: other for other in itertools.islice(path.parent.iterdir(), MOST_KNOWN)}
    except OSError:
        return path_meant(path.parent) if path.parent != path else None
    alike = {other.stem: other for other in there.values() if other.suffix == path.suffix}  # a suffix is no likeness
    others = {name: other for name, other in there.items() if other.suffix != path.suffix}
    near = alike.get(closest(path.stem, alike) or "") or others.get(closest(path.name, others) or "")
    return f"Did you mean `{near}`?" if near else None


def real_path(path: str | Path) -> Path:
    """Return the path with links resolved, even if nothing is there. Raise OSError for an impossible name."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise OSError(reason(error)) from None


def read_below(root: Path, real: Path, limit: int) -> bytes:
    """Return the content of the regular file `real` below the directory `root`, at most `limit` bytes.

    Both are paths without links, from `real_path`. Raise OSError for a link or a missing file.
    """
    if not real.is_relative_to(root):
        raise OutsideError(f"leads out of {root}")
    with opened_directory(real.parent) as directory:
        _must_be_regular(os.stat(real.name or ".", dir_fd=directory, follow_symlinks=False))  # opening a device may act
        descriptor = os.open(real.name, _READ, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as file:
        _must_be_regular(os.fstat(descriptor))
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"larger than {limit // 1024**2} MiB")
    return data


def read_named(path: Path, limit: int) -> bytes:
    """Return the content of a regular file that the user named, in any place, at most `limit` bytes.

    Raise OSError, OutsideError for a planted link on the way.
    """
    refuse_planted_links(path)
    real = real_path(path)
    return read_below(real.parent, real, limit)


def _must_be_regular(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):  # a loop, or a link that appeared after resolving
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(found.st_mode):
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file, but a directory")
        raise OSError("not a regular file")


@contextmanager
def opened_directory(real: Path) -> Iterator[int]:
    """Open a directory named without links, following none; yield its descriptor."""
    descriptor = os.open(real.anchor, _SEARCH)
    try:
        for part in real.parts[1:]:
            below = os.open(part, _SEARCH, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def work_tree(directory: Path) -> Path | None:
    """Return the git work tree around a directory without links, None if there is none.

    A directory with unrelated files (`is_common`) is never a work tree.
    """
    return next(filter(_has_repository, _around(directory)), None)


def tree_around(directory: Path) -> Path | None:
    """Return the same; without git the outermost directory above with settings of gpolicy at its top."""
    above = (each for each in _around(directory) if each != directory and _is_trusted(each / SETTINGS_NAME, each))
    return work_tree(directory) or max(above, key=lambda each: -len(each.parts), default=None)


def _around(directory: Path) -> Iterator[Path]:
    return itertools.takewhile(lambda each: not is_common(each), (directory, *directory.parents))


def is_common(directory: Path) -> bool:
    """Return whether a directory is a place for unrelated files.

    Such are /, /etc, the home directory of the user, and directories like /tmp, where all may write (sticky).
    """
    if str(directory) in (directory.anchor, "/etc", _real_home(os.path.expanduser("~"))):  # noqa: PTH111
        return True
    try:
        return bool(directory.stat().st_mode & stat.S_ISVTX)
    except OSError:
        return False


def _has_repository(directory: Path) -> bool:
    """Return whether git made the `.git` in a directory, for us, for root, or for the owner of the directory."""
    git = directory / ".git"
    if not _is_trusted(git, directory):
        return False
    try:
        if git.is_dir():
            return stat.S_ISREG((git / "HEAD").lstat().st_mode)
        return read_below(directory, git, _LONGEST_GIT_FILE).startswith(b"gitdir:")
    except OSError:
        return False


def _is_trusted(path: Path, directory: Path) -> bool:
    """Return whether what lies at a path is no link, and ours, root's, or of the owner of the directory."""
    try:
        found = path.lstat()
        return not stat.S_ISLNK(found.st_mode) and found.st_uid in (os.geteuid(), 0, directory.stat().st_uid)
    except OSError:
        return False


def _tree(directory: Path) -> Path | None:
    """Return the tree of a directory: that around it, or itself if it contains YAML."""
    found = tree_around(directory)
    if found is not None:
        return found
    try:
        with os.scandir(directory) as entries:
            return directory if any(entry.name.endswith(YAML_SUFFIXES) for entry in entries) else None
    except OSError:
        return None


def refuse_planted_links(path: Path) -> None:
    """Raise OutsideError if a link on the way to `path` leads out of the tree of the link.

    That tree is a git work tree, the working directory, or otherwise a directory with YAML. A link elsewhere belongs to
    the user who named the path.
    """
    here = real_path(Path.cwd())
    place = Path("/")
    for part in (Path.cwd() / path).parts[1:]:
        if part == "..":
            place = place.parent
            continue
        below = place / part
        if not below.is_symlink():
            place = below
            continue
        target = real_path(below)
        for tree in (here, _tree(place)):
            if tree is not None and place.is_relative_to(tree) and not target.is_relative_to(tree):
                raise OutsideError(f"the symbolic link {below} leads out of {tree}")
        place = target


@dataclass(frozen=True, slots=True)
class FileToWrite:
    """A file for writing: its directory, without links, and its name there, which is not a link."""

    directory: Path
    name: str


def file_to_write(path: Path) -> FileToWrite:
    """Return the target of a file that the command line names for writing. Raise OSError if it cannot be written.

    A link to a file is neither followed nor replaced. Links to directories are followed, except planted ones.
    """
    try:
        if not path.name:
            raise OSError("is a directory, not a file")
        refuse_planted_links(path.parent)
        target = FileToWrite(real_path(path.parent), path.name)
        check_target(target)
    except ValueError as error:
        raise OSError(reason(error)) from None
    return target


def check_target(target: FileToWrite) -> os.stat_result | None:
    """Return the status of an existing file, None if there is none. Raise OSError if it is not a regular file."""
    with opened_directory(target.directory) as directory:
        try:
            found = os.stat(target.name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
    if stat.S_ISLNK(found.st_mode):
        raise OSError("it is a symbolic link, and gpolicy does not write through links; name its target")
    if not stat.S_ISREG(found.st_mode):
        raise OSError("it exists and is not a regular file")
    return found


def new_mode() -> int:
    """Return the mode of new files of ours."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def hidden_name(name: str) -> str:
    """Return a new name for a file in the making that is to be called `name`."""
    return f".{name[:_LONGEST_PREFIX]}.gpolicy-{secrets.token_hex(4)}"


def write_beside(target: FileToWrite, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> str:
    """Write `data` to a new hidden file in the target's directory, with fsync; return its name."""
    name = hidden_name(target.name)
    with opened_directory(target.directory) as directory:
        descriptor = os.open(name, _CREATE, 0o600, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if owner is not None:
                    with suppress(OSError):
                        os.fchown(descriptor, *owner)
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
        except BaseException:
            os.unlink(name, dir_fd=directory)
            raise
    return name


def take_place(target: FileToWrite, beside: str) -> None:
    """Rename the new file to the target, in one step."""
    with opened_directory(target.directory) as directory:
        os.rename(beside, target.name, src_dir_fd=directory, dst_dir_fd=directory)


def take_new_place(target: FileToWrite, beside: str) -> None:
    """Rename the new file to the target; raise FileExistsError if that exists."""
    with opened_directory(target.directory) as directory:
        os.link(beside, target.name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)


def drop(target: FileToWrite, name: str) -> None:
    """Remove a file beside the target, if it is there."""
    with suppress(OSError), opened_directory(target.directory) as directory:
        os.unlink(name, dir_fd=directory)


def sync_directory(directory: Path) -> None:
    """Sync the names in a directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
