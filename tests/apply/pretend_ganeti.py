"""A cluster with a queue of jobs, for tests without a real one: what its jobs do is what the model of Ganeti does.

`mishaps` are what happens to the next jobs, one each, before nothing more happens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from gpolicy.cluster.state import ClusterState, Identity, Unreadable
from gpolicy.cluster.state_files import read_config_file
from gpolicy.ganeti.commands import RapiCall
from tests.plan.ganeti_model import ModelCluster, RefusedError, rapi_job

DATA = Path(__file__).parent.parent / "data" / "clusters" / "full"
LOCKS_MOVED = "Instances in node group gold changed since locks were acquired, current instances are 'inst1', wanted ''"
UPDATED = "Configuration object updated since it has been read: 19 != 18"


@dataclass(slots=True)
class Job:
    number: int
    mark: str
    call: RapiCall
    status: str = "queued"
    result: Any = None
    log: list[str] = field(default_factory=list)
    ends: float = 0.0


UUID: Final = str(uuid4())
"""That of all pretended clusters, but no other process of tests has it: locks go by it."""

Mishap = Callable[["PretendGaneti", Job], None]
"""Runs a job in its own way."""


@dataclass
class PretendGaneti:
    """The cluster, its jobs, and who has touched what how often."""

    model: ModelCluster
    jobs: list[Job] = field(default_factory=list)
    mishaps: list[Mishap | None] = field(default_factory=list)
    serials: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0  # that a job takes
    drained: int = 0  # how many more submissions are refused
    uuid: str = UUID

    @classmethod
    def recorded(cls) -> PretendGaneti:
        return cls(ModelCluster(read_config_file(DATA / "config.data")))

    def submit(self, call: RapiCall, mark: str) -> Job:
        job = Job(len(self.jobs) + 1, mark, call, ends=time.monotonic() + self.seconds)
        self.jobs.append(job)
        if not self.seconds:
            self.settle()
        return job

    def settle(self) -> None:
        """Run what is due."""
        for job in self.jobs:
            if job.status == "queued" and time.monotonic() >= job.ends:
                mishap = self.mishaps.pop(0) if self.mishaps else None
                (mishap or carry)(self, job)

    def job(self, number: int) -> Job | None:
        self.settle()
        return self.jobs[number - 1] if 0 < number <= len(self.jobs) else None

    def state(self, *gaps: Unreadable) -> ClusterState:
        """Return what a read shows, with serial numbers that rise with each job."""
        self.settle()
        state = self.model.as_state()

        def known(name: str) -> Identity:
            return Identity(serial_no=self.serials.get(name, 1))

        return replace(
            state,
            unreadable=tuple(gaps),
            cluster=replace(state.cluster, identity=replace(known("cluster"), uuid=self.uuid)),
            groups={name: replace(item, identity=known(f"group/{name}")) for name, item in state.groups.items()},
            nodes={name: replace(item, identity=known(f"node/{name}")) for name, item in state.nodes.items()},
        )

    def content(self) -> Any:
        """Return all that jobs can change."""
        model = self.model
        groups = {name: json.dumps(_without_empty(tree), sort_keys=True) for name, tree in model.groups.items()}
        tags = {key: sorted(value) for key, value in model.tags.items() if value}
        places = {name: (item.primary_node, item.secondary_nodes) for name, item in model.state.instances.items()}
        return deepcopy((_without_empty(model.own), groups, _without_empty(model.nodes), model.home, tags, places))

    def touch(self, *names: str) -> None:
        """Raise serial numbers, as somebody else's job would."""
        for name in names:
            self.serials[name] = self.serials.get(name, 1) + 1


def _without_empty(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    below = {key: _without_empty(value) for key, value in tree.items()}
    return {key: value for key, value in below.items() if value != {}}


def move(ganeti: PretendGaneti, job: Job) -> None:
    """Move an instance, as the job says."""
    _, _, _, name, verb = job.call.path.split("?")[0].split("/")
    state, body = ganeti.model.state, job.call.body
    item = state.instances[name]
    primary, secondary = item.primary_node, item.secondary_nodes
    assert isinstance(body, dict)
    if verb == "replace-disks":
        secondary = (str(body["remote_node"]),)
    elif secondary:
        primary, secondary = secondary[0], (primary,)
    else:
        primary = str(body["target_node"])
    if primary in secondary:
        job.status, job.result = "error", ["OpPrereqError", ["a node cannot mirror itself", "wrong_input"]]
        return
    moved = replace(item, primary_node=primary, secondary_nodes=secondary)
    ganeti.model.state = replace(state, instances={**state.instances, name: moved})
    job.status = "success"


def carry(ganeti: PretendGaneti, job: Job) -> None:
    """Do what the job says."""
    if job.call.path.startswith("/2/instances/"):
        move(ganeti, job)
        return
    homes = dict(ganeti.model.home)
    try:
        ganeti.model.run(rapi_job(job.call))
    except RefusedError as error:
        job.status, job.result = "error", ["OpPrereqError", [str(error), "wrong_state"]]
        return
    job.status = "success"
    parts = job.call.path.split("?", maxsplit=1)[0].split("/")
    name = {"groups": "group", "nodes": "node"}.get(parts[2], "cluster")
    ganeti.touch(name if name == "cluster" or len(parts) < 4 else f"{name}/{parts[3]}")
    for node in [node for node, home in ganeti.model.home.items() if homes[node] != home]:
        ganeti.touch(f"node/{node}", f"group/{homes[node]}")  # the group that it joins is what the job was about


def fails(text: str, kind: str = "OpExecError") -> Mishap:
    """Return a mishap: the job fails and has changed nothing."""

    def fail(_: PretendGaneti, job: Job) -> None:
        job.status, job.result = "error", [kind, [text]]

    return fail


def half(keys: set[str], text: str = "Cannot resolve the master's name") -> Mishap:
    """Return a mishap: only these fields of the job are stored before it fails."""

    def run(ganeti: PretendGaneti, job: Job) -> None:
        assert isinstance(job.call.body, dict)
        body = {key: value for key, value in job.call.body.items() if key in keys}
        ganeti.model.run(rapi_job(RapiCall(job.call.method, job.call.path, body)))
        ganeti.touch("cluster")
        job.status, job.result = "error", ["OpExecError", [text]]

    return run


def lies(_: PretendGaneti, job: Job) -> None:
    """Report success and do nothing."""
    job.status = "success"


def then(change: Callable[[PretendGaneti], None]) -> Mishap:
    """Return a mishap: the job is carried out, and somebody else changes something right behind it."""

    def run(ganeti: PretendGaneti, job: Job) -> None:
        carry(ganeti, job)
        change(ganeti)

    return run


def gone(ganeti: PretendGaneti, job: Job) -> None:
    """Carry the job out, and archive it at once."""
    carry(ganeti, job)
    job.status = "archived"
