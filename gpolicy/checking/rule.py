"""What a rule is: one small class with its documentation and a check of one policy, or of several together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import ClassVar, Final, cast

from gpolicy.checking.context import Context
from gpolicy.findings import Finding, Fix, Related, RuleInfo, Severity, Span
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Declared, Policy


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
    """What the hits of two rules share that say the same; those of one label are found without the cluster."""

    LABEL = "label"
    PLACE = "place"


@dataclass(frozen=True, slots=True)
class Explains:
    """The findings of a rule tell what is most likely wrong, and others at the same place only follow from it.

    Of two such findings at one place, the one of the least `order` counts. `also_related`: the cause may also be the
    other value that they name. `may_be_meant`: what only informs stays. `one_by_one`: without `order`, they name what
    follows from them as related places.
    """

    order: int | None = None
    also_related: bool = False
    may_be_meant: bool = False
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class SilentAfter:
    """After which findings a rule that runs last is not asked: of `codes`, and errors of the families `errors`.

    With `missing` also whatever these families say of names that nothing has.
    """

    errors: tuple[str, ...] = ()
    missing: bool = False
    codes: tuple[str, ...] = ()

    def silences(self, finding: Finding) -> bool:
        """Return whether a finding is one of these."""
        is_bad = finding.severity is Severity.ERROR or (self.missing and finding.missing != "")
        return finding.code in self.codes or (is_bad and finding.code.startswith(self.errors))


class Rule:
    """One rule. A new one is a subclass with `info` and `check` in a module below `gpolicy.rules`.

    `needs_state`: the rule runs only where a cluster's state is given; `only_without_state`: only where none is, since
    with one a rule of the cluster's own (GP7xx) finds the same mistake. `said_by_plan`: the rule does not run where a
    plan follows, which says the same by its guards. `needs_whole_policy`: the rule judges by
    what is absent; it does not run when a part of the policy could not be read. `runs_last`: the rule works out what
    the whole policy comes to; it runs after the others.

    One mistake makes one finding. By these the checker leaves out what only follows from another finding:
    `explains` what follows from those of this rule; `follows`: its own may follow from one, though those of its family
    do not; `silent_after` those after which it is not asked; `better` the codes of rules that say the same more
    exactly, by what the hits share: `Same`, or the guard that they repeat.
    """

    info: ClassVar[RuleInfo]
    needs_state: ClassVar[bool] = False
    only_without_state: ClassVar[bool] = False
    finds_more_with_state: ClassVar[bool] = False
    said_by_plan: ClassVar[bool] = False
    unless_declared: ClassVar[tuple[Path, ...]] = ()
    needs_whole_policy: ClassVar[bool] = False
    runs_last: ClassVar[bool] = False
    explains: ClassVar[Explains | None] = None
    follows: ClassVar[bool] = False
    silent_after: ClassVar[SilentAfter] = SilentAfter()
    better: ClassVar[tuple[tuple[Same | str, tuple[str, ...]], ...]] = ()

    def check(self, context: Context) -> Iterator[Hit]:
        """Yield what is wrong. Must not raise: an exception here is a fault of gpolicy and ends the run."""
        raise NotImplementedError

    def check_after(self, context: Context, found: Sequence[Finding]) -> Iterator[Hit]:  # noqa: ARG002
        """Yield what is wrong, after other rules found this much. Asked of rules that run last."""
        return self.check(context)

    def knows_enough(self, context: Context) -> bool:
        """Return whether the rule can find all that it is for: no state is missing that could show more."""
        declared = [context.cluster_leaf(path) is not None for path in self.unless_declared]
        return context.state is not None or not self.finds_more_with_state or (declared != [] and all(declared))

    def hit(
        self,
        subject: Declared | str,
        message: str,
        span: Span | None,
        *,
        hint: str = "",
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        missing: str = "",
        guard: str = "",
    ) -> Hit:
        """Return a finding of this rule about `subject` (an object, or its label)."""
        label = subject if isinstance(subject, str) else subject.label
        return Hit(label, self.info.finding(message, span, hint=hint, related=related, fix=fix, missing=missing), guard)


@dataclass(frozen=True, eq=False)
class Fleet:
    """Policies that are checked together. Those whose documents extend the same base belong to one fleet."""

    policies: Sequence[Policy]

    @cached_property
    def with_one_base(self) -> list[list[int]]:
        """The policies, by their places in the list, that share a base, directly or through others."""
        found: list[tuple[set[tuple[str, object]], list[int]]] = []  # bases, and the policies that share them
        for number, policy in enumerate(self.policies):
            bases, members = _bases(policy), [number]
            for joined in [item for item in found if not item[0].isdisjoint(bases)]:
                found.remove(joined)
                bases = bases | joined[0]
                members = [*joined[1], *members]
            found.append((bases, members))
        return sorted(sorted(members) for _, members in found if len(members) > 1)

    def name(self, number: int) -> str:
        """Return how messages name a policy: by its cluster, else by its first file."""
        policy = self.policies[number]
        return policy.cluster.name if policy.cluster else ", ".join(policy.paths[:1])


class FleetRule:
    """One rule about several policies. A new one is a subclass with `info` and `check`, below `gpolicy.rules`."""

    info: ClassVar[RuleInfo]

    def check(self, fleet: Fleet) -> Iterator[Hit]:
        """Yield what is wrong. Must not raise."""
        raise NotImplementedError

    def hit(
        self, policy: int, label: str, message: str, span: Span, hint: str, related: tuple[Related, ...] = ()
    ) -> Hit:
        """Return a finding of this rule in the files of one policy."""
        return Hit(label, self.info.finding(message, span, hint=hint, related=related), policy=policy)


def place_of(span: Span) -> tuple[str, int, int]:
    """Return a key of a place that is the same for each policy that reads the file."""
    return (_real(span.file), span.line, span.column)


def _bases(policy: Policy) -> set[tuple[str, object]]:
    """Return the documents outside of a policy's own that its objects take values from."""
    own = {_real(document.file) for document in policy.documents}
    documents = {
        id(leaf.document): leaf.document
        for declared in policy.objects
        for top in declared.leaves.values()
        for leaf in (top, *top.overridden)
    }
    found = ((_real(document.file), document.mark) for document in documents.values())
    return {(file, mark) for file, mark in found if file not in own}


_real: Final = lru_cache(maxsize=4096)(cast(Callable[[str], str], os.path.realpath))
