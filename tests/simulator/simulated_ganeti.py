"""A cluster with its queue of jobs, in virtual time, and the truth about who changed what and when.

Jobs do what they were asked for (`ganeti_model` runs opcodes), not what a plan says that they do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.parameters import canonical, flatten
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Contents
from tests.plan.ganeti_model import BrokenError, ModelCluster, RefusedError
from tests.simulator import ganeti_configuration as forms
from tests.simulator.virtual_time import Clock

Tree = dict[str, Any]
Leaf = tuple[str, tuple[str, ...]]
PENDING = frozenset({"queued", "waiting", "canceling", "running"})
MASTERS_END = "Unclean master daemon shutdown"


@dataclass(slots=True)
class Fate:
    """The course of a job: seconds in the queue and at work, the part that it does, its result."""

    queued: float = 0.1
    runs: float = 0.1
    part: str = "all"  # all, none, some
    error: str = ""  # that it ends with, although it did its part
    late: float = 0.0  # seconds after its success until what it stored can be read
    log: tuple[str, ...] = ()


@dataclass(slots=True)
class Job:
    """A job in the queue. `mark` is what the request gave as its reason."""

    number: int
    mark: str
    opcode: Tree
    fate: Fate
    submitted: float
    status: str = "queued"
    error: str = ""
    log: list[str] = field(default_factory=list)
    archived: bool = False
    took_effect: bool = False

    @property
    def pending(self) -> bool:
        return self.status in PENDING

    @property
    def summary(self) -> str:
        return str(self.opcode["OP_ID"]).removeprefix("OP_")


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change by a job or another user: leaves with their values before and after."""

    time: float
    mark: str  # empty for somebody else
    changes: Mapping[Leaf, tuple[Any, Any]]


