"""Compiling the engine: a shared library that does not use Python, so a C compiler is enough.

Used by the build of the package (`hatch_build.py`), which loads this file by its path, and by tests.
"""

from __future__ import annotations

import os
import re
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
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


SECRET = re.compile("^GPOLICY_|PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL", re.IGNORECASE)
"""Variables that no compiler uses. Compilers differ in those that they use, so all others are passed on."""


def compiler_environment() -> dict[str, str]:
    """Return the environment of a compiler: without passwords and tokens."""
    return {name: value for name, value in os.environ.items() if not SECRET.search(name)}


def source_number() -> int:
    """Return a number computed from all sources and compiler options: a library with another number is stale."""
    number = zlib.crc32(" ".join((*FLAGS, *HARDENING)).encode())
    for name in sorted(os.listdir(SOURCES)):  # noqa: PTH208
        if name.endswith((".c", ".h")):
            with open(f"{SOURCES}/{name}", "rb") as file:  # noqa: PTH123
                number = zlib.crc32(name.encode() + b"\0" + file.read(), number)
    return number


def compile_library(compiler: list[str], target: str | os.PathLike[str] = LIBRARY, extra: tuple[str, ...] = ()) -> None:
    """Compile the engine into `target` with the command `compiler`.

    Raises OSError if the compiler cannot be started, subprocess.CalledProcessError if it fails.
    """
    import subprocess  # noqa: PLC0415 - not needed for loading
    from pathlib import Path  # noqa: PLC0415

    target = Path(target)
    extra = (*accepted_hardening(compiler, target.parent), *extra)
    new = target.with_name(f".{target.name}.new")
    number = f"-DGPOLICY_SOURCES={source_number()}u"
    sources = [str(path) for path in sorted(Path(SOURCES).glob("*.c"))]
    command = [*compiler, *FLAGS, *extra, number, *sources, "-o", str(new), "-lm"]
    try:
        subprocess.run(command, env=compiler_environment(), check=True, capture_output=True, text=True)
        new.replace(target)  # atomic, so that running programs are safe
    finally:
        new.unlink(missing_ok=True)


def accepted_hardening(compiler: list[str], folder: os.PathLike[str]) -> tuple[str, ...]:
    """Return the options of `HARDENING` that the compiler accepts, tried on an empty library in `folder`."""
    import subprocess  # noqa: PLC0415
    import tempfile  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    with tempfile.TemporaryDirectory(dir=folder) as trial:
        source = Path(trial) / "empty.c"
        source.write_text("int nothing;\n")

        def takes(*flags: str) -> bool:
            command = [*compiler, *FLAGS, *flags, str(source), "-o", f"{source}.so"]
            done = subprocess.run(command, env=compiler_environment(), check=False, capture_output=True)
            return done.returncode == 0

        return HARDENING if takes(*HARDENING) else tuple(flag for flag in HARDENING if takes(flag))


def glibc_versions(library: bytes) -> list[tuple[int, int]] | None:
    """Return the versions of glibc that a compiled library requires; an empty list if it needs no glibc.

    None if it requires a name that is not a version, such as `GLIBC_PRIVATE`. The names are in the string table of the
    ELF file, each followed by a NUL.
    """
    found: list[tuple[int, int]] = []
    for name in re.findall(rb"GLIBC_([0-9A-Za-z_.]+)\0", library):
        version = re.fullmatch(rb"([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]{1,3})?", name)
        if version is None:
            return None
        found.append((int(version[1]), int(version[2])))
    return found
