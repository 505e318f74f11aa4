"""One cluster of a schedule: what is at its address, its plan, and what went on there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from gpolicy.cluster.rapi_client import HttpsAnswer, HttpsRequest, NoAnswerError
from gpolicy.errors import InputError, UnreachableError
from tests.simulator import simulated_rapi
from tests.simulator.ground_truth import Judge
from tests.simulator.scenarios import Scenario
from tests.simulator.simulated_children import Child, LockChild
from tests.simulator.simulated_ganeti import SimulatedGaneti
from tests.simulator.simulated_programs import MasterNode
from tests.simulator.stand_ins import over_the_wire

if TYPE_CHECKING:
    from tests.simulator.simulated_world import World

_LONGEST_ARRIVAL: Final = 1.5  # seconds that an accepted request may be under way after its sender lost the connection


@dataclass(slots=True)
class Fault:
    """The faults of the next answers."""

    kind: str
    left: int
    status: int = 0
    accepted: bool = False


class Site:
    """A cluster behind an address. It answers requests and starts programs, as the schedule wants it."""

    def __init__(self, world: World, scenario: Scenario, route: str, random: Random) -> None:
        self.world, self.scenario, self.route, self.random = world, scenario, route, world.random
        self.machine, self.clock = world.machine, world.clock
        self.name = scenario.state.name.partition(".")[0]
        self.ganeti = SimulatedGaneti(scenario.state, world.clock)
        self.original = self.ganeti
        self.node = MasterNode(lambda: self.ganeti, random)
        self.faults: list[Fault] = []
        self.refused_until = -1.0
        self.children: list[Child] = []
        self.judge = Judge(scenario, self.original, route)

    @property
    def host(self) -> str:
        """The host of its address, which is the name of the cluster."""
        return self.scenario.state.name

    @property
    def address(self) -> str:
        """What `apply --to` takes."""
        return {"rapi": f"rapi://{self.host}", "local": "local:", "ssh": f"ssh://root@{self.host}"}[self.route]

    def plan(self, machine: str = "here") -> Path:
        """The file of its plan on a machine."""
        return self.world.directory / machine / f"{self.name}.json"

    def journal(self, machine: str = "here") -> Path:
        """The journal of its plan."""
        return self.plan(machine).with_name(f"{self.name}.journal.jsonl")

    def quieten(self) -> None:
        """End all that goes wrong here."""
        self.faults.clear()
        self.refused_until = -1.0
        self.node.daemon_down = self.node.torn_number = self.node.silent_submission = False
        self.node.is_master = True
        self.ganeti.drained = self.original.drained = False
        self.ganeti.fates.clear()

    # --- requests ----------------------------------------------------------------------------------------------------

    def _fault(self) -> Fault | None:
        if not self.faults:
            return None
        fault = self.faults[0]
        fault.left -= 1
        if not fault.left:
            del self.faults[0]
        return fault

    def ask(self, request: HttpsRequest, seconds: float) -> HttpsAnswer:
        """Answer a request to the remote API, or not."""
        mine = self.machine.process
        mine.check()
        submits = request.method != "GET"
        self.world.point("submit" if submits else "request", self)
        mine.check()
        self.clock.advance(self.random.uniform(0.002, 0.03))
        if submits:
            self.judge.submitting(mine, _mark(request.path))
        if self.clock.world < self.refused_until:
            raise UnreachableError(f"{request.host}:{request.port}: Connection refused")
        fault = self._fault()
        answer = self._answer(request, seconds, fault)
        if submits:
            self.world.note(f"{request.method} {request.path} {request.body!r}: {answer}")
        elif answer.status == 200 and (fault is None or fault.kind == "slow"):
            self.judge.saw(mine, self.ganeti, request.path.partition("?")[0])
        self.world.point("answer", self)
        mine.check()
        return answer

    def _answer(self, request: HttpsRequest, seconds: float, fault: Fault | None) -> HttpsAnswer:
        def accepted() -> tuple[int, bytes]:
            return simulated_rapi.answer(self.ganeti, request.method, request.path, request.body, self.random)

        if fault is None:
            return HttpsAnswer(*accepted())
        where = f"{request.host}:{request.port}"
        match fault.kind:
            case "refused":
                raise UnreachableError(f"{where}: Connection refused")
            case "lost" | "arrives late":
                if fault.kind == "arrives late" and request.method != "GET":
                    ganeti = self.ganeti
                    arrives = self.clock.world + self.random.uniform(0.1, _LONGEST_ARRIVAL)
                    self.judge.in_flight(_mark(request.path), lambda: self.clock.world < arrives)
                    self.clock.after(
                        arrives - self.clock.world,
                        lambda: _ignore(
                            simulated_rapi.answer(ganeti, request.method, request.path, request.body, self.random)
                        ),
                    )
                elif not fault.accepted:
                    self.clock.advance(seconds)
                    raise NoAnswerError(f"{where}: no complete answer within {seconds:.0f} seconds")
                return over_the_wire(request, b"", reset=True, seconds=seconds)
            case "slow":
                self.clock.advance(seconds * 0.9)
                return HttpsAnswer(*accepted())
            case "status":
                if fault.accepted:
                    accepted()
                content = simulated_rapi.error_body(fault.status)
                return over_the_wire(request, _message(fault.status, content), reset=False, seconds=seconds)
        status, content = accepted() if fault.accepted or fault.kind != "cut" else (200, b"")
        match fault.kind:
            case "cut":
                return over_the_wire(request, b"", reset=True, seconds=seconds)
            case "truncated":
                whole = _message(status, content)
                return over_the_wire(
                    request, whole[: len(whole) - max(len(content) // 2, 1)], reset=False, seconds=seconds
                )
        wrong = self.random.choice((b"<html>it works</html>", b"[]", b"null", b"-7", b"1e99", b'"x"', b"\xff\xfe",
                                    b"{}", b"99999999999999999999999", b"7777777"))  # fmt: skip
        return over_the_wire(request, _message(200, wrong), reset=False, seconds=seconds)

    # --- programs ----------------------------------------------------------------------------------------------------

    def config_data(self, path: Path) -> bytes:
        self.world.point("request", self)
        self.machine.process.check()
        self.clock.advance(0.001)
        fault = self._fault() if self.route == "local" else None
        content: bytes = self.ganeti.shown("config")
        if fault is not None and fault.kind in ("truncated", "garbage"):
            return content[: len(content) // 2]
        if fault is not None and fault.kind in ("refused", "lost"):
            raise InputError(f"{path}: no such file")
        self.judge.saw(self.machine.process, self.ganeti, "config")
        return content

    def start(self, argv: Sequence[str]) -> Child:
        """Start a program on the master."""
        mine = self.machine.process
        submits = "--print-jobid" in argv
        self.world.point("submit" if submits else "request", self)
        mine.check()
        mark = next((word.removeprefix("--reason=") for word in argv if word.startswith("--reason=")), "")
        if submits:
            self.judge.submitting(mine, mark)
            self.world.note(f"start {' '.join(argv)}")
        fault = self._fault() if self.route == "ssh" else None
        if fault is not None and fault.kind in ("refused", "lost") and not fault.accepted:
            return self._failing(255, f"ssh: connect to host {self.host} port 22: Connection refused\n".encode())
        if argv[0] == "flock":
            return LockChild(self.clock, self.node.locks, argv[4])
        if fault is not None and fault.kind == "slow":
            self.clock.advance(self.random.choice((1.0, 20.0)))
        child = Child(self.clock, self.node.start(argv))
        self.children.append(child)
        if fault is not None and fault.kind in ("cut", "lost", "truncated", "arrives late", "status"):
            seconds = self.random.choice((0.0, 0.2, 0.5, 2.0))
            self.clock.after(seconds, lambda: child.end(255, f"Connection to {self.host} closed.\n".encode()))
        elif fault is not None and fault.kind == "garbage" and not submits:
            child.stdout.content += b"Warning: motd\n"
        if argv[0] == "cat" and not argv[2].startswith("/run/"):
            child.well_ended = partial(self.judge.saw, mine, self.ganeti, "config")
        if submits:
            self.judge.in_flight(mark, lambda: not child.finished)
        return child

    def _failing(self, code: int, complaint: bytes) -> Child:
        child = Child(self.clock, None)
        self.clock.after(0.05, lambda: child.end(code, complaint))
        return child


def _ignore(_: object) -> None:
    """The answer goes nowhere."""


def _message(status: int, content: bytes) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(content),
        content,
    )


def _mark(path: str) -> str:
    return parse_qs(urlsplit(path).query).get("reason", [""])[-1]
