"""Findings about a policy: the problem, its place, and what to write instead. Data that every report renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Flag, StrEnum, auto
from functools import lru_cache, partial
from typing import Any, Final, Generic, TypeVar

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
"""Why nobody can accept what a rule finds, nor make it less than an error: the end of the message that says so.

REFUSED is of what Ganeti itself checks. With NO_PLAN, gpolicy does not know what to change, and would guess.
"""

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
    least: float = 0
    most: float = 1_000_000


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a rule says of itself, in `templates/rules/`, for `explain`, the docs and rule catalogues.

    `bad` and `good` are whole policies (YAML); the tests run both. `source` says where the fact comes from, if not from
    gpolicy itself. `fix` says in one sentence what `check --fix` does, or nothing where there is no safe fix.
    `parameters` say what each of its numbers is for.
    """

    summary: str = ""
    rationale: str = ""
    source: str = "gpolicy"
    fix: str = ""
    bad: str = ""
    good: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def _in_one_line(text: str) -> Any:
    return " ".join(text.split())


@lru_cache
def _texts(family: str) -> dict[str, RuleText]:
    """Return what the rules of a family (GP1) say, by code. Lines of a text are one; examples stay as they are."""
    kept = ("bad", "good", "parameters")
    return {
        code: RuleText(**{key: text if key in kept else _in_one_line(text) for key, text in texts.items()})
        for code, texts in read_data(f"rules/{family}.toml").items()
    }


class Role(Flag):
    """What findings of a rule mean for others. A rule has those of its family (`FAMILIES`), and its own."""

    NONE = 0
    STRUCTURE = auto()  # found while documents are read, whichever rules run
    UNREADABLE = auto()  # a file cannot be read
    BREAKS = auto()  # the rest of the document may mean something else
    SHAPE = auto()  # of the form of a key or a value: follows from what breaks the document
    DECIDES = auto()  # of what the allocator counts with: values, and which nodes and groups there are
    OF_TAG = auto()  # knows more of a tag than that it is mistyped
    USES = auto()  # of guards, tests and node sets, which use what others declare
    ALONE = auto()  # of a waiver or a house rule, each of which stands for itself
    ACCEPTS = auto()  # of what accepts findings
    RESULT = auto()  # a result of the whole policy: follows from any wrong value that counts
    ALSO_RELATED = auto()  # explains others also at the other value that it names
    JUDGES = auto()  # compares the sizes of a pair with what a node gives
    WEAK = auto()  # follows from whatever else is wrong with its value
    # By these other rules ask for findings (`Context.found_with`):
    SAME_NAME = auto()  # two sizes of a list have one name
    OVERLAP = auto()  # two sizes overlap
    ODD_MEMORY = auto()  # the memory of a size is most likely wrong
    OUT_OF_ORDER = auto()  # a bound of a size is most likely wrong beside the other sizes
    BROKEN_PROMISE = auto()  # nodes have less than their group promises
    ASKS_TEMPLATE = auto()  # a test asks for a disk template that its group does not allow
    LACKS_TAG = auto()  # nodes lack a tag; related: the tag of another node that is most likely theirs
    COPIED_NODES = auto()  # two groups have the same nodes, perhaps since one copied a pattern of the other


FAMILIES: Final = {
    "GP0": Role.STRUCTURE,
    "GP00": Role.STRUCTURE | Role.UNREADABLE,
    "GP01": Role.STRUCTURE | Role.SHAPE,
    **dict.fromkeys(("GP2", "GP3", "GP4", "GP6"), Role.DECIDES),
    "GP5": Role.DECIDES | Role.OF_TAG,
    "GP8": Role.USES,
    "GP9": Role.ALONE,
    **dict.fromkeys(("GP90", "GP91"), Role.ALONE | Role.ACCEPTS),
}
"""What all rules have whose codes begin so; of two such families the smaller one says all."""


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What names a rule. `stays`: why nobody may accept what it finds (`REFUSED` and the like); else it is empty."""

    severity: Severity
    code: str
    name: str
    stays: str = ""
    role: Role = Role.NONE
    parameters: tuple[RuleParameter, ...] = ()

    def __post_init__(self) -> None:
        of_family = FAMILIES.get(self.code[:4], FAMILIES.get(self.code[:3], Role.NONE))
        object.__setattr__(self, "role", self.role | of_family)

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

    @property
    def refusal(self) -> str:
        """Why nothing can accept its findings: they stay errors, or are about accepting; empty if not so."""
        return self.stays or ("it is about what accepts findings" if Role.ACCEPTS in self.role else "")

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


error_rule: Final = partial(RuleInfo, Severity.ERROR)
warning_rule: Final = partial(RuleInfo, Severity.WARNING)
"""Makers of rules that the engine itself finds, by code and name; `templates/rules/` has what they say."""
