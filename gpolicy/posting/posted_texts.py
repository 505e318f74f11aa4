"""Texts of ours on GitHub, GitLab or Gitea: comments or issues, found again by a hidden marker, and replaced.

Kept are one comment on a pull or merge request with the texts of files, or one issue with them while there is drift.
The JSON APIs are asked over https; the token is sent nowhere else.
"""

from __future__ import annotations

import itertools
import json
import re
import ssl
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

from gpolicy.errors import ExitCode, GpolicyError, InputError, UnreachableError, UsageError
from gpolicy.printable import some

_CLEAN: Final = re.compile(r"[^A-Za-z0-9._/]+")
_LONGEST_NAME: Final = 100
_MOST: Final = 10_000  # comments of one request, or issues, that are searched


class NotAllowedError(Exception):
    """The token does not allow the request, such as that of a pull request from a fork."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posts:
    """The comments of one request, or the issues of one repository.

    `listed` is the path of their list, oldest first, and without its query that of a new one; `one` begins each one's.
    `method` replaces a text. `keys` are those of its number and of the text, `closing` what closes an issue. `author`
    is the key of who wrote an item, with the key that tells authors apart; `mine` returns what that says of the owner
    of our token, None if nobody knows. Errors call one `called`.
    """

    api: Api
    listed: str
    one: str
    method: str
    called: str
    author: tuple[str, str]
    mine: Callable[[Api], object]
    keys: tuple[str, str] = ("id", "body")
    closing: Mapping[str, str] = field(default_factory=dict)

    def ours(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of those that the owner of our token wrote, oldest first.

        Raise NotAllowedError or InputError. GitHub lists requests among its issues.
        """
        items = (item for item in self.api.pages(self.listed) if "pull_request" not in item)
        (author, identity), mine = self.author, self.mine(self.api)
        for item in itertools.islice(items, _MOST):
            number = item.get(self.keys[0])
            if not isinstance(number, int):
                raise InputError(f"{self.api.base}: {self.called} without a number")
            wrote = item.get(author)
            if isinstance(wrote, dict) and mine is not None and wrote.get(identity) == mine:
                yield number, str(item.get(self.keys[1]) or "")

    def create(self, text: str, title: str = "") -> None:
        """Write a new one, an issue with its title. Raise NotAllowedError."""
        self.api.ask("POST", self.listed.partition("?")[0], {**({"title": title} if title else {}), self.keys[1]: text})

    def update(self, number: int, text: str, *, close: bool) -> None:
        """Replace a text, and close the issue if asked to. Raise NotAllowedError."""
        self.api.ask(self.method, f"{self.one}/{number}", {self.keys[1]: text, **(self.closing if close else {})})


def marker(name: str) -> str:
    """Return the hidden first line of the text called `name`."""
    return f"<!-- gpolicy: {_CLEAN.sub('-', name)[:_LONGEST_NAME].strip('-') or 'policy'} -->"


def whole_text(name: str, text: str) -> str:
    """Return what the comment or issue called `name` contains: its marker and `text`."""
    return f"{marker(name)}\n{text}"


def post(posts: Posts, name: str, text: str, *, title: str = "", begin: bool = True, close: bool = False) -> str:
    """Make `text` the comment or issue called `name`; without `begin` only if there is one. Return what became of it.

    Only a text of our own is replaced: another user could write one with our marker first and change it later. An issue
    that was closed stays closed: what is new gets a new one. Raise NotAllowedError.
    """
    whole = whole_text(name, text)
    known = next(((number, said) for number, said in posts.ours() if said.startswith(marker(name))), None)
    if known is None:
        if close or not begin:
            return "is not needed"
        posts.create(whole, title)
        return "written"
    number, said = known
    if not close and said.replace("\r\n", "\n").rstrip() == whole.rstrip():  # services change ends of lines
        return "is unchanged"
    posts.update(number, whole, close=close)
    return "closed" if close else "updated"


_LARGEST: Final = 32 * 1024**2
_PAGE: Final = 100
_REQUEST_SECONDS: Final = 30.0
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NOT_ALLOWED: Final = frozenset({401, 403, 404})  # GitHub answers 404 if a token may not see something


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect, which would send the token elsewhere.

    A proxy is used for https tunnels only. The keys of connections are not written to a file, as Python's default
    context does if SSLKEYLOGFILE is set.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    proxies = {scheme: proxy for scheme, proxy in urllib.request.getproxies().items() if scheme == "https"}
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler(proxies))
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler(context=context))
    opener.add_handler(urllib.request.HTTPDefaultErrorHandler())
    opener.add_handler(urllib.request.HTTPErrorProcessor())
    return opener


def token_of(environ: Mapping[str, str], name: str) -> str:
    """Return the token in a variable. Raise UsageError, which does not show it, if it is not valid in a header."""
    token = environ.get(name, "").strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{name} is not a valid token")
    return token


