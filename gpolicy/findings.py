"""Findings about a policy: the problem, its place, and what to write instead. Data that every report renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final, Generic, TypeVar

from gpolicy import light_dataclasses as light
from gpolicy.data import read_data
from gpolicy.printable import clipped, count

_Value = TypeVar("_Value")

HOUSE: Final = "house/"
"""Before the names of house rules, which have one code together."""
HOUSE_CODE: Final = "GP950"

BASE_FILE: Final = "base "
"""Before the path of a file in what is `missing` of a finding: what several policies may extend."""
NODES_LIKE: Final = "nodes like "
"""Before names of nodes, without their numbers, in what is `missing` of a finding."""
ALMOST: Final = "almost this name is given here, and nowhere else"
"""Of the related place where a name is given that is most likely the misspelt one."""

REFUSED: Final = "Ganeti refuses it, whoever accepts it"
UNREADABLE: Final = "a policy that cannot be read as a whole cannot be planned"
AMBIGUOUS: Final = "the policy says two things, and gpolicy does not choose"
NO_PLAN: Final = "gpolicy makes no plan with it"
"""Why nobody can accept what a rule finds."""

LONGEST_MESSAGE: Final = 2000
"""The greatest length of a message or a hint: a policy may contain longer texts, with thousands of errors."""


class Severity(StrEnum):
    """How bad a finding is. Only an error makes `gpolicy check` fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANKS[self]


_RANKS: Final = {severity: rank for rank, severity in enumerate(Severity)}


@light.dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in a file: lines and columns from 1; the end column is behind the last character."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def lies_within(self, around: Span) -> bool:
        """Return whether the place lies within another one."""
        start, end = (self.line, self.column), (self.end_line, self.end_column)
        inside = (around.line, around.column) <= start and end <= (around.end_line, around.end_column)
        return self.file == around.file and inside


@light.dataclass(frozen=True, slots=True)
class Located(Generic[_Value]):
    """A value of a document and its place."""

    value: _Value
    span: Span


def values_of(items: Iterable[Located[str]] | None) -> tuple[str, ...] | None:
    """Return the values of what is located, None for None."""
    return None if items is None else tuple(item.value for item in items)


@light.dataclass(frozen=True, slots=True)
class Related:
    """Another place of a finding, and its relation to it."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the text of one place. An empty place (it ends where it begins) inserts before it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """The only safe fix of a finding: a title in the imperative ("remove the key"), and its edits of one file.

    Safe means: the author of the policy would have written the same. Where there are two ways, there is no fix.
    """

    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, with the code and name of its rule.

    `missing` is the name that nothing has, with its kind (`group gold`), or what else several findings are about
    together: they are one problem.
    `because` are the places of the changed values that it was worked out from.
    `consequences` are other findings that most likely only follow from this one; they have none themselves.
    """

    code: str
    name: str
    severity: Severity
    message: str
    span: Span | None = None
    hint: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    missing: str = ""
    because: tuple[Span, ...] = field(default=(), compare=False)
    consequences: tuple[Finding, ...] = field(default=(), compare=False)

    @property
    def more(self) -> str:
        """How much follows from the finding, in words, for forms that do not show it; empty for nothing."""
        number, verb = len(self.consequences), "follows" if len(self.consequences) == 1 else "follow"
        return f" ({count(number, 'more finding')} {verb} from this)" if number else ""

    @property
    def places(self) -> tuple[Related, ...]:
        """The other places of the finding, with those of its consequences."""
        return (*self.related, *(Related(item.span, item.message) for item in self.consequences if item.span))

    def sort_key(self) -> tuple[object, ...]:
        """Order by place, then worst first."""
        span = self.span or Span("", 0, 0, 0, 0)
        return (span.file, span.line, span.column, self.severity.rank, self.key, self.message)

    @property
    def key(self) -> str:
        """What tells its rule from all others: the code; of a house rule the name."""
        return rule_key(self.code, self.name)


