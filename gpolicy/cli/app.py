"""The command line: its verbs, each built when it is used, so that start-up is fast; and running one.

Typer parses; its exceptions are turned into ours.
"""

import re
import sys
from copy import copy
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from gpolicy.cli.options import with_typer_defaults
from gpolicy.cli.terminal import switch_pager
from gpolicy.cluster.sources import DESTINATIONS, SCHEMES
from gpolicy.data import read_data
from gpolicy.errors import ExitCode, UsageError
from gpolicy.guessing import closest, did_you_mean
from gpolicy.report.forms import forms_of

_HELP: Final = """Policy as code for Ganeti: check a policy, see what it would change, and change exactly that.

A policy is a directory of YAML files that say what a cluster should be. Begin with `gpolicy init`, or write down
what a cluster has now with `gpolicy adopt`. `gpolicy help VERB` shows all that a verb takes.
"""

GROUPS: Final = {
    "Begin": {"init": "policies", "adopt": "clusters", "snapshot": "clusters"},
    "Review": {"check": "policies", "fmt": "policies", "show": "policies", "test": "policies", "plan": "changes"},
    "Change": {"apply": "changes", "render": "changes", "drift": "clusters"},
    "Ask": {
        **dict.fromkeys(("capacity", "place", "suggest", "size"), "room"),
        **dict.fromkeys(("evacuate", "remedy"), "moves"),
    },
    "Many clusters": {"clusters": "clusters"},
    "Tools": {
        **dict.fromkeys(("explain", "schema"), "policies"),
        **dict.fromkeys(("completion", "post", "htools"), "tools"),
    },
}
"""The verbs in the order of `--help`, by what they are for, each with its module in `cli/verbs/`."""
VERBS: Final = {verb: module for verbs in GROUPS.values() for verb, module in verbs.items()}

_RARE: Final = ("What if", "Limits of groups", "Many clusters", "RAPI")
_ORDER: Final = ("Arguments", "Options", "Output", *_RARE)
_ALL: Final = "gpolicy.all"


