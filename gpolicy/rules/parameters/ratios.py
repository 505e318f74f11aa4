"""GP114, GP115 and GP194: how many times over a node may be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleParameter, info_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.sensible_ranges import SENSIBLE, is_without_limit
from gpolicy.rules.examples import GROUP

_CPUS: Final[Path] = ("ipolicy", "vcpu-ratio")
_SPINDLES: Final[Path] = ("ipolicy", "spindle-ratio")
_COUNT: Final[Path] = ("ndparams", "spindle_count")
_USED: Final[dict[Path, str]] = {_CPUS: "CPUs", _SPINDLES: "spindles"}


class RatioBelowOne(Rule):
    info = warning_rule("GP114", "ratio-below-one")(
        summary="vcpu-ratio or spindle-ratio is far below 1.",
        rationale="The ratio is how many virtual CPUs, or spindles of instances, a node accepts for each of its own."
        " Far below 1 a node refuses instances long before its own CPUs or spindles are used once. A ratio of 0.95"
        " keeps some for the node on purpose. Where spindle_count is declared it may be any weight, and the rule does"
        " not look at spindle-ratio.",
        source="Resource model, Instance policies; Ganeti 3.0 does not check it",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 0.25}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 0.95}}\n",
        parameters=(RuleParameter(name="least", default=0.75, summary="Report a ratio below this.", least=0),),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        least = context.settings.parameter(self.info, "least")
        for declared, leaf in context.explicit_at(*_USED):
            ignored = leaf.path == _SPINDLES and (context.exclusive(declared) or context.declares(_COUNT))
            if number(leaf) < least and not ignored:
                what = _USED[leaf.path]
                message = f"{leaf.dotted} is {number(leaf):g}: a node is full before its {what} are used once"
                hint = f"write 1 to use the {what} once; 4 means four times over"
                yield self.hit(declared, message, leaf.span, hint=hint)


class RatioWithoutLimit(Rule):
    info = info_rule("GP115", "ratio-without-limit")(
        summary="vcpu-ratio or spindle-ratio is so high that it limits nothing.",
        rationale="Ganeti has no other way to switch the limit off than a huge number, such as 999 or 10000. Other"
        " high ratios are most likely mistyped (GP152).",
        source="Resource model, Instance policies",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 9999}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 4}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_USED):
            if is_without_limit(number(leaf)):
                yield self.hit(declared, f"{leaf.dotted} is {number(leaf):.0f}: that limits nothing", leaf.span)


class RatiosExchanged(Rule):
    info = warning_rule("GP194", "ratios-exchanged")(
        summary="vcpu-ratio is high, and spindle-ratio is low: most likely the two are exchanged.",
        rationale="Ganeti's defaults are 4 virtual CPUs for each CPU and 32 instances for each spindle. Twelve virtual"
        " CPUs for one leave instances little, and six instances for a spindle fill a node long before.",
        source="Resource model, Instance policies",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 16, spindle-ratio: 4}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 4, spindle-ratio: 16}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaves in context.combined(_CPUS, _SPINDLES):
            cpus, spindles = map(number, leaves)
            sensible = SENSIBLE["vcpu-ratio"].takes(cpus) and not is_without_limit(cpus)
            if cpus >= 12 and spindles <= 6 and sensible and not context.exclusive(declared):
                leaf, related = context.own_first(declared, *leaves)
                message = f"vcpu-ratio is {cpus:g} and spindle-ratio {spindles:g}"
                yield self.hit(declared, message, leaf.span, hint="exchange the two", related=related)
