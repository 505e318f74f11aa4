"""Note which functions of gpolicy each test calls, also in the processes that a test starts.

A process that imports this module with `GPOLICY_REACHED` set appends lines of test, file and function to that file.
`mutations.py` reads them; `GPOLICY_REACHED_IN` are the folders and modules that it asks about.
"""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType


def note_calls(into: str, prefixes: tuple[str, ...]) -> None:
    """Begin to note what this process calls below `prefixes`."""
    output = os.open(into, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    noted: set[tuple[str, str, str]] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(prefixes):
            call = (os.environ.get("PYTEST_CURRENT_TEST", ""), code.co_filename, code.co_qualname)
            if call not in noted:
                noted.add(call)
                os.write(output, ("\t".join(call) + "\n").encode())

    threading.settrace(note)
    sys.settrace(note)


if "GPOLICY_REACHED" in os.environ:
    note_calls(os.environ["GPOLICY_REACHED"], tuple(os.environ["GPOLICY_REACHED_IN"].split(os.pathsep)))