class _Verbs(TyperGroup):
    """The verbs, each built at its first use. (Releases of Typer differ in the type of their contexts: Any.)"""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name in VERBS and cmd_name not in self.commands:
            module = import_module(f"gpolicy.cli.verbs.{VERBS[cmd_name]}")
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            (command,) = (command for command in module.verbs.registered_commands if command.name == cmd_name)
            alone.registered_commands = [copy(command)]  # the module's own stays as it is, for the next command line
            alone.registered_commands[0].cls = _Verb
            alone.registered_commands[0].callback = with_typer_defaults(command.callback)
            self.commands[cmd_name] = get_command(alone)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line on each verb, never cut."""
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                rows = [(verb, f"{summary(self.get_command(ctx, verb))}.") for verb in verbs]
                formatter.write_dl([*rows, ("help", "Show what a verb takes.")] if title == "Tools" else rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in VERBS and not args[0].startswith("-"):
            elsewhere = read_data("reference.toml")["called_elsewhere"].items()
            meant = next((verb for verb, words in elsewhere if args[0].lower() in words), None)
            hint = did_you_mean(args[0], VERBS, "`gpolicy help` lists the verbs")
            hint = f"Did you mean `{meant}`?" if meant else hint
            raise UsageError(f"there is no verb `{args[0]}`", hint=hint)
        return super().resolve_command(ctx, args)


class _Verb(TyperCommand):
    """A verb that refuses an option which takes one value and is given two: no one of them may be meant.

    Its help has options under headings, with the rare ones only by name unless `--all` stands beside `--help`.
    """

    def get_help(self, ctx: Any) -> str:
        explained(self)
        return str(super().get_help(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[Any, list[Any]] = {}
        for parameter in self.get_params(ctx):
            if parameter.get_help_record(ctx) is not None:
                is_argument = parameter.param_type_name == "argument"
                title = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
                sections.setdefault(title, []).append(parameter)
        rare = {} if ctx.meta.get(_ALL) else {name: sections.pop(name) for name in _RARE if name in sections}
        for title, parameters in sorted(sections.items(), key=lambda item: _ORDER.index(item[0])):
            with formatter.section(title):
                formatter.write_dl([parameter.get_help_record(ctx) for parameter in parameters])
        if rare:
            with formatter.section(f"More options (gpolicy help {ctx.info_name} --all)"):
                names = {title: ", ".join(max(item.opts, key=len) for item in found) for title, found in rare.items()}
                formatter.write_dl(list(names.items()))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        super().format_help_text(ctx, formatter)
        if examples := read_data("reference.toml")["examples"].get(ctx.info_name):
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"  gpolicy {example}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_ALL] = "--all" in args
        given: list[Any] = self.make_parser(ctx).parse_args(list(args))[2]
        for place, option in enumerate(given):
            takes_one = option.param_type_name == "option" and not option.multiple
            if takes_one and (not option.is_flag or option.secondary_opts) and option in given[:place]:
                hint = "give it once: gpolicy does not choose between two values"
                raise UsageError(f"{max(option.opts, key=len)} is given twice", hint=hint)
        return super().parse_args(ctx, args)


def explained(command: Any) -> Any:
    """Return a verb whose arguments and options say what they are for, which is read now: a run needs none of it."""
    texts = read_data("options.toml")
    texts = texts["several_verbs"] | texts.get(command.name, {})
    known = {
        "forms": ", ".join(forms_of(command.name)),
        "sources": ", ".join(f"{scheme.start}{scheme.follows}" for scheme in SCHEMES.values()),
        "destinations": "; ".join(map(str, DESTINATIONS.values())),
    }
    for parameter in command.params:
        if parameter.name in texts and parameter.help is None:
            parameter.help = texts[parameter.name].format(**known)
    return command


def summary(command: Any) -> str:
    """Return the first sentence of the help of a verb or an option, without its full stop."""
    return str(command.help or "").strip().split("\n\n")[0].split(". ")[0].removesuffix(".")


app = typer.Typer(
    cls=_Verbs,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 (as Typer calls it)
    if asked:
        from gpolicy.versions import versions  # noqa: PLC0415

        typer.echo(versions())
        raise typer.Exit


_VERSION: Final = "Show the versions of gpolicy, its engine, Python and Ganeti."


@app.callback()
@with_typer_defaults
def _main(
    *,
    version: Annotated[  # noqa: ARG001 (its callback answers, also where no verb follows)
        bool, typer.Option("--version", "-V", is_eager=True, callback=_show_version, help=_VERSION)
    ] = False,
    no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Write long text straight to the terminal, not through a pager.")
    ] = False,
) -> None:
    switch_pager(off=no_pager)


# Releases of Typer differ in their copy of Click; Typer's own exception leads to the right one.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]
_TOO_MANY: Final = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)", re.DOTALL)
_KEY: Final = re.compile(r"(?<![a-z-])([a-z-]++)=")


def run_command_line(arguments: list[str]) -> int:
    """Run the verb that `arguments` begin with and return the exit code; without any, write the help to stderr.

    Raises UsageError, KeyboardInterrupt, and the errors of the verb.
    """
    if not arguments:
        command = get_command(app)
        sys.stderr.write(command.get_help(command.make_context("gpolicy", [], resilient_parsing=True)) + "\n")
        return int(ExitCode.COULD_NOT_RUN)
    try:
        result = get_command(app).main(arguments, prog_name="gpolicy", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _CommandLineError as error:
        raise UsageError(_usage(error), hint=_hint(error, arguments[0])) from None
    return result if isinstance(result, int) else 0


def _hint(error: BaseException, verb: str) -> str:
    """Return the option that was meant, or where the options of the verb are explained."""
    help_of = f"see `gpolicy help {verb}`" if verb in VERBS else "see `gpolicy help`"
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return help_of
    known = [name for item in context.command.params for name in (*item.opts, *item.secondary_opts)]
    arguments = [item for item in explained(context.command).params if item.param_type_name == "argument"]
    if any(",..." in (item.metavar or "") for item in arguments) and _TOO_MANY.fullmatch(_click_text(error)):
        return "write several names as one word, with commas and without blanks"
    extra = _TOO_MANY.fullmatch(_click_text(error))
    if extra and "=" in extra["words"]:
        return "is it a size? `gpolicy place memory=4G disk=20G` says where an instance of a size goes"
    if "--state" in known and extra and extra["words"].partition(":")[0] in SCHEMES:
        return f"is it a cluster? Write `--state {extra['words']}`"
    if "--group" in known and extra and " " not in extra["words"]:
        return f"is it a group? Write `--group {extra['words']}`"
    wrong = getattr(error, "option_name", None)
    if not wrong:
        usage = " ".join(item.make_metavar(context) for item in arguments)
        return f"write `gpolicy {verb} {usage}`; {help_of}" if _click_text(error).startswith("Missing") else help_of
    words = {word for item in arguments for word in _KEY.findall(item.help or "")}
    if str(wrong).startswith("--") and (word := closest(str(wrong)[2:], words)):
        return f"write it as a word: `{word}=…`"
    if other := read_data("reference.toml")["options_elsewhere"].get(str(wrong)):
        return str(other)
    if wrong in ("--no-pager", "--version"):
        return f"write it before the verb: `gpolicy {wrong} {verb}`"
    if verb not in VERBS and wrong not in known and str(wrong).startswith("--") and _of_a_verb(str(wrong)):
        return f"write it after the verb: `gpolicy VERB {wrong} …`"
    return did_you_mean(str(wrong), [name for name in known if name.startswith("--")], help_of)


def _of_a_verb(option: str) -> bool:
    root: Any = get_command(app)
    context = root.make_context("gpolicy", [], resilient_parsing=True)
    return any(option in item.opts for verb in VERBS for item in root.get_command(context, verb).params)


def _usage(error: BaseException) -> str:
    if (wrong := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        return f"there is no option `{wrong}`"
    extra = _TOO_MANY.fullmatch(_click_text(error))
    return f"too many arguments: `{extra['words']}`" if extra else _click_text(error)


def _click_text(error: BaseException) -> str:
    """Return what Click says."""
    format_message = getattr(error, "format_message", None)
    return (str(format_message()) if callable(format_message) else str(error)).rstrip(".")
