"""Output of one of several processes that write to the same terminal: whole lines that begin with a name."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO


class _Speaker(io.TextIOBase):
    """A stream that writes each line with a name before it, as soon as it is whole. It is no terminal."""

    def __init__(self, name: str, below: TextIO) -> None:
        super().__init__()
        self._name, self._below, self._line = name, below, ""

    def write(self, text: str) -> int:
        """Write the lines that `text` ends."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._below.write(f"{self._name}: {line}\n")
            self._below.flush()
        return len(text)

    def fileno(self) -> int:
        """Return the descriptor of the stream below."""
        return self._below.fileno()


@contextmanager
def speaking_as(name: str) -> Iterator[None]:
    """Write both outputs to standard error, each line with a name before it."""
    speaker = _Speaker(name, sys.stderr)
    with redirect_stdout(speaker), redirect_stderr(speaker):
        yield
