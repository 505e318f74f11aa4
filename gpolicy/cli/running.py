"""Run a command line, and turn whatever stops it into one clear line and an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import typer
from typer.main import get_command

from gpolicy.cli.app import app
from gpolicy.cli.terminal import complain
from gpolicy.errors import GpolicyError
from gpolicy.exit_codes import ExitCode

_COLLECT_AFTER = 200_000  # objects: a short run must not walk a large policy over and over in search of cycles

_INTERRUPTED = 130  # as shells have it for SIGINT

# Releases of Typer differ in which copy of Click they stand on; its own exception leads to the right one.
_CommandLineError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]


def run(arguments: list[str]) -> int:
    """Run gpolicy with `arguments` and return the exit code. Only a fault of gpolicy itself escapes."""
    with warnings.catch_warnings():
        warnings.showwarning = _tell_once()
        return _run(arguments)


def _tell_once() -> Callable[..., None]:
    """Return what writes each warning as one line, once: that there is no compiled allocator, so far."""
    told: set[str] = set()

    def tell(message: Warning | str, *_details: object, **_more: object) -> None:
        if str(message) not in told:
            told.add(str(message))
            complain(str(message), None)

    return tell


def _run(arguments: list[str]) -> int:
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    sys.stdout, sys.stderr = _writable(sys.stdout), _writable(sys.stderr)
    if not arguments:
        sys.stderr.write(_help())
        return int(ExitCode.COULD_NOT_RUN)
    try:
        result = get_command(app).main(arguments, prog_name="gpolicy", standalone_mode=False)
        sys.stdout.flush()
    except GpolicyError as error:
        complain(error.message, error.hint)
        return int(error.exit_code)
    except (BrokenPipeError, SystemExit):  # the reader of our output has seen enough (Typer turns that into an exit)
        _write_no_more()
        return int(ExitCode.FINE)
    except OSError as error:
        _write_no_more()
        where = "the output" if error.filename is None else repr(str(error.filename))
        complain(f"{where}: {error.strerror or error}", None)
        return int(ExitCode.COULD_NOT_RUN)
    except (KeyboardInterrupt, typer.Abort):
        result = _INTERRUPTED
    except _CommandLineError as error:
        complain(_usage(error), "see gpolicy --help")
        return int(ExitCode.COULD_NOT_RUN)
    if result == _INTERRUPTED:  # how Typer tells of it
        complain("interrupted; nothing was left half written", None)
    return result if isinstance(result, int) else 0


def _writable(stream: TextIO | None) -> TextIO:
    """Return a stream that takes any text: files and pipes get UTF-8, a terminal what it can show."""
    if stream is None:  # closed by the caller
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


def _write_no_more() -> None:
    """Throw away what is still to be written, so that leaving does not fail on it again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help() -> str:
    command = get_command(app)
    return command.get_help(command.make_context("gpolicy", [], resilient_parsing=True)) + "\n"


def _usage(error: BaseException) -> str:
    format_message = getattr(error, "format_message", None)
    text = str(format_message()) if callable(format_message) else str(error)
    return text.rstrip(".")
