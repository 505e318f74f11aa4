"""The world of a schedule: clock, cluster, machine, and the points of disturbances."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from ground_truth import Judge
from mischief import BLOCKING, Mischief, drawn
from scenarios import Scenario, scenario
from simulated_children import Child
from simulated_ganeti import SimulatedGaneti
from simulated_machine import ApplyProcess, Machine
from simulated_programs import MasterNode
from virtual_time import Clock

from gpolicy.cluster import https

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

SCENARIOS: Final = 400
MOST_POINTS: Final = 60_000
ROUTES: Final = ("rapi", "rapi", "rapi", "local", "ssh")


class EndlessError(BaseException):
    """A run does not come to its end."""


@dataclass(slots=True)
class Fault:
    """The faults of the next answers."""

    kind: str
    left: int
    status: int = 0
    accepted: bool = False


@dataclass(slots=True)
class Ended:
    """One run of apply: how it was started, its exit code (None: killed) and what it said."""

    process: ApplyProcess
    flags: tuple[str, ...]
    code: int | None
    text: str
    begun: float
    ended: float
    calm: bool


class World(ABC):
    """The world of one schedule."""

    def __init__(self, seed: str, directory: Path, *, route: str | None = None, without: Sequence[int] = ()) -> None:
        self.seed, self.directory = seed, directory
        self.random = Random(f"schedule {seed}")
        self.route = route or self.random.choice(ROUTES)
        number = self.random.randrange(SCENARIOS)
        self.job_timeout = self.random.choice((30.0, 120.0, 600.0))
        self.scenario: Scenario = scenario(number)
        self.clock = Clock()
        self.ganeti = SimulatedGaneti(self.scenario.state, self.clock)
        self.original = self.ganeti
        self.node = MasterNode(lambda: self.ganeti, Random(f"node {seed}"))
        self.machine = Machine(self)
        self.trace: list[str] = []
        self.mischief = [item for item in drawn(seed, route=self.route) if item.number not in without]
        self.happened: list[str] = []
        self.tainted = False
        self.points = 0
        self.next_due = min((item.at for item in self.mischief), default=10**9)
        self.faults: list[Fault] = []
        self.refused_until = -1.0
        self.children: list[Child] = []
        self.nested = False
        self.calm = False
        self.processes = 0
        self.most_points = MOST_POINTS
        self.judge = Judge(self.scenario, self.original, self.route)
        self.plan_files = {"here": directory / "here" / "plan.json", "elsewhere": directory / "elsewhere" / "plan.json"}
        for name, file in self.plan_files.items():
            for folder in (directory / f"locks-{name}", file.parent):
                folder.mkdir(exist_ok=True)
                for left in folder.iterdir():
                    left.unlink()
            file.write_text(self.scenario.text, encoding="utf-8")

    @abstractmethod
    def apply(self, *flags: str, machine: str = "here") -> Ended:
        """Run apply in a process of its own, to its end or until it is killed."""

    @abstractmethod
    def ask(self, request: https.HttpsRequest, seconds: float) -> https.HttpsAnswer:
        """Answer a request to the remote API."""

    @abstractmethod
    def start(self, argv: Sequence[str]) -> Child:
        """Start a program."""

    @abstractmethod
    def config_data(self, path: Path) -> bytes:
        """Read the file config.data of this machine."""

    @abstractmethod
    def happen(self, kind: str, random: Random) -> None:
        """Have something go wrong."""

    def journal(self, machine: str = "here") -> Path:
        return self.plan_files[machine].with_name("plan.journal.jsonl")

    def bring_back_folder(self) -> None:
        folder = self.journal().parent
        if (self.directory / "hidden").exists():
            if folder.exists():
                shutil.rmtree(folder)
            (self.directory / "hidden").rename(folder)

    # --- points ------------------------------------------------------------------------------------------------------

    def point(self, where: str) -> None:
        self.points += 1
        if self.points > self.most_points:
            raise EndlessError("a run does not come to its end")
        if self.points >= self.next_due and not self.calm:
            self._fire(where)

    def _fire(self, where: str) -> None:
        due = [item for item in self.mischief if item.at <= self.points and where in item.places]
        for item in due:
            if item not in self.mischief or (self.nested and item.kind == "second apply"):
                continue
            self.mischief.remove(item)
            self.next_due = min((other.at for other in self.mischief), default=10**9)
            self._happen(item, where)

    def _happen(self, item: Mischief, where: str) -> None:
        self.happened.append(item.kind)
        self.tainted |= item.kind in BLOCKING
        self.note(f"** {item.kind} (number {item.number}, at a point of kind {where})")
        self.happen(item.kind, item.random)

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.world:10.2f} {text}")

    def began(self, line: bytes) -> None:
        for part in line.splitlines():  # a line that was cut short may stand before
            if b'"step-started"' in part and part.endswith(b"}"):
                with suppress(ValueError):
                    self.judge.began(self.machine.process, json.loads(part))

    def token(self) -> str:
        return f"{self.random.getrandbits(48):012x}"
