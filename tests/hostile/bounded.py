"""Feed a target under limits of the system: of processor time, of the clock, of memory.

`Feeder` starts a process that imports all of gpolicy once. For each request it forks a child that takes the inputs one
after the other. An input that ends the child is a fault; another child goes on with the next input.

`python -m tests.hostile.bounded TARGET FIRST COUNT` takes inputs by their numbers without limits, and prints an answer
a line: to repeat what failed.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from tests import sanitizers
from tests.hostile.promises import gpolicy
from tests.hostile.targets import TARGETS

MEMORY: Final = 1536 * 1024**2
"""Bytes of address space that a child may take."""
_CLOCK: Final = 600  # seconds for an input that waits for something
_ROOT: Final = Path(__file__).resolve().parents[2]

Given = int | str
"""An input in a request: its number, or its bytes as Latin-1."""


@dataclass(frozen=True, slots=True)
class Fed:
    """What came of inputs: the faults, what each was answered, and the most MiB that a child held."""

    faults: list[str]
    answers: list[Any]
    mebibytes: int


class Feeder:
    """A process that forks a bounded child for each request."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.bounded"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def feed(
        self,
        target: str,
        inputs: Iterable[int | bytes],
        directory: Path,
        *,
        seconds: float | None = None,
    ) -> Fed:
        """Feed a target, in `directory`; an input is its bytes or a number (`Target.input`).

        `seconds` of processor time are for each input.
        """
        assert self._process.stdin
        assert self._process.stdout
        given = [one if isinstance(one, int) else one.decode("latin-1") for one in inputs]
        request = {
            "target": target,
            "inputs": given,
            "directory": str(directory),
            "seconds": seconds or TARGETS[target].seconds,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        faults, answers = [], []
        for one in given:
            answer = json.loads(self._process.stdout.readline())
            answers.append(answer.get("answer"))
            if "fault" in answer:
                faults.append(f"{str(one)[:200]}: {answer['fault']}")
        return Fed(faults, answers, int(self._process.stdout.readline()))


def answer_of(target: str, given: Given, directory: Path) -> dict[str, Any]:
    """Run a target on an input; return what it answers, or the fault."""
    try:
        data = TARGETS[target].input(given) if isinstance(given, int) else given.encode("latin-1")
        return {"answer": TARGETS[target].run(data, directory)}
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is a fault)
        return {"fault": "".join(traceback.format_exception(error, limit=-6))[-2500:]}


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request["target"] != "engine":
            _warm_up()
        TARGETS[request["target"]].sound()  # made once, and not in each child
        inputs, most = request["inputs"], 0
        errors = Path(request["directory"], ".errors")
        while inputs:
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.close(reading)
                _be_fed(request, inputs, writing, errors)
            os.close(writing)
            with open(reading, encoding="ascii") as answers:  # noqa: PTH123 (a descriptor)
                answered = sys.stdout.writelines(lines := answers.readlines()) or len(lines)
            _, status, usage = os.wait4(child, 0)
            most = max(most, usage.ru_maxrss // 1024)
            if answered < len(inputs):
                said = errors.read_text(errors="replace")[-2500:]
                print(json.dumps({"fault": _how_it_ended(status, request["seconds"]) + said}))  # noqa: T201
            inputs = inputs[answered + 1 :]
        print(most, flush=True)  # noqa: T201


def _how_it_ended(status: int, seconds: float) -> str:
    code = os.waitstatus_to_exitcode(status)
    known = {
        -signal.SIGPROF: f"took more than {seconds} s of processor time\n",
        -signal.SIGALRM: f"took more than {_CLOCK} s\n",
    }
    return known.get(code, f"ended with {code}\n")


def _be_fed(request: Any, inputs: list[Given], answers: int, errors: Path) -> NoReturn:
    code = 1
    try:
        os.chdir(request["directory"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        os.dup2(2, 1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not sanitizers.ACTIVE:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        faulthandler.enable(2)
        for number in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(number, file=2, chain=True)  # it says where it was, and dies of the signal
        for given in inputs:
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            signal.alarm(_CLOCK)
            answer = answer_of(request["target"], given, Path(request["directory"]))
            os.write(answers, json.dumps(answer).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


@functools.cache
def _warm_up() -> None:
    """Import what the verbs import when they are used, and let them make what they make once."""
    for path in sorted((_ROOT / "gpolicy").rglob("*.py")):
        module = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        if "__" not in path.name and "posting" not in module:
            importlib.import_module(module)
    with tempfile.TemporaryDirectory() as name:
        policy = Path(name, "policy.yaml")
        policy.write_text("gpolicy: v1\nkind: NodeGroup\nname: default\nipolicy: {spindle-ratio: 9}\n")
        source = ("-s", f"snapshot:{_ROOT}/policies/two-groups.snapshot.json")
        gpolicy("plan", *source, "--allow", "right-cluster", "-f", "html", policy)
        policy.write_text("gpolicy: v1\nkind: NodeGroup\nname: default\nnonsense: 1\n")
        gpolicy("check", policy)


def main() -> None:
    if not sys.argv[1:]:
        _serve()
        return
    target, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, first + count):
            print(json.dumps(answer_of(target, number, Path(scratch))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
