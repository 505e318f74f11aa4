"""How long work tells what it does. The command line shows it on a terminal; for others nobody listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Tell = Callable[[str], None]
"""Takes the present activity, such as `group gold`."""

Working = Callable[[str], AbstractContextManager[Tell]]
"""Begins an activity, such as `counting what fits`, and gives what takes its parts."""


def silent(_: str) -> None:
    """Take an activity that nobody is told of."""


@contextmanager
def quietly(_: str) -> Iterator[Tell]:
    """Begin an activity that nobody is told of."""
    yield silent
