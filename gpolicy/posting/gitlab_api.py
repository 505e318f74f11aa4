"""Notes of a merge request on GitLab, and issues."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from gpolicy.errors import UsageError
from gpolicy.posting.posted_texts import Api, Posts, token_of

LONGEST: Final = 1_000_000  # characters of a comment or an issue


def _user(api: Api) -> object:
    """Return the number of the owner of our token."""
    user = api.ask("GET", "/user")
    return user.get("id") if isinstance(user, dict) else None


_POSTS: Final = partial(Posts, method="PUT", author=("author", "id"), mine=_user)


def comments(environ: Mapping[str, str]) -> Posts | None:
    """Return the notes of the merge request of a pipeline; None if there is none. Raise UsageError.

    GitLab names it in the environment. The token is GPOLICY_GITLAB_TOKEN, a project token with the scope `api`: that of
    the job may not write notes.
    """
    if not environ.get("CI_MERGE_REQUEST_IID"):
        return None
    api, project = _project(environ)
    path = f"{project}/merge_requests/{_number(environ, 'CI_MERGE_REQUEST_IID')}/notes"
    return _POSTS(api=api, listed=f"{path}?sort=asc&order_by=created_at", one=path, called="GitLab: a note")


def issues(environ: Mapping[str, str]) -> Posts:
    """Return the open issues of the project. Raise UsageError."""
    api, project = _project(environ)
    path = f"{project}/issues"
    return _POSTS(
        api=api,
        listed=f"{path}?state=opened&order_by=created_at&sort=asc",
        one=path,
        called="GitLab: an issue",
        keys=("iid", "description"),
        closing={"state_event": "close"},
    )


def _project(environ: Mapping[str, str]) -> tuple[Api, str]:
    """Return the API with its token, and the path of the project. Raise UsageError."""
    token, project = token_of(environ, "GPOLICY_GITLAB_TOKEN"), _number(environ, "CI_PROJECT_ID")
    if not token:
        raise UsageError("no token to write a note with", hint="set GPOLICY_GITLAB_TOKEN to a token with the scope api")
    return Api(environ.get("CI_API_V4_URL", ""), {"PRIVATE-TOKEN": token}), f"/projects/{project}"


def _number(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise UsageError(f"{name} is {value!r}, not a number")
    return int(value)
