"""The tools beside policies and clusters: completion, post, htools."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import one_line

verbs = typer.Typer()


@verbs.command("completion")
def completion(shell: Annotated[str, typer.Argument(..., metavar="SHELL")]) -> int:
    """Print the script that completes gpolicy's words in a shell.

    It completes verbs, options and their values, and the names of the policy: groups, sizes, guards, tests, rules.
    Load it in bash and zsh by `eval "$(gpolicy completion bash)"`, in fish by `gpolicy completion fish | source`; or
    write it to the place where your shell keeps such scripts.
    """
    from gpolicy.cli.completing import SHELLS  # noqa: PLC0415
    from gpolicy.data import data_directory  # noqa: PLC0415

    if shell not in SHELLS:
        raise UsageError(f"there is no completion for `{shell}`", hint=did_you_mean_one_of(shell, "shells", SHELLS))
    sys.stdout.write((data_directory("templates") / f"completion.{shell}").read_text(encoding="utf-8"))
    return int(ExitCode.FINE)


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
    from gpolicy.posting.posted_texts import SERVICES, NotAllowedError, keep_comment, keep_issue  # noqa: PLC0415

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


@verbs.command(
    "htools",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
    options_metavar="hspace|hail|hbal|hroller",
)
def htools(context: typer.Context) -> int:
    """Run hspace, hail, hbal or hroller, with htools' own options.

    `gpolicy htools hspace --help` lists the options of hspace.
    """
    from gpolicy.htools import run  # noqa: PLC0415

    return run(context.args)
