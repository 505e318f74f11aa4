"""`gpolicy htools … -m`: the remote API's certificate is verified, and Ganeti's own can be trusted by naming it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.errors import InputError
from gpolicy.htools import run
from gpolicy.htools.rapi import CERTIFICATE_VARIABLE, read_rapi
from tests.cluster import rapi_server


def test_the_named_certificate_is_trusted(ganeti_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CERTIFICATE_VARIABLE, str(ganeti_certificate))
    with rapi_server.serve("full", ganeti_certificate) as server:
        data = read_rapi(f"127.0.0.1:{server.port}")
    assert len(data.nodes) == 5
    assert [item for item in server.asked if "bulk" in item or "info" in item]


@pytest.mark.parametrize("named", [True, False])
def test_another_certificate_is_not_trusted(
    ganeti_certificate: Path, other_certificate: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.delenv(CERTIFICATE_VARIABLE, raising=False)
    if named:
        monkeypatch.setenv(CERTIFICATE_VARIABLE, str(other_certificate))
    with rapi_server.serve("full", ganeti_certificate) as server, pytest.raises(InputError) as caught:
        read_rapi(f"https://127.0.0.1:{server.port}")
    assert (CERTIFICATE_VARIABLE in str(caught.value)) is not named
    assert server.asked == []


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:x", "https://127.0.0.1:1"])
def test_an_invalid_address_is_one_line(address: str) -> None:
    with pytest.raises(InputError):
        read_rapi(address)


def test_an_error_status_is_reported(ganeti_certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CERTIFICATE_VARIABLE, str(ganeti_certificate))
    with rapi_server.serve("full", ganeti_certificate) as server:
        server.answers.clear()
        with pytest.raises(InputError, match="HTTP 404"):
            read_rapi(f"127.0.0.1:{server.port}")


def test_a_variable_with_a_missing_file_is_an_error(
    ganeti_certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").touch()
    for name in ("", str(tmp_path), str(tmp_path / "empty.pem"), str(tmp_path / "none.pem")):
        monkeypatch.setenv(CERTIFICATE_VARIABLE, name)
        with rapi_server.serve("full", ganeti_certificate) as server, pytest.raises(InputError) as caught:
            read_rapi(f"127.0.0.1:{server.port}")
        assert "trusted" not in str(caught.value)
        assert server.asked == []


def test_user_and_password_may_stand_in_the_address_with_a_warning(
    ganeti_certificate: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CERTIFICATE_VARIABLE, str(ganeti_certificate))
    with rapi_server.serve("full", ganeti_certificate) as server:
        server.reads_need_password = True
        host = f"127.0.0.1:{server.port}"
        assert run(["hspace", "-m", f"https://tool:a%20password@{host}"]) == 0
        with_login = capsys.readouterr()
        monkeypatch.setenv("GPOLICY_RAPI_USER", server.user)
        monkeypatch.setenv("GPOLICY_RAPI_PASSWORD", server.password)
        assert run(["hspace", "-m", host]) == 0
        without = capsys.readouterr()
    assert with_login.out == without.out
    assert with_login.out
    assert without.err == ""
    assert f"~/.netrc (chmod 600), and only -m {host} here" in with_login.err
    assert not re.search("a( |%20)password", with_login.err)


@pytest.mark.filterwarnings("ignore:the process list")
@pytest.mark.parametrize(
    "address",
    [
        "https://me:hush@h\0",
        "http://me:hush@127.0.0.1:1",
        "me:hush@127.0.0.1:1",
        "https://me:hu/sh@h:x",
        "ftp://a:hush@h",
    ],
)
def test_a_password_in_the_address_is_not_shown(address: str) -> None:
    with pytest.raises(InputError) as caught:
        read_rapi(address)
    assert not re.search("hu/?sh|me:", str(caught.value))
