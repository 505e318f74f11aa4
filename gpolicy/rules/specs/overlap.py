"""GP2xx: the spec pairs of an instance policy, and std."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from gpolicy.checking.context import MINMAX, Context, number
from gpolicy.checking.pairs import MAX_PAIRS, Pair, amount, comparable, describe_region
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy import edits
from gpolicy.policy.model import Declared

_SIZES: Final = "Partitioned Ganeti, Constrained instance sizes"
_HEAD: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n"


def bounds(memory: str, cpus: str, disk: str, spindles: str = "1 12") -> str:
    """Return a pair in YAML for an example: each argument is `min max`, in Ganeti's units."""
    low, high = (
        f"{{memory-size: {memory.split()[end]}, cpu-count: {cpus.split()[end]}, disk-size: {disk.split()[end]},"
        f" disk-count: 1, nic-count: 1, spindle-use: {spindles.split()[end]}}}"
        for end in (0, 1)
    )
    return f"min: {low}\n      max: {high}\n"


def _example(*pairs: str, head: str = _HEAD) -> str:
    return head + "".join(f"    - {pair}" for pair in pairs)


_LARGE: Final = "name: large\n      " + bounds("16G 64G", "4 16", "100G 1T")
_SMALL: Final = "name: small\n      " + bounds("1G 12G", "1 3", "10G 90G")
_GOOD: Final = _example(_LARGE, _SMALL)


def _compared(context: Context) -> Iterator[tuple[Declared, Pair, Pair]]:
    """Yield each two pairs of a list, in the list's order."""
    for declared, _, pairs in context.minmax():
        for first, second in combinations(comparable(pairs), 2):
            yield declared, first, second


def _first_place(pair: Pair) -> tuple[Related, ...]:
    return (Related(pair.span, f"{pair.title} is here"),)


