"""RAPI asked directly, without gpolicy, to show what Ganeti itself does with a request."""

from __future__ import annotations

import base64
import json
import ssl
import time
from http.client import HTTPSConnection
from typing import Any

from tests.e2e.live_cluster import MASTER_ADDRESS, RAPI_USER, LiveCluster

JOB_SECONDS = 120


def ask(
    cluster: LiveCluster, method: str, path: str, body: Any = None, user: tuple[str, str] = RAPI_USER
) -> tuple[int, Any]:
    """Return the status and the answer of one request."""
    context = ssl.create_default_context(cafile=str(cluster.certificate))
    context.check_hostname = False  # Ganeti's certificate is for ganeti.example.com
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    connection = HTTPSConnection(MASTER_ADDRESS, 5080, context=context, timeout=60)
    word = base64.b64encode(":".join(user).encode()).decode()
    headers = {"Authorization": f"Basic {word}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


def job(cluster: LiveCluster, method: str, path: str, body: Any = None) -> tuple[str, Any]:
    """Send a request that makes a job, and return how the job ended: its status, and its result or error."""
    status, number = ask(cluster, method, path, body)
    assert status == 200, (status, number)
    until = time.monotonic() + JOB_SECONDS
    while time.monotonic() < until:
        _, answer = ask(cluster, "GET", f"/2/jobs/{number}")
        if answer["status"] in {"success", "error", "canceled"}:
            return answer["status"], answer["opresult"][0]
        time.sleep(0.05)
    raise AssertionError(f"job {number} did not end: {answer}")
