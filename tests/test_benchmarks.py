"""The benchmarks measure the checkout that they lie in, installed or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_GPOLICY = ("start_up", "check_speed", "large_cluster", "plan_impact", "allocator_speed")


@pytest.mark.parametrize("name", WITH_GPOLICY)
def test_a_benchmark_imports_this_checkout(name: str, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import {name}, gpolicy; print(gpolicy.__file__)"
    )
    # no site packages of gpolicy may answer in its place: another working directory, and no PYTHONPATH
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(ROOT / "gpolicy" / "__init__.py"), done.stderr
