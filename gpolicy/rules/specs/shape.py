"""GP215, GP217 to GP221 and GP224: specs beside one another, and against what hspace can count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, Context, number, texts
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, RuleParameter, Severity
from gpolicy.policy.model import Declared
from gpolicy.rules.specs.overlap import bounds

FILLING: Final = ("memory-size", "cpu-count", "disk-size")
"""The parameters that fill a node."""

_SIZES: Final = "Partitioned Ganeti, Constrained instance sizes"
_HSPACE: Final = "hspace of Ganeti 3.0, tiered allocation"
_HEAD: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n"
_STEPS: Final = {"memory-size": 64, "disk-size": 256}
"""By how much hspace makes an instance smaller at a time, in MiB; it never goes below one step."""


def _list(*pairs: str) -> str:
    return _HEAD + "".join(f"    - {pair}" for pair in pairs)


_LARGE: Final = "name: large\n      " + bounds("16G 64G", "4 16", "100G 1T")
_SMALL: Final = "name: small\n      " + bounds("1G 12G", "1 3", "10G 90G")
_GOOD: Final = _list(_LARGE, _SMALL)


class SpecGap(Rule):
    """A wide range of sizes between the specs that none takes."""

    info = RuleInfo(
        code="GP215",
        name="spec-gap",
        severity=Severity.WARNING,
        summary="Between the specs lies a wide range of a size that no spec takes.",
        rationale="Specs need small gaps, since bounds are inclusive. But where the next larger spec begins at many"
        " times the end of the one below, nothing of a size between fits anywhere; most often a unit is wrong.",
        source=_SIZES,
        bad=_list(_LARGE, "name: small\n      " + bounds("64M 128M", "1 3", "10G 90G")),
        good=_GOOD,
        parameters=(
            RuleParameter(
                name="factor",
                default=64,
                summary="So many times the end of the specs below must the next spec begin at.",
                least=1,
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
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
                        hint = "if that is meant, waive it; else correct a unit, or add a spec for the sizes between"
                        yield self.hit(declared, message, pair.at("min", name), hint=hint, related=related)
                    below = max(below, pair, key=lambda pair: pair.maximum[name])


class SpecNotMonotonic(Rule):
    """A smaller spec that allows more of one thing than the larger one."""

    info = RuleInfo(
        code="GP217",
        name="spec-not-monotonic",
        severity=Severity.WARNING,
        summary="A spec that is otherwise the smaller one allows more memory, CPUs or disk than the larger one.",
        rationale="Specs are counted biggest first, each beginning with its maximum. When the smaller spec has the"
        " greater maximum, no order is right, and most often a number is mistyped.",
        source=_SIZES,
        bad=_list(_LARGE, "name: small\n      " + bounds("1G 12G", "1 3", "10G 9T")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
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
    """Two specs of which neither is the larger."""

    info = RuleInfo(
        code="GP218",
        name="specs-without-order",
        severity=Severity.INFO,
        summary="Of two specs one takes more of one thing, the other more of another.",
        rationale="The design asks for the biggest first. Here none is the biggest: what hspace counts depends on which"
        " of the two stands first. That is the price of specs for computing beside specs for storage.",
        source=_SIZES,
        bad=_list(
            "name: computing\n      " + bounds("64G 128G", "16 32", "10G 20G"),
            "name: storage\n      " + bounds("4G 8G", "1 2", "1T 2T"),
        ),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, first, second in _apart(context):
            if context.exclusive(declared):
                continue  # the dedicated metric orders by disk-size (GP410)
            more, less = (
                [name for name in FILLING if all(one[name] > two[name] for one, two in _ends(high, low))]
                for high, low in ((first, second), (second, first))
            )
            if more and less:
                message = f"{first.title} has more {more[0]}, {second.title} more {less[0]}: neither is the bigger one"
                related = (Related(first.span, f"{first.title} is here"),)
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
    """A spec that hspace counts wrongly, since it cannot make instances for it."""

    info = RuleInfo(
        code="GP219",
        name="spec-not-countable",
        severity=Severity.INFO,
        summary="hspace cannot count instances of a spec, or not the smaller ones.",
        rationale="The instances that hspace makes up have one disk, and outside of exclusive storage the spindle-use"
        " of the cluster's std. It makes them smaller by 64 MiB of memory or 256 MiB of disk at a time. A spec that"
        " asks for two disks counts as 0, and one whose bounds lie closer together than a step is counted at its"
        " maximum only.",
        source=_HSPACE,
        bad=_list("name: small\n      " + bounds("1024 1064", "1 3", "10G 90G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        std = context.cluster_leaf(("ipolicy", "std", "spindle-use"))
        for declared, _, pairs in context.minmax():
            for pair in comparable(pairs):
                least = pair.minimum["disk-count"]
                if least > 1:
                    message = f"{pair.title} asks for {least} disks: hspace counts with one, and so counts none"
                    yield self.hit(declared, message, pair.at("min", "disk-count"))
                low, high = (bound["spindle-use"] for bound in (pair.minimum, pair.maximum))
                if std is not None and not low <= number(std) <= high and context.exclusive(declared) is None:
                    message = (
                        f"{pair.title} takes a spindle-use of {low} to {high}: hspace counts with that of std,"
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


class SpecMinZero(Rule):
    """A least of nothing."""

    info = RuleInfo(
        code="GP220",
        name="spec-min-zero",
        severity=Severity.WARNING,
        summary="A spec's least memory or CPU count is 0.",
        rationale="No instance has no memory or no CPU, so the bound keeps nothing out. Ganeti takes it without a"
        " word.",
        source=f"{_SIZES}; Ganeti 3.0 does not check it",
        bad=_list("name: small\n      " + bounds("0 12G", "1 3", "10G 90G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                for name in ("memory-size", "cpu-count"):
                    if pair.minimum[name] == 0 < pair.maximum[name]:
                        message = f"{pair.title} allows {name} from 0 on: no instance has none"
                        hint = "write the least that an instance is to have"
                        yield self.hit(declared, message, pair.at("min", name), hint=hint)


class SpecWithoutDisks(Rule):
    """A spec that takes no instance with a disk."""

    info = RuleInfo(
        code="GP221",
        name="spec-without-disks",
        severity=Severity.WARNING,
        summary="A spec allows no disks, or only disks of size 0, and diskless instances are not allowed.",
        rationale="No instance is legal that way: one with disks has too many of them, and one without needs the disk"
        " template diskless.",
        source=f"{_SIZES}; Ganeti 3.0, check of instances",
        bad=_list("name: small\n      " + bounds("1G 12G", "1 3", "0 0")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            allowed = context.effective(declared, DISK_TEMPLATES)
            if allowed is not None and "diskless" in texts(allowed):
                continue
            for pair in pairs:
                for name in ("disk-count", "disk-size"):
                    if pair.possible and pair.maximum[name] == 0:
                        message = f"{pair.title} takes no instance with disks: its greatest {name} is 0"
                        hint = "write a bound above 0, or allow the disk template diskless"
                        yield self.hit(declared, message, pair.at("max", name), hint=hint)


class SpecUnlikely(Rule):
    """Memory that is too little for the CPUs."""

    info = RuleInfo(
        code="GP224",
        name="spec-unlikely",
        severity=Severity.WARNING,
        summary="The memory of a spec is far too little: its least, or its greatest for its least number of CPUs.",
        rationale="No system runs in it. Most often a unit is missing: a number alone is MiB.",
        source="gpolicy",
        bad=_list("name: large\n      " + bounds("16 64", "4 16", "100G 1T")),
        good=_list(_LARGE),
        parameters=(
            RuleParameter(name="least", default=64, summary="MiB of memory that an instance has at least."),
            RuleParameter(name="each", default=16, summary="MiB of memory for each CPU, at least."),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        least, each = (context.settings.parameter(self.info, name) for name in ("least", "each"))
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                memory, cpus = pair.maximum["memory-size"], pair.minimum["cpu-count"]
                if 0 < memory < each * cpus:
                    message = (
                        f"{pair.title}: at most {amount('memory-size', memory)} of memory for at least {cpus} CPUs"
                    )
                    yield self.hit(declared, message, pair.at("max", "memory-size"), hint="correct the unit")
                elif 0 < pair.minimum["memory-size"] < least:
                    smallest = amount("memory-size", pair.minimum["memory-size"])
                    message = f"{pair.title}: instances with {smallest} of memory are allowed"
                    yield self.hit(declared, message, pair.at("min", "memory-size"), hint="correct the unit")


SPEC_SHAPE_RULES: Final = (
    SpecGap(),
    SpecNotMonotonic(),
    SpecsWithoutOrder(),
    TieredCannotCount(),
    SpecMinZero(),
    SpecWithoutDisks(),
    SpecUnlikely(),
)
