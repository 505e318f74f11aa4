"""A bench for `gpolicy apply`: in this process, or with a server that listens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply import pretend_rapi
from tests.apply.bench import Bench
from tests.apply.pretend_rapi import Server
from tests.apply.same_process import reach_directly, wait_for_nothing


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretend_rapi.make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def bench(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """All runs are in this process, and wait for nothing."""
    server = Server(port=1)
    reach_directly(monkeypatch, [server])
    wait_for_nothing(monkeypatch)
    made = Bench(tmp_path, server, certificate)
    yield made
    made.lock().unlink(missing_ok=True)


@pytest.fixture
def served(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The server listens, for processes that are started."""
    server = Server()
    reach_directly(monkeypatch, [server])
    with pretend_rapi.serve(certificate, server):
        made = Bench(tmp_path, server, certificate)
        yield made
    made.lock().unlink(missing_ok=True)
