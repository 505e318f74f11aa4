"""How the engine is compiled: what compilers see, which options they get, what a library needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpolicy.allocator.native import build
from hatch_build import accepted_hardening, compile_library, compiler_environment, glibc_versions

REFUSES = "-fno-plt"


def _compiler(folder: Path, *refused: str) -> list[str]:
    """Return a compiler that writes its arguments into its target, and refuses some options."""
    file = folder / "cc.py"
    file.write_text(
        f"import sys\nif set(sys.argv) & set({refused!r}): sys.exit(1)\n"
        "for name in sys.argv:\n    if name.endswith('.c'): open(name).close()\n"
        "target = sys.argv[sys.argv.index('-o') + 1] if '-o' in sys.argv else sys.argv[-1] + '.out'\n"
        "open(target, 'w').write('\\n'.join(sys.argv[1:]))\n"
    )
    return [sys.executable, "-S", str(file)]


def test_only_options_that_the_compiler_knows_are_used(tmp_path: Path) -> None:
    assert accepted_hardening(_compiler(tmp_path), tmp_path) == build.HARDENING
    some = accepted_hardening(_compiler(tmp_path, REFUSES), tmp_path)
    assert some == tuple(flag for flag in build.HARDENING if flag != REFUSES)
    assert [path.name for path in tmp_path.iterdir()] == ["cc.py"]


def test_the_library_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "engine.so"
    compile_library(_compiler(tmp_path), target, ("-g",))
    argv = target.read_text().splitlines()
    hardening = [*build.FLAGS, *build.HARDENING]
    assert argv[: len(hardening) + 2] == [*hardening, "-g", f"-DGPOLICY_SOURCES={build.source_number()}u"]
    assert [Path(name).name for name in argv if name.endswith(".c")] == sorted(
        path.name for path in Path(build.SOURCES).glob("*.c")
    )
    assert argv[-1] == "-lm"
    with pytest.raises(subprocess.CalledProcessError):
        compile_library(_compiler(tmp_path, "-lm"), target)
    assert target.read_text().splitlines() == argv
    assert {path.name for path in tmp_path.iterdir()} == {"cc.py", "engine.so"}


def test_a_compiler_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPOLICY_RAPI_PASSWORD", "my_token", "SOME_SECRET", "CREDENTIALS", "PGPASSWD"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("CPATH", "/include")
    found = compiler_environment()
    assert "hush" not in found.values()
    assert found["CPATH"] == "/include"


@pytest.mark.parametrize(
    ("content", "versions"),
    [
        (b"", []),
        (b"GLIBC_2.17\0x\0GLIBC_2.3.4\0", [(2, 17), (2, 3)]),
        (b"GLIBC_2.17\0GLIBC_PRIVATE\0", None),
        (b"GLIBC_2.17", []),  # no name: nothing ends it
    ],
)
def test_the_versions_that_a_library_needs(content: bytes, versions: list[tuple[int, int]] | None) -> None:
    assert glibc_versions(content) == versions
