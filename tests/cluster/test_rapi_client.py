"""Which servers are trusted: asked over real TLS, by certificates that a company's own CA signed."""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gpolicy.cluster import rapi_client
from gpolicy.cluster.rapi_client import HttpsRequest, Trust, ask, make_trust
from gpolicy.errors import UnreachableError
from tests.cluster import rapi_server
from tests.cluster.rapi_server import Server

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _make_certificate(folder: Path, name: str, *options: str | Path) -> Path:
    """Make a certificate and its key: NAME.pem holds both, NAME.crt the certificate alone."""
    alone, key, both = (folder / f"{name}.{kind}" for kind in ("crt", "key", "pem"))
    command = ["openssl", "req", "-x509", *_KEY, "-subj", f"/CN={name}", "-days", "3"]
    subprocess.run([*command, "-keyout", key, "-out", alone, *options], check=True, capture_output=True)
    both.write_text(alone.read_text() + key.read_text())
    return both


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a company's CA, with certificates that it signed: for this machine, and for another host."""
    folder = tmp_path_factory.mktemp("company")
    _make_certificate(folder, "ca")
    signed: list[str | Path] = ["-CA", folder / "ca.crt", "-CAkey", folder / "ca.key"]
    signed += ["-addext", "basicConstraints=critical,CA:FALSE"]
    _make_certificate(folder, "here", *signed, "-addext", "subjectAltName=IP:127.0.0.1")
    _make_certificate(folder, "elsewhere", *signed, "-addext", "subjectAltName=DNS:wiki.example.com")
    return folder


def _ask(server: Server, trust: Trust) -> int:
    request = HttpsRequest("GET", "127.0.0.1", server.port, "/2/info", {"Authorization": "secret"})
    return ask(request, trust=trust, seconds=5, limit=1024**2).status


def test_a_certificate_of_the_ca_for_this_host_is_trusted(company: Path) -> None:
    with rapi_server.serve("full", company / "here.pem") as server:
        assert _ask(server, make_trust(ca_file=company / "ca.crt", insecure=False)) == 401
    assert server.asked == ["/2/info"]


def test_a_certificate_of_the_ca_for_another_host_is_refused_and_no_request_sent(company: Path) -> None:
    trust = make_trust(ca_file=company / "ca.crt", insecure=False)
    refused = pytest.raises(UnreachableError, match="for another host and is not in the CA file")
    with rapi_server.serve("full", company / "elsewhere.pem") as server, refused as caught:
        _ask(server, trust)
    assert "rapi_ca" in (caught.value.hint or "")
    assert server.asked == []


def test_a_certificate_for_another_host_is_trusted_if_the_file_holds_it(company: Path, tmp_path: Path) -> None:
    file = tmp_path / "trusted.pem"
    file.write_text((company / "ca.crt").read_text() + (company / "elsewhere.crt").read_text())
    with rapi_server.serve("full", company / "elsewhere.pem") as server:
        assert _ask(server, make_trust(ca_file=file, insecure=False)) == 401


def test_without_a_ca_file_no_certificate_for_another_host_is_trusted(company: Path) -> None:
    trust = make_trust(ca_file=None, insecure=False)
    trust.context.load_verify_locations(company / "ca.crt")  # as if the system trusted the company
    refused = pytest.raises(UnreachableError, match="not trusted: IP address mismatch")
    with rapi_server.serve("full", company / "elsewhere.pem") as server, refused:
        _ask(server, trust)
    assert server.asked == []


@pytest.mark.parametrize("trust", [None, make_trust(ca_file=None, insecure=True)], ids=["http", "https"])
def test_a_host_that_does_not_even_refuse_is_given_up_before_the_time_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, trust: Trust | None
) -> None:
    monkeypatch.setattr(rapi_client, "_CONNECTING", 0.4)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # nobody accepts: Linux answers no further connection
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(listening.getsockname())
        request = HttpsRequest("GET", "127.0.0.1", listening.getsockname()[1], "/2/info")
        with pytest.raises(UnreachableError, match=r"cannot be reached: no reply in 0 seconds$"):
            ask(request, trust=trust, seconds=60, limit=1024)