def told(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings, each with those that only follow from it behind it."""
    for finding in findings:
        yield finding
        yield from finding.consequences


def rule_key(code: str, name: str) -> str:
    """Return what tells a rule from all others: the code; of a house rule the name."""
    return name if name.startswith(HOUSE) else code


def by_place(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by place, each once: two groups with one base share its findings, as do two policies."""
    unique = {finding.sort_key(): finding for finding in findings}
    return [unique[key] for key in sorted(unique)]


WAIVER, COMMENT, BASELINE = "waiver", "comment", "baseline"
"""What may accept a finding."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that does not count because something in the repository accepts it.

    `by` is waiver, comment or baseline, `place` where that stands; `reason` and `until`, the last day, may be empty. It
    is `new` if nothing accepted the finding in the base of the change; None: no base is known.
    """

    finding: Finding
    by: str
    place: Span | None
    reason: str = ""
    until: str = ""
    new: bool | None = None


@dataclass(frozen=True, slots=True)
class RuleParameter:
    """A number of a rule that a repository can set for itself: `[rules.NAME]` in its configuration."""

    name: str
    default: float
    summary: str
    least: float = 0
    most: float = 1_000_000


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a rule says of itself, in `templates/rules/`, for `explain`, the docs and rule catalogues.

    `bad` and `good` are whole policies (YAML); the tests run both. `source` says where the fact comes from, if not from
    gpolicy itself. `fix` says in one sentence what `check --fix` does, or nothing where there is no safe fix.
    """

    summary: str = ""
    rationale: str = ""
    source: str = "gpolicy"
    fix: str = ""
    bad: str = ""
    good: str = ""


@lru_cache
def _texts(family: str) -> dict[str, RuleText]:
    """Return what the rules of a family (GP1) say, by code. Lines of a text are one; examples stay as they are."""
    kept = ("bad", "good")
    return {
        code: RuleText(**{key: text if key in kept else " ".join(text.split()) for key, text in texts.items()})
        for code, texts in read_data(f"rules/{family}.toml").items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo:
    """What names a rule. `stays` says why a finding must stay an error (`REFUSED` and the like), or nothing where a
    user may accept it.
    """

    code: str
    name: str
    severity: Severity
    stays: str = ""
    parameters: tuple[RuleParameter, ...] = ()

    @property
    def text(self) -> RuleText:
        """What the rule says of itself; of one house rule what is true of each."""
        text = _texts(self.code[:3]).get(self.code, RuleText())
        is_house_rule = self.name.startswith(HOUSE)
        return replace(text, summary=f"A house rule: {self.name}.", bad="", good="") if is_house_rule else text

    @property
    def key(self) -> str:
        """What tells the rule from all others: the code; of a house rule the name."""
        return rule_key(self.code, self.name)

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding is of this rule, or of one of those that share its code."""
        return self.key in (finding.key, finding.code)

    def finding(
        self,
        message: str,
        span: Span | None,
        *,
        hint: str = "",
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        missing: str = "",
    ) -> Finding:
        """Return a finding of this rule."""
        message, hint = clipped(message, LONGEST_MESSAGE), clipped(hint, LONGEST_MESSAGE)
        return Finding(self.code, self.name, self.severity, message, span, hint, related, fix, missing)


def copied(span: Span | None, first: Span | None) -> str:
    """Return what to call `missing` where a thing stands twice: all that two files have in common is one problem."""
    return f"{span.file} beside {first.file}" if span and first and span.file != first.file else ""


def error_rule(code: str, name: str, stays: str = "") -> RuleInfo:
    """Return a rule that finds errors; `templates/rules/` has what it says."""
    return RuleInfo(code=code, name=name, severity=Severity.ERROR, stays=stays)


def warning_rule(code: str, name: str) -> RuleInfo:
    """Return a rule that warns; `templates/rules/` has what it says."""
    return RuleInfo(code=code, name=name, severity=Severity.WARNING)
