"""Comments of a pull request on GitHub (or GitHub Enterprise), and issues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from gpolicy.errors import GpolicyError, UsageError
from gpolicy.posting.posted_texts import Api, NotAllowedError, Posts, token_of

LONGEST: Final = 65_536  # characters of a comment or an issue
_WORKFLOW: Final = "github-actions[bot]"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


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


_POSTS: Final = partial(Posts, method="PATCH", author=("user", "login"), mine=_login)


def comments(environ: Mapping[str, str]) -> Posts | None:
    """Return the comments of the pull request of a workflow; None if there is none. Raise UsageError.

    GitHub names it in the environment; the token is GITHUB_TOKEN. To the API it is an issue as well.
    """
    number = _request_number(environ)
    if number is None:
        return None
    api, repository = _repository(environ)
    path = f"{repository}/issues/{number}/comments"
    return _POSTS(api=api, listed=path, one=f"{repository}/issues/comments", called="GitHub: a comment")


def issues(environ: Mapping[str, str]) -> Posts:
    """Return the open issues of the repository. Raise UsageError."""
    api, repository = _repository(environ)
    path = f"{repository}/issues"
    return _POSTS(
        api=api,
        listed=f"{path}?state=open&sort=created&direction=asc",
        one=path,
        called="GitHub: an issue",
        keys=("number", "body"),
        closing={"state": "closed"},
    )


def _repository(environ: Mapping[str, str]) -> tuple[Api, str]:
    """Return the API with its token, and the path of the repository. Raise UsageError."""
    token, repository = token_of(environ, "GITHUB_TOKEN"), environ.get("GITHUB_REPOSITORY", "")
    if not token:
        raise UsageError("no token to write a comment with", hint="set GITHUB_TOKEN")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository!r}, not OWNER/NAME")
    headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
    return Api(environ.get("GITHUB_API_URL") or "https://api.github.com", headers), f"/repos/{repository}"


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
