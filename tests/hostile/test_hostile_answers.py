"""Hostile answers of servers, plans and journals, under the limits of all hostile inputs."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpolicy.apply.journal import read_history
from gpolicy.errors import InputError
from tests.cluster.rapi_server import Server, serve
from tests.hostile import answers
from tests.hostile.bounded import Runner
from tests.hostile.test_hostile_inputs import CPU, faults, laid_out

SIZE = 60_000


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("tls") / "here.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", f"{file}.key", "-out", str(file), "-subj", "/CN=here", "-days", "3"]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + Path(f"{file}.key").read_text())
    with serve("full", file) as server:
        yield server


@pytest.mark.parametrize("what", answers.ANSWERS)
def test_answers_of_the_remote_api(what: str, server: Server, runner: Runner, tmp_path: Path) -> None:
    found = []
    recorded = server.answers
    for path, answer in recorded.items():
        server.answers = {**recorded, path: answers.ANSWERS[what](SIZE, answer)}
        command = ("snapshot", "-s", server.address, "--insecure-rapi", "-o", "new.json")
        try:
            found += [f"{path}: {fault}" for fault in faults(runner, tmp_path, (command,))]
        finally:
            server.answers = recorded
    assert found == []


def test_the_recorded_answers_are_read(server: Server, runner: Runner, tmp_path: Path) -> None:
    command = ["snapshot", "-s", server.address, "--insecure-rapi", "-o", "new.json"]
    assert runner.run(command, tmp_path, CPU).code == 0
    assert (tmp_path / "new.json").stat().st_size > 1000


def test_values_of_a_plan(runner: Runner, tmp_path: Path) -> None:
    found = []
    for name, files in answers.grown_plans(SIZE):
        laid_out(tmp_path, files)
        found += [f"{name}: {fault}" for fault in faults(runner, tmp_path, (("render", "plan.json"),))]
    assert found == []


@pytest.mark.parametrize("name", [name for name, _ in answers.journals(1)])
def test_journals(name: str) -> None:
    data = dict(answers.journals(300_000))[name]
    began = time.process_time()
    with contextlib.suppress(InputError):
        read_history(data, "journal")
    assert time.process_time() - began < 3
