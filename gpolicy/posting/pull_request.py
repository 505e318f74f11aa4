"""Comments of a pull request on GitHub (or GitHub Enterprise)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from gpolicy.errors import GpolicyError, UsageError
from gpolicy.posting.json_api import Api, token_of
from gpolicy.posting.posted_comments import NotAllowedError, PostedComment, read_comments

_WORKFLOW: Final = "github-actions[bot]"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The comments of a pull request (to the API it is an issue as well)."""

    api: Api
    repository: str
    number: int
    longest: int = 65_536

    def comments(self) -> Iterator[PostedComment]:
        """Yield the comments, oldest first."""
        found = self.api.pages(f"/repos/{self.repository}/issues/{self.number}/comments")
        return read_comments(found, written_by_us(self.api), "GitHub: a comment")

    def update(self, number: int, text: str) -> None:
        """Replace the text of a comment."""
        self.api.ask("PATCH", f"/repos/{self.repository}/issues/comments/{number}", {"body": text})

    def create(self, text: str) -> None:
        """Write a new comment."""
        self.api.ask("POST", f"/repos/{self.repository}/issues/{self.number}/comments", {"body": text})


def written_by_us(api: Api) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether a comment or an issue is by the owner of our token."""
    login = _login(api)

    def is_ours(item: Mapping[str, Any]) -> bool:
        user = item.get("user")
        return isinstance(user, dict) and user.get("login") == login

    return is_ours


def _login(api: Api) -> str:
    """Return the login of a token.

    GraphQL tells it for users, workflows and apps, REST only for users. If neither does, the token counts as a
    workflow's: comments of other bots then stay unchanged.
    """
    graph = replace(api, base=api.base.rstrip("/").removesuffix("/v3"))  # of an Enterprise: /api/v3
    for asked, method, path, body in (
        (graph, "POST", "/graphql", {"query": "{viewer{login}}"}),
        (api, "GET", "/user", None),
    ):
        try:
            answer = asked.ask(method, path, body)
        except (NotAllowedError, GpolicyError):
            continue
        for key in ("data", "viewer") if body else ():
            answer = answer.get(key) if isinstance(answer, dict) else None
        if isinstance(answer, dict) and isinstance(answer.get("login"), str) and answer["login"]:
            return str(answer["login"])
    return _WORKFLOW


def pull_request(environ: Mapping[str, str]) -> PullRequest | None:
    """Return the pull request of a workflow; None if there is none. Raise UsageError.

    GitHub names it in the environment; the token is GITHUB_TOKEN.
    """
    number = _request_number(environ)
    return None if number is None else PullRequest(*github(environ), number)


def github(environ: Mapping[str, str]) -> tuple[Api, str]:
    """Return the API with its token, and the repository OWNER/NAME. Raise UsageError."""
    token, repository = token_of(environ, "GITHUB_TOKEN"), environ.get("GITHUB_REPOSITORY", "")
    if not token:
        raise UsageError("no token to write a comment with", hint="set GITHUB_TOKEN")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository!r}, not OWNER/NAME")
    headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
    return Api(environ.get("GITHUB_API_URL") or "https://api.github.com", headers), repository


def _request_number(environ: Mapping[str, str]) -> int | None:
    path = environ.get("GITHUB_EVENT_PATH")
    if path:
        try:
            event = json.loads(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"GITHUB_EVENT_PATH: {error}") from None
        request = event.get("pull_request") if isinstance(event, dict) else None
        number = request.get("number") if isinstance(request, dict) else None
        if isinstance(number, int):
            return number
    found = re.fullmatch(r"refs/pull/([0-9]{1,12})/.*", environ.get("GITHUB_REF", ""))
    return int(found[1]) if found else None
