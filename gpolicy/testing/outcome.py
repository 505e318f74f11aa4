"""What came of a test: every expectation with what was found, or why the test could not run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.errors import GpolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpolicy.findings import Span
    from gpolicy.policy.scenario import Action, Expectation
    from gpolicy.policy.source_file import Located


class CannotRunError(GpolicyError):
    """A test cannot run: its cluster cannot be made, or its question makes no sense there. `span` is where."""

    def __init__(self, message: str, span: Span | None = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.span = span


@contextmanager
def errors_at(span: Span) -> Iterator[None]:
    """Raise errors of what is asked inside as CannotRunError at `span`, where they do not know a better place."""
    try:
        yield
    except CannotRunError:
        raise
    except GpolicyError as error:
        raise CannotRunError(error.message, span, hint=error.hint) from None


def known_name(named: Located[str], objects: Mapping[str, object], what: str) -> str:
    """Return the name of one of `objects`, which a test has written down. Raise CannotRunError if there is none."""
    if named.value not in objects:
        names = ", ".join(list(objects)[:8])
        hint = f"the {what}s are {names}" if names else None
        raise CannotRunError(f"the cluster has no {what} {named.value!r}", named.span, hint=hint)
    return named.value


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: what must come out and what did, in words. `detail` says more about what was found."""

    title: str
    ok: bool
    expected: str
    found: str
    span: Span
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One test. `error` says why it could not run; then nothing was checked. `place` is where that is written."""

    name: str
    action: Action
    span: Span
    checks: tuple[Check, ...] = ()
    error: str | None = None
    hint: str | None = None
    place: Span | None = None

    @property
    def ok(self) -> bool:
        """Whether the test ran and everything came out as expected."""
        return self.error is None and all(check.ok for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The expectations that did not come out."""
        return tuple(check for check in self.checks if not check.ok)


def checked(expectation: Expectation, found: object, *, detail: str = "") -> Check:
    """Return the check of an expectation against what was found (a flag, a word, a number, or words in order)."""
    wanted = expectation.wanted
    ok = found in wanted if isinstance(found, int) and not isinstance(wanted, bool | str | tuple) else found == wanted
    return Check(expectation.title, ok, in_words(wanted), in_words(found), expectation.span, detail)


def in_words(value: object) -> str:
    """Return a value as reports show it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case ():
            return "none"
        case tuple():
            return ", ".join(f"{item[0]} ({item[1]})" if isinstance(item, tuple) else str(item) for item in value)
    return str(value)