class SimulatedGaneti:
    """The cluster that is behind an address. `truth` is what it holds now, leaf by leaf."""

    def __init__(self, state: ClusterState, clock: Clock, uuid: str = "1") -> None:
        self.clock, self.uuid, self.name = clock, uuid, state.name
        self.model = ModelCluster(state)
        self.serials: dict[str, int] = {}
        self.uuids: dict[str, str] = {}
        self.offline: frozenset[str] = frozenset()
        self.jobs: dict[int, Job] = {}
        self.fates: list[Fate] = []
        self.last_number = 0
        self.drained = False
        self.mutations: list[Mutation] = []
        self.broken: list[str] = []
        self.version = 0
        self._leaves: dict[str, tuple[Any, Any, Any, dict[Any, Any]]] = {}
        self._rendered: dict[str, tuple[int, bytes]] = {}
        self._truth: tuple[int, Contents] = (-1, {})

    # --- what it holds -----------------------------------------------------------------------------------------------

    @property
    def truth(self) -> Contents:
        """Return all leaves, by object."""
        if self._truth[0] != self.version:
            model = self.model
            made = {"cluster": self._of("cluster", model.own, model.tags["cluster", None], {})}
            for name, tree in model.groups.items():
                made[f"group/{name}"] = self._of(f"group/{name}", tree, model.tags["nodegroup", name], {NAME: name})
            for name, tree in model.nodes.items():
                more = {MEMBERSHIP: model.home[name]}
                made[f"node/{name}"] = self._of(f"node/{name}", tree, model.tags["node", name], more)
            self._truth = (self.version, made)
        return self._truth[1]

    def _of(self, name: str, tree: Tree, tags: set[str], more: dict[Any, Any]) -> dict[Any, Any]:
        kept = self._leaves.get(name)
        if kept is not None and kept[0] is tree and kept[1] == tags and kept[2] == more:
            return kept[3]
        leaves = {path: canonical(path, value) for path, value in flatten(tree).items() if value is not None}
        leaves = {path: value for path, value in leaves.items() if value != {}}
        leaves |= {(*TAGS, tag): True for tag in sorted(tags)} | more
        self._leaves[name] = (tree, set(tags), more, leaves)
        return leaves

    def shown(self, what: str) -> bytes:
        """Return one of the forms in which the cluster is shown, made once for each version."""
        kept = self._rendered.get(what)
        if kept is None or kept[0] != self.version:
            kept = (self.version, self._render(what))
            self._rendered[what] = kept
        return kept[1]

    def _render(self, what: str) -> bytes:
        if what == "config":
            return forms.config_data(
                self.model, self.serials, self.uuid, name=self.name, uuids=self.uuids, offline=self.offline
            )
        return json.dumps(self._listed(what)).encode()

    def _listed(self, what: str) -> Any:
        model, serials, uuids = self.model, self.serials, self.uuids
        match what:
            case "info":
                return forms.info(model, self.uuid, self.name)
            case "groups":
                return forms.groups(model, serials, uuids)
            case "nodes":
                return forms.nodes(model, serials, uuids, self.offline)
            case "instances":
                return forms.instances(model)
        fields = what.split(",")
        rows = [[[0, node[name]] for name in fields] for node in forms.nodes(model, serials, uuids, self.offline)]
        return {"fields": [{"name": name} for name in fields], "data": rows}

    # --- changes -----------------------------------------------------------------------------------------------------

    def change(self, opcode: Tree, mark: str = "") -> str:
        """Do what an opcode says; return why Ganeti refuses it, or nothing."""
        before, homes = self.truth, dict(self.model.home)
        try:
            self.model.run(opcode)
        except RefusedError as error:
            return str(error)
        except BrokenError as error:
            self.broken.append(f"{mark}: {error}")
            return str(error)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return f"wrong parameters: {error!r}"
        self._write(opcode, homes)
        self.version += 1
        after = self.truth
        changes = {
            (name, path): (mine.get(path), theirs.get(path))
            for name in {**before, **after}
            for mine, theirs in ((before.get(name, {}), after.get(name, {})),)
            if mine is not theirs
            for path in {**mine, **theirs}
            if mine.get(path) != theirs.get(path)
        }
        self.mutations.append(Mutation(self.clock.world, mark, changes))
        return ""

    def touch(self, *names: str) -> None:
        """Raise serial numbers, as a write that changes nothing does."""
        self.version += 1
        for name in names:
            self.serials[name] = self.serials.get(name, 1) + 1

    def _write(self, opcode: Tree, homes: Mapping[str, str]) -> None:
        kind, group = opcode["OP_ID"], f"group/{opcode.get('group_name')}"
        match kind:
            case "OP_CLUSTER_SET_PARAMS":
                self.touch("cluster")
            case "OP_GROUP_ADD":
                self.touch("cluster")
                self.serials[group] = 1
                self.uuids[group] = f"uuid-{group.replace('/', '-')}-{self.version}"
            case "OP_GROUP_REMOVE":
                self.touch("cluster")
                self.uuids.pop(group, None)
                self.serials.pop(group, None)
            case "OP_GROUP_RENAME":
                new = f"group/{opcode['new_name']}"
                self.uuids[new] = forms.uuid_of(group, self.uuids)
                self.serials[new] = self.serials.pop(group, 1) + 1
                self.uuids.pop(group, None)
            case "OP_GROUP_ASSIGN_NODES":
                moved = [name for name in opcode["nodes"] if homes[name] != self.model.home[name]]
                self.touch(group, *(f"node/{name}" for name in moved), *{f"group/{homes[name]}" for name in moved})
            case "OP_NODE_SET_PARAMS":
                self.touch(f"node/{opcode['node_name']}")
            case "OP_TAGS_SET" | "OP_TAGS_DEL":
                kinds = {"cluster": "cluster", "nodegroup": f"group/{opcode['name']}"}
                self.touch(kinds.get(opcode["kind"], f"node/{opcode['name']}"))
            case _:
                self.touch(group)

    # --- the queue ---------------------------------------------------------------------------------------------------

    def submit(self, opcode: Tree, mark: str, random: Random) -> Job:
        """Put a job into the queue."""
        self.last_number += random.choice((1, 1, 1, 2, 7))
        short = Fate(random.uniform(0.0, 0.3), random.uniform(0.0, 0.8))
        fate = self.fates.pop(0) if self.fates and mark else short
        job = Job(self.last_number, mark, deepcopy(opcode), fate, self.clock.world)
        self.jobs[job.number] = job
        self.clock.after(fate.queued, lambda: self._start(job))
        return job

    def fail(self, now: float) -> None:
        """Have a job of somebody else fail, which changes nothing."""
        self.last_number += 1
        opcode = {"OP_ID": "OP_INSTANCE_STARTUP"}
        job = Job(self.last_number, "", opcode, Fate(), now, status="error", error="no memory")
        self.jobs[job.number] = job

    def _start(self, job: Job) -> None:
        if job.status == "queued":
            job.status = "running"
            job.log += job.fate.log
            self.clock.after(job.fate.runs, lambda: self._end(job))

    def _end(self, job: Job) -> None:
        if job.status != "running":
            return
        fate, opcode = job.fate, job.opcode
        if fate.part == "some":
            opcode = partly(opcode)
        if fate.part != "none":
            if fate.late and not fate.error:
                self.clock.after(fate.late, partial(self._store, job, opcode))
            elif refusal := self._store(job, opcode):
                job.status, job.error = "error", refusal
                return
        job.status, job.error = ("error", fate.error) if fate.error else ("success", "")

    def _store(self, job: Job, opcode: Tree) -> str:
        refusal = self.change(opcode, job.mark or "somebody's")
        job.took_effect = not refusal
        return refusal

    def fail_over(self) -> None:
        """Have another node become the master: jobs that ran are lost, those that waited go on."""
        for job in self.jobs.values():
            if job.status == "running":
                job.status, job.error = "error", MASTERS_END

    def listed(self, number: int) -> Job | None:
        """Return a job that the queue still knows."""
        job = self.jobs.get(number)
        return None if job is None or job.archived else job


def partly(opcode: Tree) -> Tree:
    """Return an opcode of which only the first half of the fields is stored; one that cannot be split does nothing."""
    fixed = {"OP_ID", "group_name", "node_name"}
    fields = [key for key in opcode if key not in fixed]
    if opcode["OP_ID"] != "OP_CLUSTER_SET_PARAMS" or len(fields) < 2:
        return opcode
    kept = {*fixed, *fields[: len(fields) // 2]}
    return {key: value for key, value in opcode.items() if key in kept}
