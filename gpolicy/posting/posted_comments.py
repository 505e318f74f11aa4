"""Find the comment of an earlier run by its hidden marker and replace it, else write a new one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from gpolicy.errors import InputError

_CLEAN: Final = re.compile(r"[^A-Za-z0-9._/]+")
_LONGEST_NAME: Final = 100
_MOST_COMMENTS: Final = 10_000  # of one request that are searched


@dataclass(frozen=True, slots=True)
class PostedComment:
    """A comment: its number, its text, and whether the owner of our token wrote it."""

    number: int
    text: str
    ours: bool


def read_comments(
    items: Iterable[Mapping[str, Any]],
    is_ours: Callable[[Mapping[str, Any]], bool],
    called: str,
    *,
    keys: tuple[str, str] = ("id", "body"),
) -> Iterator[PostedComment]:
    """Yield comments from the items of an API, at most 10,000. Raise InputError.

    `called` is what errors name one, `keys` are those of its number and its text.
    """
    for item in itertools.islice(items, _MOST_COMMENTS):
        number = item.get(keys[0])
        if not isinstance(number, int):
            raise InputError(f"{called} without a number")
        yield PostedComment(number, str(item.get(keys[1]) or ""), is_ours(item))


class NotAllowedError(Exception):
    """The token does not allow the request, such as that of a pull request from a fork."""


class Service(Protocol):
    """The comments of one request."""

    @property
    def longest(self) -> int:
        """The greatest number of characters of a comment."""

    def comments(self) -> Iterator[PostedComment]:
        """Yield the comments, oldest first. Raise NotAllowedError."""

    def update(self, number: int, text: str) -> None:
        """Replace a comment's text. Raise NotAllowedError."""

    def create(self, text: str) -> None:
        """Write a new comment. Raise NotAllowedError."""


class Posted(Enum):
    """The result of posting a comment."""

    UPDATED = "updated"
    UNCHANGED = "is unchanged"
    CREATED = "written"
    CLOSED = "closed"
    NONE = "is not needed"


def marker(name: str) -> str:
    """Return the hidden first line of the comment called `name`."""
    return f"<!-- gpolicy: {_CLEAN.sub('-', name)[:_LONGEST_NAME].strip('-') or 'policy'} -->"


def post(service: Service, name: str, text: str, *, begin: bool = True) -> Posted:
    """Make `text` the comment called `name`; without `begin` only if there is one. Raise NotAllowedError.

    Only a comment of our own is replaced: another user could write one with our marker first and change it later.
    """
    first = marker(name)
    whole = f"{first}\n{text}"
    comment = own(service.comments(), first)
    if comment is None and not begin:
        return Posted.NONE
    if comment is None:
        service.create(whole)
        return Posted.CREATED
    if says(comment, whole):
        return Posted.UNCHANGED
    service.update(comment.number, whole)
    return Posted.UPDATED


def own(comments: Iterable[PostedComment], first: str) -> PostedComment | None:
    """Return the first of our own comments that begins with a marker."""
    return next((comment for comment in comments if comment.ours and comment.text.startswith(first)), None)


def says(comment: PostedComment, text: str) -> bool:
    """Return whether a comment has this text already; services change ends of lines."""
    return comment.text.replace("\r\n", "\n").rstrip() == text.rstrip()
