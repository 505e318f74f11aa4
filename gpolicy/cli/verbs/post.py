"""The verb that keeps a comment on a pull or merge request: post."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import one_line

verbs = typer.Typer()


@verbs.command("post")
def post(
    service: Annotated[str, typer.Argument(..., metavar="SERVICE")],
    name: Annotated[str, typer.Argument(..., metavar="NAME")],
    files: Annotated[list[Path], typer.Argument(..., metavar="FILE...")],
    *,
    only_update: Annotated[bool, typer.Option("--only-update")] = False,
    shown: Annotated[bool, typer.Option("--print")] = False,
    issue: Annotated[int | None, typer.Option("--issue", metavar="CODE")] = None,
) -> int:
    """Keep one comment on a pull or merge request up to date.

    With --issue it keeps one issue while there is drift. The environment of a job on GitHub, GitLab, Gitea or Forgejo
    says where; the token is GITHUB_TOKEN, on GitLab GPOLICY_GITLAB_TOKEN (scope api). Exit code 0: it is done, or there
    is no request or no permission to comment on it (a pull request from a fork), and a message says so; 3: it failed.
    """
    from gpolicy.posting.keeping import keep_comment, keep_issue  # noqa: PLC0415
    from gpolicy.posting.posted_texts import SERVICES, NotAllowedError  # noqa: PLC0415

    if service not in SERVICES:
        raise UsageError(f"there is no service `{service}`", hint=did_you_mean_one_of(service, "services", SERVICES))
    if sum((only_update, shown, issue is not None)) > 1:
        raise UsageError("--only-update, --print and --issue exclude one another", hint="use one of them")
    there = SERVICES[service]
    try:
        if issue is None:
            said = keep_comment(there, name, files, os.environ, only_update=only_update, shown=shown)
        else:
            said = keep_issue(there, name, files, os.environ, issue)
    except NotAllowedError as error:
        if issue is not None:
            raise GpolicyError(f"the token does not allow it: {one_line(str(error))}") from None
        said = f"no comment: the token does not allow it ({error}); a pull request from a fork has no token that writes"
    sys.stderr.write(f"gpolicy: {one_line(said)}\n")
    return int(ExitCode.FINE)
