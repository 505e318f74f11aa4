"""What a rule is: one small class with its documentation and a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gpolicy.checking.context import Context
from gpolicy.findings import Finding, Fix, Related, RuleInfo, Span
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Declared


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding and the label of what it is about, for waivers: cluster, or group/NAME, node-set/, guard/, test/."""

    label: str
    finding: Finding


class Rule:
    """One rule. A new one is a subclass with `info` and `check` in a module below `gpolicy.rules`.

    `needs_state`: the rule runs only where a cluster's state is given; `only_without_state`: only where none is, since
    with one a rule of the cluster's own (GP7xx) finds the same mistake. `said_by_plan`: the rule does not run where a
    plan follows, which says the same by its guards. `needs_whole_policy`: the rule judges by
    what is absent; it does not run when a part of the policy could not be read. `runs_last`: the rule works out what
    the whole policy comes to; it runs after the others, and not at all if they found the cause.
    """

    info: ClassVar[RuleInfo]
    needs_state: ClassVar[bool] = False
    only_without_state: ClassVar[bool] = False
    finds_more_with_state: ClassVar[bool] = False
    said_by_plan: ClassVar[bool] = False
    unless_declared: ClassVar[tuple[Path, ...]] = ()
    needs_whole_policy: ClassVar[bool] = False
    runs_last: ClassVar[bool] = False

    def check(self, context: Context) -> Iterator[Hit]:
        """Yield what is wrong. Must not raise: an exception here is a fault of gpolicy and ends the run."""
        raise NotImplementedError

    def check_after(self, context: Context, found: Sequence[Finding]) -> Iterator[Hit]:  # noqa: ARG002
        """Yield what is wrong, after other rules found this much. Asked of rules that run last."""
        return self.check(context)

    def is_explained_by(self, found: Sequence[Finding]) -> bool:  # noqa: ARG002
        """Return whether other rules found why this one would find something. Asked of rules that run last."""
        return False

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
    ) -> Hit:
        """Return a finding of this rule about `subject` (an object, or its label)."""
        label = subject if isinstance(subject, str) else subject.label
        return Hit(label, self.info.finding(message, span, hint=hint, related=related, fix=fix, missing=missing))
