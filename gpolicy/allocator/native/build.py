"""What the engine is compiled from and with: `hatch_build.py` loads this file by its path and compiles it."""

from __future__ import annotations

import os
import zlib

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
SOURCES = f"{_FOLDER}/source"
LIBRARY = f"{_FOLDER}/engine.so"
"""The path of the library, beside this file; ignored by git."""

FLAGS = (
    "-std=c11",
    "-O3",
    *("-fno-math-errno", "-fno-trapping-math"),  # neither errno nor traps are asked for
    "-ffp-contract=off",  # a fused multiplication would round differently
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)
HARDENING = (
    *("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),  # together: some compilers have a value of their own
    "-fstack-protector-strong",
    "-fno-plt",
    *("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"),
)
"""Options against the abuse of faults, which change no result. Options unknown to the compiler are skipped."""


def source_number() -> int:
    """Return a number computed from all sources and compiler options: a library with another number is stale."""
    number = zlib.crc32(" ".join((*FLAGS, *HARDENING)).encode())
    for name in sorted(os.listdir(SOURCES)):  # noqa: PTH208
        if name.endswith((".c", ".h")):
            with open(f"{SOURCES}/{name}", "rb") as file:  # noqa: PTH123
                number = zlib.crc32(name.encode() + b"\0" + file.read(), number)
    return number
