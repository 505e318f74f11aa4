"""A client of Ganeti's remote API: one server, its address, the meaning of its errors, and requests with bounds.

Requests use TLS, except for the `http://` of htools, and verify the server unless told otherwise. Every Ganeti cluster
makes its own certificate for the name `ganeti.example.com`, so a check of the host name cannot succeed. So a server
whose own certificate is in the CA file is accepted under any name.
"""

from __future__ import annotations

import base64
import html
import http.client
import json
import socket
import ssl
import threading
import time
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gpolicy.cluster.credentials import PASSWORD_VARIABLE, USER_VARIABLE, Credentials
from gpolicy.cluster.json_input import decode_text, parse_json, read_bytes
from gpolicy.cluster.process import after
from gpolicy.cluster.record import LARGEST_FILE
from gpolicy.errors import ArgumentError, GpolicyError, InputError, RequestError, UnreachableError, argument
from gpolicy.ganeti.vocabulary import RAPI_PORT, Value
from gpolicy.printable import one_line

_HOSTNAME_MISMATCH = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH and _IP_ADDRESS_MISMATCH
_HINT_TRUST = (
    f"name a file with the cluster's certificate (on the master: rapi.pem, without its key) as {argument('rapi_ca')}"
)
_HINT_REFUSED = "nothing listens there: is ganeti-rapi running, and the port right? (5080, if none is given)"
_PIECE = 2**20  # bytes read at once: http.client keeps each chunk of a read as an object of its own
_CONNECTING = 10.0  # seconds: a host that is down, or behind a firewall, may not even refuse


@dataclass(frozen=True, slots=True)
class Trust:
    """How a server is verified: by `context`; the certificates in `pinned` are trusted under any name."""

    context: ssl.SSLContext
    pinned: frozenset[bytes] = frozenset()


class NoAnswerError(UnreachableError):
    """The request was sent and no answer came: nobody knows whether the server acted on it."""


@dataclass(frozen=True, slots=True)
class HttpsAnswer:
    """An answer: status code and body."""

    status: int
    body: bytes


def make_trust(*, ca_file: Path | None, insecure: bool) -> Trust:
    """Return trust in the system's CAs, in those of `ca_file`, or with `insecure` in any server.

    Raise InputError if the file cannot be read or holds no certificate, RequestError for a file and `insecure` at once.
    """
    context = _context()
    if insecure:
        if ca_file is not None:
            raise ArgumentError(f"rapi_ca and {argument('rapi_insecure')} cannot be used together")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return Trust(context)
    if ca_file is None:
        context.load_default_certs()
        return Trust(context)
    pem = decode_text(read_bytes(ca_file, limit=16 * 1024**2), str(ca_file))
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise InputError(f"{ca_file}: holds no readable certificate (PEM)") from None
    return Trust(context, frozenset(context.get_ca_certs(binary_form=True)) | _certificates(pem))


