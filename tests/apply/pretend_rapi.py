"""The pretended cluster behind a real HTTPS server that speaks as Ganeti's remote API does on a real 3.0.2 cluster."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gpolicy.ganeti.commands import RapiCall
from tests.apply.pretend_ganeti import DATA, PretendGaneti

USER, PASSWORD = "tool", "a secret word"


def make_certificate(directory: Path) -> Path:
    """Return a certificate as every cluster makes it for itself: certificate and key in one file."""
    key, file = directory / "key.pem", directory / "rapi.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*command, "-keyout", key, "-out", file, "-subj", "/CN=ganeti.example.com", "-days", "3"],
        check=True,
        capture_output=True,
    )
    file.write_text(file.read_text() + key.read_text())
    return file


def _fresh() -> PretendGaneti:
    ganeti = PretendGaneti.recorded()
    ganeti.model.own = deepcopy(ganeti.model.own)
    return ganeti


@dataclass
class Server:
    ganeti: PretendGaneti = field(default_factory=_fresh)
    port: int = 0
    asked: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)  # the next requests of these methods get no answer, but are obeyed
    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # to the next submissions, not obeyed
    afterwards: list[tuple[int, Any]] = field(default_factory=list)  # answers to the next submissions, which are obeyed
    backend: dict[str, Any] = field(default_factory=dict)  # backend parameters that all instances have by now

    @property
    def address(self) -> str:
        return f"rapi://127.0.0.1:{self.port}"


def _recorded(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def info(ganeti: PretendGaneti) -> Any:
    shown = _recorded("rapi-info.json")
    for key, value in ganeti.model.own.items():
        if key in ("beparams", "nicparams"):
            shown[key] = {"default": value}
        elif key not in ("hv_state", "disk_state", "modify_etc_hosts"):
            shown[key] = value
    return {**shown, "uuid": ganeti.uuid, "tags": sorted(ganeti.model.tags["cluster", None])}


def groups(ganeti: PretendGaneti) -> Any:
    made = []
    for name, tree in ganeti.model.groups.items():
        own = {f"custom_{family}": tree.get(family, {}) for family in ("ipolicy", "diskparams", "ndparams")}
        serial = ganeti.serials.get(f"group/{name}", 1)
        tags = sorted(ganeti.model.tags["nodegroup", name])
        made.append(
            {"name": name, "uuid": f"uuid-{name}", "serial_no": serial, "tags": tags, **own,
             "alloc_policy": tree.get("alloc_policy", "preferred")}
        )  # fmt: skip
    return made


def nodes(ganeti: PretendGaneti) -> Any:
    made = []
    for node in _recorded("rapi-nodes.json"):
        name = node["name"]
        serial = ganeti.serials.get(f"node/{name}", 1)
        tags = sorted(ganeti.model.tags["node", name])
        made.append({**node, "group.uuid": f"uuid-{ganeti.model.home[name]}", "serial_no": serial, "tags": tags})
    return made


def query(ganeti: PretendGaneti, fields: list[str]) -> Any:
    rows = []
    for node in nodes(ganeti):
        own = {**node, "custom_ndparams": ganeti.model.nodes[node["name"]].get("ndparams", {})}
        rows.append([[0, own[name]] for name in fields])
    return {"fields": [{"name": name} for name in fields], "data": rows}


def job(ganeti: PretendGaneti, number: int) -> Any:
    found = ganeti.job(number)
    if found is None or found.status == "archived":
        return {"id": number, "status": None, "ops": None, "opresult": None, "oplog": None}
    return {
        "id": number,
        "status": found.status,
        "summary": ["OP"],
        "ops": [{"OP_ID": "OP", "reason": [["gnt:user", found.mark, 1], ["gnt:library:rlib2", "", 2]]}],
        "opresult": [found.result],
        "oplog": [[[index, [0, 0], "message", text] for index, text in enumerate(found.log, start=1)]],
    }


def _shown(server: Server, path: str) -> Any:
    ganeti, parts = server.ganeti, urlsplit(path)
    match parts.path.split("/")[2:]:
        case ["info"]:
            return info(ganeti)
        case ["groups"]:
            return groups(ganeti)
        case ["nodes"]:
            return nodes(ganeti)
        case ["instances"]:
            instances = _recorded("rapi-instances.json")
            return [{**item, "beparams": {**item["beparams"], **server.backend}} for item in instances]
        case ["query", "node"]:
            return query(ganeti, dict(parse_qsl(parts.query))["fields"].split(","))
        case ["jobs"]:
            return [job(ganeti, item.number) for item in ganeti.jobs if item.status != "archived"]
        case ["jobs", number]:
            return job(ganeti, int(number))
    return None


def _call(method: str, address: str, body: Any) -> tuple[RapiCall, str]:
    """Return a request without its reason, and the reason."""
    parts = urlsplit(address)
    arguments = parse_qsl(parts.query)
    left = urlencode([item for item in arguments if item[0] != "reason"])
    return RapiCall(method, parts.path + (f"?{left}" if left else ""), body), dict(arguments)["reason"]


def answer(server: Server, method: str, path: str, body: Any, authorization: str | None) -> tuple[int, Any] | None:
    """Return status and content of the answer to a request. None: the server obeys, and ends the connection."""
    server.asked.append(f"{method} {path}")
    if authorization != "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode():
        return 401, {"code": 401, "message": "Unauthorized", "explain": "No permission"}
    if method == "GET":
        shown = _shown(server, path)
        return (404, {"code": 404, "message": "Not Found"}) if shown is None else (200, shown)
    if server.answers:
        return server.answers.pop(0)
    made = server.ganeti.submit(*_call(method, path, body))
    if method in server.cut:
        server.cut.remove(method)
        return None
    return server.afterwards.pop(0) if server.afterwards else (200, str(made.number))


def _handler(server: Server, context: ssl.SSLContext) -> type[BaseHTTPRequestHandler]:
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
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            told = answer(server, self.command, self.path, body, self.headers.get("Authorization"))
            if told is None:
                self.close_connection = True
                return
            content = json.dumps(told[1]).encode()
            self.send_response(told[0])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 (the names that http.server looks for)

    return Handler


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing when a client goes away, as they do in these tests."""


@contextmanager
def serve(certificate: Path, server: Server) -> Iterator[None]:
    """Let a server listen, with the certificate (and its key, in the same file)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with _Quiet(("127.0.0.1", 0), _handler(server, context)) as listener:
        server.port = listener.server_address[1]
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            listener.shutdown()
            thread.join()
