"""Texts of ours on GitHub or GitLab, comments of a request or issues: found again by a hidden marker, and replaced."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.posting.json_api import Api

_CLEAN: Final = re.compile(r"[^A-Za-z0-9._/]+")
_LONGEST_NAME: Final = 100
_MOST: Final = 10_000  # comments of one request, or issues, that are searched


class NotAllowedError(Exception):
    """The token does not allow the request, such as that of a pull request from a fork."""


@dataclass(frozen=True, slots=True)
class PostedText:
    """A comment or an issue: its number, its text, and whether the owner of our token wrote it."""

    number: int
    text: str
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Posts:
    """The comments of one request, or the issues of one repository.

    `listed` is the path of their list, oldest first, `new` that of a new one, `one` the beginning of that of each.
    `method` replaces a text. `keys` are those of its number and of the text, `closing` what closes an issue. `ours`
    returns whether the owner of our token wrote an item. Errors call one `called`.
    """

    api: Api
    listed: str
    new: str
    one: str
    method: str
    called: str
    ours: Callable[[Api], Callable[[Mapping[str, Any]], bool]]
    keys: tuple[str, str] = ("id", "body")
    closing: Mapping[str, str] = field(default_factory=dict)

    def all(self) -> Iterator[PostedText]:
        """Yield them, oldest first. Raise NotAllowedError or InputError. GitHub lists requests among its issues."""
        items = (item for item in self.api.pages(self.listed) if "pull_request" not in item)
        is_ours = self.ours(self.api)
        for item in itertools.islice(items, _MOST):
            number = item.get(self.keys[0])
            if not isinstance(number, int):
                raise InputError(f"{self.called} without a number")
            yield PostedText(number, str(item.get(self.keys[1]) or ""), is_ours(item))

    def create(self, text: str, title: str = "") -> None:
        """Write a new one, an issue with its title. Raise NotAllowedError."""
        self.api.ask("POST", self.new, {**({"title": title} if title else {}), self.keys[1]: text})

    def update(self, number: int, text: str, *, close: bool) -> None:
        """Replace a text, and close the issue if asked to. Raise NotAllowedError."""
        self.api.ask(self.method, f"{self.one}/{number}", {self.keys[1]: text, **(self.closing if close else {})})


class Posted(Enum):
    """The result of posting a text."""

    UPDATED = "updated"
    UNCHANGED = "is unchanged"
    CREATED = "written"
    CLOSED = "closed"
    NONE = "is not needed"


def marker(name: str) -> str:
    """Return the hidden first line of the text called `name`."""
    return f"<!-- gpolicy: {_CLEAN.sub('-', name)[:_LONGEST_NAME].strip('-') or 'policy'} -->"


def whole_text(name: str, text: str) -> str:
    """Return what the comment or issue called `name` contains: its marker and `text`."""
    return f"{marker(name)}\n{text}"


def post(posts: Posts, name: str, text: str, *, title: str = "", begin: bool = True, close: bool = False) -> Posted:
    """Make `text` the comment or issue called `name`; without `begin` only if there is one. Raise NotAllowedError.

    Only a text of our own is replaced: another user could write one with our marker first and change it later. An issue
    that was closed stays closed: what is new gets a new one.
    """
    whole = whole_text(name, text)
    known = next((item for item in posts.all() if item.ours and item.text.startswith(marker(name))), None)
    if known is None:
        if close or not begin:
            return Posted.NONE
        posts.create(whole, title)
        return Posted.CREATED
    if not close and known.text.replace("\r\n", "\n").rstrip() == whole.rstrip():  # services change ends of lines
        return Posted.UNCHANGED
    posts.update(known.number, whole, close=close)
    return Posted.CLOSED if close else Posted.UPDATED
