"""Notes of a merge request on GitLab."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpolicy.errors import UsageError
from gpolicy.posting.json_api import Api, token_of
from gpolicy.posting.posted_comments import PostedComment, read_comments


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The notes of a merge request."""

    api: Api
    project: int
    number: int
    longest: int = 1_000_000

    def comments(self) -> Iterator[PostedComment]:
        """Yield the notes, oldest first."""
        found = self.api.pages(f"{self._path}?sort=asc&order_by=created_at")
        return read_comments(found, written_by_us(self.api), "GitLab: a note")

    def update(self, number: int, text: str) -> None:
        """Replace the text of a note."""
        self.api.ask("PUT", f"{self._path}/{number}", {"body": text})

    def create(self, text: str) -> None:
        """Write a new note."""
        self.api.ask("POST", self._path, {"body": text})

    @property
    def _path(self) -> str:
        return f"/projects/{self.project}/merge_requests/{self.number}/notes"


def written_by_us(api: Api) -> Callable[[Mapping[str, Any]], bool]:
    """Return whether a note or an issue is by the owner of our token."""
    user = api.ask("GET", "/user")
    mine = user.get("id") if isinstance(user, dict) else None

    def is_ours(item: Mapping[str, Any]) -> bool:
        author = item.get("author")
        return isinstance(author, dict) and mine is not None and author.get("id") == mine

    return is_ours


def merge_request(environ: Mapping[str, str]) -> MergeRequest | None:
    """Return the merge request of a pipeline; None if there is none. Raise UsageError.

    GitLab names it in the environment. The token is GPOLICY_GITLAB_TOKEN, a project token with the scope `api`: that of
    the job may not write notes.
    """
    if not environ.get("CI_MERGE_REQUEST_IID"):
        return None
    return MergeRequest(*gitlab(environ), _number(environ, "CI_MERGE_REQUEST_IID"))


def gitlab(environ: Mapping[str, str]) -> tuple[Api, int]:
    """Return the API with its token, and the number of the project. Raise UsageError."""
    token, project = token_of(environ, "GPOLICY_GITLAB_TOKEN"), _number(environ, "CI_PROJECT_ID")
    if not token:
        raise UsageError("no token to write a note with", hint="set GPOLICY_GITLAB_TOKEN to a token with the scope api")
    return Api(environ.get("CI_API_V4_URL", ""), {"PRIVATE-TOKEN": token}), project


def _number(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise UsageError(f"{name} is {value!r}, not a number")
    return int(value)
