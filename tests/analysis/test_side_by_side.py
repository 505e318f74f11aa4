"""Independent counts on several cores: order, errors, and an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from gpolicy.analysis import side_by_side as room
from gpolicy.analysis.side_by_side import side_by_side


@pytest.fixture(autouse=True, params=[1, 2, 3])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(room, "_cores", lambda: request.param)
    return int(request.param)


def returning(number: int, seconds: float) -> Callable[[], int]:
    def job() -> int:
        time.sleep(seconds)
        return number

    return job


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert side_by_side([returning(number, 0.02 * (5 - number)) for number in range(5)]) == [0, 1, 2, 3, 4]
    assert side_by_side([]) == []


def test_all_cores_are_used(cores: int) -> None:
    together = threading.Barrier(cores)
    assert side_by_side([lambda: together.wait(timeout=10) >= 0] * cores) == [True] * cores


def test_the_first_error_is_raised_and_nothing_begun_after_it(cores: int) -> None:
    begun = []

    def failing(number: int) -> int:
        begun.append(number)
        time.sleep(0.05 if number else 0.1)
        raise ValueError(number)

    with pytest.raises(ValueError, match=r"^0$"):
        side_by_side([lambda number=number: failing(number) for number in range(9)])  # type: ignore[misc]
    assert sorted(begun) == list(range(cores))


INTERRUPTED = """
import signal
import threading
import time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would inherit that it is ignored
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.cluster_data import DiskTemplate, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.cluster_data import Disk, Instance
from gpolicy.allocator.native import library
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.htools.text_format import parse_cluster
from gpolicy.analysis import side_by_side
side_by_side._cores = lambda: 2
rows = "\\n".join(f"n{place}|{10**6 + place}|0|{10**6 + place}|{10**9}|{10**9}|64|N|u0" for place in range(1500))
where = merge(parse_cluster(f"g0|u0|preferred||\\n\\n{rows}\\n\\n\\n\\n"))
candidates = candidate_nodes(where.groups, where.nodes, 1)
wanted = Instance(-1, "new", 128, 1024, (Disk(1024, 1),), 1, InstanceStatus.RUNNING, DiskTemplate.PLAIN)
ended = []

def job():
    run = CompiledAllocator(candidates, CapacityRules(), capacity_checks=False)
    try:
        run.standard(AllocationState(where.nodes, where.instances), wanted, None)
    except library.EngineStoppedError:
        ended.append("stopped")
        raise
    ended.append("ended")

def tell():
    while len(library._asked) < 2:
        time.sleep(0.01)
    print("asked", flush=True)

threading.Thread(target=tell, daemon=True).start()
try:
    side_by_side.side_by_side([job] * 3)
except KeyboardInterrupt:
    print(*ended, flush=True)
"""


def test_an_interrupt_stops_the_engines(cores: int) -> None:
    if cores != 2:
        pytest.skip("the cores of this one are its own")
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "asked\n"
            time.sleep(0.2)
            assert child.poll() is None, "the run is over before it can be interrupted"
            os.kill(child.pid, signal.SIGINT)
            assert child.communicate(timeout=60)[0] == "stopped stopped\n"
        finally:
            child.kill()
