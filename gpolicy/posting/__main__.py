"""`python -m gpolicy.posting github|gitlab [--only-update|--print] NAME FILE...`: keep one comment with these texts.

With `--only-update` none is begun: one that is there gets the new text. With `--print` the text goes to standard output
instead, and nothing is asked.

For the GitHub Action and the GitLab component (docs/guides/ci.md), whose environment has all that is needed. Exit
code 0: done, or there is no request or no permission to comment on it (a pull request from a fork), and a message says
so; 3: it failed.

`python -m gpolicy.posting github|gitlab --issue CODE NAME FILE...` keeps an issue (docs/guides/drift.md): CODE is the
exit code of `gpolicy drift`. With 2 the issue is open with the contents of the files, with 0 it is closed; any other
code says nothing of the cluster and leaves it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from gpolicy.errors import ExitCode, GpolicyError, InputError, UsageError
from gpolicy.posting.posted_texts import NotAllowedError, marker, post, whole_text
from gpolicy.printable import one_line

_USAGE = "python -m gpolicy.posting github|gitlab [--only-update | --print | --issue CODE] NAME FILE..."


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Post the comment, report the result on standard error, return the exit code."""
    try:
        said = _run(arguments, environ)
    except NotAllowedError as error:
        if "--issue" in arguments[1:2]:
            sys.stderr.write(f"gpolicy: the token does not allow it: {one_line(str(error))}\n")
            return int(ExitCode.COULD_NOT_RUN)
        said = f"no comment: the token does not allow it ({error}); a pull request from a fork has no token that writes"
    except GpolicyError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        sys.stderr.write(f"gpolicy: {one_line(error.message)}{hint}\n")
        return int(ExitCode.COULD_NOT_RUN)
    sys.stderr.write(f"gpolicy: {one_line(said)}\n")
    return int(ExitCode.FINE)


def _run(arguments: list[str], environ: Mapping[str, str]) -> str:
    option = arguments[1] if arguments[1:2] and arguments[1] in {"--only-update", "--print"} else None
    arguments = [*arguments[:1], *arguments[2:]] if option else arguments
    known = {"--issue"} if option is None else set[str]()
    is_option = arguments[1:2] and arguments[1].startswith("--") and arguments[1] not in known
    if len(arguments) < 3 or arguments[0] not in {"github", "gitlab"} or is_option:
        raise UsageError(f"usage: {_USAGE}")
    if arguments[1] == "--issue":
        return _issue(arguments, environ)
    kind, name, *files = arguments
    service, text = _service(kind), _texts(files)
    posts = None if option == "--print" else service.comments(environ)
    if posts is None and option != "--print":
        return "no comment: this is not a pull request or merge request"
    if not text:
        return "no comment: there is nothing to post"
    _refuse_long(text, name, service.LONGEST)
    if posts is None:
        _print(f"{whole_text(name, text)}\n")
        return f"the comment {marker(name)} is printed, not written"
    return f"the comment {marker(name)} {post(posts, name, text, begin=option is None).value}"


def _print(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except OSError as error:
        raise InputError(f"standard output: {error.strerror}") from None


def _issue(arguments: list[str], environ: Mapping[str, str]) -> str:
    if len(arguments) < 5 or not arguments[2].isdecimal():
        raise UsageError(f"usage: {_USAGE}")
    kind, _, code, name, *files = arguments
    if int(code) not in (ExitCode.FINE, ExitCode.CHANGES):
        return f"the issue {marker(name)} stays: exit code {code} says nothing of the cluster"
    service, text = _service(kind), _texts(files)
    posts = service.issues(environ)
    _refuse_long(text, name, service.LONGEST)
    return f"the issue {marker(name)} {post(posts, name, text, title=name, close=int(code) == ExitCode.FINE).value}"


def _texts(files: list[str]) -> str:
    return "\n\n".join(filter(None, (_read(Path(file)) for file in files)))


def _refuse_long(text: str, name: str, longest: int) -> None:
    if len(whole_text(name, text)) > longest:
        raise UsageError(f"{len(text)} characters are too many for a comment", hint="give --format markdown a --budget")


def _service(kind: str) -> ModuleType:
    """Return the module of the service: github or gitlab."""
    return import_module(f"gpolicy.posting.{kind}_api")


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
