"""The compiled engine as a library: stale, missing, stopped, and given input that it must refuse."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from gpolicy.allocator import engines
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.native import build, library
from gpolicy.allocator.native.library import Loaded, NativeEngine, Status, load
from gpolicy.allocator.native.streams import ClusterNumbers, Numbers, UnfitError
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.errors import InputError
from tests.allocator.helpers import allocator, cluster, instance, node, start
from tests.laws import examples

LOADED = load()
assert LOADED.library is not None, LOADED.trouble
LIBRARY = LOADED.library
SMALL = cluster([node(0, 16384, 204800), node(1, 16384, 204800), node(2, 16384, 204800)])
WANTED = instance(1024, 10240, 1, DiskTemplate.PLAIN)


def streams() -> tuple[Numbers, Numbers]:
    """Return a cluster with instances and tags of all kinds, and an instance wished for, as the engine reads them."""
    tags = ("htools:iextags:svc", "htools:nlocation:rack", "htools:migration:hv", "htools:desiredlocation:rack")
    kinds = (DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.RBD, DiskTemplate.FILE)
    where = cluster(
        [node(place, 16384, 204800, tags=("rack:1", f"hv:{place % 2}")) for place in range(3)],
        [
            instance(
                512,
                1024,
                1,
                kind,
                index=place,
                primary=place % 3,
                secondary=1 if place == 0 else NO_NODE,
                tags=("svc:a",),
            )
            for place, kind in enumerate(kinds)
        ],
        tags=tags,
    )
    candidates = candidate_nodes(where.groups, where.nodes, 1)
    known = ClusterNumbers(
        where.nodes, where.instances, candidates, CapacityRules(), wanted=WANTED, capacity_checks=True
    )
    return known.numbers, known.instance(WANTED)


def test_the_library_has_the_number_of_its_sources() -> None:
    assert LIBRARY.gpolicy_sources() == build.source_number()


def test_a_library_of_other_sources_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "engine.so"
    shutil.copy(build.LIBRARY, stale)
    monkeypatch.setattr(library, "LIBRARY", stale)
    monkeypatch.setattr(library, "source_number", lambda: build.source_number() + 1)
    loaded = load.__wrapped__()
    assert loaded.library is None
    assert "built from other sources" in loaded.trouble


def test_without_the_library_the_law_answers_and_says_that_it_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = allocator(SMALL, 1).standard(start(SMALL), WANTED, 5)
    monkeypatch.setattr(engines, "load", lambda: Loaded(None, "the compiled allocator is missing"))
    with pytest.warns(engines.SlowAllocatorWarning, match="missing; the answers are the same, but take much longer"):
        slow = allocator(SMALL, 1)
    assert slow.standard(start(SMALL), WANTED, 5) == fast


@settings(max_examples=examples(100))
@given(st.integers(min_value=0), st.integers(min_value=0))
def test_cut_input_is_refused(integers: int, reals: int) -> None:
    numbers, _ = streams()
    cut = Numbers(
        numbers.integers[: integers % len(numbers.integers)], numbers.reals[: reals % (len(numbers.reals) + 1)]
    )
    assert NativeEngine(LIBRARY).open(cut) is Status.INVALID


def test_runs_refuse_a_divisor_near_zero() -> None:
    """The engine leaves it to the law, which would count for hours."""
    strange = cluster([node(0, 16384, 204800, total_memory=1e-300), node(1, 16384, 204800)])
    with pytest.raises(InputError, match=r"^node \S+: its memory is 1e-300: no cluster has so little"):
        allocator(strange, 1, checks=False).standard(start(strange), WANTED, 3)


@pytest.mark.parametrize("memory", [float("nan"), float("inf")])
def test_runs_refuse_nan_memory(memory: float) -> None:
    strange = cluster([node(0, 16384, 204800, total_memory=memory), node(1, 16384, 204800)])
    with pytest.raises(InputError, match="no cluster has more than"):
        allocator(strange, 1).standard(start(strange), WANTED, 3)


def test_runs_refuse_impossible_numbers() -> None:
    candidates = candidate_nodes(SMALL.groups, SMALL.nodes, 1)
    huge = cluster([node(0, 16384, 204800, free_disk=2**70), node(1, 16384, 204800)])
    with pytest.raises(UnfitError):
        ClusterNumbers(huge.nodes, huge.instances, candidates, CapacityRules(), wanted=WANTED)
    with pytest.raises(InputError, match=r"^node \S+: its free disk space is 1.18e\+21: no cluster has more than"):
        allocator(huge, 1).standard(start(huge), WANTED, 3)


def test_more_tags_than_ganeti_allows_are_refused_by_runs() -> None:
    tagged = replace(WANTED, exclusion_tags=tuple(f"a:{number}" for number in range(4097)))
    with pytest.raises(InputError, match="it has 4097 exclusion tags: Ganeti allows an object 4096 tags"):
        allocator(SMALL, 1).standard(start(SMALL), tagged, 3)


def test_an_instance_without_memory_makes_the_step_a_division_by_zero() -> None:
    with pytest.raises(DivisionError, match="divide by zero"):
        allocator(SMALL, 1).standard(start(SMALL), replace(WANTED, memory=0), None)


def test_the_engine_follows_states_forward_and_back() -> None:
    """Each run may go on from any state that an earlier one gave."""
    fast, law = allocator(SMALL, 1), allocator(SMALL, 1, reference=True)
    bigger = replace(WANTED, memory=3000, exclusion_tags=("svc:a",))
    initial = start(SMALL)
    first = fast.standard(initial, WANTED, 2)
    second = fast.tiered(first, bigger, None)
    third = fast.standard(first, bigger, 1)
    assert first == law.standard(initial, WANTED, 2)
    assert second == law.tiered(first, bigger, None)
    assert third == law.standard(first, bigger, 1)
    assert fast.standard(second, WANTED, None) == law.standard(second, WANTED, None)


LONG_RUN = """
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.cluster_data import DiskTemplate, InstanceStatus
from gpolicy.allocator.merge import merge
from gpolicy.allocator.cluster_data import Disk, Instance
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.errors import InputError
from gpolicy.htools.text_format import parse_cluster
rows = "\\n".join(f"n{place}|{10**6 + place}|0|{10**6 + place}|{10**9}|{10**9}|64|N|u0" for place in range(1500))
where = merge(parse_cluster(f"g0|u0|preferred||\\n\\n{rows}\\n\\n\\n\\n"))
candidates = candidate_nodes(where.groups, where.nodes, 1)
wanted = Instance(-1, "new", 128, 1024, (Disk(1024, 1),), 1, InstanceStatus.RUNNING, DiskTemplate.PLAIN)
run = CompiledAllocator(candidates, CapacityRules(), capacity_checks=False)
print("begin", flush=True)
run.standard(AllocationState(where.nodes, where.instances), wanted, None)
print("end", flush=True)
"""

LONG_BALANCE = """
from gpolicy.allocator.balancing import engine_search, Goal, balance
from gpolicy.allocator.merge import merge
from gpolicy.allocator.native.library import MoveRules
from gpolicy.htools.text_format import parse_cluster
nodes = "\\n".join(f"n{place}|{10**6 + place}|0|{10**6}|{10**9}|{10**9}|64|N|u0" for place in range(2000))
pairs = "\\n".join(f"i{k}|{64 + k}|{512 + k}|1|running|Y|n{k}|n{k + 1}|drbd|" for k in range(1999))
where = merge(parse_cluster(f"g0|u0|preferred||\\n\\n{nodes}\\n\\n{pairs}\\n\\n\\n"))
search = engine_search(where.nodes, where.instances, list(where.instances), MoveRules(0))
print("begin", flush=True)
for _ in balance(where.nodes, where.instances, MoveRules(0), Goal(optimum=0.0), search):
    pass
