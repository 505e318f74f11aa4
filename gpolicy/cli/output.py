"""The output of verbs: reports in the requested form, or errors instead."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from gpolicy.cli.terminal import wants_colour, write_long
from gpolicy.errors import ExitCode, UnreachableError, UsageError
from gpolicy.json_values import json_text
from gpolicy.opening import SETTINGS_NAME, YAML_SUFFIXES, real_path, work_tree, write_private
from gpolicy.printable import as_text, count, some, write_commands
from gpolicy.provenance import FORM, UNKNOWN, Asked, Provenance
from gpolicy.report.forms import Display, render

if TYPE_CHECKING:
    from gpolicy.findings import Finding
    from gpolicy.policy.kinds import Policy
    from gpolicy.policy.source_file import Files, YamlDocument
    from gpolicy.report.answer import Answer
    from gpolicy.report.prometheus import Samples


OwnForms = Mapping[str, Callable[[], str]]
"""The forms that a verb makes of its own value, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a verb found out, to be shown in any form.

    `answer` makes its answer, None if errors of the policy prevent it; `own` are the other forms. `errors` are what
    the policy has, in `files`. `policy` is what the report is of. `following` are lines for a text, after it. `metrics`
    makes its samples, for verbs that have some.
    """

    exit_code: int
    answer: Callable[[], Answer] | None = None
    own: OwnForms = field(default_factory=dict)
    policy: tuple[Path, ...] = ()
    errors: tuple[Finding, ...] = ()
    files: Files = field(default_factory=dict)
    following: tuple[str, ...] = ()
    metrics: Callable[[], Samples] | None = None


def report_under(
    path: Path | None, answer: Callable[[], Answer], data: Callable[[], dict[str, Any]], exit_code: int = ExitCode.FINE
) -> Report:
    """Return a report on a cluster as the policy, or the plan, at `path` would make it, if there is one."""
    from gpolicy.report.answer import under  # noqa: PLC0415

    return Report(
        exit_code=int(exit_code),
        answer=lambda: under(answer(), path),
        own={"json": lambda: json_text(data())},
        policy=(path,) if path and path.suffix != ".json" else (),
    )


def check_no_file_is_lost(read: Path | None, *written: Path | None) -> None:
    """Raise UsageError if a file that is written is the one that is `read`, or another one that is written."""
    known = set() if read is None else {real_path(read)}
    for file in written:
        if file is not None:
            if real_path(file) in known:
                raise UsageError(f"{file} is named twice: it would be overwritten", hint="name another file to write")
            known.add(real_path(file))


def show_report(
    report: Report, display: Display, output: Path | None = None, *, also: Sequence[tuple[Display, Path]] = ()
) -> int:
    """Write a report to standard output, and errors that prevent it to standard error; return the exit code.

    With `output`, write it to this file instead, and in any case to the files of `also`, each in its form. Only their
    owner can read them.
    """
    if report.answer is not None:
        is_said = bool(report.errors) and display.form == "text"  # the errors say it all
        for form, file in (*also, *([(display, output)] if output is not None and not is_said else ())):
            write_private(file, report_text(form, report.answer, report.own, report.policy).encode())
        if output is None and not is_said:
            text = report_text(display_on(sys.stdout, display), report.answer, report.own, report.policy)
            if display.form == "github":
                write_commands(sys.stdout, text)
            else:
                write_long(text)
    if report.errors:
        show_errors(report.errors, report.files)
    if display.form == "text" and not display.quiet:
        wrote = [f"wrote {', '.join(str(file) for _, file in also)}"] if also and report.answer is not None else []
        sys.stdout.write(as_text([*wrote, *report.following]))
    return report.exit_code


def display_on(stream: TextIO, display: Display) -> Display:
    """Return a display with what `stream` can show: colour and columns if it is a terminal."""
    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    return replace(display, colour=wants_colour(stream), width=width)


def report_text(display: Display, answer: Callable[[], Answer], own: OwnForms, policy: Iterable[Path] = ()) -> str:
    """Return that report. What is kept or sent (Markdown and pages) says when it was made, and from which commit."""
    if display.form in own and not (display.quiet and display.form == "text"):
        return own[display.form]()
    made = answer()
    if made.provenance is UNKNOWN and display.form != "text":
        made = replace(made, provenance=provenance_of(policy))
    return render(made, display)


def show_errors(errors: Iterable[Finding], sources: Files) -> None:
    """Write findings to standard error, instead of the report that they prevent."""
    from gpolicy.report.findings_text import findings_text  # noqa: PLC0415 (most policies are sound)

    sys.stderr.write(findings_text(errors, sources, colour=wants_colour(sys.stderr)))


def looked_at(policies: Sequence[Policy], files: Files) -> str:
    """Return what policies hold, for the last line of a report: `4 files, 2 groups`."""
    groups = sum(len(policy.groups) for policy in policies)
    counts = [f"{len(policies)} policies"] if len(policies) > 1 else []
    empty = " without a document" if not any(file.documents for file in files.values()) else ""
    counts += [f"{count(len(files), 'file')}{empty}"] if files else []
    counts += [count(groups, "group")] if groups else []
    return ", ".join(counts)


def not_judged(policies: Sequence[Policy]) -> str:
    """Return what no rule could judge, as its document or another has an error; empty if that is nothing."""
    if all(policy.is_whole for policy in policies):
        return ""
    broken = dict.fromkeys(_broken_words(document) for policy in policies for document in policy.broken)
    parts = [*([some(list(broken), 8)] if broken else []), "what depends on the whole policy"]
    return f"not judged until the errors are fixed: {'; '.join(parts)}"


def _broken_words(document: YamlDocument) -> str:
    root = document.root if isinstance(document.root, dict) else {}
    kind, name = root.get("kind"), root.get("name")
    if isinstance(kind, str) and isinstance(name, str):
        return f"{kind} {name}"
    return f"{document.file} from line {document.mark[0]} on"


def policy_title(path: Path, policy: Policy) -> str:
    """Return the name of a policy, in CI from the top of the checkout, with what it holds: `policies (4 files)`."""
    name = repository_path(str(path)) if _checkout() else str(path)
    return f"{name} ({looked_at([policy], policy.files)})"


def _checkout() -> str | None:
    """Return the top of the checkout, as CI services name it."""
    return os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR")


def repository_path(file: str) -> str:
    """Return the path of a file from the top of the checkout; as it is if it lies elsewhere.

    CI services name the top of the checkout in the environment; else it is the current directory.
    """
    named = _checkout()
    top, whole = real_path(named or Path.cwd()), real_path(file)
    return whole.relative_to(top).as_posix() if whole.is_relative_to(top) else file


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
    from gpolicy.policy.files import has_policy  # noqa: PLC0415 (few reports are of a policy)

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
