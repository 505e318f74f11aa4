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
STRANGER = {"id": 99, "login": "mallory", "username": "mallory", "type": "User"}


@dataclass
class Comments:
    """The comments and requests of the server; `may_write` and `knows_user` are rights of the token.

    `viewer` is whose token GitHub's GraphQL says it is; None where it may not be asked.
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
            token = self.headers.get("PRIVATE-TOKEN") or (self.headers.get("Authorization") or "").partition(" ")[2]
            sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            if parts.path in held.answers:
                return self._send(*held.answers[parts.path])
            if token != TOKEN:
                return self._json(401, {"message": "Bad credentials"})
            if parts.path == "/user":
                github = "Authorization" in self.headers
                known = held.knows_user or not github
                return self._json(200, BOT) if known else self._json(403, {"message": "Resource not accessible"})
            if parts.path == "/graphql":
                if held.viewer is None:
                    return self._json(403, {"message": "Resource not accessible by integration"})
                return self._json(200, {"data": {"viewer": {"login": held.viewer["login"]}}})
            if self.command == "GET" and _LIST.fullmatch(parts.path) and held.may_read:
                query = parse_qs(parts.query)
                if "limit" in query:  # Gitea has no pages of comments
                    return self._json(200, held.comments)
                size, page = int(query["per_page"][0]), int(query["page"][0])
                return self._json(200, held.comments[(page - 1) * size : page * size])
            if _ISSUES.fullmatch(parts.path) and (held.may_write or self.command == "GET"):
                return self._issues(parts.path, parse_qs(parts.query), sent)
            if not held.may_write:
                return self._json(403, {"message": "Resource not accessible by integration"})
            one = _ONE.fullmatch(parts.path)
            if self.command == "POST" and _LIST.fullmatch(parts.path):
                held.add(sent["body"], held.viewer or BOT)
                return self._json(201, held.comments[-1])
            if one and self.command == ("PATCH" if parts.path.startswith("/repos") else "PUT"):
                comment = next(item for item in held.comments if item["id"] == int(one[1]))
                comment["body"] = sent["body"]
                return self._json(200, comment)
            return self._json(404, {"message": "Not Found"})

        def _issues(self, path: str, query: dict[str, list[str]], sent: Any) -> None:
            on_github = path.startswith("/repos")
            one = (_ISSUES.fullmatch(path) or [None, None])[1]
            if self.command == "GET":
                assert query["state"] == ["open" if on_github else "opened"]
                found = [issue for issue in held.issues if issue["state"] == "open"]
                size = min(int(query["limit"][0]), 50) if "limit" in query else int(query["per_page"][0])
                page = int(query["page"][0])
                return self._json(200, found[(page - 1) * size : page * size])
            text = sent["body" if on_github else "description"]
            if self.command == "POST" and one is None:
                held.add_issue(text, held.viewer or BOT, title=sent["title"])
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
