"""The remote API of a simulated cluster: a request in, status and bytes out."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gpolicy.ganeti.commands import RapiCall
from tests.plan.ganeti_model import rapi_job
from tests.simulator.simulated_ganeti import Job, SimulatedGaneti


def answer(ganeti: SimulatedGaneti, method: str, address: str, body: bytes | None, random: Random) -> tuple[int, bytes]:
    """Return what the server answers, having done what it was asked for."""
    if method == "GET":
        value = _shown(ganeti, address)
        return (404, _error(404, "Not Found", "Nothing matches the given URI")) if value is None else (200, value)
    if ganeti.drained:
        return 500, _error(500, "Queue drained", "Server got itself in trouble")
    parts = urlsplit(address)
    arguments = parse_qsl(parts.query, keep_blank_values=True)
    mark = "".join(value for key, value in arguments if key == "reason")
    left = urlencode([item for item in arguments if item[0] != "reason"])
    call = RapiCall(method, parts.path + (f"?{left}" if left else ""), json.loads(body) if body else None)
    opcode = rapi_job(call)  # an AssertionError: no plan may ask for it
    return 200, str(ganeti.submit(opcode, mark, random).number).encode()


def _error(code: int, message: str, explain: str) -> bytes:
    return json.dumps({"code": code, "message": message, "explain": explain}).encode()


def error_body(code: int) -> bytes:
    """Return what Ganeti's server, or one before it, says with an error."""
    if code in (502, 503):
        return b"<html><body><h1>%d</h1></body></html>" % code
    return _error(code, {408: "Request Timeout", 429: "Too Many Requests"}.get(code, "Error"), "of the simulation")


def _shown(ganeti: SimulatedGaneti, address: str) -> bytes | None:
    path, _, query = address.partition("?")
    match path.split("/")[2:]:
        case ["info"]:
            return ganeti.shown("info")
        case ["groups"]:
            return ganeti.shown("groups")
        case ["nodes"]:
            return ganeti.shown("nodes")
        case ["instances"]:
            return ganeti.shown("instances")
        case ["query", "node"]:
            return ganeti.shown(dict(parse_qsl(query))["fields"])
        case ["jobs"]:
            return json.dumps([_job(item) for item in ganeti.jobs.values() if not item.archived]).encode()
        case ["jobs", number]:
            found = ganeti.listed(int(number))
            return None if found is None else json.dumps(_job(found)).encode()
    return None


def _job(job: Job) -> Any:
    kind = "OpPrereqError" if not job.fate.error else "OpExecError"
    return {
        "id": job.number,
        "status": job.status,
        "summary": [job.summary],
        "ops": [{"OP_ID": job.opcode["OP_ID"], "reason": [["gnt:user", job.mark, 1], ["gnt:library:rlib2", "", 2]]}],
        "opresult": [[kind, [job.error]] if job.status == "error" else None],
        "oplog": [[[index, [0, 0], "message", text] for index, text in enumerate(job.log, start=1)]],
    }
