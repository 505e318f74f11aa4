"""Building the package: compile the allocator's engine.

The system's C compiler is used if it works, else the one that the `ziglang` package brings along, which is asked for
as a build requirement only then. Without any compiler the package is built without the engine: its answers
are the same, but slow, and it says so.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType

ENGINE = Path("gpolicy/allocator/native")
ZIG = "ziglang==0.17.1; platform_machine in 'x86_64 aarch64 arm64 AMD64 i686 armv7l ppc64le riscv64'"
"""One release, which `ci/compiler.txt` locks by hash. With a marker: where there is no such package, asking for it
would make the whole installation fail."""
OLDEST_GLIBC = (2, 17)
"""Of manylinux2014. Installers know no older one for most processors, and no Python of ours runs on an older one."""
_SECRET = re.compile("^GPOLICY_|PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL", re.IGNORECASE)
"""Variables that no compiler uses. Compilers differ in those that they use, so all others are passed on."""
TRIAL = "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\ndouble root(double x) { return sqrt(x); }\n"


class EngineBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the compiled engine into the package, also of an editable installation."""

    def dependencies(self) -> list[str]:
        """Ask for a compiler where the system has none."""
        return [] if system_compiler() else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's names
        """Compile the engine with the first compiler that can do it."""
        build = _build()
        library = Path(build.LIBRARY)
        library.unlink(missing_ok=True)
        for compiler, extra in compilers():
            try:
                compile_library(compiler, library, extra)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = getattr(error, "stderr", None) or error
                self.app.display_warning(f"{shlex.join(compiler)} cannot compile the allocator: {reason}")
            else:
                build_data["artifacts"].append(f"/{(ENGINE / library.name).as_posix()}")
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform_tag(glibc_versions(library.read_bytes()))}"
                return
        self.app.display_warning(
            "no C compiler works: gpolicy is built without its fast allocator. Debian's compiler is `apt-get install"
            " gcc libc6-dev`; the fallback from the package index needs a mounted /proc."
        )


def compile_library(compiler: list[str], target: Path, extra: tuple[str, ...] = ()) -> None:
    """Compile the engine into `target` with the command `compiler`.

    Raises OSError if the compiler cannot be started, subprocess.CalledProcessError if it fails.
    """
    build = _build()
    extra = (*accepted_hardening(compiler, target.parent), *extra)
    new = target.with_name(f".{target.name}.new")
    number = f"-DGPOLICY_SOURCES={build.source_number()}u"
    sources = [str(path) for path in sorted(Path(build.SOURCES).glob("*.c"))]
    command = [*compiler, *build.FLAGS, *extra, number, *sources, "-o", str(new), "-lm"]
    try:
        subprocess.run(command, env=compiler_environment(), check=True, capture_output=True, text=True)
        new.replace(target)  # atomic, so that running programs are safe
    finally:
        new.unlink(missing_ok=True)


def accepted_hardening(compiler: list[str], folder: Path) -> tuple[str, ...]:
    """Return the options of `build.HARDENING` that the compiler accepts, tried on an empty library in `folder`."""
    build = _build()
    hardening: tuple[str, ...] = build.HARDENING
    with tempfile.TemporaryDirectory(dir=folder) as trial:
        source = Path(trial) / "empty.c"
        source.write_text("int nothing;\n")

        def takes(*flags: str) -> bool:
            command = [*compiler, *build.FLAGS, *flags, str(source), "-o", f"{source}.so"]
            done = subprocess.run(command, env=compiler_environment(), check=False, capture_output=True)
            return done.returncode == 0

        return hardening if takes(*hardening) else tuple(flag for flag in hardening if takes(flag))


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


def compiler_environment() -> dict[str, str]:
    """Return the environment of a compiler: without passwords and tokens."""
    return {name: value for name, value in os.environ.items() if not _SECRET.search(name)}


def platform_tag(versions: list[tuple[int, int]] | None) -> str:
    """Return the platform of a wheel whose library asks for these versions of glibc (`glibc_versions`).

    The library knows nothing of Python, so its wheel is for any. A library for glibc runs on every glibc that is not
    older than the symbols it uses; one for musl on every musl that is not older than the one here.
    """
    from packaging.tags import platform_tags  # noqa: PLC0415 - hatchling brings it along

    tags = list(platform_tags())  # those of one libc: the newest first; older releases put `linux_` last
    newest = next((tag for tag in tags if not tag.startswith("linux_")), tags[0])
    if newest.startswith("manylinux_") and versions:
        major, minor = max(OLDEST_GLIBC, *versions)
        return f"manylinux_{major}_{minor}_{newest.split('_', 3)[3]}"
    if newest.startswith("manylinux_" if versions is None else "musllinux_") and not versions:
        return newest  # of the system here: what was built on it runs on it
    # a library for another libc than that of the system here, which no tag names; on macOS, the system here
    return next((tag for tag in tags if tag.startswith("linux_")), newest)


def compilers() -> list[tuple[list[str], tuple[str, ...]]]:
    """Return the commands to try, with the options that each needs."""
    system = system_compiler()
    found: list[tuple[list[str], tuple[str, ...]]] = [(system, ())] if system else []
    if importlib.util.find_spec("ziglang") is not None:
        # code for any processor of this kind, without the checks that zig adds
        found.append(([sys.executable, "-m", "ziglang", "cc"], ("-mcpu=baseline", "-fno-sanitize=undefined")))
    return found


def system_compiler() -> list[str] | None:
    """Return the command of a C compiler that works, with its headers; None if there is none."""
    command = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "trial.c"
        source.write_text(TRIAL)
        try:
            subprocess.run(
                [*command, "-std=c11", "-fPIC", "-shared", str(source), "-o", f"{source}.so", "-lm"],
                env=compiler_environment(),
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError):
            return None
    return command


@cache
def _build() -> ModuleType:
    """Load the module of the package that compiles its engine."""
    path = Path(__file__).resolve().parent / ENGINE / "build.py"
    spec = importlib.util.spec_from_file_location("engine_build", path)
    assert spec is not None  # noqa: S101 - a file ending in .py has a loader
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
