"""Run a command line, and turn every error into one clear line and an exit code.

`htools` stands in for programs that start in a few milliseconds, so the framework of the other verbs is not
imported for it.
"""

from __future__ import annotations

import gc
import io
import itertools
import os
import sys
import warnings
from collections.abc import Callable

from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.printable import console

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_COLLECT_AFTER = 200_000  # objects: a short run must not walk a large policy over and over in search of cycles


def run(arguments: list[str]) -> int:
    """Run gpolicy with `arguments` and return the exit code. Only bugs of gpolicy raise."""
    with warnings.catch_warnings():
        warnings.showwarning = _tell_once()
        return _run(arguments)


def _tell_once() -> Callable[..., None]:
    """Return a function that writes each warning as one line, once."""
    told: set[str] = set()

    def tell(message: Warning | str, *_details: object, **_more: object) -> None:
        if str(message) not in told:
            told.add(str(message))
            _complain(str(message))

    return tell


def _run(arguments: list[str]) -> int:
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    sys.stdout, sys.stderr = console(_writable(sys.stdout)), console(_writable(sys.stderr))
    try:
        result = _run_verb(arguments)
        sys.stdout.flush()
    except GpolicyError as error:
        _complain(error)
        return int(error.exit_code)
    except (BrokenPipeError, SystemExit):  # the reader of our output has closed it (Typer turns that into an exit)
        _write_no_more()
        return int(ExitCode.FINE)
    except OSError as error:
        _write_no_more()
        where = "the output" if error.filename is None else repr(str(error.filename))
        _complain(f"{where}: {error.strerror or error}")
        return int(ExitCode.COULD_NOT_RUN)
    except MemoryError:
        _complain("there is not enough memory for this")
        return int(ExitCode.COULD_NOT_RUN)
    except KeyboardInterrupt:
        result = int(ExitCode.INTERRUPTED)
    if result == ExitCode.INTERRUPTED:
        _complain("interrupted; nothing was left half written")
    return result


def _run_verb(arguments: list[str]) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*itertools.dropwhile("help".__eq__, arguments), "--help"]
    if arguments[:1] == ["__complete"]:
        from gpolicy.cli.completing import run as run_completion  # noqa: PLC0415 - only what is needed

        return run_completion(arguments[1:])
    if arguments[:1] == ["htools"]:
        from gpolicy.htools import run as run_htools  # noqa: PLC0415 - only what is needed

        return run_htools(arguments[1:])
    from gpolicy.cli.app import run_command_line  # noqa: PLC0415 - only what is needed

    if arguments[-1:] != ["--help"]:
        return run_command_line(arguments)
    from contextlib import redirect_stdout  # noqa: PLC0415 - only what is needed

    from gpolicy.cli.terminal import write_long  # noqa: PLC0415

    with redirect_stdout(io.StringIO()) as told:
        code = run_command_line(arguments)
    write_long(told.getvalue())
    return code


def _complain(said: GpolicyError | str) -> None:
    from gpolicy.cli.terminal import complain, in_options  # noqa: PLC0415 - only what is needed

    complain(*((said, None) if isinstance(said, str) else in_options(said)))


def _writable(stream: TextIO | None) -> TextIO:
    """Return a stream that takes any text: files and pipes get UTF-8, a terminal what it can show."""
    if stream is None:  # closed by the caller
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - pathlib is slow to import
    if isinstance(stream, io.TextIOWrapper):
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


def _write_no_more() -> None:
    """Discard the pending output, so that the exit does not fail on it again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # an output without a file needs none of this
        return
