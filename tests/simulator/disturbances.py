"""Disturbances of a run: the effect of each kind."""

from __future__ import annotations

import os
import signal
from random import Random
from typing import Any, Final

from gpolicy.apply.jobs import passes
from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.parameters import unflatten
from gpolicy.ganeti.vocabulary import Level
from gpolicy.plan.step import PlannedCommand
from tests.plan.ganeti_model import rapi_job
from tests.simulator.argument_lists import opcode_of
from tests.simulator.scenarios import LEVEL_VALUES, TAGS
from tests.simulator.simulated_ganeti import Fate, SimulatedGaneti
from tests.simulator.simulated_machine import KilledError
from tests.simulator.simulated_world import World
from tests.simulator.sites import Fault, Site

STATUSES: Final = (400, 401, 403, 404, 408, 429, 500, 502, 503, 504)
_ERRORS: Final = (
    "Instances in node group gold changed since locks were acquired, current instances are 'inst1', wanted ''",
    "Configuration object updated since it has been read: 19 != 18",
    "Cannot resolve the master's name",
    "The operation is not allowed at this time",
    "Timeout while waiting for wconfd",
)
assert {passes(text) for text in _ERRORS} == {True, False}


class Disturbances(World):
    """The kinds of mischief, as methods of their names."""

    def happen(self, kind: str, random: Random, site: Site) -> None:
        self.site = site
        getattr(self, "_" + kind.replace(" ", "_").replace("-", "_"))(random)

    # --- what goes wrong: the process and its machine ----------------------------------------------------------------

    def _kill(self, _: Random) -> None:
        self.machine.process.dead = True
        raise KilledError

    def _roll_out_ends(self, _: Random) -> None:
        """Kill the roll-out, and none of the processes of its clusters."""
        self.machine.process.root.dead = True
        self.machine.process.check()

    def _torn_kill(self, _: Random) -> None:
        self.machine.process.torn = True

    def _power_cut(self, random: Random) -> None:
        """Have the machine go down: what was not synced to the disk may be lost."""
        mine = self.machine.process
        for process in [item for item in self.machine.alive if item.machine == mine.machine]:
            for descriptor, size in process.written.items():
                length = os.fstat(descriptor).st_size if descriptor in process.descriptors else size
                if length > size:
                    os.ftruncate(descriptor, random.randint(size, length))
            process.dead = True
        for site in self.sites.values():
            for child in site.children:
                child.end(255)
        raise KilledError

    def _interrupt(self, _: Random) -> None:
        self.machine.signal(self.machine.process.root, signal.SIGINT)

    def _interrupt_twice(self, random: Random) -> None:
        root = self.machine.process.root
        self.machine.signal(root, signal.SIGINT)

        def again() -> None:
            if root in self.machine.alive and not root.dead:
                self.machine.signal(root, signal.SIGINT)

        self.clock.after(random.choice((0.0, 0.3, 3.0)), again)

    def _other_ends(self, random: Random) -> None:
        """Kill the process of any cluster, or tell it to end."""
        children = [item for item in self.machine.alive if item.parent is not None and not item.dead]
        if not children:
            return
        process, told = random.choice(children), random.random() < 0.5
        self.note(f"run {process.number} is {'told to end' if told else 'killed'}")
        if told:
            self.machine.signal(process, signal.SIGTERM)
        else:
            process.dead = True

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
        folder = self.directory / "here"
        if folder.exists():
            folder.rename(self.directory / "hidden")
            self.clock.after(random.choice((1.0, 100.0, 10_000.0)), self.bring_back_folder)

    def _bad_journal(self, random: Random) -> None:
        file = random.choice(found) if len(found := self.journals()) > 1 else found[0]
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
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
        self.damaged.add(file)
        self.note(f"line {index + 1} of the journal {file.name} is {how}")
        file.write_bytes(b"".join(lines))

    def _second_apply(self, random: Random) -> None:
        self.nested = True
        most = self.most_points
        try:
            self.again(random)
        finally:
            self.most_points, self.nested = most, False

    # --- what goes wrong: Ganeti -------------------------------------------------------------------------------------

    def _slow_jobs(self, random: Random) -> None:
        for _ in range(random.choice((1, 1, 2))):
            queued = random.choice((0.1, 20.0, 100.0, 900.0, 5000.0))
            self.site.ganeti.fates.append(Fate(queued, random.choice((0.1, 40.0, 700.0))))

    def _failing_job(self, random: Random) -> None:
        for _ in range(random.choice((1, 1, 2, 8))):
            self.site.ganeti.fates.append(Fate(0.1, 0.3, "none", random.choice(_ERRORS)))

    def _half_job(self, random: Random) -> None:
        self.site.ganeti.fates.append(Fate(0.1, random.choice((0.3, 60.0)), "some", random.choice(_ERRORS)))

    def _job_fails_late(self, random: Random) -> None:
        self.site.ganeti.fates.append(Fate(0.1, random.choice((0.3, 60.0)), "all", random.choice(_ERRORS)))

    def _late_view(self, random: Random) -> None:
        self.site.ganeti.fates.append(Fate(0.1, 0.3, late=random.uniform(0.1, 4.0), log=(" - WARNING: \x1b[2Jlate",)))

    def _archive(self, _: Random) -> None:
        for job in self.site.ganeti.jobs.values():
            job.archived |= not job.pending

    def _cancel(self, _: Random) -> None:
        for job in self.site.ganeti.jobs.values():
            if job.status == "queued" and job.mark:
                job.status = "canceled"

    def _drain(self, random: Random) -> None:
        ganeti = self.site.ganeti
        ganeti.drained = True

        def undrain() -> None:
            ganeti.drained = False

        self.clock.after(random.choice((5.0, 30.0, 600.0)), undrain)

    def _daemon_down(self, random: Random) -> None:
        seconds = random.choice((2.0, 20.0, 100.0, 130.0, 1000.0))
        self.site.node.daemon_down, self.site.refused_until = True, self.clock.world + seconds

        def up() -> None:
            self.site.node.daemon_down = False

        self.clock.after(seconds, up)

    def _fail_over(self, random: Random) -> None:
        self.site.ganeti.fail_over()
        self._daemon_down(random)
        self.site.node.is_master = self.site.route == "rapi" or random.random() < 0.5

    def _replaced(self, _: Random) -> None:
        self.site.ganeti = SimulatedGaneti(self.site.scenario.state, self.clock, uuid="2")
        self.site.judge.replaced = self.site.ganeti

    def _renamed(self, _: Random) -> None:
        self.site.ganeti.name = "renamed.example.org"
        self.site.ganeti.touch("cluster")

    def _lock_lost(self, _: Random) -> None:
        for lock in self.machine.process.locks:
            if lock.code is None and lock.holds:
                self.machine.process.lock_lost = lock.answered and not lock.stdout.content
                lock.end(255)

    def _torn_number(self, _: Random) -> None:
        self.site.node.torn_number = True

    def _silent_submission(self, _: Random) -> None:
        self.site.node.silent_submission = True

    # --- what goes wrong: other people -------------------------------------------------------------------------------

    def _foreign_change(self, random: Random) -> None:
        truth = self.site.ganeti.truth
        touched = [
            (effect.object, effect.path)
            for step in self.site.scenario.plan.steps
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
        self._foreign({**modification(name), **unflatten({path: random.choice(values)})})

    def _foreign_twin(self, random: Random) -> None:
        """Let another user do by hand what one of our steps does or undoes."""
        step = random.choice(self.site.scenario.plan.steps)
        commands = [step.command, step.command, *step.inverse.commands]
        self._foreign(opcode_for(random.choice(commands)))

    def _foreign_touch(self, random: Random) -> None:
        name = random.choice(sorted(self.site.ganeti.truth))
        self.site.ganeti.touch(name)
        if name.startswith("node/"):
            self.site.ganeti.offline ^= {name.partition("/")[2]}
        self.note(f"somebody touches {name}")

    def _foreign_failure(self, _: Random) -> None:
        """Have a job of somebody else fail."""
        self.site.ganeti.fail(self.clock.world)

    def _foreign(self, opcode: dict[str, Any]) -> None:
        refusal = self.site.ganeti.change(opcode)
        self.site.ganeti.last_number += 1
        self.note(f"somebody does {opcode}: {refusal or self.site.ganeti.mutations[-1].changes}")

    # --- what goes wrong: answers ------------------------------------------------------------------------------------

    def _bad_answers(self, random: Random) -> None:
        fault = _fault(random, (1, 1, 1, 2, 3, 8, 40))
        self.note(f"the next answers: {fault}")
        self.site.faults.append(fault)

    def _bad_submission(self, random: Random) -> None:
        fault = _fault(random, (1,))
        self.note(f"the answer to this request: {fault}")
        self.site.faults.insert(0, fault)


def _fault(random: Random, counts: tuple[int, ...]) -> Fault:
    kind = random.choice(("status", "status", "status", "status", "lost", "cut", "slow", "arrives late",
                          "truncated", "garbage", "garbage", "refused"))  # fmt: skip
    return Fault(kind, random.choice(counts), random.choice(STATUSES), random.random() < 0.5)


def modification(name: str) -> dict[str, Any]:
    """Return the beginning of an opcode that modifies an object."""
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
