"""The verb for shells."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gpolicy.errors import ExitCode, UsageError
from gpolicy.guessing import did_you_mean_one_of

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
