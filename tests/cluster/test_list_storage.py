"""Physical volumes from Ganeti's own answers, recorded on a real cluster with exclusive storage."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpolicy.cluster import master as masters, volume_pools
from gpolicy.cluster.credentials import Credentials
from gpolicy.cluster.process import Output
from gpolicy.cluster.rapi import read_rapi
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, PhysicalVolume
from gpolicy.cluster.state_files import dump_snapshot, parse_snapshot, state_digest
from gpolicy.cluster.volume_pools import NOT_FROM_HERE, from_master, from_rapi
from tests.cluster import rapi_server, recorded
from tests.cluster.rapi_server import Server, open_client, send

CLUSTER = "volumes"
LISTED = Output(0, recorded.path(CLUSTER, "list-storage.txt").read_bytes(), "")


@dataclass(frozen=True)
class Recorded:
    """A master that answers as a real one did."""

    storage: Output = LISTED
    source: str = "local:"

    def config_data(self) -> bytes:
        return recorded.path(CLUSTER, "config.data").read_bytes()

    def run(self, argv: Sequence[str]) -> Output:
        if argv[1] == "list-storage":
            assert argv[2:6] == ["--no-headers", "--units=m", "--separator=|", "--storage-type=lvm-pv"]
            assert argv[6:] == ["-o", "node,name,size,used,free,allocatable"]
            return self.storage
        kind = argv[0].removeprefix("gnt-")
        return Output(0, recorded.path(CLUSTER, f"{kind}-list.txt").read_bytes(), "")


def by_master(storage: Output = LISTED) -> ClusterState:
    master = Recorded(storage)
    return from_master(masters.read_master(master), master)


def counts(state: ClusterState) -> dict[str, int | None]:
    return {
        name: None if node.physical_volumes is None else len(node.physical_volumes)
        for name, node in state.nodes.items()
    }


KNOWN = {"node1": 2, "node2": 3, "node3": 4, "node4": 4, "node5": None}


class TestMaster:
    def test_volumes_of_all_nodes_that_answer_are_read(self) -> None:
        """Ganeti 3.0.2 has no other figure of their storage under exclusive storage (T61)."""
        state = by_master()
        assert counts(state) == KNOWN
        assert state.nodes["node1"].resources.disk_total is None
        assert state.nodes["node2"].physical_volumes == (
            PhysicalVolume(name="/dev/fake0", size=174762, used=25856, free=148906),
            PhysicalVolume(name="/dev/fake1", size=174762, used=0, free=174762),
            PhysicalVolume(name="/dev/fake2", size=174762, used=0, free=174762),
        )
        assert not any("physical volumes" in note for note in state.notes)  # node5 is offline: it need not answer

    def test_a_node_without_an_answer_is_named(self) -> None:
        lines = b"".join(line for line in LISTED.stdout.splitlines(keepends=True) if not line.startswith(b"node3"))
        state = by_master(Output(0, lines, ""))
        assert counts(state) == KNOWN | {"node3": None}
        assert state.notes[-1] == "no physical volumes are known for node3"

    @pytest.mark.parametrize(
        ("output", "message"),
        [
            (Output(1, b"", "one\nFailure: no such thing\x1b[0m\n"), "list-storage failed: 'Failure: no such thing"),
            (Output(0, b"node1|/dev/sdb|1\n", ""), "3 columns, not 6"),
            (Output(0, b"node1|/dev/sdb|1|x|1|Y\n", ""), "should be whole numbers"),
            (Output(0, b"node1|/dev/sdb|1|-1|1|Y\n", ""), "should be whole numbers"),
            (Output(0, b"\xff", ""), "not text"),
        ],
    )
    def test_a_malformed_answer_is_a_note(self, output: Output, message: str) -> None:
        state = by_master(output)
        assert set(counts(state).values()) == {None}
        assert "physical volumes are not known" in state.notes[-1]
        assert message in state.notes[-1]
        assert "\x1b" not in state.notes[-1]

    def test_volumes_are_read_only_on_request(self, tmp_path: Path) -> None:
        (tmp_path / "var/lib/ganeti").mkdir(parents=True)
        (tmp_path / "var/lib/ganeti/config.data").write_bytes(Recorded().config_data())
        (tmp_path / "bin").mkdir()
        script = f"""#!/bin/sh
