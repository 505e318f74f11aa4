from __future__ import annotations

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpolicy.cluster import rapi, rapi_client
from gpolicy.cluster.credentials import Credentials
from gpolicy.cluster.rapi import read_rapi
from gpolicy.cluster.rapi_client import Client, parse_address
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState
from gpolicy.cluster.state_files import forthcoming_note, state_digest
from gpolicy.errors import GpolicyError, InputError, RequestError, UnreachableError
from gpolicy.ganeti.vocabulary import Level
from tests.cluster import rapi_server, recorded
from tests.cluster.rapi_server import Server, open_client, send
from tests.cluster.test_possible_numbers import changed

PASSWORD = "a password"  # noqa: S105 (of this test)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rapi, "_PAUSE", 0.0)


@pytest.fixture
def server(ganeti_certificate: Path) -> Iterator[Server]:
    with rapi_server.serve("full", ganeti_certificate) as running:
        yield running


@pytest.fixture
def client(server: Server, ganeti_certificate: Path) -> Client:
    return open_client(server.address, Credentials("tool", PASSWORD), ca_file=ganeti_certificate, timeout=5)


@pytest.mark.parametrize("cluster", ["full", "exclusive"])
def test_rapi_agrees_with_the_configuration(cluster: str, ganeti_certificate: Path) -> None:
    with rapi_server.serve(cluster, ganeti_certificate) as server:
        state = read_rapi(open_client(server.address, Credentials("tool", PASSWORD), ca_file=ganeti_certificate))
    _agrees(state, recorded.from_config(cluster))
    assert set(state.unreadable) == set(HIDDEN_BY_RAPI)
    assert state_digest(recorded.from_config(cluster), besides=HIDDEN_BY_RAPI) == state_digest(state)


@pytest.mark.parametrize("cluster", recorded.CLUSTERS)
def test_rapi_without_a_password_agrees_with_the_configuration(cluster: str, ganeti_certificate: Path) -> None:
    with rapi_server.serve(cluster, ganeti_certificate) as server:
        state = read_rapi(open_client(server.address, None, ca_file=ganeti_certificate))
    _agrees(state, recorded.from_config(cluster))
    assert not state.readable(Level.NODE, ("ndparams", "spindle_count"))
    assert any("password" in note for note in state.notes)


def _agrees(state: ClusterState, config: ClusterState) -> None:
    assert recorded.own_disagreements(state, config) == []
    assert state.instances.keys() == config.instances.keys()
    for name, instance in state.instances.items():
        assert recorded.known_differences(instance, config.instances[name], but=("identity",)) == []


def test_t35_rapi_never_shows_hv_state(client: Client) -> None:
    state = read_rapi(client)
    assert not any(state.readable(level, ("hv_state", "fake", "mem_node")) for level in Level)
    assert not state.readable(Level.CLUSTER, ("modify_etc_hosts",))
    assert state.readable(Level.CLUSTER, ("ipolicy", "minmax"))


def test_t36_a_node_s_own_parameters_come_from_a_query(client: Client) -> None:
    state = read_rapi(client)
    assert state.nodes["node2"].own == {("ndparams", "spindle_count"): 4}
    assert state.nodes["node4"].own == {}  # eight spindles, but its group's


def test_measurements_of_nodes_and_run_time_state_of_instances(client: Client) -> None:
    state = read_rapi(client)
    assert state.software_version == "3.0.2"
    assert state.nodes["node1"].resources.memory_total == 65536
    assert state.nodes["node1"].resources.cpu_total == 16
    assert (state.instances["inst5"].status, state.instances["inst5"].running) == ("ERROR_down", False)


def test_t61_nodes_that_exclusive_storage_silenced_are_named(ganeti_certificate: Path) -> None:
    with rapi_server.serve("exclusive", ganeti_certificate) as server:
        state = read_rapi(open_client(server.address, None, ca_file=ganeti_certificate))
    assert state.nodes["node4"].resources.disk_total is None
    assert any("exclusive_storage is on for node4" in note for note in state.notes)
    assert not any("node5" in note for note in state.notes)  # it is offline, nobody expects it to answer


def test_the_number_of_requests_does_not_grow_with_the_cluster(client: Client, server: Server) -> None:
    read_rapi(client)
    assert len(server.asked) == 7


def test_a_parameter_that_an_older_server_does_not_send_is_unreadable(client: Client, server: Server) -> None:
    for key in ("compression_tools", "enabled_data_collectors"):
        del server.answers["/2/info"][key]
    state = read_rapi(client)
    assert not state.readable(Level.CLUSTER, ("compression_tools",))
    assert not state.readable(Level.CLUSTER, ("enabled_data_collectors", "drbd"))


