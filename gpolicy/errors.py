"""Exceptions that stop a run, each with a hint; and exit codes.

Findings about a policy are data (`gpolicy.findings`); exceptions are only for what stops a run.
"""

from __future__ import annotations

import os
from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final


class ExitCode(IntEnum):
    """The exit codes of gpolicy."""

    FINE = 0
    FINDINGS = 1
    CHANGES = 2
    COULD_NOT_RUN = 3
    INTERRUPTED = 130  # as shells have it for SIGINT


def about(where: str, message: str) -> str:
    """Return `message` after its subject: a file, or a source, which may end with a colon itself (`local:`)."""
    return f"{where.removesuffix(':')}: {message}"


_MARK: Final = os.urandom(8).hex()  # of this process: no name of a file or a cluster can hold it


def argument(name: str) -> str:
    """Return the name of an argument, a parameter or a field of a request, for the message or the hint of an error.

    The error shows `name`, and the command line shows the option that sets it (`GpolicyError.in_words`).
    """
    return f"{_MARK}{name}{_MARK}"


class GpolicyError(Exception):
    """gpolicy could not run: shown as one clear line, exit code 3.

    `message` says what is wrong, `hint` (optional) what to do about it; another error takes it as `marked_hint`.
    """

    exit_code = ExitCode.COULD_NOT_RUN

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self._marked_message, self.marked_hint = message, hint
        self.message, self.hint = self.in_words(str)
        super().__init__(self.message)

    def in_words(self, word: Callable[[str], str]) -> tuple[str, str | None]:
        """Return message and hint with `word(name)` in place of the name of each argument."""
        return _in_words(self._marked_message, word), self.marked_hint and _in_words(self.marked_hint, word)


def _in_words(text: str, word: Callable[[str], str]) -> str:
    parts = text.split(_MARK)
    return "".join(word(part) if number % 2 else part for number, part in enumerate(parts))


class RequestError(GpolicyError):
    """What is asked for is impossible."""


class ArgumentError(RequestError):
    """A value that is asked for is impossible. The message begins with the name of the argument, such as `like`."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        name = message.split(maxsplit=1)[0].removesuffix(":")
        super().__init__(f"{argument(name)}{message.removeprefix(name)}", hint=hint)


class UsageError(RequestError):
    """The command line asks for something impossible: the same, in words of its options."""


class InputError(GpolicyError):
    """A file or the answer of another program is malformed."""


class UnreachableError(GpolicyError):
    """The cluster does not answer, or refuses us."""
