"""An installation without the compiled allocator says, before it counts, that this takes long."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT

SIM = ("-s", "sim:p,2,20g,2g,2")
SLOW = "the answers are the same, but take much longer"


@pytest.fixture(scope="module")
def without_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "gpolicy", place / "gpolicy", ignore=shutil.ignore_patterns("*.so"))
    for data in ("schemas", "templates"):
        shutil.copytree(ROOT / data, place / data)
    return place


@pytest.mark.parametrize(
    "arguments",
    [
        ("capacity", *SIM, "--group", "group-01"),
        ("place", *SIM, "memory=1G", "vcpus=1", "disk=10G"),
        ("htools", "hspace", "--simulate", "p,2,20g,2g,2"),
    ],
)
def test_a_slow_allocator_warns_once(without_engine: Path, arguments: tuple[str, ...]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gpolicy", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(without_engine)},
        cwd=without_engine,
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count(SLOW) == 1
    assert len(run.stderr.splitlines()) == 1
    assert run.stdout