def test_a_cluster_that_changes_once_is_read_again(client: Client, server: Server) -> None:
    def behave(_: BaseHTTPRequestHandler) -> bool:
        if len(server.asked) == 5:
            server.answers["/2/groups?bulk=1"][0]["serial_no"] += 1
        return False

    server.behave = behave
    assert read_rapi(client).groups["default"].identity.serial_no
    assert len(server.asked) == 12


def test_a_cluster_that_keeps_changing_is_an_error(client: Client, server: Server) -> None:
    def behave(_: BaseHTTPRequestHandler) -> bool:
        server.answers["/2/info"]["mtime"] += 1
        return False

    server.behave = behave
    with pytest.raises(UnreachableError, match="changed while it was read"):
        read_rapi(client)
    assert len(server.asked) < 30


def test_a_node_changed_between_two_lists_is_noticed(client: Client, server: Server) -> None:
    server.answers["/2/nodes?bulk=1"][0]["serial_no"] += 1
    with pytest.raises(UnreachableError, match="changed while it was read"):
        read_rapi(client)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "refuses the user or the password"),
        (403, "may not read"),
        (404, "not found"),
        (500, "HTTP 500: out of cheese"),
        (502, "HTTP 502"),
        (302, "redirect"),
        (204, "HTTP 204"),
    ],
)
def test_refusals_are_one_clear_error(client: Client, server: Server, status: int, message: str) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> bool:
        body = b"" if status == 204 else b'{"explain": "out of\\u001bcheese"}'
        send(handler, status, body, Location="https://127.0.0.1:1/elsewhere")
        return True

    server.behave = behave
    _fails(client, message)
    assert len(server.asked) == 1


def test_without_a_password_the_hint_says_how_to_give_one(server: Server, ganeti_certificate: Path) -> None:
    server.reads_need_password = True
    with pytest.raises(UnreachableError, match="requires a user") as caught:
        read_rapi(open_client(server.address, None, ca_file=ganeti_certificate))
    assert "rapi_credentials" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "not valid JSON"),
        (b"\xff\x00", "not text"),
        (b"", "empty"),
        (b"[1]", "should be a mapping"),
        (b'"x"', "should be a mapping"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_answer_is_one_clear_error(client: Client, server: Server, body: bytes, message: str) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> bool:
        send(handler, 200, body)
        return True

    server.behave = behave
    _fails(client, message)


@pytest.mark.parametrize(
    ("part", "place", "value", "message"),
    [
        ("info", ("ipolicy",), None, "/2/info: ipolicy should be a mapping, but is null"),
        ("info", ("ipolicy", "std"), True, "/2/info: ipolicy.std should be a mapping, but is true"),
        ("info", ("beparams", "default"), None, "/2/info: beparams: default should be a mapping, but is null"),
        ("info", ("compression_tools",), [None], "/2/info: compression_tools should be of type"),
        ("groups", (2, "custom_ipolicy"), None, "/2/groups: gold: custom_ipolicy should be a mapping, but is null"),
        ("nodes", (0, "tags"), None, "/2/nodes: node1: tags should be a list, but is null"),
        ("instances", (0, "name"), False, "/2/instances: False: name should be text, but is false"),
        ("instances", (1, "snodes"), None, "/2/instances: inst2: snodes should be a list, but is null"),
        ("instances", (1, "snodes"), ["node2"], "at last: .* 'inst2' has its primary node as secondary node, too"),
        ("instances", (1, "pnode"), "gone", "at last: .* instance 'inst2' is on an unknown node: 'gone'"),
    ],
)
def test_a_field_without_sense_is_named(
    client: Client, server: Server, part: str, place: tuple[str | int, ...], value: object, message: str
) -> None:
    path = f"/2/{part}{'' if part == 'info' else '?bulk=1'}"
    server.answers[path] = changed(server.answers[path], place, value)
    _fails(client, message)


def test_an_older_server_shows_what_its_groups_have_and_not_what_they_own(client: Client, server: Server) -> None:
    effective = read_rapi(client).groups["gold"].effective
    for group in server.answers["/2/groups?bulk=1"]:
        del group["custom_ipolicy"]
    state = read_rapi(client)
    assert not state.readable(Level.GROUP, ("ipolicy", "vcpu-ratio"))
    assert state.readable(Level.GROUP, ("ndparams", "spindle_count"))
    same = {path: value for path, value in state.groups["gold"].effective.items() if path[:2] != ("ipolicy", "std")}
    assert same == {path: value for path, value in effective.items() if path[:2] != ("ipolicy", "std")}


def test_an_answer_that_is_too_large_is_cut_off(client: Client, server: Server) -> None:
    _fails(replace(client, limit=1000), "larger than")


def test_an_answer_that_ends_early(client: Client, server: Server) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> bool:
        send(handler, 200, b'{"name": 1}', Content_Length="5000")
        return True

    server.behave = behave
    _fails(client, "ended early")


def test_an_answer_in_chunks_that_ends_early(client: Client, server: Server) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> bool:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}")
        return True

    server.behave = behave
    _fails(client, "the answer ended early")


