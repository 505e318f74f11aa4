"""Exceptions that stop a run, each with a hint; and exit codes.

Findings about a policy are data (`gpolicy.findings`); exceptions are only for what stops a run.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of gpolicy."""

    FINE = 0
    FINDINGS = 1  # an error finding, a guard that fails, a failed test, a failed apply
    CHANGES = 2  # changes are pending (plan --detailed-exitcode, drift)
    COULD_NOT_RUN = 3  # usage, unreadable input, cluster not reachable


def about(where: str, message: str) -> str:
    """Return `message` after its subject: a file, or a source, which may end with a colon itself (`local:`)."""
    return f"{where.removesuffix(':')}: {message}"


class GpolicyError(Exception):
    """gpolicy could not run: shown as one clear line, exit code 3.

    `message` says what is wrong, `hint` (optional) what to do about it.
    """

    exit_code = ExitCode.COULD_NOT_RUN

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GpolicyError):
    """The command line asks for something impossible."""


class InputError(GpolicyError):
    """A file or the answer of another program is malformed."""


class UnreachableError(GpolicyError):
    """The cluster does not answer, or refuses us."""