def _context() -> ssl.SSLContext:
    """Return a context that verifies servers and trusts no CA yet.

    Not Python's `create_default_context`: that one uses the system's CAs if it is given an empty text, and writes the
    keys of connections to a file that the environment names (SSLKEYLOGFILE).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN  # trust the file, signed or not
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT  # Ganeti's own certificate has no extensions
    return context


def _certificates(pem: str) -> frozenset[bytes]:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found: set[bytes] = set()
    for part in pem.split(begin)[1:]:
        if end in part:
            with suppress(ValueError):
                found.add(ssl.PEM_cert_to_DER_cert(begin + part.split(end, maxsplit=1)[0] + end))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class HttpsRequest:
    """A request to `https://host:port/path`."""

    method: str
    host: str
    port: int
    path: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)  # they hold a password
    body: bytes | None = None


def ask(request: HttpsRequest, *, trust: Trust | None, seconds: float, limit: int) -> HttpsAnswer:
    """Send `request` once and return the answer; redirects are not followed, no proxy is used.

    Without `trust` it uses plain HTTP. `seconds` limits the whole exchange, also with a server that sends slowly. Raise
    UnreachableError when no complete answer comes in time, or one of more than `limit` bytes; NoAnswerError if that
    happens after the request was sent.
    """
    host, port, path = request.host, request.port, request.path
    where = f"{host}:{port}"
    headers = {"Accept": "application/json", "Connection": "close", **request.headers}
    until = time.monotonic() + seconds
    try:
        connection = _connect(host, port, trust, seconds)
    except (OSError, ValueError) as error:  # ValueError: an impossible host name
        raise _unreachable(where, error, seconds) from None
    cut = threading.Event()
    plain = http.client.HTTPConnection(host, port)
    plain.sock = connection
    try:
        with _cut_after(connection, max(until - time.monotonic(), 0), cut):
            plain.request(request.method, path, request.body, headers)
            pieces: list[bytes] = []
            with closing(plain.getresponse()) as response:
                while sum(map(len, pieces)) <= limit and (piece := response.read(_PIECE)):
                    pieces.append(piece)
    except (OSError, ValueError, http.client.HTTPException) as error:
        failure = _too_slow(where, seconds) if cut.is_set() else _unreachable(where, error, seconds)
        raise NoAnswerError(failure.message, hint=failure.marked_hint) from None
    finally:
        plain.close()
    if sum(map(len, pieces)) > limit:
        raise NoAnswerError(f"{where}: the answer to {path} is larger than {limit // 1024**2} MiB")
    if cut.is_set():
        raise NoAnswerError(_too_slow(where, seconds).message)
    if response.length:  # bytes of Content-Length that are missing
        raise NoAnswerError(f"{where}: the answer to {path} ended early")
    return HttpsAnswer(response.status, b"".join(pieces))


def _connect(host: str, port: int, trust: Trust | None, seconds: float) -> socket.socket:
    if trust is None:
        return _dial(host, port, seconds)
    try:
        return _handshake(host, port, trust.context, seconds)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code not in _HOSTNAME_MISMATCH or not trust.pinned:
            raise
    context = _context()
    context.check_hostname = False
    context.load_verify_locations(cadata=b"".join(trust.pinned))
    connection = _handshake(host, port, context, seconds)
    if connection.getpeercert(binary_form=True) not in trust.pinned:
        connection.close()
        raise ssl.SSLCertVerificationError(1, "the certificate is for another host and is not in the CA file")
    return connection


def _dial(host: str, port: int, seconds: float) -> socket.socket:
    patience = min(seconds, _CONNECTING)
    try:
        connection = socket.create_connection((host, port), timeout=patience)
    except TimeoutError:
        raise UnreachableError(f"{host}:{port}: cannot be reached: no reply in {patience:.0f} seconds") from None
    connection.settimeout(seconds)
    return connection


def _handshake(host: str, port: int, context: ssl.SSLContext, seconds: float) -> ssl.SSLSocket:
    raw = _dial(host, port, seconds)
    try:
        connection = context.wrap_socket(raw, server_hostname=host, do_handshake_on_connect=False)
    except BaseException:
        raw.close()
        raise
    cut = threading.Event()
    try:
        with _cut_after(connection, seconds, cut):
            connection.do_handshake()
    except BaseException as error:
        connection.close()
        if cut.is_set():
            raise TimeoutError from error
        raise
    return connection


def _cut_after(connection: socket.socket, seconds: float, cut: threading.Event) -> AbstractContextManager[None]:
    """Shut the connection down after `seconds`: a time limit on each read would not stop a slow sender."""

    def shut() -> None:
        cut.set()
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # SSLSocket's own would pull TLS from under the reader

    return after(seconds, shut)


def _too_slow(where: str, seconds: float) -> UnreachableError:
    return UnreachableError(f"{where}: no complete answer within {seconds:.0f} seconds")


def _unreachable(where: str, error: Exception, seconds: float) -> UnreachableError:
    match error:
        case ssl.SSLCertVerificationError():
            reason = getattr(error, "verify_message", "") or str(error.args[-1])
            return UnreachableError(f"{where}: its TLS certificate is not trusted: {reason}", hint=_HINT_TRUST)
        case ssl.SSLError():
            return UnreachableError(f"{where}: TLS failed: {error.reason or 'the connection was cut'}")
        case socket.gaierror():
            return UnreachableError(f"{where}: no such host ({error.strerror})")
        case TimeoutError():
            return _too_slow(where, seconds)
        case UnicodeError():
            return UnreachableError(f"{where}: no such host")
        case ConnectionRefusedError():
            return UnreachableError(f"{where}: {error.strerror}", hint=_HINT_REFUSED)
        case OSError():
            return UnreachableError(f"{where}: {error.strerror or 'the connection was cut'}")
        case http.client.IncompleteRead():
            return UnreachableError(f"{where}: the answer ended early")
        case _:
            return UnreachableError(f"{where}: does not answer in HTTP ({type(error).__name__})")


_LONGEST_REASON = 400


class NotFoundError(UnreachableError):
    """The server has nothing at this path (HTTP 404)."""


@dataclass(frozen=True, slots=True)
class Client:
    """Sends requests to one server; without `trust` by plain HTTP. Credentials are sent in the request header only."""

    host: str
    port: int
    trust: Trust | None
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

    def _content(self, path: str, answer: HttpsAnswer) -> Value:
        if answer.status != 200:
            raise self._refusal(path, answer)
        return parse_json(answer.body, self._where(path))

    def send(self, method: str, path: str, body: Value = None) -> HttpsAnswer:
        """Return the answer to a request that changes something, whatever its status.

        Raise UnreachableError if it was not sent, NoAnswerError if nobody knows whether the server acted on it.
        """
        headers = {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        return self._request(method, path, headers, content, self.timeout)

    def _ask(self, path: str, until: float | None) -> HttpsAnswer:
        seconds = self.timeout if until is None else min(self.timeout, until - time.monotonic())
        if seconds <= 0:
            raise UnreachableError(f"{self._where(path)}: the cluster could not be read in time")
        return self._request("GET", path, {}, None, seconds)

    def _request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, seconds: float
    ) -> HttpsAnswer:
        if self.credentials:
            pair = f"{self.credentials.user}:{self.credentials.password}".encode()
            headers = {**headers, "Authorization": "Basic " + base64.b64encode(pair).decode()}
        request = HttpsRequest(method, self.host, self.port, path, headers, body)
        return ask(request, trust=self.trust, seconds=seconds, limit=self.limit)

    def _where(self, path: str) -> str:
        return f"rapi://{netloc(self.host, self.port)}: {path.partition('?')[0]}"

    def _refusal(self, path: str, answer: HttpsAnswer) -> GpolicyError:
        where = self._where(path)
        match answer.status:
            case 401 if self.credentials is None:
                file = f"{argument('rapi_credentials')} FILE"
                hint = f"give {file}, or {USER_VARIABLE} and {PASSWORD_VARIABLE}, or a netrc entry"
                return UnreachableError(f"{where}: requires a user and a password (HTTP 401)", hint=hint)
            case 401:
                return UnreachableError(f"{where}: refuses the user or the password (HTTP 401)")
            case 403:
                return UnreachableError(f"{where}: this user may not read it (HTTP 403)")
            case 404:
                hint = "is this the remote API of a Ganeti cluster, version 2?"
                return NotFoundError(f"{where}: not found (HTTP 404)", hint=hint)
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
    """Return host and port of `rapi://host[:port]`. Raise RequestError if it is anything else."""
    if "@" in address:  # the text before it may be a password and is not shown
        hint = f"credentials come from {argument('rapi_credentials')} FILE, the environment or netrc"
        raise RequestError("rapi: the address must not contain a user or password", hint=hint)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise RequestError("rapi: not a host and port", hint="write rapi://host or rapi://host:5080") from None
    extra = parts.path.strip("/") or parts.query or parts.fragment
    if not host or extra or host.startswith("-") or not host.isprintable() or " " in host or port == 0:
        raise RequestError(f"{address!r}: not a host and port", hint="write rapi://host or rapi://host:5080")
    return host, port or RAPI_PORT


def netloc(host: str, port: int) -> str:
    """Return host and port in the form of an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