def test_tiny_chunks_take_no_more_memory_than_their_content(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(handler: BaseHTTPRequestHandler) -> bool:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nxy\r\n" * 50_000)
        return True

    server.behave = behave
    monkeypatch.setattr(rapi_client, "_PIECE", 1000)
    tracemalloc.start()
    _fails(client, "the answer ended early")
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 2_000_000  # bytes; 6,300,000 if each chunk is kept by itself


@pytest.mark.parametrize("part", ["headers", "body", "nothing"])
def test_a_slow_server_is_cut_off_in_time(client: Client, server: Server, part: str) -> None:
    rest = threading.Event()

    def behave(handler: BaseHTTPRequestHandler) -> bool:
        if part == "body":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while part != "nothing" and not rest.wait(0.02):
            handler.wfile.write(b"x")
        rest.wait(5)
        return True

    server.behave = behave
    begin = time.monotonic()
    _fails(replace(client, timeout=0.4), "no complete answer within")
    assert time.monotonic() - begin < 3
    rest.set()


def test_the_whole_read_has_a_time_limit_too(client: Client, server: Server) -> None:
    def behave(_: BaseHTTPRequestHandler) -> bool:
        time.sleep(0.3)
        return False

    server.behave = behave
    begin = time.monotonic()
    _fails(replace(client, timeout=0.4), "in time|within")
    assert time.monotonic() - begin < 4


def test_disks_of_several_templates_are_noted(client: Client, server: Server) -> None:
    server.answers["/2/instances?bulk=1"][0]["disk_template"] = "mixed"
    assert any("inst1 have several templates" in note for note in read_rapi(client).notes)


def test_a_server_that_never_speaks_tls() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        address = f"rapi://127.0.0.1:{silent.getsockname()[1]}"
        _fails(open_client(address, None, insecure=True, timeout=0.3), "no complete answer within")


def test_a_server_without_tls() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as plain:

        def answer() -> None:
            connection, _ = plain.accept()
            with closing(connection):
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        _fails(open_client(f"rapi://127.0.0.1:{plain.getsockname()[1]}", None, insecure=True, timeout=3), "TLS failed")
        thread.join()


def test_nobody_listens() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        port = gone.getsockname()[1]
    _fails(open_client(f"rapi://127.0.0.1:{port}", None, timeout=3), "refused")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "a..b", "\N{SNOWMAN}" * 60])
def test_no_such_host(host: str) -> None:
    _fails(open_client(f"rapi://{host}", None, timeout=3), "no such host")


def _fails(client: Client, message: str) -> None:
    with pytest.raises((UnreachableError, InputError), match=message) as caught:
        read_rapi(client)
    shown = f"{caught.value.message} {caught.value.hint} {client!r} {caught.value!r}"
    assert PASSWORD not in shown
    assert "\x1b" not in shown
    assert "\n" not in caught.value.message


