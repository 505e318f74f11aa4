"""GP114, GP115, GP194 and GP195: how many times over a node may be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.in_force import in_force, places
from gpolicy.checking.pairs import comparable
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import RuleParameter, info_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.sensible_ranges import SENSIBLE, is_without_limit
from gpolicy.rules.examples import GROUP, spec

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
    explains = Explains(order=7)

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
        summary="vcpu-ratio is high, and spindle-ratio is low or the same: most likely they are exchanged or copied.",
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
            if (
                cpus >= 12
                and (spindles <= 6 or spindles == cpus >= 16)
                and sensible
                and not context.exclusive(declared)
            ):
                leaf, related = context.own_first(declared, *leaves)
                message = f"vcpu-ratio is {cpus:g} and spindle-ratio {spindles:g}"
                hint = "exchange the two" if spindles <= 6 else "correct the one that was copied"
                yield self.hit(declared, message, leaf.span, hint=hint, related=related)


_FILLED: Final = (
    f"{GROUP}hardware: {{memory: 256G, cpus: 32}}\nndparams: {{spindle_count: 4}}\nipolicy:\n  vcpu-ratio: 4\n"
    f"  minmax:\n{spec('small', '1G 4G', '1 2', '10G 90G')}"
)


class SpindlesFillFirst(Rule):
    info = warning_rule("GP195", "spindles-fill-first")(
        summary="spindle-ratio fills a node long before its memory and CPUs, even with the largest instances.",
        rationale="A node takes as many instances as spindle_count times spindle-ratio allow. If each spec, at its"
        " largest in memory and CPUs, fits many times more often, most of the node stays empty: most likely a digit is"
        " lost.",
        source="Resource model, Instance policies",
        bad=_FILLED.replace("  vcpu", "  spindle-ratio: 3\n  vcpu"),
        good=_FILLED.replace("  vcpu", "  spindle-ratio: 32\n  vcpu"),
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            ratio, count, cpus = (in_force(context, group, path) for path in (_SPINDLES, _COUNT, _CPUS))
            hardware, pairs = group.hardware, comparable(context.pairs(group))
            if ratio is None or ratio.leaf is None or count is None or cpus is None or hardware is None or not pairs:
                continue
            if hardware.memory is None or hardware.cpus is None or context.exclusive(group):
                continue
            room = {"memory-size": hardware.memory.value, "cpu-count": hardware.cpus.value * cpus.number}
            by_size = [min(size / max(pair.maximum[name], 1) for name, size in room.items()) for pair in pairs]
            spindles = ratio.number * count.number
            if any(pair.maximum["spindle-use"] > spindles for pair in pairs):
                continue  # GP223
            if all(
                pair.minimum["spindle-use"] > 0 and times >= _MUCH_MORE * spindles / pair.minimum["spindle-use"]
                for pair, times in zip(pairs, by_size, strict=True)
            ):
                message = f"a node of group {group.name} is full with spindle-use {spindles:g}, and its memory and CPUs"
                message += f" would take {min(by_size):.0f} instances of the largest size"
                place, related, note = places(context, group, ratio, count)
                yield self.hit(group, f"{message}{note}", place, hint="raise spindle-ratio", related=related)


_MUCH_MORE: Final = 5
