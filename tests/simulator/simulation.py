"""One schedule: a plan, a cluster, what goes wrong, and the runs of apply until it is quiet. All of it from one seed."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import simulated_rapi
from argument_lists import opcode_of
from ganeti_model import rapi_job
from ground_truth import Judge
from mischief import BLOCKING, Mischief, drawn
from scenarios import LEVEL_VALUES, TAGS, Scenario, scenario
from simulated_ganeti import Fate, SimulatedGaneti
from simulated_machine import (
    ApplyProcess,
    Child,
    KilledError,
    LockChild,
    Machine,
    over_the_wire,
    under_simulation,
)
from simulated_programs import MasterNode, beyond_ssh
from virtual_time import Clock

from gpolicy.apply.transient import passes
from gpolicy.cli import applying as cli_applying
from gpolicy.cli.terminal import complain
from gpolicy.cluster import https
from gpolicy.cluster.sources import SourceOptions
from gpolicy.errors import GpolicyError, InputError, UnreachableError
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.rapi_calls import RapiCall
from gpolicy.ganeti.values import unflatten
from gpolicy.plan.plan_file import PlannedCommand

SCENARIOS: Final = 400
DESTINATIONS: Final = {"rapi": "rapi://master.example.org", "local": "local:", "ssh": "ssh://root@master.example.org"}
STATUSES: Final = (400, 401, 403, 404, 408, 429, 500, 502, 503, 504)
_MOST_POINTS: Final = 60_000
_LONGEST_ARRIVAL: Final = 1.5  # seconds that an accepted request may be under way after its sender lost the connection
_ERRORS: Final = (
    "Instances in node group gold changed since locks were acquired, current instances are 'inst1', wanted ''",
    "Configuration object updated since it has been read: 19 != 18",
    "Cannot resolve the master's name",
    "The operation is not allowed at this time",
    "Timeout while waiting for wconfd",
)
assert {passes(text) for text in _ERRORS} == {True, False}


class EndlessError(BaseException):
    """A run does not come to its end."""


@dataclass(slots=True)
class Fault:
    """What is wrong with the next answers."""

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


@dataclass(slots=True)
class Report:
    """What came of a schedule."""

    seed: str
    runs: int
    jobs: int
    happened: list[str]
    violations: list[str]
    trace: list[str] = field(repr=False)


class _Output(io.StringIO):
    """What a process says; saying takes time, in which others act."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self.simulation = simulation

    def write(self, text: str) -> int:
        count = super().write(text)
        if text == "\n":
            self.simulation.point("say")
        return count