class TestTrust:
    def test_an_unknown_certificate_is_refused_and_no_request_sent(self, server: Server) -> None:
        with pytest.raises(UnreachableError, match="not trusted") as caught:
            read_rapi(open_client(server.address, Credentials("tool", PASSWORD)))
        assert "rapi_ca" in (caught.value.hint or "")
        assert server.asked == []

    def test_another_cluster_s_certificate_is_refused(self, server: Server, other_certificate: Path) -> None:
        with pytest.raises(UnreachableError, match="not trusted"):
            read_rapi(open_client(server.address, None, ca_file=other_certificate))
        assert server.asked == []

    def test_a_certificate_for_this_host_needs_no_pin(self, host_certificate: Path) -> None:
        with rapi_server.serve("full", host_certificate) as server:
            assert read_rapi(open_client(server.address, None, ca_file=host_certificate)).name == "cluster"

    def test_insecure_is_an_option_and_noted(self, server: Server) -> None:
        state = read_rapi(open_client(server.address, None, insecure=True), insecure=True)
        assert any("not verified" in note for note in state.notes)

    @pytest.mark.parametrize(
        "content",
        [b"", b" \n", b"nothing", b"\xff\0\x8f", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
    )
    def test_a_ca_file_without_a_certificate_does_not_mean_the_systems_authorities(
        self, content: bytes, tmp_path: Path, server: Server
    ) -> None:
        (tmp_path / "ca.pem").write_bytes(content)
        with pytest.raises(InputError, match=r"no readable certificate|not text"):
            open_client(server.address, None, ca_file=tmp_path / "ca.pem")

    def test_a_key_is_not_a_certificate(self, ganeti_certificate: Path, tmp_path: Path) -> None:
        key = ganeti_certificate.read_text().partition("-----BEGIN PRIVATE KEY")
        (tmp_path / "key.pem").write_text(key[1] + key[2])
        with pytest.raises(InputError, match="no readable certificate"):
            open_client("rapi://host", None, ca_file=tmp_path / "key.pem")

    @pytest.mark.parametrize("name", ["", ".", "missing.pem", "\0"])
    def test_an_invalid_ca_file(self, name: str) -> None:
        with pytest.raises(InputError):
            open_client("rapi://host", None, ca_file=Path(name))

    def test_a_ca_file_and_insecure_exclude_one_another(self, ganeti_certificate: Path) -> None:
        with pytest.raises(RequestError, match="cannot be used together"):
            open_client("rapi://host", None, ca_file=ganeti_certificate, insecure=True)

    def test_the_keys_of_a_connection_are_written_nowhere(
        self, server: Server, ganeti_certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
        assert read_rapi(open_client(server.address, None, ca_file=ganeti_certificate)).name == "cluster"
        with pytest.raises(UnreachableError, match="not trusted"):
            read_rapi(open_client(server.address, None))
        assert not (tmp_path / "keys").exists()

    def test_no_proxy_is_used(self, server: Server, ganeti_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert read_rapi(open_client(server.address, None, ca_file=ganeti_certificate)).name == "cluster"


class TestAddress:
    @pytest.mark.parametrize(
        ("address", "host", "port"),
        [
            ("rapi://host", "host", 5080),
            ("rapi://host:81", "host", 81),
            ("rapi://host/", "host", 5080),
            ("rapi://[::1]:82", "::1", 82),
        ],
    )
    def test_host_and_port(self, address: str, host: str, port: int) -> None:
        assert parse_address(address) == (host, port)

    @pytest.mark.parametrize(
        "address",
        [
            "rapi://",
            "rapi://:5080",
            "rapi://h:x",
            "rapi://h:99999",
            "rapi://h/2/info",
            "rapi://h?x",
            "rapi://-o",
            "rapi://[",
        ],
    )
    def test_other_addresses_are_refused(self, address: str) -> None:
        with pytest.raises(RequestError):
            parse_address(address)

    @pytest.mark.parametrize(
        "address", ["rapi://tool:hush@host", "rapi://tool:hush@host:x", "rapi://:hush@host", "rapi://tool:12/hush@host"]
    )
    def test_a_password_in_an_address_is_refused_and_not_repeated(self, address: str) -> None:
        with pytest.raises(RequestError) as caught:
            parse_address(address)
        assert "hush" not in f"{caught.value.message} {caught.value.hint}"


def test_an_error_s_whole_chain_is_free_of_the_password(client: Client, server: Server) -> None:
    server.answers["/2/info"] = json.loads("[]")
    with pytest.raises(GpolicyError) as caught:
        read_rapi(client)
    error: BaseException | None = caught.value
    while error is not None:
        assert PASSWORD not in repr(error)
        error = error.__cause__ or error.__context__


def test_there_is_a_pause_between_two_attempts(client: Client, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(rapi, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
    assert read_rapi(client).name == "cluster"
    assert pauses == []
    server.answers["/2/nodes?bulk=1"][0]["serial_no"] += 1
    with pytest.raises(UnreachableError, match="4 times in a row"):
        read_rapi(client)
    assert pauses == [0.0] * 3


def test_instances_that_are_forthcoming_are_counted_in_a_note(client: Client, server: Server) -> None:
    assert not any("forthcoming" in note for note in read_rapi(client).notes)
    server.answers["/2/instances?bulk=1"][0]["pnode"] = None
    state = read_rapi(client)
    assert len(state.instances) == len(server.answers["/2/instances?bulk=1"]) - 1
    assert [note for note in state.notes if "forthcoming" in note] == [*forthcoming_note(1)]
