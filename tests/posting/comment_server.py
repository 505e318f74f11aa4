"""A server that speaks as the comment APIs of GitHub, GitLab and Gitea do, as their documents describe them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

TOKEN = "s3cret-t0ken"  # noqa: S105 (nobody's)
BOT = {"id": 41, "login": "github-actions[bot]", "username": "project_7_bot", "type": "Bot"}
APP = {"id": 42, "login": "policy-app[bot]", "username": "app", "type": "Bot"}
GITEA = {"id": -2, "login": "gitea-actions"}
STRANGER = {"id": 99, "login": "mallory", "username": "mallory", "type": "User"}


@dataclass
class Comments:
    """The comments and requests of the server; `may_write` and `knows_user` are rights of the token.

    `viewer` is whose token GitHub's GraphQL says it is; None where it may not be asked. Below `base`/api/v1 it speaks
    as Gitea: all comments are one page, unless `most` says how many a page holds.
    """

    base: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    issues: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    may_write: bool = True
    may_read: bool = True
    knows_user: bool = False
    viewer: dict[str, Any] | None = None
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    most: int | None = None

    def add(self, body: str, user: dict[str, Any] = STRANGER) -> int:
        number = 1000 + len(self.comments)
        self.comments.append({"id": number, "body": body, "user": user, "author": user})
        return number

    def add_issue(self, body: str, user: dict[str, Any] = STRANGER, **more: Any) -> int:
        number = 1 + len(self.issues)
        made = {"number": number, "iid": number, "state": "open", "title": "", "user": user, "author": user}
        self.issues.append({**made, "id": 7000 + number, "body": body, "description": body, **more})
        return number

    def open_issues(self) -> list[str]:
        return [issue["body"] for issue in self.issues if issue["state"] == "open"]

    def page(
        self, items: list[dict[str, Any]], query: dict[str, str], key: str, most: int | None
    ) -> list[dict[str, Any]]:
        """Return the page that a query asks for, of at most `most` items; all items if the list has no pages."""
        size, number = min(int(query[key]), most or 1), int(query["page"])
        return items if most is None else items[(number - 1) * size : number * size]

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]


_LIST = re.compile(r"/repos/o/r/issues/7/comments|/projects/3/merge_requests/7/notes")
_ONE = re.compile(r"(?:/repos/o/r/issues/comments|/projects/3/merge_requests/7/notes)/([0-9]+)")
_ISSUES = re.compile(r"(?:/repos/o/r|/projects/3)/issues(?:/([0-9]+))?")


@contextmanager
def running() -> Iterator[Comments]:  # noqa: C901 (one answer after another)
    """Run a server; yield its comments."""
    held = Comments()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        do_PATCH = do_PUT = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            held.asked.append(f"{self.command} {self.path}")
            path = parts.path.removeprefix("/api/v1")
            on_gitea, on_github = path != parts.path, "PRIVATE-TOKEN" not in self.headers
            token = self._token("token" if on_gitea else "Bearer")
            bot = GITEA if on_gitea else held.viewer or BOT
            sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            if path in held.answers:
                return self._send(*held.answers[path])
            if token != TOKEN:
                return self._json(401, {"message": "Bad credentials"})
            if path == "/user":
                known = held.knows_user or not on_github
                return self._json(200, bot) if known else self._json(403, {"message": "Resource not accessible"})
            if path == "/graphql" and not on_gitea:
                if held.viewer is None:
                    return self._json(403, {"message": "Resource not accessible by integration"})
                return self._json(200, {"data": {"viewer": {"login": held.viewer["login"]}}})
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if self.command == "GET" and _LIST.fullmatch(path) and held.may_read:
                if on_gitea:
                    return self._json(200, held.page(held.comments, query, "limit", held.most))
                return self._json(200, held.page(held.comments, query, "per_page", 100))
            if _ISSUES.fullmatch(path) and (held.may_write or self.command == "GET"):
                return self._issues(path, query, sent, bot)
            if not held.may_write:
                return self._json(403, {"message": "Resource not accessible by integration"})
            one = _ONE.fullmatch(path)
            if self.command == "POST" and _LIST.fullmatch(path):
                held.add(sent["body"], bot)
                return self._json(201, held.comments[-1])
            if one and self.command == ("PATCH" if path.startswith("/repos") else "PUT"):
                comment = next(item for item in held.comments if item["id"] == int(one[1]))
                comment["body"] = sent["body"]
                return self._json(200, comment)
            return self._json(404, {"message": "Not Found"})

        def _token(self, scheme: str) -> str:
            of_github = (self.headers.get("Authorization") or "").removeprefix(f"{scheme} ")
            return self.headers.get("PRIVATE-TOKEN") or of_github

        def _issues(self, path: str, query: dict[str, str], sent: Any, bot: dict[str, Any]) -> None:
            on_github = path.startswith("/repos")
            one = (_ISSUES.fullmatch(path) or [None, None])[1]
            if self.command == "GET":
                assert query["state"] == ("open" if on_github else "opened")
                found = [issue for issue in held.issues if issue["state"] == "open"]
                key, most = ("limit", held.most or 50) if "limit" in query else ("per_page", 100)
                return self._json(200, held.page(found, query, key, most))
            text = sent["body" if on_github else "description"]
            if self.command == "POST" and one is None:
                held.add_issue(text, bot, title=sent["title"])
                return self._json(201, held.issues[-1])
            if one is None or self.command != ("PATCH" if on_github else "PUT"):
                return self._json(404, {"message": "Not Found"})
            kept = held.issues[int(one) - 1]
            closes = sent.get("state") == "closed" if on_github else sent.get("state_event") == "close"
            kept |= {"body": text, "description": text, "state": "closed" if closes else "open"}
            return self._json(200, kept)

        def _json(self, code: int, value: Any) -> None:
            self._send(code, json.dumps(value).encode())

        def _send(self, code: int, body: bytes) -> None:
            self.send_response(code)
            if code == 302:
                self.send_header("Location", f"{held.base}/user")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Comments]:
    with running() as held:
        yield held
