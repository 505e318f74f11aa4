"""When a report is made, and from which commit: the clock and git are asked here."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gpolicy.errors import UnreachableError
from gpolicy.opening import real_path, work_tree
from gpolicy.provenance import FORM, Provenance

_SECONDS: Final = 5.0
_LIMIT: Final = 2**20  # bytes of an answer
_COMMIT: Final = re.compile(rb"^# branch\.oid ([0-9a-f]{40,64})$", re.MULTILINE)


def provenance_of(files: Iterable[str | Path]) -> Provenance:
    """Return now, and the commit of `files`: those of a policy. A commit is not known outside of git, or without it."""
    made_at = time.strftime(FORM, time.gmtime(_now()))
    folders = sorted({path if path.is_dir() else path.parent for path in map(real_path, files)})
    tree = work_tree(folders[0]) if folders else None
    answer = _git_status(tree, folders) if tree else b""
    commit = _COMMIT.search(answer)
    if commit is None:
        return Provenance(made_at)
    dirty = any(line and not line.startswith(b"#") for line in answer.splitlines())
    return Provenance(made_at, commit[1].decode(), dirty)


def base_of(changed_since: str | None) -> str:
    """Return the commit that this change is compared with: the one asked for, or that of the CI service, or nothing."""
    branch = os.environ.get("GITHUB_BASE_REF")
    return changed_since or os.environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or (f"origin/{branch}" if branch else "")


def _now() -> float:
    """Return the time; SOURCE_DATE_EPOCH says another, so that the same input gives the same report."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return float(fixed) if fixed.isascii() and fixed.isdigit() and len(fixed) < 12 else time.time()


def _git_status(tree: Path, folders: list[Path]) -> bytes:
    """Return what git says of the commit and of changes below `folders`; nothing if it says nothing."""
    from gpolicy.cluster.process import ask_git  # noqa: PLC0415 (few reports are of a policy)

    words = ("status", "--porcelain=v2", "--branch", "--", *map(str, folders))
    try:
        answer = ask_git(tree, *words, seconds=_SECONDS, limit=_LIMIT)
    except UnreachableError:
        return b""
    return answer.stdout if answer.code == 0 else b""
