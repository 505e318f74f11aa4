"""What a rule is: its documentation, and a function that checks one policy, or several together.

A new one is a decorated function in a module below `gpolicy.rules`, and called as the rule is (GP104 image-location):

    @error("GP104", stays=REFUSED)
    def image_location(context: Context) -> Iterator[Hit]:
        yield hit(declared, message, span, hint)

What it says of itself, where the fact comes from and its examples stand by its code in `templates/rules/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from functools import cached_property, lru_cache, partial
from typing import Final, TypedDict, Unpack, cast

from gpolicy.checking.context import Context
from gpolicy.findings import Finding, Fix, Related, Role, RuleInfo, RuleParameter, Severity, Span
from gpolicy.ganeti.vocabulary import Path
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import Declared


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding and the label of what it is about, for waivers: cluster, or group/NAME, node-set/, guard/, test/.

    `guard`: the built-in guard that it repeats. `policy`: of several policies, the place of the one in whose files it
    stands.
    """

    label: str
    finding: Finding
    guard: str = ""
    policy: int = 0


class Same(Enum):
    """What the hits of two rules share that say the same: a label (found without the cluster), or a place."""

    LABEL = "label"
    PLACE = "place"


class When(Flag):
    """When a rule runs, and with what it finds more. Without one of these it always runs."""

    ALWAYS = 0
    STATE = auto()  # only where a cluster's state is given
    NO_STATE = auto()  # only where none is given: with one a rule of the cluster's own (GP7xx) finds the same mistake
    MORE_WITH_STATE = auto()  # it finds more where a state is given
    BETTER_WITH_STATE = auto()  # it finds the same where a state is given, and its hints know more
    WHOLE = auto()  # it judges by what is absent, and does not run when a part of the policy could not be read
    NO_PLAN = auto()  # it does not run where a plan follows, which says the same by its guards
    LAST = auto()  # it works out what the whole policy comes to, and runs after the others
    TOLD = auto()  # it is given what the others found
    FLEET = auto()  # it is about several policies together
    ASKED = auto()  # it is off unless the settings name it, or select ALL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """One rule: its documentation, and the function that yields what is wrong with a policy, or with a `Fleet`.

    The function gets the parameters of the rule by name. One mistake makes one finding: by the roles of rules (`Role`)
    and by these the checker leaves out what only follows from another finding. `silent_after`: the families after whose
    errors a rule that runs last is not asked. `better`: the codes of rules that say the same more exactly, by what the
    hits share: `Same`, or the guard that they repeat. `unless_declared`: where the policy declares all these, a state
    shows no more. `explains`: findings of this rule tell what is most likely wrong, and others at the same place follow
    from it. Of two such findings the lesser number counts (of one severity; 0 always):

        0        which nodes a group has
        1 - 7    one name, word or number that makes no sense by itself
        8 - 17   two values that do not go together, or one with what instances of the cluster use
        18 - 30  sizes, promises and figures beside what nodes give; names that look like another
        100      explains only what compares with its place
    """

    info: RuleInfo
    find: Callable[..., Iterable[Hit]]
    when: When
    unless_declared: tuple[Path, ...] = ()
    explains: int | None = None
    silent_after: tuple[str, ...] = ()
    better: tuple[tuple[Same | str, tuple[str, ...]], ...] = ()

    def check(self, context: Context, found: Sequence[Finding] | None = None) -> Iterator[Hit]:
        """Yield what is wrong, after others found this much. An exception is a fault of gpolicy and ends the run."""
        parameters = {item.name: context.settings.parameter(self.info, item.name) for item in self.info.parameters}
        given = (context,) if found is None or When.TOLD not in self.when else (context, found)
        return map(self.named, self.find(*given, **parameters))

    def check_fleet(self, fleet: Fleet) -> Iterator[Hit]:
        """Yield what is wrong with policies that are checked together."""
        return map(self.named, self.find(fleet))

    def named(self, hit: Hit, severity: Severity | None = None) -> Hit:
        """Return a hit whose finding is of this rule, unless it says itself of which it is.

        It is as severe as the rule says, or more or less with `severity`.
        """
        if hit.finding.code:
            return hit
        info = self.info
        named = replace(hit.finding, code=info.code, name=info.name, severity=severity or info.severity)
        return replace(hit, finding=named)

    def knows_enough(self, context: Context) -> bool:
        """Return whether the rule can find all that it is for: no state is missing that could show more."""
        if context.state is not None or When.MORE_WITH_STATE not in self.when:
            return True
        return self.unless_declared != () and all(context.cluster_leaf(path) for path in self.unless_declared)


_UNNAMED: Final = RuleInfo(code="", name="", severity=Severity.ERROR)


def hit(
    subject: Declared | str,
    message: str,
    span: Span | None,
    hint: str = "",
    related: tuple[Related, ...] = (),
    *,
    fix: Fix | None = None,
    missing: str = "",
    policy: int = 0,
) -> Hit:
    """Return what a rule finds about `subject` (an object, or its label). The rule adds its code, name and severity."""
    label = subject if isinstance(subject, str) else subject.label
    finding = _UNNAMED.finding(message, span, hint=hint, related=related, fix=fix, missing=missing)
    return Hit(label, finding, policy=policy)


def see(span: Span | None, message: str) -> tuple[Related, ...]:
    """Return another place of a hit, and its relation to it; none where that place is not known."""
    return (Related(span, message),) if span is not None else ()


class _RuleRelations(TypedDict, total=False):
    """How a rule is told apart from others: see `Rule`."""

    unless_declared: tuple[Path, ...]
    explains: int
    silent_after: tuple[str, ...]
    better: tuple[tuple[Same | str, tuple[str, ...]], ...]


def _rule(
    severity: Severity,
    code: str,
    when: When = When.ALWAYS,
    *,
    stays: str = "",
    parameters: tuple[RuleParameter, ...] = (),
    role: Role = Role.NONE,
    **how: Unpack[_RuleRelations],
) -> Callable[[Callable[..., Iterable[Hit]]], Rule]:
    """Return what makes a rule of a function: named as it is, with `When` it runs and why its findings must stay."""

    def rule(find: Callable[..., Iterable[Hit]]) -> Rule:
        info = RuleInfo(severity, code, find.__name__.replace("_", "-"), stays, role, parameters)
        return Rule(info=info, find=find, when=when, **how)

    return rule


error = partial(_rule, Severity.ERROR)
warning = partial(_rule, Severity.WARNING)
information = partial(_rule, Severity.INFO)


@dataclass(frozen=True, eq=False)
class Fleet:
    """Policies that are checked together. Those whose documents extend the same base belong to one fleet."""

    policies: Sequence[Policy]

    @cached_property
    def with_one_base(self) -> list[list[int]]:
        """The policies, by their places in the list, that share a base, directly or through others."""
        joined: list[tuple[set[tuple[str, object]], list[int]]] = []  # bases, and the policies that have one of them
        for number, policy in enumerate(self.policies):
            bases = _bases(policy)
            near = [item for item in joined if not item[0].isdisjoint(bases)]
            joined = [item for item in joined if item[0].isdisjoint(bases)]
            members = [*(member for _, members in near for member in members), number]
            joined.append((bases.union(*(theirs for theirs, _ in near)), members))
        return sorted(sorted(members) for _, members in joined if len(members) > 1)

    def name(self, number: int) -> str:
        """Return how messages name a policy: by its cluster, else by its first file."""
        policy = self.policies[number]
        return policy.cluster.name if policy.cluster else ", ".join(policy.paths[:1])


def place_of(span: Span) -> tuple[str, int, int]:
    """Return a key of a place that is the same for each policy that reads the file."""
    return (real_file(span.file), span.line, span.column)


def _bases(policy: Policy) -> set[tuple[str, object]]:
    """Return the documents outside of a policy's own that its objects take values from."""
    own = {real_file(document.file) for document in policy.documents}
    documents = {
        id(leaf.document): leaf.document
        for declared in policy.objects
        for top in declared.leaves.values()
        for leaf in (top, *top.overridden)
    }
    found = ((real_file(document.file), document.mark) for document in documents.values())
    return {(file, mark) for file, mark in found if file not in own}


real_file: Final = lru_cache(maxsize=4096)(cast(Callable[[str], str], os.path.realpath))
