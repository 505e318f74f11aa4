"""One schedule: plans, clusters, disturbances, and the runs of apply until all is quiet. All from one seed."""

from __future__ import annotations

import io
import os
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from gpolicy.cli import applying as cli_applying
from gpolicy.cli.terminal import complain
from gpolicy.cluster.sources import SourceOptions
from gpolicy.errors import GpolicyError
from gpolicy.use_cases.carrying_out import ApplyRequest
from tests.simulator.disturbances import Disturbances
from tests.simulator.mischief import drawn
from tests.simulator.scenarios import scenario
from tests.simulator.simulated_machine import ApplyProcess, KilledError
from tests.simulator.simulated_world import MOST_POINTS, Ended, EndlessError
from tests.simulator.sites import Site
from tests.simulator.stand_ins import under_simulation

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

SCENARIOS: Final = 400
ROUTES: Final = ("rapi", "rapi", "rapi", "local", "ssh")


@dataclass(slots=True)
class Report:
    """The outcome of a schedule."""

    seed: str
    runs: int
    jobs: int
    happened: list[str]
    violations: list[str]
    trace: list[str] = field(repr=False)


class _Output(io.StringIO):
    """The output of a process; writing takes time, in which others act. What a child says, its parent shows."""

    def __init__(self, world: Simulation, shown_by: io.StringIO | None) -> None:
        super().__init__()
        self.world, self.shown_by = world, shown_by

    def write(self, text: str) -> int:
        count = super().write(text)
        if self.shown_by is not None:
            super(_Output, self.shown_by).write(text)  # type: ignore[misc]
        if text == "\n":
            self.world.point("say")
        return count


class Simulation(Disturbances):
    """A schedule and its course. What its runs are is said by those that inherit from it."""

    # --- the schedule ------------------------------------------------------------------------------------------------

    def run(self, *, remembering: bool = True) -> Report:
        """Run the schedule to its end."""
        with under_simulation(lambda: self.machine, remembering=remembering):
            try:
                self._run()
            except EndlessError as error:
                self.violations.append(str(error))
            finally:
                self.end_all()
        for site in self.sites.values():
            self.violations += [self._about(site, text) for text in site.judge.violations]
        if self.violations:
            for site in self.sites.values():
                steps = [(step.id, step.title) for step in site.scenario.plan.steps]
                self.note(self._about(site, f"plan: {steps}"))
        found = list(dict.fromkeys([*self.violations, *self._broken()]))
        jobs = sum(len(site.ganeti.jobs) for site in self.sites.values())
        return Report(self.seed, self.processes, jobs, self.happened, found, self.trace)

    def _about(self, site: Site, text: str) -> str:
        return text if len(self.sites) == 1 else f"{site.name}: {text}"

    def _run(self) -> None:
        for site in self.sites.values():
            steps = len(site.scenario.plan.steps)
            self.note(self._about(site, f"seed {self.seed}, route {site.route}, {steps} steps"))
        ended = self.once()
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            self._between()
            ended = self.once(*self._next_flags(ended))
        self._quieten()
        last = self.once(*self._last_flags())
        if not self._blocked() and last.code != 0:
            text = f"nothing is in the way any more, and apply {' '.join(last.process.flags)} ends with {last.code}"
            self.violations.append(text)

    @abstractmethod
    def once(self, *flags: str) -> Ended:
        """Run the plan, or the roll-out, once."""

    def _broken(self) -> list[str]:
        told = [text for site in self.sites.values() for text in site.ganeti.broken]
        return [] if self.tainted else [f"a job that Ganeti should not be given: {text}" for text in told]

    def _blocked(self) -> bool:
        # nobody sees when a hidden value gets there
        unseen = "late view" in self.happened and any(site.route == "rapi" for site in self.sites.values())
        return self.tainted or unseen or any(site.judge.concurrent for site in self.sites.values())

    def _next_flags(self, ended: Ended) -> tuple[str, ...]:
        if not self.journals()[0].exists():
            return self.random.choice(((), (), ("--resume",)))
        if "--rollback" in ended.process.flags and ended.code != 3:
            return self.random.choice((("--rollback",), ("--rollback",), ("--resume",)))
        return self.random.choice((("--resume",), ("--resume",), ("--rollback",), ("--rollback",), ()))

    def _last_flags(self) -> tuple[str, ...]:
        journals = self.journals()
        if not journals[0].exists():
            return ()
        back = any(b'"rollback"' in file.read_bytes() for file in journals if file.exists())
        return ("--rollback",) if back or self.random.random() < 0.4 else ("--resume",)

    def _between(self) -> None:
        """Let time pass between two runs."""
        self.point("between")
        self.clock.advance(self.random.choice((0.1, 1.0, 30.0, 400.0, 7200.0)))

    def _quieten(self) -> None:
        """End all disturbances, and let all jobs finish."""
        self.calm = True
        self.machine.disk.left = 0
        for site in self.sites.values():
            site.quieten()
        self.bring_back_folder()
        self.clock.advance(40_000.0)
        self.note("--- it is quiet now ---")

    def end_all(self) -> None:
        """End all processes that are left."""

    # --- one process -------------------------------------------------------------------------------------------------

    def process(self, what: str, flags: tuple[str, ...], code: Callable[[], int], mine: ApplyProcess) -> Ended:
        """Run code in a process of its own, to its end or until it is killed."""
        self.note(f"run {mine.number} on {mine.machine}: {what} {' '.join(flags)}")
        self.most_points = self.points + MOST_POINTS
        mine.flags = flags
        self.machine.alive.append(mine)
        with self.machine.scene(mine)():
            return self.follow(mine, lambda: self._code(code))

    def new_process(self, machine: str = "here", site: str = "", parent: ApplyProcess | None = None) -> ApplyProcess:
        """Return a process that has not begun."""
        self.processes += 1
        shown_by = None if parent is None else parent.said
        return ApplyProcess(self.processes, machine, parent, site, said=_Output(self, shown_by))

    def follow(self, mine: ApplyProcess, code: Callable[[], int | None]) -> Ended:
        """Run the code of a process that is in place, and judge it at its end; its exit code is None if killed."""
        mine.begun = self.clock.world
        begun, ended_with = self.clock.monotonic, None
        try:
            ended_with = code()
            mine.interrupted = False  # too late
            mine.check()
        except KilledError:
            self.note(f"run {mine.number} is dead")
            ended_with = None
        finally:
            self.machine.bury(mine)
        ended = Ended(mine, ended_with, mine.said.getvalue(), begun, self.clock.monotonic)
        for line in ended.text.splitlines() if mine.parent is None else ():
            self.note(f"    | {line}")
        self.note(f"run {mine.number} ended with {ended_with} after {ended.ended - begun:.0f} s")
        self.judge_end(ended)
        return ended

    def judge_end(self, ended: Ended) -> None:
        """Judge what a process did and said."""
        if ended.process.site:
            self.sites[ended.process.site].judge.after(ended)

    def _code(self, code: Callable[[], int]) -> int:
        """Do what `gpolicy` does with the end of a verb, its last resort against errors included (`cli.running`)."""
        try:
            return code()
        except GpolicyError as error:
            complain(error.message, error.hint)
            return int(error.exit_code)
        except OSError as error:
            complain(f"{error.filename or 'the output'}: {error.strerror or error}", None)
            return 3
        except KeyboardInterrupt:
            complain("interrupted; nothing was left half written", None)
            return 130
        except Exception as error:  # noqa: BLE001 (it is what a user would see as a traceback)
            self.blame_traceback(error)
            return -1

    def blame_traceback(self, error: Exception) -> None:
        self.violations.append(f"traceback: {error!r}")
        self.note("".join(traceback.format_exception(error)))

    def apply(self, site: Site, *flags: str, machine: str = "here") -> Ended:
        """Run apply for one cluster."""
        request = ApplyRequest(
            plan=site.plan(machine),
            destination=site.address,
            options=SourceOptions(environ={"HOME": "/nonexistent", "PATH": "/usr/bin"}),
            resume="--resume" in flags,
            rollback="--rollback" in flags,
            job_timeout=self.job_timeout,
        )
        mine = self.new_process(machine, site.name)
        return self.process("apply", flags, lambda: cli_applying.apply(request, yes=True), mine)


