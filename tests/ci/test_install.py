"""`ci/install` on every Python that is here, with the system's compiler and without one; takes a package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
LOAD = "from gpolicy.allocator.native.library import load; loaded = load(); print(bool(loaded.library), loaded.trouble)"


@pytest.mark.parametrize("compiler", ["system", "fallback"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_gpolicy_is_installed_with_its_engine(version: str, compiler: str, sources: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYENV_VERSION": version}  # where the command is one that pyenv would choose a Python for
    asked = [f"python{version}", "-I", "-c", "import sys; print(sys.executable)"]
    if (
        shutil.which(asked[0]) is None
        or subprocess.run(asked, env=environ, capture_output=True, check=False).returncode
    ):
        pytest.skip(f"no python{version} here")
    python = subprocess.run(asked, env=environ, capture_output=True, text=True, check=True).stdout.strip()
    environ |= {"CC": "false"} if compiler == "fallback" else {}
    subprocess.run([str(sources / "ci" / "install"), python, str(tmp_path)], env=environ, check=True)
    made = [str(tmp_path / "venv" / "bin" / "python"), "-I"]
    told = subprocess.run([*made, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert told == "True \n"
    has_compiler = subprocess.run([*made, "-c", "import ziglang"], capture_output=True, check=False).returncode == 0
    assert has_compiler == (compiler == "fallback")


def test_packages_are_taken_from_a_directory_and_checked_by_hash(sources: Path, tmp_path: Path) -> None:
    install, packages, room = str(sources / "ci" / "install"), tmp_path / "packages", tmp_path / "room"
    room.mkdir()

    def installs(**environ: str) -> bool:
        command = [install, sys.executable, str(room), str(packages)]
        done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
        return done.returncode == 0

    assert installs()
    kept = sorted(packages.iterdir())
    assert len(kept) > 10
    nowhere = {"PIP_INDEX_URL": "https://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    assert installs(**nowhere)
    small = next(file for file in kept if file.name.startswith("mdurl"))
    good = small.read_bytes()
    small.write_bytes(good + b"#")
    assert not installs(**nowhere)
    assert installs()
    assert small.read_bytes() == good
