"""The verb that stands in for htools."""

from __future__ import annotations

import typer

verbs = typer.Typer()


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