class ApplySimulation(Simulation):
    """`apply` on one cluster."""

    def __init__(self, seed: str, directory: Path, *, route: str | None = None, without: Sequence[int] = ()) -> None:
        random = Random(f"schedule {seed}")
        route = route or random.choice(ROUTES)
        chosen = scenario(random.randrange(SCENARIOS))
        mischief = [item for item in drawn(seed, routes={route}) if item.number not in without]
        super().__init__(seed, directory, random, [(chosen, route)], mischief)
        (self.only,) = self.sites.values()

    def journals(self) -> list[Path]:
        return [self.only.journal()]

    def once(self, *flags: str) -> Ended:
        return self.apply(self.only, *flags)

    def again(self, random: Random) -> None:
        machine = random.choice(("here", "here", "elsewhere") if self.only.route != "local" else ("here",))
        flags = random.choice(((), ("--resume",), ("--rollback",))) if machine == "here" else ()
        if machine == "elsewhere":
            self.only.judge.concurrent = True
        self.apply(self.only, *flags, machine=machine)


@cache
def folder() -> TemporaryDirectory[str]:
    """Return a directory for the schedules of this process, one after another; in memory where there is one."""
    shared = Path("/dev/shm")
    return TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None)


def simulate(
    seed: str,
    *,
    of: Callable[..., Simulation] = ApplySimulation,
    route: str | None = None,
    without: Sequence[int] = (),
    remembering: bool = True,
) -> Report:
    """Run the schedule of a seed, if wanted without some of its mischief, or without the memory that makes it fast."""
    return of(seed, Path(folder().name), route=route, without=without).run(remembering=remembering)


def violations(schedule: Callable[[str], Report], seeds: Iterable[int]) -> dict[str, list[str]]:
    """Return what did not hold, by the seed of the schedule."""
    reports = (schedule(str(seed)) for seed in seeds)
    return {report.seed: report.violations for report in reports if report.violations}


def seed_that_shows(what: str, schedule: Callable[[str], Report], seeds: Iterable[int]) -> int | None:
    """Return the first seed whose schedule has a violation that says so."""
    return next((seed for seed in seeds if any(what in text for text in schedule(str(seed)).violations)), None)
