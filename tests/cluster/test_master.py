from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpolicy.cluster.master import LocalMaster, parse_ssh_address, read_master
from gpolicy.cluster.process import Output, run
from gpolicy.cluster.state_files import state_digest
from gpolicy.errors import GpolicyError, InputError, RequestError, UnreachableError
from tests.cluster import recorded


@dataclass(frozen=True)
class Recorded:
    """A master that answers as a real one did."""

    cluster: str
    nodes: Output | None = None
    source: str = "local:"

    def config_data(self) -> bytes:
        return recorded.path(self.cluster, "config.data").read_bytes()

    def run(self, argv: Sequence[str]) -> Output:
        assert argv[1:5] == ["list", "--no-headers", "--units=m", "--separator=|"]
        if argv[0] == "gnt-node" and self.nodes:
            return self.nodes
        return Output(0, recorded.path(self.cluster, f"{argv[0].removeprefix('gnt-')}-list.txt").read_bytes(), "")


@pytest.mark.parametrize("cluster", recorded.CLUSTERS)
def test_the_master_agrees_with_the_configuration_and_adds_measurements(cluster: str) -> None:
    state, config = read_master(Recorded(cluster)), recorded.from_config(cluster)
    assert recorded.own_disagreements(state, config) == []
    assert state_digest(state) == state_digest(config)
    assert state.nodes["node1"].resources.memory_total == 65536
    assert state.nodes["node1"].resources.cpu_node == 16
    assert state.instances["inst1"].running is True
    assert state.instances["inst1"].oper_ram == 2048
    assert not any("no live data:" in note for note in state.notes)


def test_t61_question_marks_and_stars_are_not_numbers() -> None:
    state = read_master(Recorded("exclusive"))
    assert state.nodes["node4"].resources.memory_total is None
    assert state.nodes["node5"].resources.memory_total is None
    assert any("exclusive_storage is on for node4" in note for note in state.notes)
    assert not any("node5" in note for note in state.notes)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (Output(1, b"", "This is not the master node, please connect to node 'n2'\n"), "not the master node"),
        (Output(0, b"node1|1\n", ""), "2 columns, not 10"),
        (Output(0, b"\xff", ""), "not text"),
        (Output(1, b"", "\x1b[31m"), "gnt-node list failed"),
    ],
)
def test_without_live_data_the_state_is_read_with_a_note(output: Output, message: str) -> None:
    state = read_master(Recorded("full", output))
    notes = [note for note in state.notes if message in note]
    assert len(notes) == 1
    assert "\x1b" not in notes[0]
    assert state.nodes["node1"].resources.memory_total is None
    assert state.instances["inst1"].running is True


