"""The command line: its verbs. A verb is built when it is used, so that start-up is fast."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

_HELP: Final = """Policy as code for Ganeti: check a policy, see what it would change, and change exactly that.

A policy is a directory of YAML files that say what a cluster should be. Begin with `gpolicy init`, or write down
what a cluster has now with `gpolicy adopt`.
"""

VERBS: Final = {
    "init": "policies",
    "check": "policies",
    "fmt": "policies",
    "show": "policies",
    "adopt": "clusters",
    "snapshot": "clusters",
    "plan": "changes",
    "render": "changes",
    "drift": "clusters",
    "apply": "changes",
    "capacity": "room",
    "place": "room",
    "suggest": "room",
    "test": "policies",
    "schema": "policies",
    "explain": "policies",
    "htools": "htools",
}
"""The verbs in the order of `--help`, each with its module in `cli/verbs/`."""


class _Verbs(TyperGroup):
    """The verbs, each built at its first use. (Releases of Typer differ in the type of their contexts: Any.)"""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        for verb in (cmd_name,) if cmd_name in VERBS else VERBS:  # of all that are built Typer suggests one
            if verb not in self.commands:
                self.commands[verb] = _built(verb)
        return self.commands.get(cmd_name)


def _built(verb: str) -> Any:
    module = import_module(f"gpolicy.cli.verbs.{VERBS[verb]}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.registered_commands = [command for command in module.verbs.registered_commands if command.name == verb]
    return get_command(alone)


app = typer.Typer(
    cls=_Verbs,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _main(
    *,
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version and leave.")] = False,
) -> None:
    if version:
        from gpolicy import __version__  # noqa: PLC0415

        typer.echo(f"gpolicy {__version__}")
        raise typer.Exit
