from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpolicy.cluster.sources import (
    DESTINATIONS,
    FILE_SCHEMES,
    SCHEMES,
    SourceOptions,
    contact,
    destination_scheme,
    is_live,
    read_state,
)
from gpolicy.cluster.state_files import write_snapshot
from gpolicy.errors import GpolicyError, RequestError
from tests.cluster import rapi_server, recorded


def test_file_sources(tmp_path: Path) -> None:
    config = read_state(f"config:{recorded.path('full', 'config.data')}")
    assert config.source.startswith("config:")
    assert read_state(f"text:{recorded.path('full', 'htools.data')}").name == ""
    write_snapshot(config, tmp_path / "state.json")
    assert read_state(f"snapshot:{tmp_path / 'state.json'}") == config


def test_rapi_with_all_its_options(tmp_path: Path, ganeti_certificate: Path) -> None:
    login = tmp_path / "login"
    login.write_text("tool\na password\n")
    login.chmod(0o600)
    options = SourceOptions(rapi_credentials=login, rapi_ca=ganeti_certificate, timeout=5, environ={})
    with rapi_server.serve("full", ganeti_certificate) as server:
        state = read_state(server.address, options)
    assert state.nodes["node2"].own == {("ndparams", "spindle_count"): 4}


def test_a_file_that_does_not_say_when_it_was_read_has_no_age() -> None:
    found = contact(f"text:{recorded.path('full', 'htools.data')}", SourceOptions())
    assert found.taken_at == ""


@pytest.mark.parametrize(
    "src",
    ["", "sim:", "http://host", "rapi:host", "config:", "ssh:host", "nonsense", "a\0b", "rapis://u:hush@h"],
)
def test_an_unknown_source_is_a_usage_error_that_lists_all(src: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_state(src)
    assert any(words in (caught.value.hint or "") for words in ("rapi://", "write ", "Did you mean `rapi:`"))
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"


def test_a_file_without_a_scheme_gets_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "cluster"
    file.touch()
    with pytest.raises(RequestError, match="of unknown kind") as caught:
        read_state(str(file))
    assert "config:FILE" in (caught.value.hint or "")


def test_a_directory_is_no_source_but_may_be_the_policy(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="a directory, not a cluster") as caught:
        read_state(str(tmp_path))
    assert "the policy is an argument without an option" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("src", "meant"),
    [
        ("ganeti.example.org", "Did you mean `rapi://ganeti.example.org` or `ssh://ganeti.example.org`?"),
        ("https://ganeti.example.org:5080", "Did you mean `rapi://`, Ganeti's remote API?"),
    ],
)
def test_a_host_without_a_way_gets_a_guess(src: str, meant: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_state(src)
    assert caught.value.hint == meant


@pytest.mark.parametrize("scheme", ["config", "text", "snapshot"])
@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\0", b"{", b"null", b"a|b\n\n\n\n"])
def test_bad_files_are_one_clear_line(tmp_path: Path, scheme: str, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(GpolicyError) as caught:
        read_state(f"{scheme}:{tmp_path / 'file'}")
    assert "\n" not in caught.value.message


def test_a_file_needs_neither_network_nor_processes() -> None:
    code = (
        "import sys; from gpolicy.cluster.sources import read_state;"
        f"read_state('config:{recorded.path('full', 'config.data')}');"
        "print([name for name in ('ssl', 'http.client', 'subprocess', 'socket', 'netrc') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("src", ["", "nope"])
def test_an_address_without_a_kind_gets_a_hint(src: str) -> None:
    with pytest.raises(RequestError, match="state does not say what kind of source it is") as caught:
        read_state(src)
    assert str(caught.value.hint).startswith("write one of: rapi://HOST[:PORT], Ganeti's remote API; local:")


@pytest.mark.parametrize(
    ("src", "meant"),
    [
        ("cluster.json", "snapshot:cluster.json"),
        ("/var/lib/ganeti/config.data", "config:/var/lib/ganeti/config.data"),
        ("lab.data", "text:lab.data"),
    ],
)
def test_a_file_without_a_kind_gets_a_guess(src: str, meant: str) -> None:
    with pytest.raises(RequestError, match="state does not say what kind of source it is") as caught:
        read_state(src)
    assert caught.value.hint == f"Did you mean `{meant}`?"


def test_a_simulated_cluster_is_a_source() -> None:
    state = read_state("sim:p,2,2t,64g,16,4")
    assert (state.source, len(state.nodes), list(state.groups)) == ("sim:p,2,2t,64g,16,4", 2, ["group-01"])


def test_what_an_address_is_follows_from_its_scheme() -> None:
    assert [is_live(item.start) for item in SCHEMES.values()] == [item.is_live for item in SCHEMES.values()]
    assert all(item.is_live for item in DESTINATIONS.values())
    assert {"config", "text", "snapshot"} == FILE_SCHEMES
    assert {name for name, item in SCHEMES.items() if "HOST" in item.follows} == {"rapi", "ssh"}
    for address, scheme in {"local:": "local", "ssh://a": "ssh", "rapi://a": "rapi"}.items():
        assert destination_scheme(address) == scheme
    for address in ("", "local", "local:x", "ssh:a", "rapi:a", "config:a", "sim:p,1,2,3,4"):
        assert destination_scheme(address) == ""
