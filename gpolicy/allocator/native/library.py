"""Loading and calling the compiled engine."""

from __future__ import annotations

import ctypes
import os
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, IntFlag
from functools import cache

from gpolicy.allocator.cluster_data import FailReason
from gpolicy.allocator.native.build import LIBRARY, source_number
from gpolicy.allocator.native.streams import Numbers
from gpolicy.light_dataclasses import dataclass


class Status(IntEnum):
    """How a call ended (`enum status` of cluster.h)."""

    DONE = 0
    OUT_OF_MEMORY = 1
    INVALID = 2
    STOPPED = 3
    DIVISION_BY_ZERO = 4
    MISSING_NODE = 5
    ASK_THE_LAW = 6
    TOO_MANY_PLACED = 7
    TOO_DEEP = 8
    TOO_LONG = 9


class EngineQuestion(IntEnum):
    """The questions to the engine (`enum kind` of library.c)."""

    STANDARD = 0
    TIERED = 1
    ATTEMPT = 2
    DEDICATED = 3
    REDUNDANT = 4


class Leaving(IntEnum):
    """The nodes that an instance leaves (`enum leaving` of evacuation.h)."""

    PRIMARY = 0
    SECONDARY = 1
    ALL = 2


class Unlisted(IntFlag):
    """The nodes of an instance's record that do not list it."""

    PRIMARY = 1
    SECONDARY = 2


class NativeResult(ctypes.Structure):
    """`struct result` of library.c; a row is -1 if there is no node."""

    _fields_ = (
        ("failures", ctypes.c_int64 * len(FailReason)),
        *((name, ctypes.c_int64) for name in ("attempted", "refused", "successes", "primary", "secondary")),
        ("score", ctypes.c_double),
    )


class NativeMove(ctypes.Structure):
    """`struct taken_move` of library.c: slot of the instance (-1: no move), kind, row of the target, score after it."""

    _fields_ = (*((name, ctypes.c_int64) for name in ("slot", "kind", "target")), ("score", ctypes.c_double))


class MoveRules(IntFlag):
    """What restricts or forces moves of balancing (an enum of library.c).

    Without disk moves mirrored instances only fail over; without instance moves no primary changes. An evacuation moves
    only instances on offline nodes; restricted migration lets no instance that runs on an online node migrate with a
    change of its disks; force ignores soft limits.
    """

    NO_DISK_MOVES = 1
    NO_INSTANCE_MOVES = 2
    EVACUATION = 4
    RESTRICTED_MIGRATION = 8
    FORCE = 16


ANY_MOVE = MoveRules(0)

Placed = tuple[int, int, int, int, int, int]
"""`struct placement` of library.c: the rows of primary and secondary (-1: none), memory and smallest disk (MiB), vcpus,
spindles (-1: unknown)."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The library, or the reason why there is none."""

    library: ctypes.CDLL | None
    trouble: str = ""


@cache
def load() -> Loaded:
    """Load the library, unless it was built from other sources."""
    if not os.path.exists(LIBRARY):  # noqa: PTH110 - pathlib is slow to import
        return Loaded(None, "the compiled allocator is missing: no C compiler worked when gpolicy was installed")
    try:
        library = ctypes.CDLL(str(LIBRARY))
        found = library.gpolicy_sources
        found.restype = ctypes.c_uint32
        if found() != source_number():
            return Loaded(None, "the compiled allocator was built from other sources than these")
        _declare(library)
    except (OSError, AttributeError) as error:
        return Loaded(None, f"the compiled allocator cannot be loaded: {error}")
    return Loaded(library)


def _declare(library: ctypes.CDLL) -> None:
    engine, flag, count, address = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
    some = (address, count)
    functions: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "open": (flag, (*some, *some, ctypes.POINTER(engine))),
        "close": (None, (engine,)),
        "stop": (None, (engine, flag)),
        "allow": (None, (engine, count)),
        "steps": (count, (engine,)),
        "ask": (flag, (engine, count, flag, *some, *some, count, flag, ctypes.POINTER(NativeResult))),
        "move_away": (flag, (engine, flag, flag, flag, *some, *some, ctypes.POINTER(NativeResult))),
        "balance": (flag, (engine, flag, *some, ctypes.POINTER(NativeMove))),
        "lose": (flag, (engine, *some, flag, *some)),
        "placed": (count, (engine,)),
        "placements": (None, (engine, count, address)),
        "missing": (count, (engine,)),
    }
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"gpolicy_{name}")
        function.restype, function.argtypes = result, arguments


class EngineStoppedError(Exception):
    """An engine was stopped before it had an answer (`stop_engines`)."""


def _wait(thread: threading.Thread, ended: threading.Lock, turn: threading.Lock) -> bool:
    """Wait for the end of the work; False if the thread ended before it began, for lack of memory."""
    while not ended.acquire(timeout=1.0):
        if not thread.is_alive() and turn.acquire(blocking=False):
            return False
    return True


_asked: set[NativeEngine] = set()


def stop_engines() -> None:
    """Stop all running questions; their callers get EngineStoppedError."""
    for engine in tuple(_asked):
        engine.stop()


