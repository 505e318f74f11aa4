"""`-m http://…`: an answer without an end, or one that breaks off, is one clear line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpolicy.cluster import rapi_client
from gpolicy.errors import InputError
from gpolicy.htools import rapi

RECORDED = Path(__file__).resolve().parent.parent / "data" / "clusters" / "full"
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve `answer` to every request on this machine; give the address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            answer(self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_answer_is_read_up_to_the_bound_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rapi, "Client", partial(rapi_client.Client, limit=2 * 1024**2))
    sent = 0
    closed = threading.Event()

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.end_headers()
        try:
            while sent < 1024**3:
                handler.wfile.write(b" " * 65536)
                sent += 65536
        except OSError:
            closed.set()

    with serving(endless) as address, pytest.raises(InputError, match="larger than 2 MiB"):
        rapi.read_rapi(address)
    assert closed.wait(30)
    assert sent < 64 * 1024**2  # what lies in the buffers of the connection


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"[]")


def no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 mail\r\n\r\n")


def not_found(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


def no_text(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"[\xff]")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (cut_short, "ended early"),
        (no_http, "not answer in HTTP"),
        (not_found, "HTTP 404"),
        (no_text, "not UTF-8"),
    ],
)
def test_a_malformed_answer_is_one_line(answer: Answer, words: str) -> None:
    with serving(answer) as address, pytest.raises(InputError, match=words) as caught:
        rapi.read_rapi(address)
    assert "\n" not in str(caught.value)


def test_a_cluster_is_read() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        name = handler.path.partition("?")[0].rpartition("/")[2]
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write((RECORDED / f"rapi-{name}.json").read_bytes())

    with serving(answer) as address:
        data = rapi.read_rapi(address)
    assert [node.name for node in data.nodes] == ["node1", "node2", "node3", "node4", "node5"]
    assert data.nodes[0].master
