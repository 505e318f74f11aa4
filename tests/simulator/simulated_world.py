"""The world of a schedule: clock, machine, clusters, and the points of disturbances."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from gpolicy.cluster.rapi_client import HttpsAnswer, HttpsRequest
from tests.simulator.mischief import BLOCKING, Mischief
from tests.simulator.scenarios import Scenario
from tests.simulator.simulated_children import Child
from tests.simulator.simulated_machine import ApplyProcess, Machine
from tests.simulator.simulated_programs import beyond_ssh
from tests.simulator.sites import Site
from tests.simulator.virtual_time import Clock

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

MOST_POINTS: Final = 60_000


class EndlessError(BaseException):
    """A run does not come to its end."""


@dataclass(slots=True)
class Ended:
    """One run: its process, its exit code (None: killed) and what it said."""

    process: ApplyProcess
    code: int | None
    text: str
    begun: float
    ended: float


class World(ABC):
    """The world of one schedule: of each scenario a cluster, which is reached over its route."""

    def __init__(
        self,
        seed: str,
        directory: Path,
        random: Random,
        scenarios: Sequence[tuple[Scenario, str]],
        mischief: Sequence[Mischief],
    ) -> None:
        self.seed, self.directory, self.random = seed, directory, random
        self.job_timeout = random.choice((30.0, 120.0, 600.0))
        self.clock = Clock()
        self.machine = Machine(self)
        self.trace: list[str] = []
        self.mischief = list(mischief)
        self.happened: list[str] = []
        self.violations: list[str] = []
        self.tainted = False
        self.damaged: set[Path] = set()
        self.points = 0
        self.next_due = min((item.at for item in self.mischief), default=10**9)
        self.nested = False
        self.calm = False
        self.processes = 0
        self.most_points = MOST_POINTS
        for machine in ("here", "elsewhere"):
            for folder in (self.locks(machine), directory / machine):
                folder.mkdir(exist_ok=True)
                for left in folder.iterdir():
                    left.unlink()
        self.sites: dict[str, Site] = {}
        for number, (scenario, route) in enumerate(scenarios):
            site = Site(self, scenario, route, Random(f"node {seed}{f' {number}' if number else ''}"))
            self.sites[site.name] = site
            for machine in ("here", "elsewhere"):
                site.plan(machine).write_text(scenario.text, encoding="utf-8")

    def locks(self, machine: str) -> Path:
        """Where locks are on a machine."""
        return self.directory / f"locks-{machine}"

    @abstractmethod
    def again(self, random: Random) -> None:
        """Have somebody start a second run while one is under way."""

    @abstractmethod
    def happen(self, kind: str, random: Random, site: Site) -> None:
        """Have something go wrong."""

    @abstractmethod
    def journals(self) -> list[Path]:
        """Return all journals, that of the last run first."""

    def wrote(self, event: Mapping[str, Any]) -> None:
        """An event got into a journal."""
        process = self.machine.process
        if event.get("event") == "step-started":
            self.sites[process.site].judge.began(process, event)

    def bring_back_folder(self) -> None:
        folder = self.directory / "here"
        if (self.directory / "hidden").exists():
            if folder.exists():
                shutil.rmtree(folder)
            (self.directory / "hidden").rename(folder)

    # --- the surroundings of the machine -----------------------------------------------------------------------------

    def ask(self, request: HttpsRequest, seconds: float) -> HttpsAnswer:
        """Answer a request to the remote API."""
        return next(site for site in self.sites.values() if site.host == request.host).ask(request, seconds)

    def start(self, argv: Sequence[str]) -> Child:
        """Start a program here, or behind ssh."""
        if argv[0] != "ssh":
            return next(site for site in self.sites.values() if site.route == "local").start(argv)
        host = argv[argv.index("--") + 1].rpartition("@")[2]
        return next(site for site in self.sites.values() if site.host == host).start(beyond_ssh(argv))

    def config_data(self, path: Path) -> bytes:
        """Read the file config.data of this machine."""
        return next(site for site in self.sites.values() if site.route == "local").config_data(path)

    def written(self, line: bytes) -> None:
        """A line got into a journal; one that was cut short may stand before."""
        for part in line.splitlines():
            if part.startswith(b"{") and part.endswith(b"}"):
                with suppress(ValueError):
                    self.wrote(json.loads(part))

    def token(self) -> str:
        return f"{self.random.getrandbits(48):012x}"

    # --- points ------------------------------------------------------------------------------------------------------

    def point(self, where: str, site: Site | None = None) -> None:
        self.points += 1
        if self.points > self.most_points:
            raise EndlessError("a run does not come to its end")
        if self.points >= self.next_due and not self.calm:
            self._fire(where, site)

    def _fire(self, where: str, site: Site | None) -> None:
        due = [item for item in self.mischief if item.at <= self.points and where in item.places]
        for item in due:
            if item not in self.mischief or (self.nested and item.kind == "second apply"):
                continue
            self.mischief.remove(item)
            self.next_due = min((other.at for other in self.mischief), default=10**9)
            self._happen(item, where, site)

    def _happen(self, item: Mischief, where: str, site: Site | None) -> None:
        sites = list(self.sites.values())
        if len(sites) > 1 and (site is None or item.anywhere):
            site = item.random.choice(sites)
        self.happened.append(item.kind)
        self.tainted |= item.kind in BLOCKING
        chosen = site or sites[0]
        about = f" at {chosen.name}" if len(sites) > 1 else ""
        self.note(f"** {item.kind} (number {item.number}{about}, at a point of kind {where})")
        self.happen(item.kind, item.random, chosen)

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.world:10.2f} {text}")
