"""GP202, GP215, GP217 to GP219 and GP230: the order of specs, and what lies between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleParameter, info_rule, warning_rule
from gpolicy.policy.model import Declared
from gpolicy.rules.examples import spec
from gpolicy.rules.specs.examples import GOOD, LARGE, SIZES, SMALL, group_with


class SpecOrder(Rule):
    info = warning_rule("GP202", "spec-order")(
        summary="Specs are not ordered from the biggest to the smallest.",
        rationale="hspace's tiered allocation starts with the first spec and goes on to the next when nothing more"
        " fits. If a small spec comes first, small instances take what the big ones need, and the capacity is wrong."
        " (hail's dedicated metric sorts specs itself, by the minimum of disk-size.)",
        source=SIZES,
        bad=group_with(SMALL, LARGE),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, _, pairs in context.minmax():
            compared = comparable(pairs)
            for place, pair in enumerate(compared):
                smaller = next((earlier for earlier in compared[:place] if _is_bigger(pair, earlier)), None)
                if smaller is not None:
                    message = f"{pair.title} is bigger than {smaller.title}, which stands before it"
                    hint = f"move {pair.title} before {smaller.title}: capacity is counted from the first spec on"
                    yield self.hit(declared, message, pair.span, hint=hint, related=smaller.here)


def _is_bigger(pair: Pair, other: Pair) -> bool:
    """Return whether both bounds of `pair` are at least those of `other` in what fills a node, and one is above."""
    names = ("memory-size", "cpu-count", "disk-size")
    ends = [(pair.maximum, other.maximum), (pair.minimum, other.minimum)]
    at_least = all(one[name] >= two[name] for one, two in ends for name in names)
    return at_least and any(one[name] > two[name] for one, two in ends for name in names)


FILLING: Final = ("memory-size", "cpu-count", "disk-size")
"""The parameters that fill a node."""
_HSPACE: Final = "hspace of Ganeti 3.0, tiered allocation"
_STEPS: Final = {"memory-size": 64, "disk-size": 256}
"""By how much hspace makes an instance smaller at a time, in MiB; it never goes below one step."""


class SpecGap(Rule):
    info = warning_rule("GP215", "spec-gap")(
        summary="There is a wide gap between two specs: no spec takes the sizes in it.",
        rationale="Small gaps are normal, since bounds are inclusive. But if the next larger spec starts at many times"
        " the maximum of the one below, most likely a unit is wrong.",
        source=SIZES,
        bad=group_with(LARGE, spec("small", "64M 128M", "1 3", "10G 90G")),
        good=GOOD,
        parameters=(
            RuleParameter(
                name="factor",
                default=64,
                summary="Report a gap larger than this factor.",
                least=1,
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        factor = context.settings.parameter(self.info, "factor")
        for declared, _, pairs in context.minmax():
            compared = comparable(pairs)
            for name in FILLING if len(compared) > 1 else ():
                ordered = sorted(compared, key=lambda pair: pair.minimum[name])
                below = ordered[0]
                for pair in ordered[1:]:
                    low, high = below.maximum[name], pair.minimum[name]
                    if high > max(low, 1) * factor:
                        message = f"no spec takes a {name} between {amount(name, low)} and {amount(name, high)}"
                        related = (Related(below.at("max", name), f"{below.title} ends here"),)
                        hint = "correct a unit, add a spec for these sizes, or waive the finding if the gap is intended"
                        yield self.hit(declared, message, pair.at("min", name), hint=hint, related=related)
                    below = max(below, pair, key=lambda pair: pair.maximum[name])


class SpecNotMonotonic(Rule):
    info = warning_rule("GP217", "spec-not-monotonic")(
        summary="The smaller of two specs allows more memory, CPUs or disk than the larger one.",
        rationale="Specs are counted from the biggest to the smallest, each from its maximum. If the smaller spec has"
        " a greater maximum, no order is right. Most likely a number is mistyped.",
        source=SIZES,
        bad=group_with(LARGE, spec("small", "1G 12G", "1 3", "10G 9T")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _apart(context):
            for larger, smaller in ((first, second), (second, first)):
                more = [name for name in FILLING if smaller.maximum[name] > larger.maximum[name]]
                least = [larger.minimum[name] - smaller.minimum[name] for name in FILLING]
                if len(more) == 1 and min(least) >= 0 and max(least) > 0:
                    name = more[0]
                    message = (
                        f"{smaller.title} is smaller than {larger.title}, but allows a greater {name}:"
                        f" {amount(name, smaller.maximum[name])}, not {amount(name, larger.maximum[name])}"
                    )
                    hint = "lower the one, or raise the other"
                    related = (Related(larger.at("max", name), f"{larger.title} is here"),)
                    yield self.hit(declared, message, smaller.at("max", name), hint=hint, related=related)


class SpecsWithoutOrder(Rule):
    info = info_rule("GP218", "specs-without-order")(
        summary="Of two specs, each allows more of something than the other.",
        rationale="The design asks for the biggest spec first, but here neither is the biggest: hspace's count depends"
        " on their order. Specs for computing beside specs for storage have this price.",
        source=SIZES,
        bad=group_with(
            spec("computing", "64G 128G", "16 32", "10G 20G"),
            spec("storage", "4G 8G", "1 2", "1T 2T"),
        ),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _apart(context):
            if context.exclusive(declared):
                continue  # the dedicated metric orders by disk-size (GP410)
            more, less = (
                [name for name in FILLING if all(one[name] > two[name] for one, two in _ends(high, low))]
                for high, low in ((first, second), (second, first))
            )
            if more and less:
                message = f"{first.title} has more {more[0]}, {second.title} more {less[0]}: neither is the bigger one"
                related = first.here
                yield self.hit(declared, message, second.span, related=related)


def _apart(context: Context) -> Iterator[tuple[Declared, Pair, Pair]]:
    """Yield each two pairs of a list that share no sizes (others are GP201 to GP204)."""
    for declared, _, pairs in context.minmax():
        for first, second in combinations(comparable(pairs), 2):
            if first.overlap(second) is None:
                yield declared, first, second


def _ends(one: Pair, other: Pair) -> tuple[tuple[dict[str, int], dict[str, int]], ...]:
    return (dict(one.minimum), dict(other.minimum)), (dict(one.maximum), dict(other.maximum))


class TieredCannotCount(Rule):
    info = info_rule("GP219", "spec-not-countable")(
        summary="hspace cannot count instances of a spec, or only the largest ones.",
        rationale="hspace counts instances with one disk and, without exclusive storage, with the spindle-use of the"
        " cluster's std. It shrinks them by 64 MiB of memory or 256 MiB of disk at a time. A spec that requires two"
        " disks counts as 0, and if the bounds of a spec are closer than one step, hspace counts its maximum only.",
        source=_HSPACE,
        bad=group_with(spec("small", "1024 1064", "1 3", "10G 90G")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        std = context.cluster_leaf(("ipolicy", "std", "spindle-use"))
        for declared, _, pairs in context.minmax():
            for pair in comparable(pairs):
                least = pair.minimum["disk-count"]
                if least > 1:
                    message = f"{pair.title} requires {least} disks, but hspace counts with one, and so counts none"
                    yield self.hit(declared, message, pair.at("min", "disk-count"))
                low, high = (bound["spindle-use"] for bound in (pair.minimum, pair.maximum))
                if std is not None and not low <= number(std) <= high and context.exclusive(declared) is None:
                    message = (
                        f"{pair.title} allows a spindle-use of {low} to {high}, but hspace counts with that of std,"
                        f" {number(std):g}, and so counts none"
                    )
                    related = (Related(std.span, "std is here"),)
                    yield self.hit(declared, message, pair.at("min", "spindle-use"), related=related)
                for name, step in _STEPS.items():
                    low, high = pair.minimum[name], pair.maximum[name]
                    if low < high < low + step:
                        message = (
                            f"{pair.title}: {name} spans {high - low} MiB, less than hspace's step of {step} MiB:"
                            f" only {amount(name, high)} is counted"
                        )
                        yield self.hit(declared, message, pair.at("min", name))


class SpecBoundOutOfOrder(Rule):
    info = warning_rule("GP230", "spec-bound-out-of-order")(
        summary="One bound of a spec does not go with the others: it is far below that of a smaller spec, or the spec"
        " reaches much further in one parameter than all other specs.",
        rationale="Most likely a digit is lost. A spec that begins too low takes instances that are meant for another"
        " one, and capacity counts its shrunken sizes.",
        source=SIZES,
        bad=group_with(spec("large", "1G 64G", "8 16", "200G 1T"), spec("small", "4G 12G", "1 4", "10G 100G")),
        good=group_with(spec("large", "16G 64G", "8 16", "200G 1T"), spec("small", "4G 12G", "1 4", "10G 100G")),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, _, pairs in context.minmax():
            compared = comparable(pairs)
            for pair in compared:
                found = _out_of_order(pair, compared) or _reaches_far(pair, compared)
                if found is not None:
                    name, message, related = found
                    place = pair.at("min", name)
                    yield self.hit(declared, message, place, hint="correct the minimum", related=related)


_FAR_BELOW: Final = {"memory-size": 4, "cpu-count": 4, "disk-size": 5}
"""How many times a minimum must be below that of a smaller spec; disks differ more on purpose."""


def _out_of_order(pair: Pair, others: Sequence[Pair]) -> tuple[str, str, tuple[Related, ...]] | None:
    """Return a minimum that is far below that of another spec, whose other bounds are all lower."""
    for other in others:
        ends = [(name, end) for name in FILLING for end in ("min", "max")]
        below = [(name, end) for name, end in ends if pair.bound(end)[name] < other.bound(end)[name]]
        above = sum(pair.bound(end)[name] > other.bound(end)[name] for name, end in ends)
        if len(below) != 1 or below[0][1] != "min" or above < len(ends) - 1:
            continue
        name = below[0][0]
        if pair.minimum[name] * _FAR_BELOW[name] <= other.minimum[name]:
            sizes = [amount(name, item.minimum[name]) for item in (pair, other)]
            message = (
                f"{pair.title} is above {other.title} in all else, but its min {name} is {sizes[0]}, not {sizes[1]}"
            )
            return name, f"{message} or more", other.here
    return None


def _reaches_far(pair: Pair, others: Sequence[Pair]) -> tuple[str, str, tuple[Related, ...]] | None:
    """Return a parameter in which a spec reaches much further than all others, but as they do with a digit more."""
    if len(others) <= 2:
        return None
    reaches = {name: [_reach(other, name) for other in others if other is not pair] for name in FILLING}
    for name in FILLING:
        if pair.maximum[name] <= min(other.maximum[name] for other in others):
            continue  # the smallest often begins low on purpose
        beside = [_reach(pair, other) for other in FILLING if other != name]
        most = max(*reaches[name], *beside)
        if most <= _NARROW and 1 <= _reach(pair, name) / _ONE_DIGIT <= most:
            sizes = [amount(name, bound[name]) for bound in (pair.minimum, pair.maximum)]
            return name, f"{pair.title}: {name} goes from {sizes[0]} to {sizes[1]}, much further than all else", ()
    return None


_NARROW: Final = 2
_ONE_DIGIT: Final = 10


def _reach(pair: Pair, name: str) -> float:
    return pair.maximum[name] / max(pair.minimum[name], 1)
