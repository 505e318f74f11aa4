"""A directory with a plan, and a pretended cluster to apply it to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpolicy.apply.lock import lock_directory, lock_name
from tests.apply.pretend_rapi import PASSWORD, USER, Server
from tests.apply.same_process import gpolicy, wait_for
from tests.cli.command_line import FOUR_STEPS, HEEDING, ROOT

FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)


PLANNED: list[str] = []
"""The plan for FOUR_STEPS, once it was made: all clusters of these tests are the same at first."""


class Bench:
    """A directory with a plan, and the options that reach the server."""

    def __init__(self, directory: Path, server: Server, certificate: Path) -> None:
        self.directory, self.server = directory, server
        self.plan = directory / "plan.json"
        self.journal = directory / "plan.journal.jsonl"
        secret = directory / "secret"
        secret.write_text(f"{USER}\n{PASSWORD}\n")
        secret.chmod(0o600)
        self.env = {"HOME": str(directory), "XDG_RUNTIME_DIR": str(directory)}
        self.reach = ["--rapi-credentials", str(secret), "--rapi-ca", str(certificate)]
        if not PLANNED:
            assert self.make_plan(FOUR_STEPS).returncode == FINE
            PLANNED.append(self.plan.read_text())
        self.plan.write_text(PLANNED[0])

    def lock(self) -> Path:
        return lock_directory(self.env) / lock_name("cluster", self.server.ganeti.uuid)

    def make_plan(self, policy: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Make the plan for a policy."""
        file = self.directory / "policy.yaml"
        file.write_text(policy)
        return gpolicy("plan", file, "-s", self.server.address, *self.reach, "--save", self.plan, *more)

    def call(self, *more: str) -> list[str]:
        return ["apply", str(self.plan), "--to", self.server.address, *self.reach, *more]

    def apply(self, *more: str) -> subprocess.CompletedProcess[str]:
        return gpolicy(*self.call(*more), env=self.env, cwd=self.directory)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def start(self) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.env}
        return subprocess.Popen(
            [sys.executable, "-c", HEEDING, *self.call("--yes")],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start_long(self) -> subprocess.Popen[str]:
        """Begin a run whose first job does not end, and wait until the journal names the job."""
        self.server.ganeti.seconds = 600.0
        process = self.start()
        wait_for(lambda: self.journal.exists() and self.journal.read_bytes().count(b"\n") >= 3)
        return process

    def resume(self) -> None:
        """Go on with no job that takes long: every step was done once."""
        self.server.ganeti.seconds = 0.0
        done = self.apply("--yes", "--resume")
        assert done.returncode == FINE, done.stderr
        assert len(self.server.ganeti.jobs) == 4
