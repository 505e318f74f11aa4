"""Exceptions that stop a run, each with a hint; and exit codes.

Findings about a policy are data (`gpolicy.findings`); exceptions are only for what stops a run.
"""

from __future__ import annotations

from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class ExitCode(IntEnum):
    """The exit codes of gpolicy."""

    FINE = 0
    FINDINGS = 1
    CHANGES = 2
    COULD_NOT_RUN = 3
    INTERRUPTED = 130  # as shells have it for SIGINT


EXIT_CODES: Final = {
    ExitCode.FINE: "The verb ran, and nothing stands against its answer. After `apply`: every step is done and seen on"
    " the cluster.",
    ExitCode.FINDINGS: "The verb ran, and the answer is no: the policy has an error, a guard or a test fails, no node"
    " takes the instance, or `apply` refused the plan or could not finish it.",
    ExitCode.CHANGES: "Changes are pending: `drift` found some, or `plan --detailed-exitcode` has some.",
    ExitCode.COULD_NOT_RUN: "The verb could not run: the command line is wrong, a file cannot be read, or the cluster"
    " does not answer.",
    ExitCode.INTERRUPTED: "Ctrl-C stopped the verb. No file is left half-written.",
}
"""What each exit code means, for people."""


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


class RequestError(GpolicyError):
    """What is asked for is impossible."""


class ArgumentError(RequestError):
    """A value that is asked for is impossible. The message begins with the name of the argument, such as `like`."""


class UsageError(RequestError):
    """The command line asks for something impossible: the same, in words of its options."""


class InputError(GpolicyError):
    """A file or the answer of another program is malformed."""


class UnreachableError(GpolicyError):
    """The cluster does not answer, or refuses us."""
