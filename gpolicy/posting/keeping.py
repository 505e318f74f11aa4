"""Keep one comment on a pull or merge request with the texts of files, or one issue with them while there is drift."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpolicy.errors import ExitCode, InputError, UsageError
from gpolicy.posting.posted_texts import SERVICES, Service, marker, post, whole_text
from gpolicy.printable import some


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRequest:
    """What to keep where: the texts of `files`, one below the other, under a `name` that tells comments apart.

    `only_update` begins no comment; `shown` writes it to standard output, and asks nobody. `issue` is the exit code of
    `gpolicy drift`: with 2 an issue is open with the texts, with 0 it is closed, with another it stays as it is.
    """

    service: str
    name: str
    files: tuple[Path, ...]
    only_update: bool = False
    shown: bool = False
    issue: int | None = None


def keep_post(asked: PostRequest, environ: Mapping[str, str]) -> str:
    """Keep the comment or the issue; return what became of it. Raise NotAllowedError, and errors of the service."""
    service = SERVICES[asked.service]
    if asked.issue is not None:
        return _issue(service, asked, environ)
    text = _texts(asked.files)
    posts = None if asked.shown else service.comments(environ)
    if posts is None and not asked.shown:
        return "no comment: this is not a pull request or merge request"
    if not text:
        missing = [str(file) for file in asked.files if not file.exists()]
        return f"no comment: there is nothing to post{f' (not there: {some(missing)})' if missing else ''}"
    _refuse_long(text, asked.name, service.longest)
    if posts is None:
        try:
            sys.stdout.buffer.write(f"{whole_text(asked.name, text)}\n".encode())
            sys.stdout.buffer.flush()
        except OSError as error:
            raise InputError(f"standard output: {error.strerror}") from None
        return f"the comment {marker(asked.name)} is printed, not written"
    return f"the comment {marker(asked.name)} {post(posts, asked.name, text, begin=not asked.only_update)}"


def _issue(service: Service, asked: PostRequest, environ: Mapping[str, str]) -> str:
    name, code = asked.name, asked.issue
    if code not in (ExitCode.FINE, ExitCode.CHANGES):
        return f"the issue {marker(name)} stays: exit code {code} says nothing of the cluster"
    text = _texts(asked.files)
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
