"""Exit codes: a contract that scripts and CI rely on."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a run of gpolicy ends with."""

    FINE = 0
    FINDINGS = 1  # an error finding, a guard that fails, a failed test, a failed apply
    CHANGES = 2  # changes are pending (plan --detailed-exitcode, drift)
    COULD_NOT_RUN = 3  # usage, unreadable input, cluster not reachable
