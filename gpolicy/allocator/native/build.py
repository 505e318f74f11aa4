"""Compiling the engine: one shared library without any header of Python, so all it takes is a C compiler.

Used by the build of the package (`hatch_build.py`), which loads this file by its path, and by tests.
"""

from __future__ import annotations

import zlib
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "source"
LIBRARY = Path(__file__).resolve().parent / "engine.so"
"""Where the library is put, beside this file; ignored by git."""

FLAGS = (
    "-std=c11",
    "-O3",
    "-ffp-contract=off",  # a fused multiplication would round differently
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
)
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def source_number(folder: Path = SOURCES) -> int:
    """Return a number made of all sources and of how they are compiled: a library that has another one is stale."""
    number = zlib.crc32(" ".join(FLAGS).encode())
    for path in sorted(folder.iterdir()):
        if path.suffix in {".c", ".h"}:
            number = zlib.crc32(path.name.encode() + b"\0" + path.read_bytes(), number)
    return number


def compile_library(compiler: list[str], target: Path = LIBRARY, extra: tuple[str, ...] = ()) -> None:
    """Compile the engine into `target` with the command `compiler`.

    Raises OSError where the compiler cannot be started, subprocess.CalledProcessError where it fails.
    """
    import subprocess  # noqa: PLC0415 - who loads the library does not compile it

    new = target.with_name(f".{target.name}.new")
    number = f"-DGPOLICY_SOURCES={source_number()}u"
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    command = [*compiler, *FLAGS, *extra, number, *sources, "-o", str(new), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        new.replace(target)  # never half a library, and never one changed under a running program
    finally:
        new.unlink(missing_ok=True)
