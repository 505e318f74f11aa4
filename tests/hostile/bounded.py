"""Run gpolicy under limits of the system: `bounded.py`, which reads requests on standard input, one JSON a line.

A request is `{"directory", "argv", "cpu"}`. Each is answered in a process of its own, forked from this one, so that the
imports are paid for once; the answer says how it ended and what it took. RLIMIT_CPU counts the time of this process
alone, whatever else the machine does.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

MEMORY: Final = 1536 * 1024**2
"""Bytes of address space that a run may take."""
LARGEST_OUTPUT: Final = 64 * 1024**2
_DEAF: Final = 900  # seconds of the clock for a process that waits for something

_HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit code (negative: the signal), what it wrote, processor seconds, most MiB held."""

    code: int
    out: str
    err: str
    cpu: float
    mebibytes: int
    written: int

    def fault(self) -> str:
        """Return what is wrong with how it ended; nothing if it ended as every run should."""
        if self.code in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"took more than {self.cpu:.0f} s of processor time"
        if self.code not in (0, 1, 2, 3):
            return f"ended with {self.code}: {self.err[-600:]}"
        if "Traceback (most recent" in self.err or "MemoryError" in self.err:
            return self.err[-1500:]
        if self.code == 3 and not self.err.startswith(("gpolicy: ", "hspace: ", "hail: ", "Error: ")):
            return f"exit code 3 with {self.err[:300]!r}"
        if self.written > LARGEST_OUTPUT:
            return f"wrote {self.written} bytes"
        if len(self.err) > 1_000_000:
            return f"wrote {len(self.err)} bytes of complaints"
        return ""


class Runner:
    """A process that forks a bounded child for each command line."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": str(_HERE.parents[1]), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.bounded"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def run(self, argv: list[str], directory: Path, cpu: int, environ: dict[str, str] | None = None) -> Ended:
        """Run `gpolicy ARGV` in `directory`; the file `input` there is its standard input, if there is one.

        `DIRECTORY` in a value of `environ` stands for its path.
        """
        assert self._process.stdin
        assert self._process.stdout
        environ = {name: text.replace("DIRECTORY", str(directory)) for name, text in (environ or {}).items()}
        request = {"argv": argv, "directory": str(directory), "cpu": cpu, "environ": environ}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        written = (directory / ".out").stat().st_size
        return Ended(
            answer["code"],
            _text(directory / ".out"),
            _text(directory / ".err"),
            answer["cpu"],
            answer["mebibytes"],
            written,
        )


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LARGEST_OUTPUT).decode(errors="replace")


def _serve() -> None:
    _import_all()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _be_the_run(request)
        alarm = threading.Timer(_DEAF, os.kill, (child, signal.SIGKILL))
        alarm.start()
        _, status, usage = os.wait4(child, 0)
        alarm.cancel()
        alarm.join()
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "cpu": usage.ru_utime + usage.ru_stime,
            "mebibytes": usage.ru_maxrss // 1024,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _import_all() -> None:
    """Import what the verbs import when they are used: it is no part of the work that is bounded."""
    import importlib

    for path in sorted((_HERE.parents[1] / "gpolicy").rglob("*.py")):
        module = ".".join(path.relative_to(_HERE.parents[1]).with_suffix("").parts)
        if "__" not in path.name and "posting" not in module:
            importlib.import_module(module)


def _be_the_run(request: dict[str, Any]) -> None:
    os.chdir(request["directory"])
    os.environ.update(request["environ"])
    for number, name, flags in (
        (0, "input" if Path("input").exists() else os.devnull, os.O_RDONLY),
        (1, ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(name, flags, 0o600), number)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu"], request["cpu"] + 1))
    from gpolicy.__main__ import main

    sys.argv = ["gpolicy", *request["argv"]]
    code: Any = 99
    try:
        code = main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 98
    except BaseException:  # noqa: BLE001 (whatever it is, the parent has to be told)
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    _serve()