@dataclass(frozen=True, slots=True)
class Api:
    """An API below `base`. `headers` hold the token: they are not shown. `page_key` says how long a page may be."""

    base: str
    headers: dict[str, str] = field(repr=False)
    page_key: str = "per_page"

    def __post_init__(self) -> None:
        """Raise UsageError for an address that must not get a token."""
        if "@" in self.base:  # the text before it may be a password and is not shown
            raise UsageError("the address of the API holds a user or a password")
        parts = urlsplit(self.base)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise UsageError(f"{self.base!r}: the address of the API should begin with https://")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer. Raise NotAllowedError, UnreachableError or InputError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "gpolicy", **self.headers}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base.rstrip("/") + path, data, headers, method=method)  # noqa: S310 (checked)
        what = f"{method} {urlsplit(request.full_url).path}"
        try:
            with _opener().open(request, timeout=_REQUEST_SECONDS) as answer:
                text = answer.read(_LARGEST + 1)
        except HTTPError as error:
            error.close()
            if error.code in _NOT_ALLOWED:
                raise NotAllowedError(f"{what}: {error.code} {error.reason}") from None
            raise UnreachableError(f"{what}: the API answers {error.code} {error.reason}") from None
        except (OSError, HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise UnreachableError(f"{urlsplit(self.base).hostname} does not answer {what}: {why}") from None
        if len(text) > _LARGEST:
            raise InputError(f"{what}: the answer is larger than {_LARGEST // 1024**2} MiB")
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise InputError(f"{what}: the answer is not JSON") from None

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the items of all pages of a list.

        A service may give fewer items than it is asked for, and Gitea gives all comments whatever page it is asked for.
        So the list ends with a page that is empty, or begins as the one before.
        """
        begins = None
        for number in itertools.count(1):
            page = self.ask("GET", f"{path}{'&' if '?' in path else '?'}{self.page_key}={_PAGE}&page={number}")
            if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
                raise InputError(f"GET {path.partition('?')[0]}: the answer is not a list of objects")
            if not page or page[0] == begins:
                return
            yield from page
            begins = page[0]


_GITEA_WORKFLOW: Final = -2  # of Gitea and Forgejo, which call it by different names
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


def _login(api: Api) -> str:
    """Return the login of a token.

    GraphQL tells it for users, workflows and apps, REST only for users. If neither does, the token counts as a
    workflow's: comments of other bots then stay unchanged.
    """
    graph = replace(api, base=api.base.rstrip("/").removesuffix("/v3"))  # of an Enterprise: /api/v3
    for asked, *words in ((graph, "POST", "/graphql", {"query": "{viewer{login}}"}), (api, "GET", "/user")):
        with suppress(NotAllowedError, GpolicyError):
            match asked.ask(*words):
                case {"data": {"viewer": {"login": str(login)}}} | {"login": str(login)} if login:
                    return login
    return "github-actions[bot]"


def _user(api: Api) -> object:
    user = api.ask("GET", "/user")
    return user.get("id") if isinstance(user, dict) else None


def _gitea_user(api: Api) -> object:
    try:
        return _user(api)
    except NotAllowedError:
        return _GITEA_WORKFLOW


def _github_comments(environ: Mapping[str, str], *, gitea: bool = False) -> Posts | None:
    """Return the comments of the pull request of a workflow; None if there is none. Raise UsageError.

    GitHub names it in the environment, and so do Gitea and Forgejo, whose API is alike; the token is GITHUB_TOKEN. To
    the API it is an issue as well.
    """
    number = _request_number(environ)
    if number is None:
        return None
    posts, repository = _in_repository(environ, gitea=gitea)
    path = f"{repository}/issues/{number}/comments"
    return posts(listed=path, one=f"{repository}/issues/comments", called="a comment")


def _github_issues(environ: Mapping[str, str], *, gitea: bool = False) -> Posts:
    posts, repository = _in_repository(environ, gitea=gitea)
    path = f"{repository}/issues"
    return posts(
        listed=f"{path}?state=open&sort=created&direction=asc",
        one=path,
        called="an issue",
        keys=("number", "body"),
        closing={"state": "closed"},
    )


def _in_repository(environ: Mapping[str, str], *, gitea: bool) -> tuple[partial[Posts], str]:
    """Return what all texts in the repository of a workflow have in common, and its path in the API."""
    token, repository = token_of(environ, "GITHUB_TOKEN"), environ.get("GITHUB_REPOSITORY", "")
    if not token:
        raise UsageError("no token to write a comment with", hint="set GITHUB_TOKEN")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository!r}, not OWNER/NAME")
    base = environ.get("GITHUB_API_URL", "")
    if gitea:
        api = Api(base, {"Authorization": f"token {token}"}, page_key="limit")
        posts = partial(Posts, api=api, author=("user", "id"), mine=_gitea_user)
    else:
        headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
        api = Api(base or "https://api.github.com", headers)
        posts = partial(Posts, api=api, author=("user", "login"), mine=_login)
    return partial(posts, method="PATCH"), f"/repos/{repository}"


def _request_number(environ: Mapping[str, str]) -> int | None:
    path = environ.get("GITHUB_EVENT_PATH")
    if path:
        try:
            event = json.loads(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"GITHUB_EVENT_PATH: {error}") from None
        match event:
            case {"pull_request": {"number": int(number)}}:
                return number
    found = re.fullmatch(r"refs/pull/([0-9]{1,12})/.*", environ.get("GITHUB_REF", ""))
    return int(found[1]) if found else None


_ON_GITLAB: Final = partial(Posts, method="PUT", author=("author", "id"), mine=_user)


def _gitlab_comments(environ: Mapping[str, str]) -> Posts | None:
    """Return the notes of the merge request of a pipeline; None if there is none. Raise UsageError.

    GitLab names it in the environment. The token is GPOLICY_GITLAB_TOKEN, a project token with the scope `api`: that of
    the job may not write notes.
    """
    if not environ.get("CI_MERGE_REQUEST_IID"):
        return None
    api, project = _project(environ)
    path = f"{project}/merge_requests/{_read_variable(environ, 'CI_MERGE_REQUEST_IID')}/notes"
    return _ON_GITLAB(api=api, listed=f"{path}?sort=asc&order_by=created_at", one=path, called="a note")


def _gitlab_issues(environ: Mapping[str, str]) -> Posts:
    api, project = _project(environ)
    path = f"{project}/issues"
    return _ON_GITLAB(
        api=api,
        listed=f"{path}?state=opened&order_by=created_at&sort=asc",
        one=path,
        called="an issue",
        keys=("iid", "description"),
        closing={"state_event": "close"},
    )


def _project(environ: Mapping[str, str]) -> tuple[Api, str]:
    token, project = token_of(environ, "GPOLICY_GITLAB_TOKEN"), _read_variable(environ, "CI_PROJECT_ID")
    if not token:
        raise UsageError("no token to write a note with", hint="set GPOLICY_GITLAB_TOKEN to a token with the scope api")
    return Api(environ.get("CI_API_V4_URL", ""), {"PRIVATE-TOKEN": token}), f"/projects/{project}"


def _read_variable(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise UsageError(f"{name} is {value!r}, not a number")
    return int(value)


@dataclass(frozen=True, slots=True)
class Service:
    """Where texts are posted: the most characters of one, the comments of a request (None without one), the issues."""

    longest: int
    comments: Callable[[Mapping[str, str]], Posts | None]
    issues: Callable[[Mapping[str, str]], Posts]


SERVICES: Final = {
    "github": Service(65_536, _github_comments, _github_issues),
    "gitlab": Service(1_000_000, _gitlab_comments, _gitlab_issues),
    "gitea": Service(65_536, partial(_github_comments, gitea=True), partial(_github_issues, gitea=True)),
}


def keep_comment(
    service: Service, name: str, files: Sequence[Path], environ: Mapping[str, str], *, only_update: bool, shown: bool
) -> str:
    """Keep a comment with the texts of `files`, one below the other; return what became of it.

    `name` tells comments apart. `only_update` begins no comment; `shown` writes it to standard output, and asks nobody.
    Raise NotAllowedError, and errors of the service.
    """
    text = _texts(files)
    posts = None if shown else service.comments(environ)
    if posts is None and not shown:
        return "no comment: this is not a pull request or merge request"
    if not text:
        missing = [str(file) for file in files if not file.exists()]
        return f"no comment: there is nothing to post{f' (not there: {some(missing)})' if missing else ''}"
    _refuse_long(text, name, service.longest)
    if posts is None:
        try:
            sys.stdout.buffer.write(f"{whole_text(name, text)}\n".encode())
            sys.stdout.buffer.flush()
        except OSError as error:
            raise InputError(f"standard output: {error.strerror}") from None
        return f"the comment {marker(name)} is printed, not written"
    return f"the comment {marker(name)} {post(posts, name, text, begin=not only_update)}"


def keep_issue(service: Service, name: str, files: Iterable[Path], environ: Mapping[str, str], code: int) -> str:
    """Keep an issue for an exit code of `gpolicy drift`; return what became of it.

    With 2 it is open with the texts of `files`, with 0 it is closed, with another it stays as it is. Raise
    NotAllowedError, and errors of the service.
    """
    if code not in (ExitCode.FINE, ExitCode.CHANGES):
        return f"the issue {marker(name)} stays: exit code {code} says nothing of the cluster"
    text = _texts(files)
    posts = service.issues(environ)
    _refuse_long(text, name, service.longest)
    return f"the issue {marker(name)} {post(posts, name, text, title=name, close=code == ExitCode.FINE)}"


def _texts(files: Iterable[Path]) -> str:
    return "\n\n".join(filter(None, map(_read_report, files)))


def _refuse_long(text: str, name: str, longest: int) -> None:
    if len(whole_text(name, text)) > longest:
        raise UsageError(f"{len(text)} characters are too many for a comment", hint="give --format markdown a --budget")


def _read_report(file: Path) -> str:
    """Return the text of a file; empty if it does not exist, since its job had nothing to report."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
