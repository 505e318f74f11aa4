"""Run a command line, and turn whatever stops it into one clear line and an exit code."""

from __future__ import annotations

import gc
import os
import sys

import typer
from typer.main import get_command

from gpolicy.cli.app import app
from gpolicy.cli.terminal import complain
from gpolicy.errors import GpolicyError
from gpolicy.exit_codes import ExitCode

_COLLECT_AFTER = 200_000  # objects: a short run must not walk a large policy over and over in search of cycles

# Releases of Typer differ in which copy of Click they stand on; its own exception leads to the right one.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]


def run(arguments: list[str]) -> int:
    """Run gpolicy with `arguments` and return the exit code. Only a fault of gpolicy itself escapes."""
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    try:
        result = get_command(app).main(arguments, prog_name="gpolicy", standalone_mode=False)
        sys.stdout.flush()
    except GpolicyError as error:
        complain(error.message, error.hint)
        return int(error.exit_code)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.FINE)
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted; nothing was left half written", None)
        return 130
    except _CommandLineError as error:
        complain(_usage(error), "see gpolicy --help")
        return int(ExitCode.COULD_NOT_RUN)
    return result if isinstance(result, int) else 0


def _usage(error: BaseException) -> str:
    format_message = getattr(error, "format_message", None)
    text = str(format_message()) if callable(format_message) else str(error)
    return text.rstrip(".")
