"""What gpolicy promises of every command line: how it ends, what it says when it could not run, and its forms."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

FORMS: Final = ("text", "json", "markdown", "github", "sarif", "junit", "gitlab")
_LARGEST_OUTPUT: Final = 64 * 1024**2
_LARGEST_COMPLAINT: Final = 1_000_000


class BrokenError(AssertionError):
    """gpolicy breaks a promise."""


@functools.cache
def _run() -> Callable[[list[str]], int]:
    """Return what runs gpolicy's command line, with its options built once, not for each input."""
    from typer.main import get_command

    from gpolicy.cli import app, running

    vars(app)["get_command"] = functools.cache(get_command)
    return running.run


def gpolicy(*arguments: str | Path) -> tuple[int, str]:
    """Run a command line in this process and hold it against the promises; return its exit code and standard output."""
    words = [str(argument) for argument in arguments]
    with (
        io.TextIOWrapper(io.BytesIO()) as out,
        io.TextIOWrapper(io.BytesIO()) as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _run()(words)
        said, complaints = _written(out), _written(err)
    if broken := fault(code, said, complaints):
        raise BrokenError(f"{' '.join(words)[:300]}: {broken}")
    if code != 3 and (said or words[0] == "check"):  # other verbs tell a wrong policy as a complaint alone
        check_form(said, next((form for form in FORMS if form in words), ""))
    return code, said


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


def fault(code: int, said: str, complaints: str) -> str:
    """Return what is wrong with how a run ended; nothing if it ended as every run should."""
    if code not in (0, 1, 2, 3):
        return f"exit code {code}"
    if "Traceback (most recent" in complaints or "MemoryError" in complaints:
        return complaints[-1500:]
    if code == 3 and not complaints.startswith(("gpolicy: ", "hspace: ", "hail: ", "Error: ")):
        return f"exit code 3 with {complaints[:300]!r}"
    if not _printable(complaints):
        return f"unprintable: {complaints[:300]!r}"
    if len(said) > _LARGEST_OUTPUT or len(complaints) > _LARGEST_COMPLAINT:
        return f"wrote {len(said)} letters, and {len(complaints)} of complaints"
    return ""


def _printable(text: str) -> bool:
    return all(map(str.isprintable, text.split("\n")))


def check_form(out: str, form: str) -> None:
    """Raise an error where an output is not of its form."""
    if form in {"json", "sarif", "gitlab"}:
        json.loads(out, parse_constant=_no_constant)
    elif form == "junit":
        ET.fromstring(out)  # noqa: S314 (our own output)
    elif form in {"text", "github"} and not _printable(out):
        raise BrokenError(f"unprintable in {form}: {out[:300]!r}")


def _no_constant(name: str) -> None:
    raise BrokenError(f"{name} is no JSON")
