"""Built packages: wheels for any Python of a platform, with the engine, and the source archive."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import packaging.tags
import pytest
from packaging.utils import parse_wheel_filename

import hatch_build
from gpolicy.allocator.native import build
from tests import elf

ROOT = Path(__file__).resolve().parents[1]
ENGINE = "gpolicy/allocator/native/engine.so"
GLIBC = platform.libc_ver()[0] == "glibc"


def build_package(target: str, source: Path, made: Path, **environ: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(made)]
    subprocess.run(command, cwd=source, env={**os.environ, **environ}, check=True, capture_output=True)
    (found,) = made.iterdir()
    return found


def make_wheel(folder: Path, **environ: str) -> Path:
    """Build in a copy of the sources: the build removes an engine before it compiles the new one."""
    source = folder / "source"
    source.mkdir()
    for name in ("gpolicy", "schemas", "templates"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return build_package("wheel", source, folder / "made", **environ)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_a_wheel_carries_the_engine(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        lines = archive.read(about).decode().splitlines()
        library = archive.read(ENGINE)
    assert "gpolicy/_data/schemas/cluster.json" in names
    assert library.startswith(b"\x7fELF")
    assert [f"Tag: {tag}" for tag in parse_wheel_filename(wheel.name)[3]] == [
        line for line in lines if line.startswith("Tag:")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_one_wheel_is_for_every_python(wheel: Path, minor: int) -> None:
    taken = set(packaging.tags.compatible_tags((3, minor), f"cp3{minor}"))
    assert parse_wheel_filename(wheel.name)[3] <= taken


@pytest.mark.slow
@pytest.mark.skipif(not GLIBC, reason="says which glibc a wheel needs")
def test_a_wheel_names_the_glibc_that_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        versions = hatch_build.glibc_versions(archive.read(ENGINE))
    assert versions
    (tag,) = parse_wheel_filename(wheel.name)[3]
    _, major, minor, _ = tag.platform.split("_", 3)
    assert (int(major), int(minor)) == max((2, 17), *versions)


OTHER_PYTHONS = [f"3.{minor}" for minor in (11, 12, 13, 14) if sys.version_info[1] != minor]


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_another_python_installs_and_runs_it(wheel: Path, version: str, tmp_path: Path) -> None:
    python = f"python{version}"
    environ = {**os.environ, "PYENV_VERSION": version}  # where the command is one that pyenv would choose a Python for
    try:
        subprocess.run([python, "-m", "pip", "--version"], env=environ, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no {python} with pip here")
    place = str(tmp_path / "installed")
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", place, str(wheel)],
        env=environ,
        check=True,
    )
    load = "from gpolicy.allocator.native.library import load; loaded = load(); print(loaded.library, loaded.trouble)"
    run = subprocess.run(
        [python, "-c", load],
        env={**environ, "PYTHONPATH": place},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"{place}/{ENGINE}" in run.stdout


def test_without_a_compiler_a_wheel_has_no_engine_and_is_for_any_platform(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['ziglang'] = None  # as if not installed\n")
    wheel = make_wheel(tmp_path, CC="false", PYTHONPATH=str(tmp_path))
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert ENGINE not in archive.namelist()


def test_the_source_archive_has_every_file_of_the_repository(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    if listed.returncode:
        pytest.skip("no repository, which lists the files")
    for name in files:
        copy = tmp_path / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    with tarfile.open(build_package("sdist", tmp_path / "source", tmp_path / "made")) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert names == files | {"PKG-INFO"}


MANYLINUX = ("manylinux_2_36_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "linux_x86_64")
MUSL = ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64", "linux_x86_64")


@pytest.mark.parametrize(
    ("tags", "versions", "expected"),
    [
        (MANYLINUX, [(2, 2), (2, 14)], "manylinux_2_17_x86_64"),
        (MANYLINUX, [(2, 2), (2, 34)], "manylinux_2_34_x86_64"),
        (("linux_x86_64", *MANYLINUX[:-1]), [(2, 29)], "manylinux_2_29_x86_64"),
        (MANYLINUX, None, "manylinux_2_36_x86_64"),
        (MANYLINUX, [], "linux_x86_64"),  # compiled for musl
        (MUSL, [], "musllinux_1_2_x86_64"),
        (("linux_x86_64", *MUSL[:-1]), [], "musllinux_1_2_x86_64"),
        (MUSL, [(2, 14)], "linux_x86_64"),  # compiled for glibc
        (MUSL, None, "linux_x86_64"),
        (("linux_armv7l",), [(2, 4)], "linux_armv7l"),
        (("macosx_14_0_arm64", "macosx_13_0_arm64"), [], "macosx_14_0_arm64"),
    ],
)
def test_the_platform_of_a_wheel(
    tags: tuple[str, ...], versions: list[tuple[int, int]] | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaging.tags, "platform_tags", lambda: iter(tags))
    assert hatch_build.platform_tag(versions) == expected


@pytest.mark.parametrize(
    ("library", "versions"),
    [
        (b"\0GLIBC_2.2.5\0GLIBC_2.14\0memcpy@GLIBC_2.14\0", [(2, 2), (2, 14), (2, 14)]),
        (b"\0GLIBC_2.2.5\0GLIBC_PRIVATE\0", None),
        (b"\0GLIBC_ABI_DT_RELR\0", None),
        (b"\0libc.musl-x86_64.so.1\0", []),
    ],
)
def test_the_versions_of_glibc_that_a_library_names(library: bytes, versions: list[tuple[int, int]] | None) -> None:
    assert hatch_build.glibc_versions(library) == versions


FORTIFIED = """#include <stdlib.h>
#include <string.h>
__attribute__((visibility("default")))
int number(const char *text, unsigned long size) { char copy[8]; memcpy(copy, text, size); return atoi(copy); }
"""


def compiler(name: str) -> tuple[list[str], tuple[str, ...]]:
    if name == "system":
        return ["cc"], ()
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (ci/compiler.txt)")
    found: tuple[list[str], tuple[str, ...]] = hatch_build.compilers()[-1]
    assert "ziglang" in found[0]
    return found


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or sys.byteorder != "little" or sys.maxsize < 2**32, reason="reads 64-bit ELF files"
)
@pytest.mark.parametrize("name", ["system", "fallback"])
def test_the_compiled_library_is_hardened(name: str, tmp_path: Path) -> None:
    command, extra = compiler(name)
    hatch_build.compile_library(command, tmp_path / "engine.so", extra)
    library = (tmp_path / "engine.so").read_bytes()
    assert elf.protections(library) == {"RELRO", "BIND_NOW", "NX", "W^X"}
    assert "__stack_chk_fail" in elf.called(library)
    source, made = tmp_path / "fortified.c", tmp_path / "fortified.so"  # the engine has no call of this kind
    source.write_text(FORTIFIED)
    flags = (*build.FLAGS, *hatch_build.accepted_hardening(command, tmp_path), *extra)
    subprocess.run([*command, *flags, str(source), "-o", str(made)], check=True)
    assert "__memcpy_chk" in elf.called(made.read_bytes())


@pytest.fixture
def small_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other sources, which take no time to compile."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "small.c").write_text(FORTIFIED)
    monkeypatch.setattr(hatch_build._build(), "SOURCES", str(tmp_path / "sources"))


@pytest.mark.usefixtures("small_engine")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc")
def test_a_compiler_gets_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("GPOLICY_RAPI_PASSWORD", "GPOLICY_RAPI_USER", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD")
    for variable in secrets:
        monkeypatch.setenv(variable, "hush-71ab")
    spy = tmp_path / "cc"
    spy.write_text(f'#!/bin/sh\nenv >> "{tmp_path}/told"\necho "$@" >> "{tmp_path}/told"\nexec cc "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("CC", str(spy))
    assert hatch_build.system_compiler() == [str(spy)]
    hatch_build.compile_library([str(spy)], tmp_path / "engine.so")
    told = (tmp_path / "told").read_text()
    assert "PATH=" in told
    assert "hush-71ab" not in told


@pytest.mark.usefixtures("small_engine")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc")
def test_options_unknown_to_a_compiler_are_skipped(tmp_path: Path) -> None:
    assert hatch_build.accepted_hardening(["cc"], tmp_path) == build.HARDENING
    old = tmp_path / "old-cc"
    old.write_text('#!/bin/sh\ncase " $* " in *" -fno-plt "*) exit 1 ;; esac\nexec cc "$@"\n')
    old.chmod(0o755)
    assert hatch_build.accepted_hardening([str(old)], tmp_path) == tuple(
        flag for flag in build.HARDENING if flag != "-fno-plt"
    )
    hatch_build.compile_library([str(old)], tmp_path / "engine.so")
    assert b"__stack_chk_fail" in (tmp_path / "engine.so").read_bytes()
