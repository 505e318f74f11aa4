"""The outcome of a test: every expectation with its result, or why the test could not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.findings import Span
from gpolicy.policy.scenario import Action, Expectation
from gpolicy.policy.source_file import Located


class CannotRunError(GpolicyError):
    """A test cannot run: its cluster cannot be made, or its question makes no sense there. `span` is its place."""

    def __init__(self, message: str, span: Span | None = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.span = span


@contextmanager
def errors_at(span: Span) -> Iterator[None]:
    """Turn errors inside the block into CannotRunError, at `span` if they have no place of their own."""
    try:
        yield
    except CannotRunError:
        raise
    except GpolicyError as error:
        raise CannotRunError(error.message, span, hint=error.hint) from None


def known_name(named: Located[str], objects: Mapping[str, object], what: str) -> str:
    """Return the name if it is one of `objects`. Raise CannotRunError otherwise."""
    if named.value not in objects:
        names = ", ".join(list(objects)[:8])
        hint = f"the {what}s are {names}" if names else None
        raise CannotRunError(f"the cluster has no {what} {named.value!r}", named.span, hint=hint)
    return named.value


def group_with_nodes(named: Located[str], state: ClusterState) -> str:
    """Return the name if it is of a group with nodes. Raise CannotRunError otherwise."""
    name = known_name(named, state.groups, "group")
    if not state.nodes_of(name):
        hint = "simulate some, or promise hardware and name its nodes"
        raise CannotRunError(f"group {name} has no nodes", named.span, hint=hint)
    return name


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: the expected and the found value, in words. `detail` tells more about the found one."""

    title: str
    ok: bool
    expected: str
    found: str
    span: Span
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one test. `error` tells why it could not run, `place` where the cause is written."""

    name: str
    action: Action
    span: Span
    checks: tuple[Check, ...] = ()
    error: str | None = None
    hint: str | None = None
    place: Span | None = None

    @property
    def ok(self) -> bool:
        """Whether the test ran and all expectations hold."""
        return self.error is None and all(check.ok for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The expectations that do not hold."""
        return tuple(check for check in self.checks if not check.ok)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many tests there are, how many failed, and how many could not run."""

    tests: int
    failed: int
    errors: int


def tally(outcomes: Sequence[Outcome]) -> Tally:
    """Return the counts of outcomes."""
    errors = sum(outcome.error is not None for outcome in outcomes)
    return Tally(len(outcomes), sum(not outcome.ok for outcome in outcomes) - errors, errors)


def checked(expectation: Expectation, found: object, *, detail: str = "") -> Check:
    """Return the check of an expectation against the found value (a flag, a word, a number, or words in order)."""
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
