"""Schedules of roll-outs: plans of two or three clusters in waves, each carried out by a process of its own."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from gpolicy.apply.jobs import SharedStopRequests
from gpolicy.cli import rolling_out
from gpolicy.cli.options import RolledOutClusters
from gpolicy.fleet.workers import Failed
from gpolicy.report.forms import Display
from gpolicy.rollout.rollout_run import NAME
from gpolicy.use_cases.carrying_out import ApplyRequest
from tests.simulator.mischief import drawn
from tests.simulator.rollout_truth import Course, RolloutJudge
from tests.simulator.scenarios import SITES, scenario
from tests.simulator.simulated_world import Ended
from tests.simulator.simulation import Simulation
from tests.simulator.strands import Strand

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

ROUTES: Final = ("rapi", "rapi", "ssh")
_SCENARIOS: Final = 50  # of each site
_GRACE: Final = 2.0  # seconds that a process that is told to end has for it


class Worker:
    """Does one job of a roll-out in a process of its own (`gpolicy.fleet.workers`)."""

    goes_on = False

    def __init__(self, world: RolloutSimulation, jobs: Sequence[partial[Any]]) -> None:
        self.world, self._jobs = world, jobs

    def begin(self, number: int) -> None:
        job, world = self._jobs[number], self.world
        world.before(job)
        self.number, self.kind = number, job.func.__name__
        parent = world.machine.process
        self.process = world.new_process(parent.machine, job.args[0].name, parent)
        world.machine.fork(self.process)
        own = [copy(item) if isinstance(item, SharedStopRequests) else item for item in job.args]
        self._job = partial(job.func, *own)
        self._answer: Any = None
        self._began = world.clock.monotonic
        world.note(f"run {self.process.number}: {self.kind} {self.process.site}")
        if self.kind == "run_one":
            world.rollout_judge.begins(self.process)
        self.strand = Strand(world.clock, self._run, self.process.check, world.machine.scene(self.process))
        world.strands.append(self.strand)

    @property
    def pipe(self) -> Worker:
        """The end of the pipe that its answer comes through."""
        return self

    @property
    def ready(self) -> bool:
        return self.strand.ended

    @property
    def age(self) -> float:
        return self.world.clock.monotonic - self._began

    def _run(self) -> None:
        self.world.follow(self.process, self._code)

    def _code(self) -> int | None:
        try:
            self.process.check()
            answer = self._job()
        except KeyboardInterrupt:
            return None
        except Exception as error:  # noqa: BLE001 (it is what a user would see as a traceback)
            self.world.blame_traceback(error)
            return None
        self.process.check()
        self._answer = pickle.loads(pickle.dumps(answer))  # noqa: S301 (our own)
        return answer.exit_code if self.kind == "run_one" else None

    def result(self) -> Any:
        """Return the answer, or that there is none."""
        answer = self._answer or Failed("its process ended without an answer (signal 9)")
        self.world.rollout_judge.answered(self.process, self.kind, answer)
        return answer

    def end(self, grace: float) -> None:
        """End the process if it has not ended. Who is dead himself ends none."""
        if self.strand.ended or self.world.machine.process.dead:
            return
        if self.kind == "run_one":
            self.world.violations.append(f"the roll-out ends the process of {self.process.site}, which is at work")
        self.world.rollout_judge.answered(self.process, self.kind, Failed("it took too long"))
        self.world.clock.advance(grace)
        self.world.machine.signal(self.process, signal.SIGTERM)
        self.world.clock.advance(_GRACE)
        self.process.dead = True


class RolloutSimulation(Simulation):
    """`apply --all`."""

    def __init__(self, seed: str, directory: Path, *, route: str | None = None, without: Sequence[int] = ()) -> None:
        random = Random(f"roll-out {seed}")
        chosen = random.sample(range(len(SITES)), random.choice((2, 2, 3)))
        routes = [route or random.choice(ROUTES) for _ in chosen]
        scenarios = [scenario(len(SITES) * random.randrange(_SCENARIOS) + number) for number in chosen]
        mischief = drawn(f"roll-out {seed}", routes=set(routes), roll_out=True)
        super().__init__(
            seed,
            directory,
            random,
            list(zip(scenarios, routes, strict=True)),
            [item for item in mischief if item.number not in without],
        )
        self.strands: list[Strand] = []
        self.at_once = random.choice((1, 1, 2, 3))
        names = list(self.sites)
        waves = random.choice(([[name] for name in names], [names[:1], names[1:]], [names]))
        self.rollout_judge = RolloutJudge(self.sites, waves, self.violations)
        for site in self.sites.values():
            (directory / f"{site.name}.yaml").write_text(site.scenario.policy, encoding="utf-8")
        (directory / "gpolicy.toml").write_text(self._settings(waves, random.choice((0, 0, 5, 60))), encoding="utf-8")

    def _settings(self, waves: Sequence[Sequence[str]], pause: int) -> str:
        tables = [
            f'[clusters.{name}]\npolicy = "{name}.yaml"\nstate = "{self.sites[name].address}"\n'
            f'labels = {{wave = "{number}"}}\n'
            for number, names in enumerate(waves)
            for name in names
        ]
        labels = ", ".join(f'"wave={number}"' for number in range(len(waves)))
        return "".join([*tables, f"[rollout]\nwaves = [{labels}]\npause = {pause}\n"])

    @property
    def whole(self) -> Path:
        """The journal of the whole."""
        return self.directory / "here" / NAME

    def journals(self) -> list[Path]:
        return [self.whole, *(site.journal() for site in self.sites.values())]

    def once(self, *flags: str) -> Ended:
        asked = RolledOutClusters(all_clusters=True, jobs=self.at_once)
        request = ApplyRequest(
            plan=self.directory / "here",
            destination="",
            resume="--resume" in flags,
            rollback="--rollback" in flags,
            job_timeout=self.job_timeout,
        )
        mine = self.new_process()
        self.rollout_judge.courses[mine] = Course(back=request.rollback)
        self.rollout_judge.damaged = self.whole in self.damaged
        return self.process(
            "apply --all", flags, lambda: rolling_out.roll_out(asked, request, Display(form="json"), yes=True), mine
        )

    def again(self, random: Random) -> None:
        flags = random.choice(((), ("--resume",), ("--rollback",)))
        if random.random() < 0.5:
            self.once(*flags)
        else:
            self.apply(random.choice(list(self.sites.values())), *flags)

    def worker(self, jobs: Sequence[partial[Any]], _others: object) -> Worker:
        """Return who does one of the jobs in a process of its own."""
        return Worker(self, jobs)

    def before(self, job: partial[Any]) -> None:
        """Do something before a job begins."""

    def wait(self, workers: Sequence[Worker], timeout: float) -> list[Worker]:
        """Return the workers that have answered or ended, at the latest after `timeout` seconds."""
        machine = self.machine
        machine.process.check()
        if not any(item.ready for item in workers):
            self.point("wait")
            self.clock.advance(timeout)
            machine.process.check()
        return [item for item in workers if item.ready]

    def wrote(self, event: Mapping[str, Any]) -> None:
        process = self.machine.process
        if process.site:
            super().wrote(event)
        else:
            self.rollout_judge.wrote(process, event)

    def judge_end(self, ended: Ended) -> None:
        super().judge_end(ended)
        if not ended.process.site:
            self.rollout_judge.after(ended, tainted=self.tainted)

    def end_all(self) -> None:
        for process in self.machine.alive:
            process.dead = True
        for strand in self.strands:
            while not strand.ended:
                strand.go_on()