class NativeEngine:
    """One cluster inside the library. Calls from several threads wait for one another."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()

    def open(self, numbers: Numbers) -> Status:
        """Read a cluster; the engine must not have one yet."""
        return Status(self._library.gpolicy_open(*numbers.arguments, ctypes.byref(self._handle)))

    def __del__(self) -> None:
        if self._handle:
            self._library.gpolicy_close(self._handle)
            self._handle = ctypes.c_void_p()

    def ask(
        self,
        question: EngineQuestion,
        wanted: Numbers | None = None,
        *,
        keep: int = 0,
        limit: int | None = None,
        checked: bool = False,
    ) -> tuple[Status, NativeResult]:
        """Take back all placements but the first `keep`, and answer.

        `limit` is the number of instances to place (None: no limit), or for an attempt the number of the new instance.
        Raises EngineStoppedError after `stop`.
        """
        result = NativeResult()
        numbers = (None, 0, None, 0) if wanted is None else wanted.arguments
        arguments = keep, question, *numbers, -1 if limit is None else limit, checked, ctypes.byref(result)
        return self._call(self._library.gpolicy_ask, *arguments), result

    def move_away(
        self, instance: Numbers, leaving: Leaving, unlisted: Unlisted, *, force: bool
    ) -> tuple[Status, NativeResult]:
        """Move an instance away from its nodes; keep the new state. Raises EngineStoppedError after `stop`."""
        result = NativeResult()
        arguments = leaving, unlisted, force, *instance.arguments, ctypes.byref(result)
        return self._call(self._library.gpolicy_move_away, *arguments), result

    def balance(self, slots: Sequence[int], rules: MoveRules) -> tuple[Status, NativeMove]:
        """Take the best move of the instances at `slots` (ascending). Raises EngineStoppedError after `stop`."""
        move, numbers = NativeMove(), array("q", slots)
        arguments = int(rules), *numbers.buffer_info(), ctypes.byref(move)
        return self._call(self._library.gpolicy_balance, *arguments), move

    def lose(self, rows: Sequence[int], residents: int, *, cpus: bool) -> tuple[Status, list[int]]:
        """Return where the instances of the nodes at `rows` run on (rows; -1: nowhere) if all these nodes are lost.

        `residents` is the number of these instances; with `cpus` no node goes beyond its vcpu-ratio. As it takes
        milliseconds, the caller's thread works it out.
        """
        lost, targets = array("q", rows), array("q", bytes(8 * residents))
        with self._lock:
            self._library.gpolicy_stop(self._handle, 0)
            arguments = *lost.buffer_info(), cpus, *targets.buffer_info()
            status = Status(self._library.gpolicy_lose(self._handle, *arguments))
        return status, targets.tolist()

    def _call(self, function: Callable[..., int], *arguments: object) -> Status:
        """Call the library in another thread, so that a signal (Ctrl-C) is handled at once and ends the work.

        The engine's lock is held until the work has ended, even if the caller is interrupted.
        """
        status = Status.STOPPED
        turn = threading.Lock()  # taken by the first: the thread that begins, or the caller that gives up
        ended = threading.Lock()  # free when the work has ended; safe if the wait is interrupted
        ended.acquire()

        def work() -> None:
            nonlocal status
            if not turn.acquire(blocking=False):
                return
            try:
                status = Status(function(self._handle, *arguments))
            finally:
                self._lock.release()
                ended.release()

        self._lock.acquire()
        self._library.gpolicy_stop(self._handle, 0)
        _asked.add(self)
        try:
            thread = threading.Thread(target=work, name="allocator", daemon=True)
            thread.start()
            begun = _wait(thread, ended, turn)
        except BaseException:
            if turn.acquire(blocking=False):
                self._lock.release()
            else:
                self.stop()
                ended.acquire()
            raise
        finally:
            _asked.discard(self)
        if not begun:
            self._lock.release()
            raise MemoryError("not enough memory for the allocation")
        if status is Status.STOPPED:
            raise EngineStoppedError
        return status

    def stop(self) -> None:
        """End the present question without an answer; later questions are answered."""
        self._library.gpolicy_stop(self._handle, 1)

    def allow(self, steps: int) -> None:
        """Let each later question take so much work; then it ends with TOO_LONG."""
        self._library.gpolicy_allow(self._handle, steps)

    @property
    def steps(self) -> int:
        """How much work the last question took."""
        return int(self._library.gpolicy_steps(self._handle))

    @property
    def placed(self) -> int:
        """The number of placements."""
        return int(self._library.gpolicy_placed(self._handle))

    def placements(self, start: int) -> list[Placed]:
        """Return the placements from number `start` on."""
        numbers = array("q", bytes(6 * 8 * max(0, self.placed - start)))
        self._library.gpolicy_placements(self._handle, start, numbers.buffer_info()[0])
        each = iter(numbers)
        return list(zip(each, each, each, each, each, each, strict=True))

    @property
    def missing_index(self) -> int:
        """The index of the missing node of a fail-over, after `Status.MISSING_NODE`."""
        return int(self._library.gpolicy_missing(self._handle))
