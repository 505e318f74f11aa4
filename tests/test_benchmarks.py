"""The benchmarks measure the checkout that they lie in, installed or not."""

from __future__ import annotations

import runpy
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


def test_a_mutant_changes_what_code_does_not_what_it_says() -> None:
    source = '''
def find(a: int = 1, *, known: dict[str, int]) -> int:
    """Return 1 of 2."""
    if a < 3 and not known:
        raise ValueError("no more than 3")
    return known["key"]
'''
    made = runpy.run_path(str(ROOT / "benchmarks" / "mutants.py"))["mutants"]("room.py", source)
    assert [(item.function, item.line, item.old, item.new) for item in made] == [
        ("", 2, "1", "2"),
        ("", 2, "1", "0"),
        ("find", 4, "a < 3 and not known", "(not (a < 3 and (not known)))"),
        ("find", 4, "a < 3 and not known", "(a < 3 or not known)"),
        ("find", 4, "a < 3", "(a <= 3)"),
        ("find", 4, "3", "4"),
        ("find", 4, "3", "2"),
        ("find", 4, "not known", "(known)"),
        ("find", 5, 'raise ValueError("no more than 3")', "pass"),
        ("find", 6, 'return known["key"]', "return None"),
        ("find", 6, '"key"', "'key_'"),
    ]
    assert len({item.source for item in made} | {source}) == len(made) + 1
