"""Temporary refusals, after which another try may succeed.

Each was seen on a real 3.0.2 cluster, or Ganeti's documentation says that the job can be repeated.
"""

from __future__ import annotations

from typing import Final

_PASSING: Final = (
    "since locks were acquired",  # a group's nodes or instances changed under the job (trap T41)
    "configuration object updated since it has been read",  # the pool promotes nodes (T31)
    "corrupt configuration file",
    "temp_insufficient_resources",
    "queue drained",
    "queue is drained",
    "job queue is full",
    "jobqueuefull",
    "timeout while talking to the master daemon",
    "can't connect to the master daemon",
    "cannot communicate with the master daemon",
    "error while connecting to luxi",
    "connect timed out",
    "cannot be reached: no reply",
    "connection refused",
    "connection reset",
    "connection was cut",
    "no complete answer within",
    "ended early",
    "gateway timeout",
    "bad gateway",
    "service unavailable",
    "http 502",
    "http 503",
    "http 504",
    "could not acquire",
    "lock declined",
    "timed out waiting for",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "wconfd",  # Ganeti's configuration daemon did not answer the job
)


def passes(text: str) -> bool:
    """Return whether what Ganeti, ssh or the network said is a temporary refusal."""
    lowered = text.lower()
    return any(words in lowered for words in _PASSING)
