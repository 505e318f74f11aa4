"""The boundary of a policy: files that it names are read below its root only, even through links.

A policy is a directory or a single file on the command line. Its *home* is that directory, or the directory of the
file. Its *root* is the git work tree around its home; without git, home and its parent, but no parent such as / or the
user's home directory. Within the root, documents may extend one another. A link must not lead out of the work tree, or
without git out of home. `.git` is not part of the tree: it may hold secrets. A settings file does not set a root: it is
part of the tree itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from os.path import relpath
from pathlib import Path

from gpolicy.errors import InputError
from gpolicy.opening import (
    FileToWrite,
    OutsideError,
    check_target,
    is_common,
    read_below,
    real_path,
    reason,
    refuse_planted_links,
)
from gpolicy.opening import work_tree as work_tree_of

NAME_ITSELF = "name its target instead if you trust it"


@dataclass(frozen=True, slots=True)
class Boundary:
    """The directories that a policy may read. `named` is home as given, the others have links resolved."""

    named: Path
    home: Path
    root: Path
    links: Path
    """The directories to which links in the tree may lead."""

    def real(self, name: str | Path) -> Path:
        """Return the file or directory of a name in the policy's tree. Raise OSError if it is outside the boundary."""
        return self._checked(name)[0]

    def read(self, name: str | Path, limit: int) -> bytes:
        """Return the content of a regular file of the policy's tree, at most `limit` bytes. Raise OSError."""
        real, root = self._checked(name)
        return read_below(root, real, limit)

    def is_file(self, name: str | Path) -> bool:
        """Return whether a name leads to a regular file that may be read."""
        try:
            return self.real(name).is_file()
        except OSError:
            return False

    def target(self, name: str | Path) -> FileToWrite:
        """Return the place of a file of the tree for writing. Raise OSError if a link leads there."""
        real, plain = self._resolved(name)
        target = FileToWrite(plain.parent, plain.name)
        if real != plain:
            check_target(target)  # raises a clearer error if it is itself a link
            raise OutsideError("a symbolic link leads there, and gpolicy does not write through links")
        self._checked(name)
        return target

    def _checked(self, name: str | Path) -> tuple[Path, Path]:
        """Return the resolved name, and the directory that it must not leave."""
        real, plain = self._resolved(name)
        root = self.root if real == plain else self.links
        if not real.is_relative_to(root):
            through = "leads out of" if real == plain else "is a symbolic link out of"
            raise OutsideError(f"{through} {root}")
        if ".git" in real.relative_to(root).parts:
            raise OutsideError("leads to what git keeps for itself")
        return real, root

    def _resolved(self, name: str | Path) -> tuple[Path, Path]:
        """Return the resolved name, and the name without resolving the links in the policy's tree."""
        try:
            whole = os.path.abspath(name)  # noqa: PTH100 (links are not to be followed)
            common = os.path.commonpath((whole, self.named))
            plain = real_path(common) / relpath(whole, common)
        except ValueError as error:
            raise OSError(reason(error)) from None
        return real_path(whole), plain


def boundary(path: Path) -> Boundary:
    """Return the boundary of the policy at `path`, a directory or a file.

    Raise InputError if a planted link is on the way there.
    """
    try:
        named = path if path.is_dir() else path.parent
        refuse_planted_links(named)
        home = real_path(named)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {reason(error)}", hint=NAME_ITSELF) from None
    tree = work_tree_of(home)
    root = tree or (home if is_common(home) or is_common(home.parent) else home.parent)
    whole = Path(os.path.abspath(named))  # noqa: PTH100 (links are not to be followed)
    return Boundary(named=whole, home=home, root=root, links=tree or home)


def relative_path(file: str, directory: Path) -> str:
    """Return the path of a file from a directory, with slashes; links to directories followed."""
    path = Path(file).absolute()
    return Path(relpath(_real(path.parent) / path.name, _real(directory.absolute()))).as_posix()


@cache
def _real(directory: Path) -> Path:
    return real_path(directory)
