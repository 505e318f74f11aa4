"""The verb that stands in for htools."""

from __future__ import annotations

import typer

verbs = typer.Typer()


@verbs.command(
    "htools",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
    options_metavar="hspace|hail",
)
def htools(context: typer.Context) -> int:
    """Run hspace or hail: the allocator with htools' own options.

    `gpolicy htools hspace --help` and `gpolicy htools hail --help` list their options.
    """
    from gpolicy.htools import run  # noqa: PLC0415

    return run(context.args)
