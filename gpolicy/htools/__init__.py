"""hspace and hail under htools' own options, inputs and outputs, on top of `gpolicy.allocator`."""

from __future__ import annotations

import gc
import os

from gpolicy.errors import UsageError


def run(argv: list[str]) -> int:
    """Run `argv[0]` ("hspace" or "hail") with the other arguments and return the exit code.

    Writes to stdout and stderr. Raises UsageError for another program's name.
    """
    # a run makes many objects and hardly a cycle: collecting them would take a good part of the time
    # nor is there a product of matrices big enough to pay for threads, which cost at the start of numpy
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _run(argv)
    finally:
        if collecting:
            gc.enable()


def _run(argv: list[str]) -> int:
    if argv and argv[0] == "hspace":
        from gpolicy.htools import hspace  # noqa: PLC0415 - only what is needed

        return hspace.main(argv[1:])
    if argv and argv[0] == "hail":
        from gpolicy.htools import hail  # noqa: PLC0415 - only what is needed

        return hail.main(argv[1:])
    raise UsageError(f"unknown program '{argv[0]}'" if argv else "no program given", hint="use hspace or hail")
