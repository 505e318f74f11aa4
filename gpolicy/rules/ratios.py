"""GP114: how many times over a node may be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.findings import RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.rules.context import Context, number
from gpolicy.rules.parameters import GROUP, dotted
from gpolicy.rules.rule import Hit, Rule

_SPINDLES: Final[Path] = ("ipolicy", "spindle-ratio")
_USED: Final[dict[Path, str]] = {("ipolicy", "vcpu-ratio"): "CPUs", _SPINDLES: "spindles"}


class RatioBelowOne(Rule):
    """A ratio with which a node is never used once."""

    info = RuleInfo(
        code="GP114",
        name="ratio-below-one",
        severity=Severity.WARNING,
        summary="vcpu-ratio or spindle-ratio is below 1.",
        rationale="It is the number of virtual CPUs, or of instances' spindles, to each of the node's own. Below 1 a"
        " node refuses instances before its own are used once. Ganeti accepts it.",
        source="Resource model, Instance policies; Ganeti 3.0 does not check it",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 0.25}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 4}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*_USED):
            ignored = leaf.path == _SPINDLES and context.exclusive(declared)
            if number(leaf) < 1 and not ignored:
                what = _USED[leaf.path]
                message = f"{dotted(leaf)} is {number(leaf):g}: a node is full before its {what} are used once"
                hint = f"write 1 to use the {what} once; 4 means four times over"
                yield self.hit(declared, message, leaf.span, hint=hint)


RATIO_RULES: Final = (RatioBelowOne(),)
