"""Crashes and hangs of child processes are reported with their seed, and the seeds behind them are still worked on."""

from __future__ import annotations

from tests.children import Died, in_children

CRASHING = """
import os, sys
for number in range(int(sys.argv[1]), 5):
    os.kill(os.getpid(), 9) if number == 3 else print(number, flush=True)
"""


def test_a_crash_is_reported_with_its_seed() -> None:
    lines = list(in_children(["-c", CRASHING], 1, 4, seconds=60))
    assert [(seed, isinstance(line, Died)) for seed, line in lines] == [(1, False), (2, False), (3, True), (4, False)]
    assert lines[2][1].startswith("exit code -9: ")


def test_a_hang_is_reported_with_its_seed() -> None:
    ((seed, line),) = in_children(["-c", "import time; time.sleep(100)"], 7, 1, seconds=0.5)
    assert seed == 7
    assert line.startswith("needs more than 0.5 s: ")
