"""A second build of the engine, with address and undefined-behaviour sanitizers, and tests against it.

`python -m tests.sanitizers COMMAND…` builds it, proves that the sanitizers see a bad read, a leak and an overflow, and
runs the command with it: every Python that calls `use()`, or `pytest -p tests.sanitizers`, then loads that build.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gpolicy.allocator.native import library
from tests.children import SANITIZER

ACTIVE = os.environ.get("GPOLICY_SANITIZED")
"""Path of the build to use, where the environment is made for it."""

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZE = (
    "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-O1", "-g",
    "-fno-omit-frame-pointer",
)  # fmt: skip
CHECKS = (b"__asan_init", b"__ubsan_handle_add_overflow_abort", b"__ubsan_handle_float_cast_overflow")
"""Names that the compiler leaves in a library with each of the sanitizers."""


def use() -> None:
    """Load the build with sanitizers from now on, if that is what the environment is for."""
    if ACTIVE:
        vars(library)["LIBRARY"] = Path(ACTIVE)


use()


def environment(target: Path) -> dict[str, str]:
    """Return the environment in which Python can load the build at `target`."""
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    options = f"exitcode={SANITIZER}:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024"
    return {
        **os.environ,
        "GPOLICY_SANITIZED": str(target),
        "LD_PRELOAD": str(Path(runtime.stdout.strip()).resolve()),
        "PYTHONMALLOC": "malloc",  # else the engine's input lies in large blocks, and reading beyond it is not seen
        "ASAN_OPTIONS": options,
        "UBSAN_OPTIONS": f"print_stacktrace=1:exitcode={SANITIZER}",
    }


MISTAKES = {
    "a read beyond its input": (
        "AddressSanitizer: heap-buffer-overflow",
        """
numbers = streams.Numbers(array("q", [1] * 10), array("d", []))
address, length, reals, count = numbers.arguments
handle = ctypes.c_void_p()
opened = loaded.library.gpolicy_open(address, length + 100, reals, count, ctypes.byref(handle))
""",
    ),
    "an engine that is never closed": (
        "LeakSanitizer: detected memory leaks",
        """
engine = library.NativeEngine(loaded.library)
engine.open(streams.Numbers(array("q", [0] * 100), array("d", [])))
engine._handle = ctypes.c_void_p()
""",
    ),
}
_START = """
import ctypes
from array import array
from tests import sanitizers
from gpolicy.allocator.native import library, streams
loaded = library.load()
assert loaded.library is not None, loaded.trouble
"""


def prove(target: Path, environment: dict[str, str]) -> None:
    """Exit with a message unless the sanitizers of the build at `target` see what they are there for."""
    missing = [name.decode() for name in CHECKS if name not in target.read_bytes()]
    if missing:
        sys.exit(f"sanitizers: {target} was built without {missing}")
    here = Path(__file__).resolve().parent
    for name, (words, code) in MISTAKES.items():
        leaks = environment["ASAN_OPTIONS"].replace("detect_leaks=0", "detect_leaks=1")
        done = subprocess.run(
            [sys.executable, "-c", _START + code],
            env={**environment, "ASAN_OPTIONS": leaks, "PYTHONPATH": str(here.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != SANITIZER or words not in done.stderr or "gpolicy_open" not in done.stderr:
            sys.exit(f"sanitizers: nobody saw {name}: exit {done.returncode}\n{done.stderr[-3000:]}")


def main() -> int:
    """Build, prove, run the command."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "engine.so"
        from hatch_build import compile_library

        compile_library(["gcc"], target, (*WARNINGS, *SANITIZE))
        ready = environment(target)
        prove(target, ready)
        return subprocess.run(sys.argv[1:], env=ready, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
