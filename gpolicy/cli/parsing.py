"""Parsing the command line with Typer, whose exceptions are turned into ours."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import typer
from typer.main import get_command

from gpolicy.cli.app import VERBS, app, explained
from gpolicy.cli.options import as_option
from gpolicy.cluster.sources import SCHEMES
from gpolicy.data import read_data
from gpolicy.errors import ArgumentError, ExitCode, UsageError
from gpolicy.guessing import closest, did_you_mean

# Releases of Typer differ in their copy of Click; Typer's own exception leads to the right one.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]
_TOO_MANY: Final = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)", re.DOTALL)
_BEFORE_VERBS: Final = ("--no-pager", "--version")
_KEY: Final = re.compile(r"(?<![a-z-])([a-z-]++)=")


def run_command_line(arguments: list[str]) -> int:
    """Run the verb that `arguments` begin with and return the exit code; without any, write the help to stderr.

    Raises UsageError, KeyboardInterrupt, and the errors of the verb.
    """
    if not arguments:
        sys.stderr.write(_help())
        return int(ExitCode.COULD_NOT_RUN)
    try:
        result = get_command(app).main(arguments, prog_name="gpolicy", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except ArgumentError as error:
        raise as_option(error) from None
    except _CommandLineError as error:
        raise UsageError(_usage(error), hint=_hint(error, arguments[0])) from None
    return result if isinstance(result, int) else 0


def _help() -> str:
    command = get_command(app)
    return command.get_help(command.make_context("gpolicy", [], resilient_parsing=True)) + "\n"


def _hint(error: BaseException, verb: str) -> str:
    """Return the option that was meant, or where the options of the verb are explained."""
    help_of = f"see `gpolicy help {verb}`" if verb in VERBS else "see `gpolicy help`"
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return help_of
    known = [name for item in context.command.params for name in (*item.opts, *item.secondary_opts)]
    arguments = [item for item in explained(context.command).params if item.param_type_name == "argument"]
    if any(",..." in (item.metavar or "") for item in arguments) and _TOO_MANY.fullmatch(_text(error)):
        return "write several names as one word, with commas and without blanks"
    extra = _TOO_MANY.fullmatch(_text(error))
    if extra and "=" in extra["words"]:
        return "is it a size? `gpolicy place memory=4G disk=20G` says where an instance of a size goes"
    if "--state" in known and extra and extra["words"].partition(":")[0] in SCHEMES:
        return f"is it a cluster? Write `--state {extra['words']}`"
    if "--group" in known and extra and " " not in extra["words"]:
        return f"is it a group? Write `--group {extra['words']}`"
    wrong = getattr(error, "option_name", None)
    if not wrong:
        usage = " ".join(item.make_metavar(context) for item in arguments)
        return f"write `gpolicy {verb} {usage}`; {help_of}" if _text(error).startswith("Missing") else help_of
    words = {word for item in arguments for word in _KEY.findall(item.help or "")}
    if str(wrong).startswith("--") and (word := closest(str(wrong)[2:], words)):
        return f"write it as a word: `{word}=…`"
    if other := read_data("reference.toml")["options_elsewhere"].get(str(wrong)):
        return str(other)
    if wrong in _BEFORE_VERBS:
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
    extra = _TOO_MANY.fullmatch(_text(error))
    return f"too many arguments: `{extra['words']}`" if extra else _text(error)


def _text(error: BaseException) -> str:
    """Return what Click says."""
    format_message = getattr(error, "format_message", None)
    return (str(format_message()) if callable(format_message) else str(error)).rstrip(".")
