"""Several policies checked together: what one of them alone cannot show."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from gpolicy.checking.rule import Hit
from gpolicy.findings import Related, RuleInfo, Span
from gpolicy.policy.model import Policy

Place = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Fleet:
    """Policies that are checked together. Those whose documents extend the same base belong to one fleet."""

    policies: Sequence[Policy]

    @cached_property
    def with_one_base(self) -> list[list[int]]:
        """The policies, by their places in the list, that share a base, directly or through others."""
        leaders = list(range(len(self.policies)))  # the first of the policies that each is joined with

        def leader(number: int) -> int:
            while leaders[number] != number:
                number = leaders[number]
            return number

        users: dict[object, int] = {}
        for number, policy in enumerate(self.policies):
            for base in _bases(policy):
                one, other = sorted((leader(users.setdefault(base, number)), leader(number)))
                leaders[other] = one
        members = defaultdict(list)
        for number in range(len(self.policies)):
            members[leader(number)].append(number)
        return [found for found in members.values() if len(found) > 1]

    def name(self, number: int) -> str:
        """Return how messages name a policy: by its cluster, else by its first file."""
        policy = self.policies[number]
        return policy.cluster.name if policy.cluster else ", ".join(policy.paths[:1])


@dataclass(frozen=True, slots=True)
class FleetHit:
    """A finding about several policies, and the one in whose files it stands (by its place in the list)."""

    policy: int
    hit: Hit


class FleetRule:
    """One rule about several policies. A new one is a subclass with `info` and `check`, below `gpolicy.rules`."""

    info: ClassVar[RuleInfo]

    def check(self, fleet: Fleet) -> Iterator[FleetHit]:
        """Yield what is wrong. Must not raise."""
        raise NotImplementedError

    def hit(
        self, policy: int, label: str, message: str, span: Span, hint: str, related: tuple[Related, ...] = ()
    ) -> FleetHit:
        """Return a finding of this rule in the files of one policy."""
        return FleetHit(policy, Hit(label, self.info.finding(message, span, hint=hint, related=related)))


def place_of(span: Span) -> Place:
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


@lru_cache(maxsize=4096)
def real_file(file: str) -> str:
    """Return the path of a file without links."""
    return os.path.realpath(file)