class Simulation:
    """The world of one schedule."""

    def __init__(self, seed: str, directory: Path, *, route: str | None = None, without: Sequence[int] = ()) -> None:
        self.seed, self.directory = seed, directory
        self.random = Random(f"schedule {seed}")
        self.route = route or self.random.choice(("rapi", "rapi", "rapi", "local", "ssh"))
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
        self.ssh_cuts = 0
        self.nested = False
        self.calm = False
        self.processes = 0
        self.most_points = _MOST_POINTS
        self.judge = Judge(self.scenario, self.original, self.route)
        self.plan_files = {"here": directory / "here" / "plan.json", "elsewhere": directory / "elsewhere" / "plan.json"}
        for name, file in self.plan_files.items():
            for folder in (directory / f"locks-{name}", file.parent):
                folder.mkdir(exist_ok=True)
                for left in folder.iterdir():
                    left.unlink()
            file.write_text(self.scenario.text, encoding="utf-8")

    # --- the schedule ------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Run the schedule to its end."""
        with under_simulation(lambda: self.machine, lambda: self.directory / f"locks-{self.machine.process.machine}"):
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
        flags = self._last_flags(ended)
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

    def _last_flags(self, ended: Ended) -> tuple[str, ...]:
        journal = self.journal()
        if not journal.exists():
            return ()
        back = b'"rollback"' in journal.read_bytes()
        return ("--rollback",) if back or self.random.random() < 0.4 else ("--resume",)

    def journal(self, machine: str = "here") -> Path:
        return self.plan_files[machine].with_name("plan.journal.jsonl")

    def _between(self) -> None:
        """Let time pass between two runs."""
        self.point("between")
        self.clock.advance(self.random.choice((0.1, 1.0, 30.0, 400.0, 7200.0)))

    def _quieten(self) -> None:
        """End all that is wrong, and let all jobs come to their end."""
        self.calm = True
        self.machine.disk.left = 0
        self.faults.clear()
        self.ssh_cuts = 0
        self.refused_until = -1.0
        self.node.daemon_down = self.node.torn_number = self.node.silent_submission = False
        self.node.is_master = True
        self.ganeti.drained = self.original.drained = False
        self.ganeti.fates.clear()
        self._bring_back_folder()
        self.clock.advance(40_000.0)
        self.note("--- it is quiet now ---")

    # --- one process -------------------------------------------------------------------------------------------------

    def apply(self, *flags: str, machine: str = "here") -> Ended:
        """Run apply in a process of its own, to its end or until it is killed."""
        self.processes += 1
        before, mine = self.machine.process, ApplyProcess(self.processes, machine)
        self.machine.process = mine
        begun = self.clock.world
        self.note(f"run {mine.number} on {machine}: apply {' '.join(flags)}")
        self.most_points = self.points + _MOST_POINTS
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
        ended = Ended(mine, flags, code, out.getvalue(), begun, self.clock.world, self.calm)
        for line in ended.text.splitlines():
            self.note(f"    | {line}")
        self.note(f"run {mine.number} ended with {code} after {ended.ended - begun:.0f} s")
        self.judge.after(ended)
        return ended

    def _process(self, flags: Sequence[str], machine: str) -> int:
        """Do what `gpolicy apply` does, its last resort against errors included (`gpolicy.cli.running`)."""
        request = cli_applying.Request(
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
            self.note(_where(error))
            return -1

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
        getattr(self, "_" + item.kind.replace(" ", "_").replace("-", "_"))(item.random)

    def note(self, text: str) -> None:
        self.trace.append(f"{self.clock.world:10.2f} {text}")

    def began(self, line: bytes) -> None:
        if b'"step-started"' in line and line.count(b"\n") == 1:
            self.judge.began(self.machine.process, json.loads(line))

    def token(self) -> str:
        return f"{self.random.getrandbits(48):012x}"

    # --- what goes wrong: the process and its machine ----------------------------------------------------------------

    def _kill(self, _: Random) -> None:
        self.machine.process.dead = True
        raise KilledError

    def _torn_kill(self, _: Random) -> None:
        self.machine.process.torn = True

    def _power_cut(self, random: Random) -> None:
        """Have the machine go down: what was not synced to the disk may be lost."""
        dead = self.machine.process
        for descriptor, size in dead.written.items():
            length = os.fstat(descriptor).st_size if descriptor in dead.descriptors else size
            if length > size:
                os.ftruncate(descriptor, random.randint(size, length))
        for child in self.children:
            child.end(255)
        self._kill(random)

    def _interrupt(self, _: Random) -> None:
        self.machine.interrupt()

    def _interrupt_twice(self, random: Random) -> None:
        mine = self.machine.process
        self.machine.interrupt()

        def again() -> None:
            if self.machine.process is mine and not mine.dead:
                self.machine.interrupt()

        self.clock.after(random.choice((0.0, 0.3, 3.0)), again)

    def _suspend(self, random: Random) -> None:
        self.clock.doze(random.choice((60.0, 3600.0, 80_000.0)))

    def _clock_jumps(self, random: Random) -> None:
        self.clock.wall += random.choice((-86_400.0, -3600.0, 3600.0, 86_400.0 * 400))

    def _disk(self, wrong: str, random: Random) -> None:
        self.machine.disk.wrong, self.machine.disk.left = wrong, random.choice((1, 1, 2, 5, 1000))

    def _disk_full(self, random: Random) -> None:
        self._disk("full", random)

    def _disk_read_only(self, random: Random) -> None:
        self._disk("read-only", random)

    def _disk_broken(self, random: Random) -> None:
        self._disk("broken", random)

    def _short_writes(self, random: Random) -> None:
        self._disk("short", random)

    def _folder_gone(self, random: Random) -> None:
        folder = self.journal().parent
        if folder.exists():
            folder.rename(self.directory / "hidden")
            self.clock.after(random.choice((1.0, 100.0, 10_000.0)), self._bring_back_folder)

    def _bring_back_folder(self) -> None:
        folder = self.journal().parent
        if (self.directory / "hidden").exists():
            if folder.exists():
                shutil.rmtree(folder)
            (self.directory / "hidden").rename(folder)

    def _bad_journal(self, random: Random) -> None:
        file = self.journal()
        if not file.exists():
            return
        lines = file.read_bytes().splitlines(keepends=True)
        if len(lines) < 2:
            return
        index = random.randrange(len(lines) - 1)
        match how := random.choice(("lost", "flipped", "swapped", "twice")):
            case "lost":
                del lines[index]
            case "flipped":
                changed = bytearray(lines[index])
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(7)
                lines[index] = bytes(changed)
            case "swapped":
                lines[index], lines[index + 1] = lines[index + 1], lines[index]
            case _:
                lines.insert(index, lines[index])
        self.note(f"line {index + 1} of the journal is {how}")
        file.write_bytes(b"".join(lines))

    def _second_apply(self, random: Random) -> None:
        machine = random.choice(("here", "here", "elsewhere") if self.route != "local" else ("here",))
        flags = random.choice(((), ("--resume",), ("--rollback",))) if machine == "here" else ()
        if machine == "elsewhere":
            self.judge.concurrent = True
        self.nested = True
        kept = self.machine.process, sys.stdout, sys.stderr, self.most_points
        try:
            self.apply(*flags, machine=machine)
        finally:
            self.machine.process, sys.stdout, sys.stderr, self.most_points = kept
            self.nested = False

    # --- what goes wrong: Ganeti -------------------------------------------------------------------------------------

    def _slow_jobs(self, random: Random) -> None:
        for _ in range(random.choice((1, 1, 2))):
            queued = random.choice((0.1, 20.0, 100.0, 900.0, 5000.0))
            self.ganeti.fates.append(Fate(queued, random.choice((0.1, 40.0, 700.0))))

    def _failing_job(self, random: Random) -> None:
        for _ in range(random.choice((1, 1, 2, 8))):
            self.ganeti.fates.append(Fate(0.1, 0.3, "none", random.choice(_ERRORS)))

    def _half_job(self, random: Random) -> None:
        self.ganeti.fates.append(Fate(0.1, random.choice((0.3, 60.0)), "some", random.choice(_ERRORS)))

    def _job_fails_late(self, random: Random) -> None:
        self.ganeti.fates.append(Fate(0.1, random.choice((0.3, 60.0)), "all", random.choice(_ERRORS)))

    def _late_view(self, random: Random) -> None:
        self.ganeti.fates.append(Fate(0.1, 0.3, late=random.uniform(0.1, 4.0), log=(" - WARNING: \x1b[2Jlate",)))

    def _archive(self, _: Random) -> None:
        for job in self.ganeti.jobs.values():
            job.archived |= not job.pending

    def _cancel(self, _: Random) -> None:
        for job in self.ganeti.jobs.values():
            if job.status == "queued" and job.mark:
                job.status = "canceled"

    def _drain(self, random: Random) -> None:
        ganeti = self.ganeti
        ganeti.drained = True

        def undrain() -> None:
            ganeti.drained = False

        self.clock.after(random.choice((5.0, 30.0, 600.0)), undrain)

    def _daemon_down(self, random: Random) -> None:
        seconds = random.choice((2.0, 20.0, 100.0, 130.0, 1000.0))
        self.node.daemon_down, self.refused_until = True, self.clock.world + seconds

        def up() -> None:
            self.node.daemon_down = False

        self.clock.after(seconds, up)

    def _fail_over(self, random: Random) -> None:
        self.ganeti.fail_over()
        self._daemon_down(random)
        self.node.is_master = self.route == "rapi" or random.random() < 0.5

    def _replaced(self, _: Random) -> None:
        self.ganeti = SimulatedGaneti(self.scenario.state, self.clock, uuid="2")
        self.judge.replaced = self.ganeti

    def _renamed(self, _: Random) -> None:
        self.ganeti.name = "renamed.example.org"
        self.ganeti.touch("cluster")

    def _lock_lost(self, _: Random) -> None:
        for lock in self.machine.process.locks:
            if lock.code is None and lock.holds:
                self.machine.process.lock_lost = lock.answered and not lock.stdout.content
                lock.end(255)

    def _torn_number(self, _: Random) -> None:
        self.node.torn_number = True

    def _silent_submission(self, _: Random) -> None:
        self.node.silent_submission = True

    # --- what goes wrong: other people -------------------------------------------------------------------------------

    def _foreign_change(self, random: Random) -> None:
        truth = self.ganeti.truth
        touched = [
            (effect.object, effect.path)
            for step in self.scenario.plan.steps
            for effect in step.command.effects
            if effect.object in truth and effect.path[0] not in ("name", "group", "tags")
        ]
        if touched and random.random() < 0.6:
            name, path = random.choice(touched)
            level = Level(name.partition("/")[0])
            values = LEVEL_VALUES[level].get(path)
        else:
            name = random.choice(sorted(truth))
            level = Level(name.partition("/")[0])
            path = random.choice(sorted(LEVEL_VALUES[level]))
            values = LEVEL_VALUES[level][path]
        if values is None or random.random() < 0.2:
            kind = {"cluster": "cluster", "group": "nodegroup", "node": "node"}[level.value]
            job = random.choice(("OP_TAGS_SET", "OP_TAGS_DEL"))
            owner = name.partition("/")[2] or None
            self._foreign({"OP_ID": job, "kind": kind, "name": owner, "tags": [random.choice(TAGS)]})
            return
        self._foreign({**_modify(name), **unflatten({path: random.choice(values)})})

    def _foreign_twin(self, random: Random) -> None:
        """Have somebody do by hand what one of our steps does, or takes back."""
        step = random.choice(self.scenario.plan.steps)
        commands = [step.command, step.command, *step.inverse]
        self._foreign(opcode_for(random.choice(commands)))

    def _foreign_touch(self, random: Random) -> None:
        name = random.choice(sorted(self.ganeti.truth))
        self.ganeti.touch(name)
        if name.startswith("node/"):
            self.ganeti.offline ^= {name.partition("/")[2]}
        self.note(f"somebody touches {name}")

    def _foreign(self, opcode: dict[str, Any]) -> None:
        refusal = self.ganeti.change(opcode)
        self.ganeti.last_number += 1
        self.note(f"somebody does {opcode}: {refusal or self.ganeti.mutations[-1].changes}")

    # --- requests ----------------------------------------------------------------------------------------------------

    def _bad_answers(self, random: Random) -> None:
        kind = random.choice(("status", "status", "status", "status", "lost", "cut", "slow", "arrives late",
                              "truncated", "garbage", "garbage", "refused"))  # fmt: skip
        left = random.choice((1, 1, 1, 2, 3, 8, 40))
        fault = Fault(kind, left, random.choice(STATUSES), random.random() < 0.5)
        self.note(f"the next answers: {fault}")
        self.faults.append(fault)
        self.ssh_cuts += left if kind in ("cut", "lost", "truncated", "refused") else 0

    def _fault(self) -> Fault | None:
        if not self.faults:
            return None
        fault = self.faults[0]
        fault.left -= 1
        if not fault.left:
            del self.faults[0]
        return fault

    def ask(self, request: https.Request, seconds: float) -> https.Answer:
        """Answer a request to the remote API, or not."""
        mine = self.machine.process
        mine.check()
        self.point("request")
        mine.check()
        self.clock.advance(self.random.uniform(0.002, 0.03))
        submits = request.method != "GET"
        if submits:
            self.judge.submitting(mine, _mark(request.path))
        if self.clock.world < self.refused_until:
            raise UnreachableError(f"{request.host}:{request.port}: Connection refused")
        fault = self._fault()
        answer = self._answer(request, seconds, fault)
        if submits:
            self.note(f"{request.method} {request.path} {request.body!r}: {answer}")
        elif answer.status == 200 and (fault is None or fault.kind == "slow"):
            self.judge.saw(self.ganeti, request.path.partition("?")[0])
        self.point("answer")
        mine.check()
        return answer

    def _answer(self, request: https.Request, seconds: float, fault: Fault | None) -> https.Answer:
        def accepted() -> tuple[int, bytes]:
            return simulated_rapi.answer(self.ganeti, request.method, request.path, request.body, self.random)

        if fault is None:
            return https.Answer(*accepted())
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
                    raise https.NoAnswerError(f"{where}: no complete answer within {seconds:.0f} seconds")
                return over_the_wire(request, b"", reset=True, seconds=seconds)
            case "slow":
                self.clock.advance(seconds * 0.9)
                return https.Answer(*accepted())
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

    def config_data(self, _path: Path) -> bytes:
        self.point("request")
        self.machine.process.check()
        self.clock.advance(0.001)
        fault = self._fault() if self.route == "local" else None
        content: bytes = self.ganeti.shown("config")
        if fault is not None and fault.kind in ("truncated", "garbage"):
            return content[: len(content) // 2]
        if fault is not None and fault.kind in ("refused", "lost"):
            raise InputError("/var/lib/ganeti/config.data: no such file")
        self.judge.saw(self.ganeti, "config")
        return content

    def start(self, argv: Sequence[str]) -> Child:
        """Start a program here, or behind ssh."""
        mine = self.machine.process
        self.point("request")
        mine.check()
        beyond = beyond_ssh(argv) if argv[0] == "ssh" else list(argv)
        submits = "--print-jobid" in beyond
        mark = next((word.removeprefix("--reason=") for word in beyond if word.startswith("--reason=")), "")
        if submits:
            self.judge.submitting(mine, mark)
            self.note(f"start {' '.join(beyond)}")
        fault = self._fault() if self.route == "ssh" else None
        if fault is not None and fault.kind in ("refused", "lost") and not fault.accepted:
            return self._failing(255, b"ssh: connect to host master.example.org port 22: Connection refused\n")
        if beyond[0] == "flock":
            lock = LockChild(self.clock, self.node.locks, beyond[4])
            return lock
        child = Child(self.clock, self.node.start(beyond))
        self.children.append(child)
        if fault is not None and fault.kind in ("cut", "lost", "truncated", "arrives late", "status"):
            seconds = self.random.choice((0.0, 0.2, 0.5, 2.0))
            self.clock.after(seconds, lambda: child.end(255, b"Connection to master.example.org closed.\n"))
        elif fault is not None and fault.kind == "garbage" and not submits:
            child.stdout.content += b"Warning: motd\n"
        elif fault is not None and fault.kind == "slow":
            self.clock.advance(self.random.choice((1.0, 20.0)))
        if beyond[0] == "cat" and not beyond[2].startswith("/run/"):
            ganeti = self.ganeti
            self.clock.after(0.011, lambda: self.judge.saw(ganeti, "config") if child.code == 0 else None)
        if submits:
            self.judge.in_flight(mark, lambda: not child.finished)
        return child

    def _failing(self, code: int, complaint: bytes) -> Child:
        child = Child(self.clock, None)
        self.clock.after(0.05, lambda: child.end(code, complaint))
        return child


def _ignore(_: object) -> None:
    """The answer goes nowhere."""


def _where(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def _message(status: int, content: bytes) -> bytes:
    return b"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(content),
        content,
    )


def _mark(path: str) -> str:
    return parse_qs(urlsplit(path).query).get("reason", [""])[-1]


def _modify(name: str) -> dict[str, Any]:
    level, _, owner = name.partition("/")
    match level:
        case "group":
            return {"OP_ID": "OP_GROUP_SET_PARAMS", "group_name": owner}
        case "node":
            return {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": owner}
    return {"OP_ID": "OP_CLUSTER_SET_PARAMS"}


def opcode_for(command: PlannedCommand) -> dict[str, Any]:
    """Return the opcode of a command of a plan, by either form."""
    if command.rapi is not None:
        return rapi_job(RapiCall(command.rapi.method, command.rapi.path, command.rapi.body))
    assert command.argv is not None
    return opcode_of(command.argv)


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return a directory for the schedules of this process, one after another; in memory where there is one."""
    shared = Path("/dev/shm")
    return TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None)


def simulate(seed: str, *, route: str | None = None, without: Sequence[int] = ()) -> Report:
    """Run the schedule of a seed, if wanted without some of its mischief."""
    return Simulation(seed, Path(_folder().name), route=route, without=without).run()
