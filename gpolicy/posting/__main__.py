"""Keep one comment on a pull or merge request with the texts of files, or one issue with them while there is drift.

For the GitHub Action and the GitLab component (docs/guides/ci.md, drift.md), whose environment has all that is needed.
With --issue 2 the issue is open with the texts, with 0 it is closed; any other code says nothing of the cluster and
leaves it. Exit code 0: done, or there is no request or no permission to comment on it (a pull request from a fork), and
a message says so; 3: it failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from gpolicy.errors import ExitCode, GpolicyError, InputError, UsageError
from gpolicy.posting.posted_texts import SERVICES, NotAllowedError, Service, marker, post, whole_text
from gpolicy.printable import one_line, some


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise UsageError: a wrong call ends as all that could not be done."""
        raise UsageError(message, hint=self.format_usage().strip())


def _parser() -> _Parser:
    described, _, more = (__doc__ or "").partition("\n\n")
    form = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="python -m gpolicy.posting", description=described, epilog=more, formatter_class=form)
    parser.add_argument("service", choices=tuple(SERVICES))
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--only-update", action="store_true", help="begin no comment: one that is there gets the new text")
    way.add_argument("--print", action="store_true", help="write the text to standard output; nothing is asked")
    way.add_argument("--issue", type=int, metavar="CODE", help="keep an issue, for this exit code of `gpolicy drift`")
    parser.add_argument("name", metavar="NAME", help="tells comments of one request apart")
    text = "text for it; one that is missing says nothing"
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help=text)
    return parser


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Post the comment, report the result on standard error, return the exit code."""
    try:
        asked = _parser().parse_args(arguments)
        said = _run(asked, environ)
    except NotAllowedError as error:
        if asked.issue is not None:
            sys.stderr.write(f"gpolicy: the token does not allow it: {one_line(str(error))}\n")
            return int(ExitCode.COULD_NOT_RUN)
        said = f"no comment: the token does not allow it ({error}); a pull request from a fork has no token that writes"
    except GpolicyError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        sys.stderr.write(f"gpolicy: {one_line(error.message)}{hint}\n")
        return int(ExitCode.COULD_NOT_RUN)
    sys.stderr.write(f"gpolicy: {one_line(said)}\n")
    return int(ExitCode.FINE)


def _run(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    service = SERVICES[asked.service]
    if asked.issue is not None:
        return _issue(service, asked, environ)
    text = _texts(asked.files)
    posts = None if asked.print else service.comments(environ)
    if posts is None and not asked.print:
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
    return f"the comment {marker(asked.name)} {post(posts, asked.name, text, begin=not asked.only_update).value}"


def _issue(service: Service, asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    name, code = asked.name, asked.issue
    if code not in (ExitCode.FINE, ExitCode.CHANGES):
        return f"the issue {marker(name)} stays: exit code {code} says nothing of the cluster"
    text = _texts(asked.files)
    posts = service.issues(environ)
    _refuse_long(text, name, service.longest)
    return f"the issue {marker(name)} {post(posts, name, text, title=name, close=code == ExitCode.FINE).value}"


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