def command(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root directory of a node, and Ganeti's commands that answer as recorded."""
    (tmp_path / "var/lib/ganeti").mkdir(parents=True)
    (tmp_path / "var/lib/ganeti/config.data").write_bytes(recorded.path("full", "config.data").read_bytes())
    for kind in ("node", "instance"):
        command(tmp_path / "bin", f"gnt-{kind}", f"cat {recorded.path('full', f'{kind}-list.txt')}")
    return tmp_path


def environ(root: Path) -> dict[str, str]:
    return {"PATH": f"{root / 'bin'}:{os.defpath}", "GANETI_ROOTDIR": str(root)}


def test_local_follows_ganeti_s_root_directory(root: Path) -> None:
    state = read_master(LocalMaster(environ(root)))
    assert state.nodes["node1"].resources.memory_total == 65536
    assert state.notes == ()


def test_local_follows_a_link_of_the_administrator_s_own_from_any_directory(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ganeti's directory may be a link out of the working directory: nobody else chose that path."""
    ganeti = root / "var/lib/ganeti"
    elsewhere = tmp_path_factory.mktemp("srv") / "ganeti"
    ganeti.rename(elsewhere)
    ganeti.symlink_to(elsewhere)
    monkeypatch.chdir(ganeti.parent)
    assert read_master(LocalMaster(environ(root))).nodes


def test_local_on_another_machine_gives_a_hint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config.data: no such file") as caught:
        read_master(LocalMaster({"GANETI_ROOTDIR": str(tmp_path)}))
    assert "master" in (caught.value.hint or "")


class TestSsh:
    def test_the_command_is_quoted_for_the_shell_that_ssh_starts(self) -> None:
        master = parse_ssh_address("ssh://root@host:2222", {})
        argv = master.argv(["gnt-node", "list", "--separator=|", "a b;reboot"])
        assert argv[-2:] == ["root@host", "gnt-node list '--separator=|' 'a b;reboot'"]
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "-p", "2222"]
        assert argv[:-3] == ["ssh", "-T", *options]
        assert argv[-3] == "--"

    @pytest.mark.parametrize("host", ["MyAlias", "[fe80::A%Eth0]", "ham.example.ORG"])
    def test_a_host_keeps_its_capital_letters(self, host: str) -> None:
        master = parse_ssh_address(f"ssh://Root@{host}:22/Path", {})
        assert master.argv([])[-2] == f"Root@{host.strip('[]')}"
        assert master.source == f"ssh://Root@{host}:22/Path"

    @pytest.mark.parametrize(
        "address",
        [
            "ssh://-oProxyCommand=x",
            "ssh://",
            "ssh://a b",
            "ssh://h:0",
            "ssh://-l@host",
            "ssh://h;x",
            "ssh://h:x",
            "ssh://[",
        ],
    )
    def test_an_invalid_host_is_refused(self, address: str) -> None:
        with pytest.raises(RequestError):
            parse_ssh_address(address, {})

    def test_a_password_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(RequestError) as caught:
            parse_ssh_address("ssh://root:hush@host", {})
        assert "hush" not in f"{caught.value.message} {caught.value.hint}"

    def test_ssh_reads_the_answer_of_the_master(self, root: Path) -> None:
        command(root / "bin", "ssh", 'for last; do :; done; echo "$*" >> "$GANETI_ROOTDIR/calls"; exec sh -c "$last"')
        master = parse_ssh_address(f"ssh://root@host{root}/var/lib/ganeti/config.data", environ(root))
        state = read_master(master)
        assert state.nodes["node1"].resources.memory_total == 65536
        assert state.source.startswith("ssh://root@host/")
        assert len((root / "calls").read_text().splitlines()) == 3

    def test_a_failure_of_ssh_is_reported(self, root: Path) -> None:
        command(root / "bin", "ssh", "echo 'Host key verification failed.' >&2; exit 255")
        with pytest.raises(UnreachableError, match="ssh://host: Host key verification failed"):
            read_master(parse_ssh_address("ssh://host", environ(root)))

    def test_a_host_that_is_not_the_master(self, root: Path) -> None:
        command(root / "bin", "ssh", "echo 'cat: No such file or directory' >&2; exit 1")
        with pytest.raises(UnreachableError, match=r"cannot read /var/lib/ganeti/config\.data") as caught:
            read_master(parse_ssh_address("ssh://host", environ(root)))
        assert "master" in (caught.value.hint or "")


class TestProcess:
    def test_a_program_that_is_too_slow(self) -> None:
        begin = time.monotonic()
        with pytest.raises(UnreachableError, match="sleep: did not end"):
            run(["sleep", "30"], environ={}, seconds=0.2, limit=100)
        assert time.monotonic() - begin < 15

    def test_a_program_that_closes_its_output_and_continues(self) -> None:
        with pytest.raises(UnreachableError, match="did not end"):
            run(["sh", "-c", "exec >&- 2>&-; sleep 30"], environ={"PATH": os.defpath}, seconds=0.2, limit=100)

    def test_a_program_that_prints_too_much(self) -> None:
        with pytest.raises(UnreachableError, match="more than"):
            run(["yes"], environ={}, seconds=20, limit=100_000)

    @pytest.mark.parametrize("argv", [["no-such-program"], ["a\0b"]])
    def test_a_program_that_cannot_be_run(self, argv: list[str]) -> None:
        with pytest.raises(GpolicyError, match="cannot be run"):
            run(argv, environ={}, seconds=1, limit=100)


@dataclass(frozen=True)
class Later(Recorded):
    """The same of Ganeti 3.1, whose configuration does not say which."""

    version: Output | None = None

    def config_data(self) -> bytes:
        return super().config_data().replace(b'"version": 3000000', b'"version": 3010000', 1)

    def run(self, argv: Sequence[str]) -> Output:
        return self.version if self.version and argv == ["gnt-cluster", "version"] else super().run(argv)


@pytest.mark.parametrize(
    ("code", "said", "release"),
    [(0, b"Software version: 3.1.1\nInternode protocol: 3010000\n", "3.1.1"), (1, b"", "3.1"), (0, b"\xff", "3.1")],
)
def test_the_master_of_a_31_says_which_it_is(code: int, said: bytes, release: str) -> None:
    assert read_master(Later("full", version=Output(code, said, ""))).software_version == release
