"""One issue that is open while there is something to say: found again by its hidden marker, updated, closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpolicy.posting import merge_request, pull_request
from gpolicy.posting.json_api import Api
from gpolicy.posting.posted_comments import Posted, PostedComment, marker, own, read_comments, says


class Issues(Protocol):
    """The issues of a repository."""

    @property
    def longest(self) -> int:
        """The greatest number of characters of an issue."""

    def open_issues(self) -> Iterator[PostedComment]:
        """Yield the open issues, oldest first."""

    def create(self, title: str, text: str) -> None:
        """Open a new issue."""

    def update(self, number: int, text: str, *, close: bool) -> None:
        """Replace the text of an issue, and close it if asked to."""


@dataclass(frozen=True, slots=True)
class GithubIssues:
    """Issues on GitHub. Its list has the pull requests as well."""

    api: Api
    repository: str
    longest: int = 65_536

    def open_issues(self) -> Iterator[PostedComment]:
        """Yield the open issues, oldest first."""
        found = self.api.pages(f"{self._path}?state=open&sort=created&direction=asc")
        issues = (item for item in found if "pull_request" not in item)
        ours = pull_request.written_by_us(self.api)
        return read_comments(issues, ours, "GitHub: an issue", keys=("number", "body"))

    def create(self, title: str, text: str) -> None:
        """Open a new issue."""
        self.api.ask("POST", self._path, {"title": title, "body": text})

    def update(self, number: int, text: str, *, close: bool) -> None:
        """Replace the text of an issue, and close it if asked to."""
        self.api.ask("PATCH", f"{self._path}/{number}", {"body": text, **({"state": "closed"} if close else {})})

    @property
    def _path(self) -> str:
        return f"/repos/{self.repository}/issues"


@dataclass(frozen=True, slots=True)
class GitlabIssues:
    """Issues on GitLab."""

    api: Api
    project: int
    longest: int = 1_000_000

    def open_issues(self) -> Iterator[PostedComment]:
        """Yield the open issues, oldest first."""
        found = self.api.pages(f"{self._path}?state=opened&order_by=created_at&sort=asc")
        ours = merge_request.written_by_us(self.api)
        return read_comments(found, ours, "GitLab: an issue", keys=("iid", "description"))

    def create(self, title: str, text: str) -> None:
        """Open a new issue."""
        self.api.ask("POST", self._path, {"title": title, "description": text})

    def update(self, number: int, text: str, *, close: bool) -> None:
        """Replace the text of an issue, and close it if asked to."""
        event = {"state_event": "close"} if close else {}
        self.api.ask("PUT", f"{self._path}/{number}", {"description": text, **event})

    @property
    def _path(self) -> str:
        return f"/projects/{self.project}/issues"


def issues_of(kind: str, environ: Mapping[str, str]) -> Issues:
    """Return the issues of the repository that the environment names. Raise UsageError."""
    return (
        GithubIssues(*pull_request.github(environ))
        if kind == "github"
        else GitlabIssues(*merge_request.gitlab(environ))
    )


def keep_issue(issues: Issues, name: str, text: str, *, is_open: bool) -> Posted:
    """Make `text` the issue called `name`, open or closed. Raise NotAllowedError.

    Only an open issue of our own is replaced or closed. One that was closed stays closed: what is new gets a new one.
    """
    first = marker(name)
    whole = f"{first}\n{text}"
    issue = own(issues.open_issues(), first)
    if issue is None:
        if not is_open:
            return Posted.NONE
        issues.create(name, whole)
        return Posted.CREATED
    if not is_open:
        issues.update(issue.number, whole, close=True)
        return Posted.CLOSED
    if says(issue, whole):
        return Posted.UNCHANGED
    issues.update(issue.number, whole, close=False)
    return Posted.UPDATED