class SpecOverlap(Rule):
    """Two pairs share sizes, and neither is inside the other."""

    info = RuleInfo(
        code="GP201",
        name="spec-overlap",
        severity=Severity.WARNING,
        summary="Two specs overlap: some sizes belong to both.",
        rationale="Tiered allocation counts from one spec to the next; a size that belongs to two makes the capacity"
        " numbers depend on the order in which it is met. Bounds are inclusive: specs that only touch overlap. Ganeti"
        " neither checks nor enforces this.",
        source=_SIZES,
        bad=_example(_LARGE, "name: small\n      " + bounds("1G 16G", "1 4", "10G 100G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, first, second in _compared(context):
            region = first.overlap(second)
            if region is not None and not first.contains(second) and not second.contains(first):
                message = f"{second.title} overlaps {first.title}: both allow {describe_region(region)}"
                hint = "let one begin above the end of the other in at least one parameter (bounds are inclusive)"
                yield self.hit(declared, message, second.span, hint=hint, related=_first_place(first))


class SpecOrder(Rule):
    """A pair stands behind one that is smaller."""

    info = RuleInfo(
        code="GP202",
        name="spec-order",
        severity=Severity.WARNING,
        summary="Specs are not ordered biggest first.",
        rationale="hspace's tiered allocation starts with the first spec and goes on to the next when it is exhausted:"
        " with a small one first, the small instances eat what the big ones need, and the capacity comes out wrong."
        " (The dedicated metric of hail sorts by itself, by the lower bound of disk-size.)",
        source=_SIZES,
        bad=_example(_SMALL, _LARGE),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            compared = comparable(pairs)
            for place, pair in enumerate(compared):
                smaller = next((earlier for earlier in compared[:place] if _is_bigger(pair, earlier)), None)
                if smaller is not None:
                    message = f"{pair.title} is bigger than {smaller.title}, which stands before it"
                    hint = f"move {pair.title} before {smaller.title}: capacity is counted from the first spec on"
                    yield self.hit(declared, message, pair.span, hint=hint, related=_first_place(smaller))


def _is_bigger(pair: Pair, other: Pair) -> bool:
    """Return whether both bounds of `pair` are at least those of `other` in what fills a node, and one is above."""
    names = ("memory-size", "cpu-count", "disk-size")
    ends = [(pair.maximum, other.maximum), (pair.minimum, other.minimum)]
    at_least = all(one[name] >= two[name] for one, two in ends for name in names)
    return at_least and any(one[name] > two[name] for one, two in ends for name in names)


class SpecContained(Rule):
    """A pair lies inside another."""

    info = RuleInfo(
        code="GP203",
        name="spec-contained",
        severity=Severity.WARNING,
        summary="A spec lies entirely inside another one.",
        rationale="It allows nothing that the other does not allow already, and it overlaps by definition.",
        source=_SIZES,
        bad=_example(_LARGE, "name: half\n      " + bounds("16G 32G", "4 8", "100G 500G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, first, second in _compared(context):
            inner, outer = (second, first) if first.contains(second) else (first, second)
            if outer.contains(inner) and not inner.same_as(outer):
                message = f"{inner.title} lies inside {outer.title}: it allows nothing more"
                hint = "remove it, or cut its range out of the other"
                related = (Related(outer.span, f"{outer.title} is here"),)
                yield self.hit(declared, message, inner.span, hint=hint, related=related)


class SpecDuplicate(Rule):
    """The same pair stands twice."""

    info = RuleInfo(
        code="GP204",
        name="spec-duplicate",
        severity=Severity.WARNING,
        summary="The same spec stands twice.",
        rationale="Ganeti keeps both without a word. The second adds nothing and is counted once more by hspace.",
        source=f"{_SIZES}; Ganeti 3.0 accepts duplicates",
        bad=_example(_SMALL, "name: tiny\n      " + bounds("1G 12G", "1 3", "10G 90G")),
        good=_GOOD,
        fix="Removes the second, if it has no name of its own that something could mean.",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, first, second in _compared(context):
            if first.same_as(second):
                message = f"{second.title} has the bounds of {first.title}"
                leaf, fix = second.leaf, None
                if second.name in (None, first.name):
                    place = (*leaf.pointer, second.index)
                    fix = edits.fix("remove it", edits.remove_entry(leaf.document, place))
                related = _first_place(first)
                yield self.hit(declared, message, second.span, hint="remove one", related=related, fix=fix)


class StdOutside(Rule):
    """The standard instance fits no pair."""

    info = RuleInfo(
        code="GP205",
        name="std-outside",
        severity=Severity.ERROR,
        summary="The standard spec lies in none of the cluster's specs.",
        rationale="Ganeti refuses the policy: std must lie inside at least one pair for all six parameters.",
        source=f"{_SIZES}; Ganeti 3.0 checks it on the cluster",
        bad="gpolicy: v1\nkind: Cluster\nname: c.example.org\nipolicy:\n  std: {memory-size: 512, cpu-count: 2}\n"
        "  minmax:\n    - " + _SMALL,
        good="gpolicy: v1\nkind: Cluster\nname: c.example.org\nipolicy:\n  std: {memory-size: 2G, cpu-count: 2}\n"
        "  minmax:\n    - " + _SMALL,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        cluster, leaf = context.policy.cluster, context.cluster_leaf(MINMAX)
        if cluster is None or leaf is None:
            return
        paths: dict[str, Path] = {name: ("ipolicy", "std", name) for name in SPEC_PARAMETERS}
        std = {name: found for name, path in paths.items() if (found := context.cluster_leaf(path))}
        pairs = [pair for pair in context.pairs(cluster) if pair.possible]
        outside = [
            [name for name, leaf in std.items() if not pair.minimum[name] <= number(leaf) <= pair.maximum[name]]
            for pair in pairs
        ]
        if not pairs or not all(outside):
            return
        nearest = min(range(len(pairs)), key=lambda place: len(outside[place]))
        pair, names = pairs[nearest], outside[nearest]
        reasons = ", ".join(
            f"{name} {amount(name, int(number(std[name])))} is not in {amount(name, pair.minimum[name])} to"
            f" {amount(name, pair.maximum[name])}"
            for name in names
        )
        message = f"std lies in no spec; closest is {pair.title}, but {reasons}"
        hint = "Ganeti refuses this: change std and minmax together"
        related = (Related(pair.span, f"{pair.title} is here"),)
        yield self.hit(cluster, message, std[names[0]].span, hint=hint, related=related)


class MinAboveMax(Rule):
    """A bound above its counterpart."""

    info = RuleInfo(
        code="GP206",
        name="spec-min-above-max",
        severity=Severity.ERROR,
        summary="A spec's minimum is above its maximum.",
        rationale="Ganeti refuses the policy; no instance could ever fit.",
        source=f"{_SIZES}; Ganeti 3.0 checks it",
        bad=_example("name: small\n      " + bounds("12G 1G", "1 3", "10G 90G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                for name in SPEC_PARAMETERS:
                    low, high = pair.minimum[name], pair.maximum[name]
                    if low > high:
                        message = f"{pair.title}: min {name} {amount(name, low)} is above max {amount(name, high)}"
                        related = (Related(pair.at("max", name), "the maximum is here"),)
                        hint = "swap the two, or correct one of them"
                        yield self.hit(declared, message, pair.at("min", name), hint=hint, related=related)


class SpecAllowsNothing(Rule):
    """A pair whose greatest memory or CPU count is zero."""

    info = RuleInfo(
        code="GP207",
        name="spec-allows-nothing",
        severity=Severity.ERROR,
        summary="A spec whose greatest memory or CPU count is 0.",
        rationale="Ganeti accepts zero (and negative) bounds, but no instance has no memory or no CPU.",
        source=f"{_SIZES}; Ganeti 3.0 does not check it",
        bad=_example("name: none\n      " + bounds("0 0", "1 3", "10G 90G")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                for name in ("memory-size", "cpu-count"):
                    if pair.possible and pair.maximum[name] == 0:
                        message = f"{pair.title} allows no instance: its greatest {name} is 0"
                        yield self.hit(declared, message, pair.at("max", name), hint="write a bound above 0")


class SpecNameTwice(Rule):
    """Two pairs of a list have one name."""

    info = RuleInfo(
        code="GP208",
        name="spec-name-twice",
        severity=Severity.ERROR,
        summary="Two specs of one list have the same name.",
        rationale="Guards, tests and reports mean a spec by its name.",
        source="gpolicy",
        bad=_example(_LARGE, _SMALL.replace("small", "large")),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            first: dict[str, Pair] = {}
            for pair in pairs:
                if pair.name is not None and first.setdefault(pair.name, pair) is not pair:
                    related = _first_place(first[pair.name])
                    message = f"a second spec is named {pair.name!r}"
                    span = pair.leaf.at(pair.index, "name")
                    yield self.hit(declared, message, span, hint="give it another name", related=related)


class TooManySpecs(Rule):
    """A list too long to compare each pair with each other."""

    info = RuleInfo(
        code="GP209",
        name="too-many-specs",
        severity=Severity.WARNING,
        summary=f"More than {MAX_PAIRS} specs in one list.",
        rationale="Constrained sizes are meant to be a finite set that people know by heart. gpolicy compares only"
        f" the first {MAX_PAIRS} with one another, so overlaps further down stay unseen.",
        source=_SIZES,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf, pairs in context.minmax():
            if len(pairs) > MAX_PAIRS:
                message = f"{len(pairs)} specs: only the first {MAX_PAIRS} are compared with one another"
                yield self.hit(declared, message, leaf.at(MAX_PAIRS), hint="join sizes that belong together")


SPEC_RULES: Final = (
    SpecOverlap(),
    SpecOrder(),
    SpecContained(),
    SpecDuplicate(),
    StdOutside(),
    MinAboveMax(),
    SpecAllowsNothing(),
    SpecNameTwice(),
    TooManySpecs(),
)
