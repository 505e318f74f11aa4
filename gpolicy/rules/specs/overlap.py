"""GP201, GP203, GP204, GP208, GP209 and GP229: specs that share sizes or names, and lists too long to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import MAX_PAIRS, Pair, comparable, describe_region
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import error_rule, info_rule, warning_rule
from gpolicy.policy import edits
from gpolicy.policy.model import Declared
from gpolicy.rules.examples import spec
from gpolicy.rules.specs.examples import GOOD, LARGE, SIZES, SMALL, group_with


def _compared(context: Context) -> Iterator[tuple[Declared, Pair, Pair]]:
    """Yield each two pairs of a list, in the list's order."""
    for declared, _, pairs in context.minmax():
        for first, second in combinations(comparable(pairs), 2):
            yield declared, first, second


class SpecOverlap(Rule):
    info = warning_rule("GP201", "spec-overlap")(
        summary="Two specs overlap: some sizes belong to both.",
        rationale="Tiered allocation counts one spec after the other. If a size belongs to two specs, the capacity"
        " depends on which of them comes first. Ganeti does not check this. (GP229: specs that only touch.)",
        source=SIZES,
        bad=group_with(LARGE, spec("small", "1G 20G", "1 6", "10G 200G")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _compared(context):
            region = first.overlap(second)
            if region is not None and not _touch(region, first, second) and not _nested(first, second):
                message = f"{second.title} overlaps {first.title}: both allow {describe_region(region)}"
                yield self.hit(declared, message, second.span, hint=_APART, related=first.here)


class SpecTouch(Rule):
    info = info_rule("GP229", "spec-touch")(
        summary="A spec begins where another one ends: one size of a parameter belongs to both.",
        rationale="Bounds are inclusive, so specs that only touch overlap in this size. Tiered allocation counts it for"
        " the spec that comes first, which hardly changes a count.",
        source=SIZES,
        bad=group_with(LARGE, spec("small", "1G 16G", "1 4", "10G 100G")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _compared(context):
            region = first.overlap(second)
            if region is not None and _touch(region, first, second) and not _nested(first, second):
                message = f"{second.title} touches {first.title}: both allow {describe_region(region)}"
                yield self.hit(declared, message, second.span, hint=_APART, related=first.here)


_APART: Final = "start above the maximum of the other in at least one parameter: a size 4 MiB above, a count 1"


def _nested(first: Pair, second: Pair) -> bool:
    return first.contains(second) or second.contains(first)


def _touch(region: Mapping[str, tuple[int, int]], first: Pair, second: Pair) -> bool:
    """Whether two specs have no more in common than the end of one and the beginning of the other in a parameter."""
    return any(
        low == high
        and (first.maximum[name] == second.minimum[name] or second.maximum[name] == first.minimum[name])
        and (first.minimum[name], first.maximum[name]) != (second.minimum[name], second.maximum[name])
        for name, (low, high) in region.items()
    )


class SpecContained(Rule):
    info = warning_rule("GP203", "spec-contained")(
        summary="A spec lies entirely inside another one.",
        rationale="It allows nothing that the other spec does not allow, and the two overlap.",
        source=SIZES,
        bad=group_with(LARGE, spec("half", "16G 32G", "4 8", "100G 500G")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _compared(context):
            inner, outer = (second, first) if first.contains(second) else (first, second)
            if outer.contains(inner) and not inner.same_as(outer):
                message = f"{inner.title} lies inside {outer.title}: it allows nothing more"
                hint = "remove it, or let the other end below its minimum, or begin above its maximum, in one parameter"
                related = outer.here
                yield self.hit(declared, message, inner.span, hint=hint, related=related)


class SpecDuplicate(Rule):
    info = warning_rule("GP204", "spec-duplicate")(
        summary="A list has the same spec twice.",
        rationale="Ganeti silently keeps both. The second adds nothing, and hspace counts it once more.",
        source=f"{SIZES}; Ganeti 3.0 accepts duplicates",
        bad=group_with(SMALL, spec("tiny", "1G 12G", "1 3", "10G 90G")),
        good=GOOD,
        fix="Removes the second one, unless it has its own name, which something could use.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, first, second in _compared(context):
            if first.same_as(second):
                message = f"{second.title} has the bounds of {first.title}"
                leaf, fix = second.leaf, None
                if second.name in (None, first.name):
                    place = (*leaf.pointer, second.index)
                    fix = edits.fix("remove it", edits.remove_entry(leaf.document, place))
                related = first.here
                yield self.hit(declared, message, second.span, hint="remove one", related=related, fix=fix)


class SpecNameTwice(Rule):
    info = error_rule("GP208", "spec-name-twice")(
        summary="Two specs of one list have the same name, or names that differ only in case.",
        rationale="Guards, tests and reports refer to a spec by its name.",
        bad=group_with(LARGE, SMALL.replace("small", "large")),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, _, pairs in context.minmax():
            first: dict[str, Pair] = {}
            for pair in pairs:
                if pair.name is None:
                    continue
                other = first.setdefault(pair.name.lower(), pair)
                if other is not pair:
                    related = other.here
                    almost = "" if pair.name == other.name else f", almost as {other.name!r}"
                    message = f"a second spec is named {pair.name!r}{almost}"
                    span = pair.leaf.at(pair.index, "name")
                    yield self.hit(declared, message, span, hint="give it another name", related=related)


class TooManySpecs(Rule):
    info = warning_rule("GP209", "too-many-specs")(
        summary=f"More than {MAX_PAIRS} specs in one list.",
        rationale="Constrained sizes are meant to be a finite set that people know by heart. gpolicy compares only"
        f" the first {MAX_PAIRS} with one another, so overlaps further down stay unseen.",
        source=SIZES,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf, pairs in context.minmax():
            if len(pairs) > MAX_PAIRS:
                message = f"{len(pairs)} specs: only the first {MAX_PAIRS} are compared with one another"
                yield self.hit(declared, message, leaf.at(MAX_PAIRS), hint="merge specs that belong together")
