"""Keep one comment on a pull or merge request with the texts of files, or one issue with them while there is drift."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpolicy.errors import ExitCode, InputError, UsageError
from gpolicy.posting.posted_texts import Service, marker, post, whole_text
from gpolicy.printable import some


def keep_comment(
    service: Service, name: str, files: Sequence[Path], environ: Mapping[str, str], *, only_update: bool, shown: bool
) -> str:
    """Keep a comment with the texts of `files`, one below the other; return what became of it.

    `name` tells comments apart. `only_update` begins no comment; `shown` writes it to standard output, and asks nobody.
    Raise NotAllowedError, and errors of the service.
    """
    text = _texts(files)
    posts = None if shown else service.comments(environ)
    if posts is None and not shown:
        return "no comment: this is not a pull request or merge request"
    if not text:
        missing = [str(file) for file in files if not file.exists()]
        return f"no comment: there is nothing to post{f' (not there: {some(missing)})' if missing else ''}"
    _refuse_long(text, name, service.longest)
    if posts is None:
        try:
            sys.stdout.buffer.write(f"{whole_text(name, text)}\n".encode())
            sys.stdout.buffer.flush()
        except OSError as error:
            raise InputError(f"standard output: {error.strerror}") from None
        return f"the comment {marker(name)} is printed, not written"
    return f"the comment {marker(name)} {post(posts, name, text, begin=not only_update)}"


def keep_issue(service: Service, name: str, files: Iterable[Path], environ: Mapping[str, str], code: int) -> str:
    """Keep an issue for an exit code of `gpolicy drift`; return what became of it.

    With 2 it is open with the texts of `files`, with 0 it is closed, with another it stays as it is. Raise
    NotAllowedError, and errors of the service.
    """
    if code not in (ExitCode.FINE, ExitCode.CHANGES):
        return f"the issue {marker(name)} stays: exit code {code} says nothing of the cluster"
    text = _texts(files)
    posts = service.issues(environ)
    _refuse_long(text, name, service.longest)
    return f"the issue {marker(name)} {post(posts, name, text, title=name, close=code == ExitCode.FINE)}"


def _texts(files: Iterable[Path]) -> str:
    return "\n\n".join(filter(None, map(_read, files)))


def _refuse_long(text: str, name: str, longest: int) -> None:
    if len(whole_text(name, text)) > longest:
        raise UsageError(f"{len(text)} characters are too many for a comment", hint="give --format markdown a --budget")


def _read(file: Path) -> str:
    """Return the text of a file; empty if it does not exist, since its job had nothing to report."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
