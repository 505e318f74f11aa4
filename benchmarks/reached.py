"""Note which functions of gpolicy each test calls, also in the processes that a test starts.

A process that imports this module with `GPOLICY_REACHED` set appends lines of test, file and function to that file.
`mutations.py` reads them; `GPOLICY_REACHED_IN` are the modules that it asks about.
"""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Final

_MOST: Final = 1_000_000
"""The calls of a test that are looked at, of anything: a law repeats itself."""


class Calls:
    """What this process calls below `prefixes`."""

    def __init__(self, into: str, prefixes: tuple[str, ...]) -> None:
        self._output = os.open(into, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._prefixes = prefixes
        self._noted: set[tuple[str, str, str]] = set()
        self._left = 0

    def begin(self) -> None:
        """Begin to note, or begin anew with another test."""
        self._left = _MOST
        threading.settrace(self._note)
        sys.settrace(self._note)

    def _note(self, frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        self._left -= 1
        if self._left < 0:
            sys.settrace(None)
        elif code.co_filename.startswith(self._prefixes):
            call = (os.environ.get("PYTEST_CURRENT_TEST", ""), code.co_filename, code.co_qualname)
            if call not in self._noted:
                self._noted.add(call)
                os.write(self._output, ("\t".join(call) + "\n").encode())


calls = None
if "GPOLICY_REACHED" in os.environ:
    calls = Calls(os.environ["GPOLICY_REACHED"], tuple(os.environ["GPOLICY_REACHED_IN"].split(os.pathsep)))
    calls.begin()
