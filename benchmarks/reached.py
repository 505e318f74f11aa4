"""Note which functions of gpolicy each test calls, also in the processes that a test starts.

Processes that tests start import this module by the `sitecustomize.py` of the copied checkout (`mutations.py`). While
there is a file `tracing` beside that, it names the test that runs, the file for the notes, and the modules to notice.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Final

_MOST: Final = 1_000_000
"""The calls of a test that are looked at, of anything: a law repeats itself."""


class Calls:
    """What this process calls of `modules`: lines of the test, the module and the function in the file `into`.

    `test` runs, with its phase; by default pytest says which.
    """

    def __init__(self, into: str, modules: list[str], test: str = "") -> None:
        self._output = os.open(into, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._modules = frozenset(modules)
        self._test = test
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
        elif code.co_filename in self._modules:
            call = (self._test or os.environ.get("PYTEST_CURRENT_TEST", ""), code.co_filename, code.co_qualname)
            if call not in self._noted:
                self._noted.add(call)
                os.write(self._output, ("\t".join(call) + "\n").encode())


def begin_in_child(tree: str) -> None:
    """Begin to note in a process that a test of the copy `tree` has started, if that test is traced."""
    asked = Path(tree, "tracing")
    if asked.exists():
        Calls(**json.loads(asked.read_text())).begin()
