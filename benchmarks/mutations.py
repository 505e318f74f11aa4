"""Would the tests notice? Make small changes to the modules of a room, one at a time, and see whether a test fails.

Run `.venv/bin/python benchmarks/mutations.py --rooms plan report --number 60`; it uses one core. Everything happens in
a copy of the checkout in the folder of `--work`, which may be removed at any time. The first run asks each test which
functions it calls (`reached.py`) and keeps the answer. A mutant then meets the tests that call its function, those of
the mirrored file first and then the quickest, in a process that has imported them already; a mutant at the level of a
module has to import everything anew. A test that takes ten times as long as usual has noticed, too. `--again` tries
the survivors of the runs before: when there are new tests, or other code.
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest
from checkout import ROOT
from hypothesis import Phase, settings
from mutants import Mutant, mutants
from mutated_rooms import EQUIVALENT, ROOMS
from reached import Calls

_NOT: Final = ("test_page_in_browser.py", "test_apply_verb.py")  # slow: they ask whole programs
_OPTIONS: Final = [
    *("-q", "-s", "-x", "-n", "0", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header", "--no-summary"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # hypothesis is imported already
]
_FOREVER: Final = 10.0**6


@dataclass(slots=True)
class Reached:
    """The processor seconds of each test, the functions that it calls, and a digest of each file of tests."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def tests(self, mutant: Mutant, most: float) -> list[str]:
        """Return the tests that may notice, the likeliest first, of `most` seconds together."""
        stem = Path(mutant.file).stem
        names = [test for test, calls in self.calls.items() if f"{mutant.file} {mutant.function}" in calls]
        if not names:  # what a module does when it is imported
            called = {test for test, calls in self.calls.items() if any(call.startswith(mutant.file) for call in calls)}
            names = [test for test in self.calls if test in called or f"/test_{stem}." in test] or list(self.calls)
        names.sort(key=lambda name: (stem not in name, self.seconds[name]))
        total = 0.0
        for number, name in enumerate(names):
            total += self.seconds[name]
            if total > most:
                return names[: max(number, 1)]
        return names

    def read(self, notes: Path, tree: Path) -> None:
        """Add what was noted of one file of tests. What a fixture calls counts for all of them: they may share it."""
        lines = [line.split("\t") for line in notes.read_text().splitlines()]
        own: dict[str, set[str]] = {test: set() for test, file, _ in lines if not file}
        shared: set[str] = set()
        for current, file, what in lines:
            test, _, phase = current.rpartition(" ")
            if not file:
                self.seconds[current] = float(what)
            else:
                calls = own.get(test, set()) if phase == "(call)" else shared
                calls.add(f"{Path(file).relative_to(tree)} {what.partition('.<locals>')[0]}")
        self.calls |= {test: sorted(calls | shared) for test, calls in own.items()}


