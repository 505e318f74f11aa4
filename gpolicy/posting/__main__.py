"""`python -m gpolicy.posting github|gitlab NAME FILE...`: keep one comment with the contents of the files.

For the GitHub Action and the GitLab template (docs/guides/ci.md), whose environment has all that is needed. Exit
code 0: done, or there is no request or no permission to comment on it (a pull request from a fork), and a message says
so; 3: it failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gpolicy.errors import ExitCode, GpolicyError, InputError, UsageError
from gpolicy.posting.posted_comments import NotAllowedError, Service, marker, post
from gpolicy.printable import one_line

_USAGE = "python -m gpolicy.posting github|gitlab NAME FILE..."


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Post the comment, report the result on standard error, return the exit code."""
    try:
        said = _run(arguments, environ)
    except NotAllowedError as error:
        said = f"no comment: the token does not allow it ({error}); a pull request from a fork has no token that writes"
    except GpolicyError as error:
        hint = f"\n  {error.hint}" if error.hint else ""
        sys.stderr.write(f"gpolicy: {one_line(error.message)}{hint}\n")
        return int(ExitCode.COULD_NOT_RUN)
    sys.stderr.write(f"gpolicy: {one_line(said)}\n")
    return int(ExitCode.FINE)


def _run(arguments: list[str], environ: Mapping[str, str]) -> str:
    if len(arguments) < 3 or arguments[0] not in {"github", "gitlab"}:
        raise UsageError(f"usage: {_USAGE}")
    kind, name, *files = arguments
    service = _service(kind, environ)
    if service is None:
        return "no comment: this is not a pull request or merge request"
    text = "\n\n".join(filter(None, (_read(Path(file)) for file in files)))
    if not text:
        return "no comment: there is nothing to post"
    if len(text) + len(marker(name)) + 1 > service.longest:
        raise UsageError(f"{len(text)} characters are too many for a comment", hint="give --format markdown a --budget")
    return f"the comment {marker(name)} {post(service, name, text).value}"


def _service(kind: str, environ: Mapping[str, str]) -> Service | None:
    if kind == "github":
        from gpolicy.posting.pull_request import pull_request  # noqa: PLC0415 (one of two)

        return pull_request(environ)
    from gpolicy.posting.merge_request import merge_request  # noqa: PLC0415

    return merge_request(environ)


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