print("end", flush=True)
"""
_BEGIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would inherit that it is ignored
"""


@pytest.mark.parametrize("work", [LONG_RUN, LONG_BALANCE], ids=["placing", "balancing"])
def test_an_interrupt_ends_a_long_run_within_a_second(work: str) -> None:
    code = _BEGIN + work
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"begin\n"
            time.sleep(1.0)
            assert child.poll() is None, "the run is over before it can be interrupted"
            began = time.monotonic()
            os.kill(child.pid, signal.SIGINT)
            out, err = child.communicate(timeout=60)
            # a busy machine may take its time; that the run ends at all is what counts then
            assert time.monotonic() - began < (1.0 if os.getloadavg()[0] < 1.5 else 60.0)
        finally:
            child.kill()
    assert out == b""
    assert b"KeyboardInterrupt" in err


def test_an_allocator_may_be_used_by_several_threads() -> None:
    fast = allocator(SMALL, 1)
    expected = fast.standard(start(SMALL), WANTED, None)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fast.standard(start(SMALL), WANTED, None))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def _opened() -> NativeEngine:
    engine = NativeEngine(LIBRARY)
    assert engine.open(streams()[0]) is Status.DONE
    return engine


def test_an_interrupted_question_ends_and_the_next_one_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _opened()

    def interrupted(_thread: threading.Thread, _ended: threading.Lock, turn: threading.Lock) -> bool:
        while not turn.locked():  # the work has not begun
            time.sleep(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(library, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.ask(library.EngineQuestion.REDUNDANT)
    monkeypatch.undo()
    assert engine.ask(library.EngineQuestion.REDUNDANT)[0] is Status.DONE


def test_a_question_that_never_begins_leaves_the_engine_free(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = _opened()

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            engine.ask(library.EngineQuestion.REDUNDANT)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", lambda _: None)  # it ends before it begins
        with pytest.raises(MemoryError):
            engine.ask(library.EngineQuestion.REDUNDANT)
    assert engine.ask(library.EngineQuestion.REDUNDANT)[0] is Status.DONE
