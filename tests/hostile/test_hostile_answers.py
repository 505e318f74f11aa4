"""Hostile answers of servers, plans and journals, under the limits of all hostile inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.rapi_server import Server, serve
from tests.hostile import answers
from tests.hostile.bounded import Feeder
from tests.hostile.targets import command

SIZE = 20_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("tls") / "here.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", f"{file}.key", "-out", str(file), "-subj", "/CN=here", "-days", "3"]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + Path(f"{file}.key").read_text())
    with serve("full", file) as server:
        yield server


def reading(server: Server) -> list[bytes]:
    return [command(("snapshot", "-s", server.address, "--insecure-rapi", "--save", "new.json"))]


@pytest.mark.parametrize("what", answers.ANSWERS)
@pytest.mark.slow
def test_answers_of_the_remote_api(what: str, server: Server, feeder: Feeder, tmp_path: Path) -> None:
    found = []
    recorded = server.answers
    for path, answer in recorded.items():
        server.answers = {**recorded, path: answers.ANSWERS[what](SIZE, answer)}
        try:
            found += [f"{path}: {fault}" for fault in feeder.feed("commands", reading(server), tmp_path).faults]
        finally:
            server.answers = recorded
    assert found == []


def test_the_recorded_answers_are_read(server: Server, feeder: Feeder, tmp_path: Path) -> None:
    fed = feeder.feed("commands", reading(server), tmp_path)
    assert (fed.faults, fed.answers) == ([], [0])
    assert (tmp_path / "new.json").stat().st_size > 1000


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 6))])
def test_values_of_a_plan(part: int, feeder: Feeder, tmp_path: Path) -> None:
    """Every sixth value is tried in an ordinary run."""
    assert feeder.feed("plan", answers.grown_plans(SIZE, part, 6), tmp_path).faults == []


def test_journals(feeder: Feeder, tmp_path: Path) -> None:
    assert feeder.feed("journal", answers.journals(300_000), tmp_path, seconds=3).faults == []
