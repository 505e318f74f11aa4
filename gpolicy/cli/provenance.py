"""When a report is made, and from which commit: the clock and git are asked here."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from gpolicy.errors import UnreachableError
from gpolicy.opening import SETTINGS_NAME, YAML_SUFFIXES, real_path, work_tree
from gpolicy.policy.files import has_policy
from gpolicy.provenance import FORM, Asked, Provenance

_SECONDS: Final = 5.0
_LIMIT: Final = 2**20  # bytes of an answer
_COMMIT: Final = re.compile(rb"^# branch\.oid ([0-9a-f]{40,64})$", re.MULTILINE)


def provenance_of(files: Iterable[str | Path]) -> Provenance:
    """Return now, the commit of `files`, those of a policy, and who asks. Outside of git these are not known."""
    made_at = time.strftime(FORM, time.gmtime(_now()))
    folders = sorted({path if path.is_dir() else path.parent for path in map(real_path, files)})
    tree = work_tree(folders[0]) if folders else None
    answer = _git(tree, "status", "--porcelain=v2", "--branch", "--", *map(str, folders)) if tree else b""
    commit = _COMMIT.search(answer)
    if tree is None or commit is None:
        return Provenance(made_at)
    dirty, asked = any(_is_of_policy(line, tree) for line in answer.splitlines()), _asked_in_ci(os.environ)
    if asked is None and not dirty:
        asked = _author_of(tree, commit[1].decode())
    return Provenance(made_at, commit[1].decode(), dirty, asked)


@lru_cache(maxsize=8)  # many clusters have one commit
def _author_of(tree: Path, commit: str) -> Asked | None:
    last = _git(tree, "log", "-1", "--no-show-signature", "--format=%an%x00%s", commit).decode(errors="replace")
    author, end, subject = last.rstrip("\n").partition("\0")
    return (author, subject, "") if end else None


def _is_of_policy(line: bytes, tree: Path) -> bool:
    """Return whether a line of git's status tells of a change: of what git does not know, only files of a policy do."""
    if not line.startswith(b"? "):
        return bool(line) and not line.startswith(b"#")
    path = tree / os.fsdecode(line[2:])  # git quotes odd names: these count
    is_data = path.is_file() and path.suffix not in YAML_SUFFIXES and path.name != SETTINGS_NAME
    return not is_data and not (path.is_dir() and not has_policy(path))


def _asked_in_ci(environ: Mapping[str, str]) -> Asked | None:
    """Return whose commit, pull request or merge request a job of GitHub, Gitea or GitLab is about."""
    if number := environ.get("CI_MERGE_REQUEST_IID"):
        author, project = environ.get("GITLAB_USER_NAME", ""), environ.get("CI_MERGE_REQUEST_PROJECT_URL", "")
        return author, environ.get("CI_MERGE_REQUEST_TITLE", ""), f"{project}/-/merge_requests/{number}"
    if commit := environ.get("CI_COMMIT_SHA"):
        author, project = environ.get("CI_COMMIT_AUTHOR", ""), environ.get("CI_PROJECT_URL", "")
        return author.partition(" <")[0], environ.get("CI_COMMIT_TITLE", ""), f"{project}/-/commit/{commit}"
    event = None
    with suppress(OSError, ValueError):
        event = json.loads(Path(environ.get("GITHUB_EVENT_PATH", "")).read_bytes())
    match event:
        case {"pull_request": {"user": {"login": str(author)}, "title": str(text), "html_url": str(link)}}:
            return (author, text, link)
        case {"head_commit": {"author": {"name": str(author)}, "message": str(text), "url": str(link)}}:
            return (author, text.partition("\n")[0], link)
    return None


def base_of(changed_since: str | None) -> str:
    """Return the commit that this change is compared with: the one asked for, or that of the CI service, or nothing."""
    branch = os.environ.get("GITHUB_BASE_REF")
    return changed_since or os.environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA") or (f"origin/{branch}" if branch else "")


def _now() -> float:
    """Return the time; SOURCE_DATE_EPOCH says another, so that the same input gives the same report."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return float(fixed) if fixed.isascii() and fixed.isdigit() and len(fixed) < 12 else time.time()


def _git(tree: Path, *words: str) -> bytes:
    """Return what git says; nothing if it says nothing."""
    from gpolicy.cluster.process import ask_git  # noqa: PLC0415 (few reports are of a policy)

    try:
        answer = ask_git(tree, *words, seconds=_SECONDS, limit=_LIMIT)
    except UnreachableError:
        return b""
    return answer.stdout if answer.code == 0 else b""
