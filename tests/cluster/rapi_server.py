"""A server on this machine that answers as Ganeti's remote API did when it was recorded, over real TLS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gpolicy.cluster.credentials import Credentials
from gpolicy.cluster.rapi_client import Client, make_trust, parse_address
from tests.cluster import recorded

UNAUTHORIZED = {"code": 401, "message": "Unauthorized", "explain": "No permission -- see authorization schemes"}
Behaviour = Callable[[BaseHTTPRequestHandler], bool]
"""Answers a request in its own way and returns True, or returns False to have it answered as recorded."""


@dataclass
class Server:
    port: int = 0
    answers: dict[str, Any] = field(default_factory=dict)
    user: str = "tool"
    password: str = "a password"  # noqa: S105 (of this test)
    reads_need_password: bool = False
    asked: list[str] = field(default_factory=list)
    behave: Behaviour = lambda _: False

    @property
    def address(self) -> str:
        return f"rapi://127.0.0.1:{self.port}"


def answers(cluster: str) -> dict[str, Any]:
    parts = {
        f"/2/{part}{'' if part == 'info' else '?bulk=1'}": recorded.load(cluster, f"rapi-{part}.json")
        for part in ("info", "groups", "nodes", "instances")
    }
    if recorded.path(cluster, "rapi-query-node.json").exists():
        parts["/2/query/node?fields=name,serial_no,custom_ndparams"] = recorded.load(cluster, "rapi-query-node.json")
    return parts


def open_client(
    address: str,
    credentials: Credentials | None,
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    timeout: float = 60.0,
) -> Client:
    """Return a client of the server at an address, without connecting."""
    return Client(*parse_address(address), make_trust(ca_file=ca_file, insecure=insecure), credentials, timeout)


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def _handler(server: Server, context: ssl.SSLContext) -> type[BaseHTTPRequestHandler]:
    expected = "Basic " + base64.b64encode(f"{server.user}:{server.password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def setup(self) -> None:
            self.request = context.wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self) -> None:
            super().finish()
            self.request.close()

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            server.asked.append(self.path)
            if server.behave(self):
                return
            login = self.headers.get("Authorization")
            if (login or server.reads_need_password or self.path.startswith("/2/query/")) and login != expected:
                send(self, 401, json.dumps(UNAUTHORIZED).encode())
            elif self.path in server.answers:
                send(self, 200, json.dumps(server.answers[self.path]).encode())
            else:
                send(self, 404, b'{"code": 404, "message": "Not Found"}')

    return Handler


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing when a client goes away, as they do in these tests."""


@contextmanager
def serve(cluster: str, certificate: Path) -> Iterator[Server]:
    """Run a server with the certificate (and its key, in the same file)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = Server(answers=answers(cluster))
    with _Quiet(("127.0.0.1", 0), _handler(server, context)) as listener:
        server.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
