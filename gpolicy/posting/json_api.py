"""Ask a JSON API over https, with a token that goes nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from gpolicy.errors import InputError, UnreachableError, UsageError
from gpolicy.posting.comments import NotAllowedError

_LARGEST: Final = 32 * 1024**2
_SECONDS: Final = 30.0
_PAGE: Final = 100  # the most that both services give at once
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NOT_ALLOWED: Final = frozenset({401, 403, 404})  # GitHub says 404 of what a token may not see


def _opener() -> OpenerDirector:
    """Return an opener that follows no redirect: it would take the token to another place."""
    opener = OpenerDirector()
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener


@dataclass(frozen=True, slots=True)
class Api:
    """An API below `base`. `headers` hold the token: they are not shown."""

    base: str
    headers: dict[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        """Raise UsageError for an address to which no token should go."""
        parts = urlsplit(self.base)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise UsageError(f"{self.base!r}: the address of the API should begin with https://")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer. Raise NotAllowedError, UnreachableError or InputError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "gpolicy", **self.headers}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = Request(self.base.rstrip("/") + path, data, headers, method=method)  # noqa: S310 (checked above)
        what = f"{method} {urlsplit(request.full_url).path}"
        try:
            with _opener().open(request, timeout=_SECONDS) as answer:
                text = answer.read(_LARGEST + 1)
        except HTTPError as error:
            error.close()
            if error.code in _NOT_ALLOWED:
                raise NotAllowedError(f"{what}: {error.code} {error.reason}") from None
            raise UnreachableError(f"{what}: the API answers {error.code} {error.reason}") from None
        except (OSError, HTTPException) as error:
            raise UnreachableError(f"{what}: {getattr(error, 'reason', None) or error}") from None
        if len(text) > _LARGEST:
            raise InputError(f"{what}: the answer is larger than {_LARGEST // 1024**2} MiB")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise InputError(f"{what}: the answer is no JSON") from None

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list."""
        number = 1
        while True:
            page = self.ask("GET", f"{path}{'&' if '?' in path else '?'}per_page={_PAGE}&page={number}")
            if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
                raise InputError(f"GET {path.partition('?')[0]}: the answer is no list of objects")
            yield from page
            if len(page) < _PAGE:
                return
            number += 1
