"""The programs that the command line's way runs on the master: gnt-*, cat, flock; and ssh in front of them.

A program is a generator: what it gives is time that passes (seconds) or something that it says; what it returns is
its exit code.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Sequence
from random import Random
from typing import Final

from tests.simulator.argument_lists import ArgumentsError, opcode_of
from tests.simulator.simulated_ganeti import Job, SimulatedGaneti

Said = float | tuple[str, bytes]
Program = Generator[Said, None, int]
NO_DAEMON: Final = b"Cannot communicate with the master daemon.\nIs it running and listening for connections?\n"
NOT_MASTER: Final = b"This is not the master node, please connect to node 'node2.example.org' and rerun the command\n"
TIMEOUT: Final = (
    b"Timeout while talking to the master daemon. Jobs might have been submitted and will continue to run even if"
    b" the call timed out.\n"
)
DRAINED: Final = b"Failure: prerequisites not met for this operation:\nJob queue is drained, refusing job\n"


class MasterNode:
    """The node on which programs run."""

    def __init__(self, ganeti: Callable[[], SimulatedGaneti], random: Random) -> None:
        self.ganeti, self.random = ganeti, random
        self.daemon_down = False
        self.is_master = True
        self.locks: dict[str, str] = {}
        self.torn_number = False
        self.silent_submission = False  # the next submission is accepted, and the command hears nothing of it

    def start(self, argv: Sequence[str]) -> Program:
        """Return the program that `argv` names."""
        match list(argv):
            case ["gnt-job", "list", *rest]:
                return self._list(rest)
            case ["gnt-job", "watch", number]:
                return self._watch(int(number))
            case ["cat", "--", path]:
                return self._cat(path)
            case [program, _verb, "--print-jobid", reason, *_] if program in ("gnt-cluster", "gnt-group", "gnt-node"):
                return self._submit([argv[0], argv[1], *argv[4:]], reason.removeprefix("--reason="))
        raise AssertionError(f"no program of a plan: {argv}")

    def _closed(self) -> bytes:
        return NOT_MASTER if not self.is_master else NO_DAEMON if self.daemon_down else b""

    def _submit(self, argv: list[str], mark: str) -> Program:
        yield self.random.uniform(0.02, 0.4)
        if closed := self._closed():
            yield "err", closed
            return 1
        if self.ganeti().drained:
            yield "err", DRAINED
            return 1
        try:
            opcode = opcode_of(argv)
        except (ArgumentsError, ValueError, KeyError, IndexError) as error:
            raise AssertionError(f"no command of a plan: {argv}: {error}") from error
        job = self.ganeti().submit(opcode, mark, self.random)
        if self.silent_submission:
            self.silent_submission = False
            yield 30.0
            yield "err", TIMEOUT
            return 1
        number = f"{job.number}\n".encode()
        if self.torn_number:
            self.torn_number = False
            yield "out", number[: max(len(number) - 2, 1)]
            yield 1.0
            return 255
        yield "out", number
        return (yield from self._poll(job))

    def _poll(self, job: Job) -> Program:
        told, seconds = 0, 0.05
        while job.pending:
            yield seconds
            seconds = min(seconds * 1.5, 10.0)
            if closed := self._closed():
                yield "err", closed
                return 1
            for line in job.log[told:]:
                yield "out", line.encode() + b"\n"
            told = len(job.log)
        if job.status == "success":
            return 0
        yield "err", f"Failure: command execution error:\n{job.error or 'Job canceled'}\n".encode()
        return 1

    def _list(self, rest: list[str]) -> Program:
        yield self.random.uniform(0.01, 0.1)
        if closed := self._closed():
            yield "err", closed
            return 1
        place = rest.index("-o") + 1
        columns, numbers = rest[place].split(","), [int(word) for word in rest[place + 1 :]]
        ganeti = self.ganeti()
        for number in numbers or list(ganeti.jobs):
            job = ganeti.listed(number)
            if job is None:
                if numbers:
                    yield "out", f"{number}|{'|'.join('-' for _ in columns[1:])}\n".encode()
                continue
            ops = [{"OP_ID": job.opcode["OP_ID"], "reason": [["gnt:user", job.mark, 1]]}]
            cells = {"id": job.number, "status": job.status, "ops": ops, "summary": job.summary}
            yield "out", ("|".join(str(cells[column]) for column in columns) + "\n").encode()
        return 0

    def _watch(self, number: int) -> Program:
        yield 0.02
        if closed := self._closed():
            yield "err", closed
            return 1
        found = self.ganeti().listed(number)
        if found is None:
            yield "err", f"Failure: prerequisites not met: Job with id {number} not found\n".encode()
            return 1
        return (yield from self._poll(found))

    def _cat(self, path: str) -> Program:
        yield 0.01
        if path.startswith("/run/"):
            yield "out", self.locks.get(path, "").encode()
            return 0
        yield "out", self.ganeti().shown("config")
        return 0


def beyond_ssh(argv: Sequence[str]) -> list[str]:
    """Return what ssh runs on the other side: a shell takes the line apart."""
    assert argv[0] == "ssh"
    assert "--" in argv
    return shlex.split(argv[-1])
