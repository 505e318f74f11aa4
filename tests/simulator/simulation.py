"""One schedule: a plan, a cluster, disturbances, and the runs of apply until all is quiet. All from one seed."""

from __future__ import annotations

import io
import os
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from connections import Connections
from simulated_machine import ApplyProcess, KilledError
from simulated_world import MOST_POINTS, Ended, EndlessError, World
from stand_ins import under_simulation

from gpolicy.cli import applying as cli_applying
from gpolicy.cli.terminal import complain
from gpolicy.cluster.sources import SourceOptions
from gpolicy.errors import GpolicyError

DESTINATIONS: Final = {"rapi": "rapi://master.example.org", "local": "local:", "ssh": "ssh://root@master.example.org"}


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
    """The output of a process; writing takes time, in which others act."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def write(self, text: str) -> int:
        count = super().write(text)
        if text == "\n":
            self.world.point("say")
        return count


class Simulation(Connections):
    """A schedule and its course."""

    # --- the schedule ------------------------------------------------------------------------------------------------

    def run(self, *, remembering: bool = True) -> Report:
        """Run the schedule to its end."""

        def locks() -> Path:
            return self.directory / f"locks-{self.machine.process.machine}"

        with under_simulation(lambda: self.machine, locks, remembering=remembering):
            try:
                self._run()
            except EndlessError as error:
                self.judge.blame(str(error))
        if self.judge.violations:
            self.note(f"plan: {[(step.id, step.title) for step in self.scenario.plan.steps]}")
        found = list(dict.fromkeys([*self.judge.violations, *self._broken()]))
        return Report(self.seed, self.processes, len(self.ganeti.jobs), self.happened, found, self.trace)

    def _run(self) -> None:
        self.note(f"seed {self.seed}, route {self.route}, {len(self.scenario.plan.steps)} steps")
        ended = self.apply()
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            self._between()
            ended = self.apply(*self._next_flags(ended))
        self._quieten()
        flags = self._last_flags()
        last = self.apply(*flags)
        self.judge.at_the_end(last, blocked=self._blocked())

    def _broken(self) -> list[str]:
        return [] if self.tainted else [f"a job that Ganeti should not be given: {text}" for text in self.ganeti.broken]

    def _blocked(self) -> bool:
        unseen = self.route == "rapi" and "late view" in self.happened  # nobody sees when a hidden value gets there
        return self.tainted or self.judge.concurrent or unseen

    def _next_flags(self, ended: Ended) -> tuple[str, ...]:
        journal = self.journal()
        if not journal.exists():
            return self.random.choice(((), (), ("--resume",)))
        if "--rollback" in ended.flags and ended.code != 3:
            return self.random.choice((("--rollback",), ("--rollback",), ("--resume",)))
        return self.random.choice((("--resume",), ("--resume",), ("--rollback",), ("--rollback",), ()))

    def _last_flags(self) -> tuple[str, ...]:
        journal = self.journal()
        if not journal.exists():
            return ()
        back = b'"rollback"' in journal.read_bytes()
        return ("--rollback",) if back or self.random.random() < 0.4 else ("--resume",)

    def _between(self) -> None:
        """Let time pass between two runs."""
        self.point("between")
        self.clock.advance(self.random.choice((0.1, 1.0, 30.0, 400.0, 7200.0)))

    def _quieten(self) -> None:
        """End all disturbances, and let all jobs finish."""
        self.calm = True
        self.machine.disk.left = 0
        self.faults.clear()
        self.refused_until = -1.0
        self.node.daemon_down = self.node.torn_number = self.node.silent_submission = False
        self.node.is_master = True
        self.ganeti.drained = self.original.drained = False
        self.ganeti.fates.clear()
        self.bring_back_folder()
        self.clock.advance(40_000.0)
        self.note("--- it is quiet now ---")

    # --- one process -------------------------------------------------------------------------------------------------

    def apply(self, *flags: str, machine: str = "here") -> Ended:
        """Run apply in a process of its own, to its end or until it is killed."""
        self.processes += 1
        before, mine = self.machine.process, ApplyProcess(self.processes, machine)
        self.machine.process = mine
        begun = self.clock.monotonic
        self.note(f"run {mine.number} on {machine}: apply {' '.join(flags)}")
        self.most_points = self.points + MOST_POINTS
        out = _Output(self)
        self.judge.begin(mine, flags, out)
        code: int | None = None
        try:
            with redirect_stdout(out), redirect_stderr(out):
                code = self._process(flags, machine)
        except KilledError:
            self.note(f"run {mine.number} is dead")
        finally:
            mine.dead = True
            self.machine.bury(mine)
            self.machine.process = before
        ended = Ended(mine, flags, code, out.getvalue(), begun, self.clock.monotonic, self.calm)
        for line in ended.text.splitlines():
            self.note(f"    | {line}")
        self.note(f"run {mine.number} ended with {code} after {ended.ended - begun:.0f} s")
        self.judge.after(ended)
        return ended

    def _process(self, flags: Sequence[str], machine: str) -> int:
        """Do what `gpolicy apply` does, its last resort against errors included (`gpolicy.cli.running`)."""
        request = cli_applying.ApplyRequest(
            plan=self.plan_files[machine],
            destination=DESTINATIONS[self.route],
            options=SourceOptions(environ={"HOME": "/nonexistent", "PATH": "/usr/bin"}),
            resume="--resume" in flags,
            rollback="--rollback" in flags,
            yes=True,
            job_timeout=self.job_timeout,
        )
        try:
            return cli_applying.apply(request)
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
            self.judge.blame(f"traceback: {error!r}")
            self.note("".join(traceback.format_exception(error)))
            return -1


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return a directory for the schedules of this process, one after another; in memory where there is one."""
    shared = Path("/dev/shm")
    return TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None)


def simulate(seed: str, *, route: str | None = None, without: Sequence[int] = (), remembering: bool = True) -> Report:
    """Run the schedule of a seed, if wanted without some of its mischief, or without the memory that makes it fast."""
    return Simulation(seed, Path(_folder().name), route=route, without=without).run(remembering=remembering)
