"""What git knows of a work tree, asked so that nothing in the tree can make it start a program.

git starts whatever the configuration of a repository names: filters, helpers for other forms of text, hooks, monitors,
transports. No option switches all of that off. So git is given a directory of our own with a configuration of our own,
which links to the objects, references and the index of the repository, and nothing else of it. What only exists with
the configuration does not count: a filter's other form of a file, a branch's upstream, objects that a server still has.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gpolicy.cluster.process import Output, run
from gpolicy.errors import UnreachableError
from gpolicy.opening import read_named

_CONFIGURED: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_SHARED: Final = ("objects", "refs", "packed-refs", "logs", "shallow")
"""What the work trees of a repository have in common."""
_LONGEST: Final = 1024**2  # bytes of a file of the repository that is read here
_HASH: Final = re.compile(rb"^\s*objectformat\s*=\s*\"?(sha1|sha256)\"?\s*$", re.IGNORECASE | re.MULTILINE)


def ask_git(tree: Path, *words: str, seconds: float, limit: int) -> Output:
    """Return what git answers to `words`, run at the top of the work tree `tree`.

    Raise UnreachableError if the repository cannot be read, or git cannot be run, is too slow or says too much.
    """
    with _own_directory(tree) as directory:
        command = ("git", "--no-optional-locks", f"--git-dir={directory}", f"--work-tree={tree}", "-C", str(tree))
        return run((*command, *words), environ={**os.environ, **_CONFIGURED}, seconds=seconds, limit=limit)


@contextmanager
def _own_directory(tree: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gpolicy-git-") as name:
        own = Path(name)
        try:
            entry = tree / ".git"  # a linked work tree, or a submodule, names its git directory in a file
            theirs = entry if entry.is_dir() else tree / _first_line(entry).removeprefix("gitdir: ")
            shared = theirs / _first_line(theirs / "commondir") if (theirs / "commondir").exists() else theirs
            (own / "HEAD").write_bytes(read_named(theirs / "HEAD", _LONGEST))
            (own / "config").write_text(_configuration(shared / "config"), encoding="ascii")
            (own / "info").mkdir()
            for part in (*_SHARED, "info/exclude"):
                if (shared / part).exists():
                    (own / part).symlink_to(shared / part)
            if (theirs / "index").exists():
                (own / "index").symlink_to(theirs / "index")
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{tree}: its git repository cannot be read: {error}") from None
        yield own


def _first_line(file: Path) -> str:
    return os.fsdecode(read_named(file, _LONGEST).split(b"\n", 1)[0])


def _configuration(theirs: Path) -> str:
    """Return our configuration: of theirs, only the hash function counts."""
    found = _HASH.search(read_named(theirs, _LONGEST)) if theirs.exists() else None
    lines = ["[core]", "repositoryformatversion = 1", "bare = false", "[diff]", "ignoreSubmodules = all"]
    lines += ["[extensions]", "objectFormat = sha256"] if found and found[1].lower() == b"sha256" else []
    return "\n".join([*lines, ""])
