"""GP821: what `gpolicy drift` finds. No check finds it; it stands among the rules so that a waiver can name it."""

from __future__ import annotations

from typing import Final

from gpolicy.findings import RuleInfo, Severity

DRIFT: Final = RuleInfo(
    code="GP821",
    name="drift",
    severity=Severity.WARNING,
    summary="The cluster has something else than the policy declares. Found by `gpolicy drift`.",
    rationale="A value that somebody changed by hand is lost at the next apply, or was a decision that belongs into the"
    " policy. A waiver accepts it for a time; its `where` is an object (group/gold) or a value of one"
    " (group/gold:ipolicy.vcpu-ratio), and may hold globs.",
    source="gpolicy",
)