class Room:
    """The tests of a room, as a plugin of pytest. Each mutant meets them in a process of its own."""

    def __init__(self, name: str, work: Path, most: float) -> None:
        self.tree, self.map, self.results = work / name, work / f"{name}.json", work / f"{name}.results"
        self.notes, self.killer = work / f"{name}.notes", work / f"{name}.killer"
        self.reached = Reached(**json.loads(self.map.read_text())) if self.map.exists() else Reached()
        self.modules = [path for glob in ROOMS[name][0] for path in sorted((ROOT / "gpolicy").glob(f"{glob}.py"))]
        self.folders = [f"tests/{folder}" for folder in ROOMS[name][1]]
        self.most = most
        self.calls: Calls | None = None
        self.chosen: list[Mutant] = []
        self.only: frozenset[str] | None = None
        self.began = 0.0

    def draw(self, number: int, seed: int) -> list[Mutant]:
        """Return mutants evenly over the modules, and over the kinds of change within a module."""
        draw = random.Random(seed)  # noqa: S311
        left = {path: mutants(str(path.relative_to(ROOT)), path.read_text()) for path in self.modules}
        found: list[Mutant] = []
        while len(found) < number and any(left.values()):
            for path in draw.sample(self.modules, len(self.modules)):
                if left[path]:
                    kind = draw.choice(sorted({item.kind for item in left[path]}))
                    mutant = draw.choice([item for item in left[path] if item.kind == kind])
                    left[path].remove(mutant)
                    found.append(mutant)
        return found[:number]

    def survivors(self) -> list[Mutant]:
        """Return the mutants that survived the last time that they were tried."""
        tried = self.tried()
        every = [item for path in self.modules for item in mutants(str(path.relative_to(ROOT)), path.read_text())]
        return [item for item in every if not tried.get(item.name, "unknown")]

    def tried(self) -> dict[str, str]:
        """Return by mutant which test noticed the last time; nothing if none did."""
        lines = [json.loads(line) for line in self.results.read_text().splitlines()] if self.results.exists() else []
        return {line["name"]: line["killed"] for line in lines}

    def run(self, chosen: list[Mutant]) -> None:
        """Try mutants: those of functions in one session, each other one in a session of its own."""
        self.chosen = [item for item in chosen if item.function]
        _in_a_process(lambda: pytest.main([*_OPTIONS, *self.folders], plugins=[self]), quiet=False, seconds=_FOREVER)
        self.reached = Reached(**json.loads(self.map.read_text()))
        for mutant in chosen:
            if not mutant.function:
                self.only = frozenset(self.reached.tests(mutant, self.most))
                files = sorted({name.partition("::")[0] for name in self.only})
                with self._written(mutant):
                    work = functools.partial(pytest.main, [*_OPTIONS, *files], [self])
                    self._tell(mutant, _in_a_process(work, seconds=self._patience(self.only)))

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Let a law fail without a search for its smallest example."""
        few = settings.get_profile("few")
        settings.register_profile("mutants", few, phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the tests that are asked for."""
        items[:] = [item for item in items if item.path.name not in _NOT]
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Trace the tests that are new and try the mutants of functions."""
        if self.only is not None:
            return None
        _forget()
        self._trace(session.items)
        sys.dont_write_bytecode = True
        items = {item.nodeid: item for item in session.items}
        functions: dict[tuple[str, str], list[FunctionType]] = {}
        for item in gc.get_objects():
            if isinstance(item, FunctionType) and item.__code__.co_filename.startswith(str(self.tree)):
                functions.setdefault((item.__code__.co_filename, item.__code__.co_qualname), []).append(item)
        for mutant in self.chosen:
            tests = [items[name] for name in self.reached.tests(mutant, self.most) if name in items]
            with self._written(mutant):
                work = functools.partial(self._meet, mutant, tests, functions)
                self._tell(mutant, _in_a_process(work, seconds=self._patience(item.nodeid for item in tests)))
        return True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin to measure the time of a test, or to limit it."""
        self.began = sum(os.times()[:4])
        if self.calls is not None:
            _forget()
            (self.tree / "tracing").write_text(json.dumps({**self._asked(), "test": f"{nodeid} (call)"}))
            self.calls.begin()
        else:
            signal.setitimer(signal.ITIMER_PROF, 5 + 10 * self.reached.seconds.get(nodeid, 1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the time of a test that passes, or end with one that fails."""
        if self.calls is None and report.failed:
            self.killer.write_text(report.nodeid)
            os._exit(1)
        if self.calls is not None and report.when == "call" and report.passed:
            with self.notes.open("a") as notes:
                notes.write(f"{report.nodeid}\t\t{sum(os.times()[:4]) - self.began:.3f}\n")

    def _trace(self, items: list[pytest.Item]) -> None:
        """Find out what the tests call, those of files that are new or have changed."""
        for path, group in itertools.groupby(items, key=lambda item: item.path):
            tests = list(group)
            file, digest = str(path.relative_to(self.tree)), sha256(path.read_bytes()).hexdigest()
            if self.reached.digests.get(file) != digest:
                self.notes.write_text("")
                _in_a_process(functools.partial(self._note, tests), seconds=_FOREVER)
                (self.tree / "tracing").unlink(missing_ok=True)
                for name in [name for name in self.reached.calls if name.partition("::")[0] == file]:
                    del self.reached.calls[name]
                self.reached.read(self.notes, self.tree)
                self.reached.digests[file] = digest
                self.map.write_text(json.dumps(asdict(self.reached)))

    def _patience(self, tests: Iterable[str]) -> float:
        """Return how long a mutant may take, by the clock of a busy machine: a test may wait for what never comes."""
        return 60 + 10 * sum(self.reached.seconds[test] for test in tests)

    def _asked(self) -> dict[str, Any]:
        modules = [str(self.tree / path.relative_to(ROOT)) for path in self.modules]
        return {"into": str(self.notes), "modules": modules}

    def _note(self, tests: list[pytest.Item]) -> int:
        self.calls = Calls(**self._asked())
        return _run(tests)

    def _meet(
        self, mutant: Mutant, tests: list[pytest.Item], functions: dict[tuple[str, str], list[FunctionType]]
    ) -> int:
        _forget()
        file = str(self.tree / mutant.file)
        before = _codes(compile(mutant.original, file, "exec"), mutant.function)
        after = _codes(compile(mutant.source, file, "exec"), mutant.function)
        same = [item for name, _ in before for item in functions.get((file, name), [])]  # closures may be there already
        changed = [(item, after[key]) for item in same for key in before.keys() & after if item.__code__ == before[key]]
        assert changed or not same
        for function, code in changed:
            function.__code__ = code
        return _run(tests)

    @contextmanager
    def _written(self, mutant: Mutant) -> Iterator[None]:
        """Have the mutant in the copy of the checkout, for processes that tests start."""
        self.killer.write_text("")
        path = self.tree / mutant.file
        times = path.stat()
        path.write_text(mutant.source)
        yield
        path.write_text(mutant.original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as its compiled form knows it

    def _tell(self, mutant: Mutant, status: int) -> None:
        """Print a survivor, and keep the result."""
        code = os.waitstatus_to_exitcode(status)
        if code == _BROKEN:
            print(f"{mutant.file}:{mutant.line}: {mutant.new} could not be tried")
            return
        killer = self.killer.read_text() or ("time" if code < 0 else "import" if code not in {0, 5} else "")
        with self.results.open("a") as results:
            results.write(json.dumps({"name": mutant.name, "kind": mutant.kind, "killed": killer}) + "\n")
        if not killer and not _is_equivalent(mutant):
            number = len(self.reached.tests(mutant, self.most))
            print(
                f"{mutant.file}:{mutant.line}: {mutant.old} → {mutant.new} ({mutant.kind}; {number} tests)", flush=True
            )


_BROKEN: Final = 70  # the exit code of a process that could not try its mutant


def _is_equivalent(mutant: Mutant) -> bool:
    return mutant.name.removeprefix("gpolicy/") in EQUIVALENT


def _run(tests: list[pytest.Item]) -> int:
    for item, following in itertools.zip_longest(tests, tests[1:]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    return 0


def _forget() -> None:
    """Empty the caches of functions."""
    for item in _caches():
        item.cache_clear()


@functools.cache
def _caches() -> list[functools._lru_cache_wrapper[object]]:
    found = [item for item in gc.get_objects() if isinstance(item, functools._lru_cache_wrapper)]
    return [item for item in found if item.__module__.startswith("gpolicy.")]


def _codes(code: CodeType, function: str) -> dict[tuple[str, int], CodeType]:
    """Return the code of each function of that qualified name, and of all within it, by name and turn."""
    found: dict[tuple[str, int], CodeType] = {}
    todo = [code]
    for outer in todo:
        for item in outer.co_consts:
            if isinstance(item, CodeType):
                todo.append(item)
                if item.co_qualname == function or item.co_qualname.startswith(f"{function}.<locals>."):
                    found[item.co_qualname, sum(name == item.co_qualname for name, _ in found)] = item
    return found


def _in_a_process(work: Callable[[], int], *, quiet: bool = True, seconds: float) -> int:
    """Return how `work` ended in a copy of this process, which is left with nothing that it started."""
    child = os.fork()
    if not child:
        status = _BROKEN
        try:
            os.setsid()
            if quiet:
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(nothing, stream)
            status = int(work())
        except BaseException:  # noqa: BLE001 (a copy of the process must not go on with the work of this one)
            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + seconds
    pause = 0.001
    while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not done[0]:
        done = os.waitpid(child, 0)
    return done[1]


def _copy(tree: Path) -> None:
    """Make a copy of the checkout, as it is now."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in [*listed.stdout.decode().splitlines(), "gpolicy/allocator/native/engine.so"]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    child = f"import sys\nsys.path.append({str(ROOT / 'benchmarks')!r})\nfrom reached import begin_in_child\n"
    child += f"begin_in_child({str(tree)!r})\n"
    (tree / "sitecustomize.py").write_text(child)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "gpolicy", "tests"], cwd=tree, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--number", type=int, default=50, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=30, help="seconds of tests that a mutant meets")
    parser.add_argument("--again", action="store_true", help="try the survivors of the runs before")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "gpolicy-mutations")
    asked = parser.parse_args()
    asked.work.mkdir(exist_ok=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in asked.rooms:
        room = Room(name, asked.work, asked.most)
        chosen = room.survivors() if asked.again else room.draw(asked.number, asked.seed)
        _copy(room.tree)
        _in_a_process(functools.partial(_try, room, chosen), quiet=False, seconds=_FOREVER)
        tried = room.tried()
        killed = sum(1 for item in chosen if tried.get(item.name))
        equivalent = sum(1 for item in chosen if not tried.get(item.name) and _is_equivalent(item))
        print(f"{name}: {killed} of {len(chosen)} mutants killed, {equivalent} others are equivalent", flush=True)
    return 0


def _try(room: Room, chosen: list[Mutant]) -> int:
    os.chdir(room.tree)
    os.environ |= {"PYTHONPATH": str(room.tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path[:] = [str(room.tree), *(path for path in sys.path if path != str(ROOT))]
    room.run(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