echo "$0 $1" >> {tmp_path}/asked
case "$0 $1" in *storage) cat {recorded.path(CLUSTER, "list-storage.txt")} ;;
*node*) cat {recorded.path(CLUSTER, "node-list.txt")} ;; *) cat {recorded.path(CLUSTER, "instance-list.txt")} ;; esac
"""
        for name in ("gnt-node", "gnt-instance"):
            (tmp_path / "bin" / name).write_text(script)
            (tmp_path / "bin" / name).chmod(0o755)
        environ = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "GANETI_ROOTDIR": str(tmp_path)}
        plain = read_state("local:", SourceOptions(environ=environ))
        assert set(counts(plain).values()) == {None}
        assert "list-storage" not in (tmp_path / "asked").read_text()
        asked = read_state("local:", SourceOptions(environ=environ, physical_volumes=True))
        assert counts(asked) == KNOWN
        assert state_digest(asked) == state_digest(plain)


STORAGE = "/2/nodes/node{}/storage?storage_type=lvm-pv&output_fields=name,size,used,free,allocatable"


def jobs() -> dict[str, object]:
    """Return the recorded answers about storage: the number of a job, and the job itself."""
    found: dict[str, object] = {}
    for number in range(1, 5):
        job = recorded.load(CLUSTER, f"rapi-storage-node{number}.json")
        found[STORAGE.format(number)] = job["id"]
        found[f"/2/jobs/{job['id']}"] = job
    return found


def job_path(number: int) -> str:
    return f"/2/jobs/{recorded.load(CLUSTER, f'rapi-storage-node{number}.json')['id']}"


@pytest.fixture
def server(ganeti_certificate: Path) -> Iterator[Server]:
    with rapi_server.serve(CLUSTER, ganeti_certificate) as running:
        running.answers |= jobs()
        yield running


class TestRemoteApi:
    @pytest.fixture(autouse=True)
    def _certificate(self, ganeti_certificate: Path) -> None:
        self.certificate = ganeti_certificate

    def read(self, server: Server, *, password: bool = True, seconds: float = 20) -> ClusterState:
        credentials = Credentials(server.user, server.password) if password else None
        client = open_client(server.address, credentials, ca_file=self.certificate, timeout=10)
        return from_rapi(read_rapi(client), client, seconds=seconds)

    def test_the_remote_api_agrees_with_the_master(self, server: Server) -> None:
        state = self.read(server)
        mine = {name: node.physical_volumes for name, node in state.nodes.items()}
        assert mine == {name: node.physical_volumes for name, node in by_master().nodes.items()}
        assert "/2/nodes/node5/storage" not in "".join(server.asked)  # offline

    def test_a_running_job_is_polled(self, server: Server) -> None:
        early = recorded.load(CLUSTER, "rapi-job-not-yet.json")
        assert early["status"] in ("queued", "waiting", "running")
        waits = [2]

        def behave(handler: BaseHTTPRequestHandler) -> bool:
            if handler.path == job_path(1) and waits[0]:
                waits[0] -= 1
                send(handler, 200, json.dumps(early).encode())
                return True
            return False

        server.behave = behave
        assert counts(self.read(server)) == KNOWN
        assert server.asked.count(job_path(1)) == 3

    def test_a_job_that_never_ends_is_given_up(self, server: Server) -> None:
        server.answers[job_path(2)] = recorded.load(CLUSTER, "rapi-job-not-yet.json")
        state = self.read(server, seconds=1)
        assert set(counts(state).values()) == {None}
        assert "node2 for its storage, did not end in time" in state.notes[-1]

    def test_without_a_password_the_state_says_why(self, server: Server) -> None:
        def behave(handler: BaseHTTPRequestHandler) -> bool:
            if "/storage" in handler.path and not handler.headers.get("Authorization"):
                send(handler, 401, json.dumps(rapi_server.UNAUTHORIZED).encode())
                return True
            return False

        server.behave = behave
        state = self.read(server, password=False)
        assert "users with a password" in state.notes[-1]
        assert set(counts(state).values()) == {None}

    @pytest.mark.parametrize(
        ("job", "message"),
        [
            ({"status": "error"}, "ended: error"),
            ({"status": "success", "opresult": [[["/dev/sdb", 1]]]}, "should be rows of name, size"),
            ({"status": "success", "opresult": [[["/dev/sdb", 1, "x", 1, True]]]}, "used should be a whole number"),
            ({"status": "success", "opresult": [[["/dev/sdb", 1, 1, 1, "Y"]]]}, "allocatable should be true or false"),
            ([], "should be a mapping"),
            ({}, "status should be text"),
        ],
    )
    def test_a_hostile_answer_is_a_note(self, server: Server, job: object, message: str) -> None:
        server.answers[job_path(3)] = job
        assert message in self.read(server).notes[-1]

    def test_an_invalid_job_number(self, server: Server) -> None:
        server.answers[STORAGE.format(1)] = {"x": 1}
        assert "should be the number of a job, but is a mapping" in self.read(server).notes[-1]
        server.answers[STORAGE.format(1)] = job_path(1).rpartition("/")[2]
        assert counts(self.read(server)) == KNOWN


class TestSnapshot:
    def test_a_snapshot_keeps_volumes(self, tmp_path: Path) -> None:
        state = by_master()
        assert parse_snapshot(dump_snapshot(state), "x") == state
        file = tmp_path / "s.json"
        file.write_bytes(dump_snapshot(state))
        assert read_state(f"snapshot:{file}", SourceOptions(physical_volumes=True)) == state

    def test_a_snapshot_of_an_older_format_has_no_volumes(self) -> None:
        document = json.loads(dump_snapshot(by_master()))
        document["format_version"] = "1.1"
        for node in document["nodes"].values():
            del node["physical_volumes"]
        state = parse_snapshot(json.dumps(document).encode(), "old")
        assert set(counts(state).values()) == {None}

    def test_sources_without_volumes_say_so(self, tmp_path: Path) -> None:
        asked = SourceOptions(physical_volumes=True)
        file = tmp_path / "s.json"
        none = replace(by_master(), nodes={})
        file.write_bytes(dump_snapshot(replace(none, instances={})))
        for src in (f"config:{recorded.path(CLUSTER, 'config.data')}", f"snapshot:{file}"):
            assert read_state(src, asked).notes[-1] == NOT_FROM_HERE


def test_questions_about_a_job_become_rarer(
    server: Server, ganeti_certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, waits, pauses = recorded.load(CLUSTER, "rapi-job-not-yet.json"), [6], list[float]()

    def behave(handler: BaseHTTPRequestHandler) -> bool:
        if handler.path == job_path(1) and waits[0]:
            waits[0] -= 1
            send(handler, 200, json.dumps(early).encode())
            return True
        return False

    server.behave = behave
    monkeypatch.setattr(volume_pools, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    login = Credentials(server.user, server.password)
    client = open_client(server.address, login, ca_file=ganeti_certificate, timeout=10)
    assert counts(from_rapi(read_rapi(client), client, seconds=60)) == KNOWN
    assert pauses == [0.1, 0.2, 0.5, 1.0, 1.0, 1.0]
