"""A client of Ganeti's remote API: one server, its address, and the meaning of its errors."""

from __future__ import annotations

import base64
import html
import json
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from gpolicy.cluster import https
from gpolicy.cluster.credentials import PASSWORD_VARIABLE, USER_VARIABLE, Credentials
from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.record import LARGEST_FILE
from gpolicy.errors import GpolicyError, InputError, UnreachableError, UsageError
from gpolicy.ganeti.parameter import Value
from gpolicy.ganeti.vocabulary import RAPI_PORT
from gpolicy.printable import one_line

_LONGEST_REASON = 400


class NotFoundError(UnreachableError):
    """The server has nothing at this path (HTTP 404)."""


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to one server; without `trust` by plain HTTP. Credentials are sent in the request header only."""

    host: str
    port: int
    trust: https.Trust | None
    credentials: Credentials | None = None
    timeout: float = 60.0  # seconds for each answer: nodes that are down make the node list slow
    limit: int = LARGEST_FILE

    def get(self, path: str, *, until: float | None = None) -> Value:
        """Return the JSON answer to a GET that comes before the monotonic time `until`.

        Raise UnreachableError or InputError if there is none.
        """
        return self._content(path, self._ask(path, until))

    def get_if_allowed(self, path: str, *, until: float | None = None) -> Value | None:
        """Return the JSON answer to a GET, or None if we are not allowed to see it."""
        answer = self._ask(path, until)
        return None if answer.status in (401, 403) else self._content(path, answer)

    def _content(self, path: str, answer: https.HttpsAnswer) -> Value:
        if answer.status != 200:
            raise self._refusal(path, answer)
        return parse_json(answer.body, self._where(path))

    def send(self, method: str, path: str, body: Value = None) -> https.HttpsAnswer:
        """Return the answer to a request that changes something, whatever its status.

        Raise UnreachableError if it was not sent, NoAnswerError if nobody knows whether the server acted on it.
        """
        headers = {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        return self._request(method, path, headers, content, self.timeout)

    def _ask(self, path: str, until: float | None) -> https.HttpsAnswer:
        seconds = self.timeout if until is None else min(self.timeout, until - time.monotonic())
        if seconds <= 0:
            raise UnreachableError(f"{self._where(path)}: the cluster could not be read in time")
        return self._request("GET", path, {}, None, seconds)

    def _request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, seconds: float
    ) -> https.HttpsAnswer:
        if self.credentials:
            pair = f"{self.credentials.user}:{self.credentials.password}".encode()
            headers = {**headers, "Authorization": "Basic " + base64.b64encode(pair).decode()}
        request = https.HttpsRequest(method, self.host, self.port, path, headers, body)
        return https.ask(request, trust=self.trust, seconds=seconds, limit=self.limit)

    def _where(self, path: str) -> str:
        return f"rapi://{netloc(self.host, self.port)}: {path.partition('?')[0]}"

    def _refusal(self, path: str, answer: https.HttpsAnswer) -> GpolicyError:
        where = self._where(path)
        match answer.status:
            case 401 if self.credentials is None:
                return UnreachableError(
                    f"{where}: requires a user and a password (HTTP 401)",
                    hint=f"give --rapi-credentials FILE, or {USER_VARIABLE} and {PASSWORD_VARIABLE}, or a netrc entry",
                )
            case 401:
                return UnreachableError(f"{where}: refuses the user or the password (HTTP 401)")
            case 403:
                return UnreachableError(f"{where}: this user may not read it (HTTP 403)")
            case 404:
                return NotFoundError(
                    f"{where}: not found (HTTP 404)", hint="is this the remote API of a Ganeti cluster, version 2?"
                )
            case status if 300 <= status < 400:
                return UnreachableError(f"{where}: answers with a redirect (HTTP {status}), which is not followed")
            case status:
                return UnreachableError(f"{where}: answers HTTP {status}{reason(answer.body)}")


def reason(body: bytes) -> str:
    """Return Ganeti's error message, shortened and made printable; empty when the body is not Ganeti's."""
    try:
        value = parse_json(body[:65536], "")
    except InputError:
        return ""
    texts = [value.get("message"), value.get("explain")] if isinstance(value, dict) else []
    told = " - ".join(dict.fromkeys(text for text in texts if isinstance(text, str) and text))
    return f": {one_line(html.unescape(told), _LONGEST_REASON)}" if told else ""


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `rapi://host[:port]`. Raise UsageError if it is anything else."""
    if "@" in address:  # the text before it may be a password and is not shown
        hint = "credentials come from --rapi-credentials FILE, the environment or netrc"
        raise UsageError("rapi: the address must not contain a user or password", hint=hint)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError("rapi: not a host and port", hint="write rapi://host or rapi://host:5080") from None
    extra = parts.path.strip("/") or parts.query or parts.fragment
    if not host or extra or host.startswith("-") or not host.isprintable() or " " in host or port == 0:
        raise UsageError(f"{address!r}: not a host and port", hint="write rapi://host or rapi://host:5080")
    return host, port or RAPI_PORT


def netloc(host: str, port: int) -> str:
    """Return host and port in the form of an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_client(
    address: str,
    credentials: Credentials | None,
    *,
    ca_file: Path | None = None,
    insecure: bool = False,
    timeout: float = 60.0,
) -> Client:
    """Return a client of the server at `address` (`rapi://host[:port]`), without connecting."""
    host, port = parse_address(address)
    return Client(host, port, https.make_trust(ca_file=ca_file, insecure=insecure), credentials, timeout)
