"""The specs of one list: their order, what lies between them, and what they share (GP201 to GP204 and others)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import FILLING, MAX_PAIRS, Pair, amount, comparable, describe_region
from gpolicy.checking.rule import Hit, When, error, hit, information, see, warning
from gpolicy.findings import Related, Role, RuleParameter, Span
from gpolicy.policy import edits
from gpolicy.policy.model import Declared
from gpolicy.rules.node_limits import excesses_by_group
from gpolicy.rules.number_meant import CLEARLY, bound_meant, observed_sizes, out_of_line, sizes_beside, slips_of, taken
from gpolicy.rules.shared import groups_where, repeated

_STEPS: Final = {"memory-size": 64, "disk-size": 256}
"""By how much hspace makes an instance smaller at a time, in MiB; it never goes below one step."""
_FAR_BELOW: Final = {"memory-size": 4, "cpu-count": 4, "disk-size": 5}
"""How many times a minimum must be below that of a smaller spec; disks differ more on purpose."""


@warning("GP202")
def spec_order(context: Context) -> Iterator[Hit]:
    for declared, _, pairs in context.minmax():
        ordered, found = list[Pair](), list[tuple[Pair, Pair]]()
        for pair in comparable(pairs):
            place = next((place for place, other in enumerate(ordered) if _is_bigger(pair, other)), len(ordered))
            found += [(pair, ordered[place])] if place < len(ordered) else []
            ordered.insert(place, pair)
        if context.exclusive(declared):  # GP410
            ordered.sort(key=lambda pair: -pair.minimum["disk-size"])
        for pair, smaller in found[:1]:
            message = f"{pair.title} is bigger than {smaller.title}, which stands before it"
            order = ", ".join(pair.word for pair in ordered)
            hint = f"write the sizes in the order {order}: capacity is counted from the first size on"
            yield hit(declared, message, pair.span, hint, smaller.here)


def _is_bigger(pair: Pair, other: Pair) -> bool:
    """Return whether both bounds of `pair` are at least those of `other` in what fills a node, and one is above."""
    ends = [(pair.maximum, other.maximum), (pair.minimum, other.minimum)]
    at_least = all(one[name] >= two[name] for one, two in ends for name in FILLING)
    return at_least and any(one[name] > two[name] for one, two in ends for name in FILLING)


@warning("GP215", parameters=(RuleParameter("factor", 64, least=1),))
def spec_gap(context: Context, factor: float) -> Iterator[Hit]:
    for declared, _, pairs in context.minmax():
        compared = comparable(pairs)
        for name in FILLING if len(compared) > 1 else ():
            ordered = sorted(compared, key=lambda pair: pair.minimum[name])
            below = ordered[0]
            for pair in ordered[1:]:
                low, high = below.maximum[name], pair.minimum[name]
                if high > max(low, 1) * factor:
                    message = f"no size takes a {name} between {amount(name, low)} and {amount(name, high)}"
                    related = see(below.at("max", name), f"{below.title} ends here")
                    hint = "correct a unit, add a size for these instances, or waive the finding if the gap is intended"
                    yield hit(declared, message, pair.at("min", name), hint, related)
                below = max(below, pair, key=lambda pair: pair.maximum[name])


@warning("GP217")
def spec_not_monotonic(context: Context) -> Iterator[Hit]:
    for declared, first, second in _apart(context):
        for larger, smaller in ((first, second), (second, first)):
            more = [name for name in FILLING if smaller.maximum[name] > larger.maximum[name]]
            least = [larger.minimum[name] - smaller.minimum[name] for name in FILLING]
            if len(more) == 1 and min(least) >= 0 and max(least) > 0:
                name = more[0]
                message = f"{smaller.title} is smaller than {larger.title}, but allows a greater {name}:"
                message += f" {amount(name, smaller.maximum[name])}, not {amount(name, larger.maximum[name])}"
                both = [(pair, sizes_beside(context, declared, pair)) for pair in (smaller, larger)]
                odd = [out_of_line(pair, "max", name, beside) for pair, beside in both]
                if odd[1] >= (odd[0][0], odd[0][1] + CLEARLY):
                    value = bound_meant(context, declared, larger, "max", name)
                    meant, at, hint = [value] if value is not None else [], larger, "raise the one, or lower the other"
                else:
                    meant, at = _less(context, declared, smaller, larger, name), smaller
                    hint = "lower the one, or raise the other"
                other = smaller if at is larger else larger
                place, related = at.at("max", name), see(other.at("max", name), f"{other.title} is here")
                hint = f"is {amount(name, meant[0])} meant? Else {hint}" if len(meant) == 1 else hint
                yield hit(declared, message, place, hint, related, missing=f"less at {place}")


def _less(context: Context, declared: Declared, smaller: Pair, larger: Pair, name: str) -> list[int]:
    """Return what may be meant by the maximum of a smaller size that is above that of a larger one."""
    fitting = range(smaller.minimum[name], larger.maximum[name] + 1)
    groups, number = groups_where(context, declared, smaller.leaf), smaller.maximum[name]
    slips = (slips_of(name, number, lost=lost) for lost in (False, True))
    guesses = (taken(context, groups, smaller, name, [*filter(fitting.__contains__, found)]) for found in slips)
    return next(filter(None, guesses), [])


@information("GP218")
def specs_without_order(context: Context) -> Iterator[Hit]:
    for declared, first, second in _apart(context):
        if context.exclusive(declared):
            continue  # the dedicated metric orders by disk-size (GP410)
        more, less = (
            [name for name in FILLING if all(high.bound(end)[name] > low.bound(end)[name] for end in ("min", "max"))]
            for high, low in ((first, second), (second, first))
        )
        if more and less:
            message = f"{first.title} has more {more[0]}, {second.title} more {less[0]}: neither is the bigger one"
            yield hit(declared, message, second.span, related=first.here)


def _apart(context: Context) -> Iterator[tuple[Declared, Pair, Pair]]:
    """Yield each two pairs of a list that share no sizes (others are GP201 to GP204)."""
    return (found for found in _compared_pairs(context) if found[1].overlap(found[2]) is None)


@information("GP219")
def spec_not_countable(context: Context) -> Iterator[Hit]:
    std = context.cluster_leaf(("ipolicy", "std", "spindle-use")) if context.whole else None
    for declared, _, pairs in context.minmax():
        for pair in comparable(pairs):
            least = pair.minimum["disk-count"]
            if least > 1:
                message = f"{pair.title} requires {least} disks, but hspace counts with one, and so counts none"
                yield hit(declared, message, pair.at("min", "disk-count"))
            low, high = (bound["spindle-use"] for bound in (pair.minimum, pair.maximum))
            homes: Sequence[Declared] = groups_where(context, declared, pair.leaf) or [declared]
            is_shared = not all(context.exclusive(home) for home in homes)  # else tiered counts take the spindles
            if std is not None and not low <= std.number <= high and is_shared:
                message = f"{pair.title} allows a spindle-use of {low} to {high}, but hspace counts with that of"
                message += f" std, {std.number:g}, and so counts none"
                yield hit(declared, message, pair.at("min", "spindle-use"), related=see(std.span, "std is here"))
            for name, step in _STEPS.items():
                low, high = pair.minimum[name], pair.maximum[name]
                if low < high < low + step:
                    message = f"{pair.title}: {name} spans {high - low} MiB, less than hspace's step of {step} MiB:"
                    message += f" only {amount(name, high)} is counted"
                    yield hit(declared, message, pair.at("min", name))


@warning("GP230", role=Role.OUT_OF_ORDER)
def spec_bound_out_of_order(context: Context) -> Iterator[Hit]:
    for declared, _, pairs in context.minmax():
        compared = comparable(pairs)
        for pair in compared:
            found = _out_of_order(pair, compared) or _reaches_far(pair, compared)
            if found is not None:
                name, message, related = found
                others = sizes_beside(context, declared, pair)
                end = "min" if related else max(("min", "max"), key=lambda end: out_of_line(pair, end, name, others))
                yield hit(declared, message, pair.at(end, name), f"correct the {end}imum", related)


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
            message = f"{pair.title} is above {other.title} in all else, but its min {name} is {sizes[0]},"
            message += f" not {sizes[1]}"
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
        most = max(*reaches[name], *(_reach(pair, other) for other in FILLING if other != name))
        if most <= 2 and 1 <= _reach(pair, name) / 10 <= most:
            sizes = [amount(name, bound[name]) for bound in (pair.minimum, pair.maximum)]
            return name, f"{pair.title}: {name} goes from {sizes[0]} to {sizes[1]}, much further than all else", ()
    return None


def _reach(pair: Pair, name: str) -> float:
    return pair.maximum[name] / max(pair.minimum[name], 1)


def _compared_pairs(context: Context) -> Iterator[tuple[Declared, Pair, Pair]]:
    """Yield each two pairs of a list, in the list's order."""
    for declared, _, pairs in context.minmax():
        yield from ((declared, first, second) for first, second in combinations(comparable(pairs), 2))


def _overlaps(context: Context, *, touching: bool) -> Iterator[tuple[Declared, Pair, Pair, str]]:
    """Yield each two pairs that overlap, neither within the other, with what both allow: one size only, or more."""
    for declared, first, second in _compared_pairs(context):
        region, nested = first.overlap(second), first.contains(second) or second.contains(first)
        if region is not None and not nested and _touch(region, first, second) is touching:
            yield declared, first, second, f"both allow {describe_region(region)}"


@warning("GP201", When.BETTER_WITH_STATE, role=Role.OVERLAP)
def spec_overlap(context: Context) -> Iterator[Hit]:
    unlikely = {item.finding.span for item in context.found_with(Role.ODD_MEMORY)}
    beyond = {item.place for found in context.once(excesses_by_group).values() for item in found}
    sizes = dict[str, list[dict[str, int]]]()
    for declared, first, second, region in _overlaps(context, touching=False):
        if declared.label not in sizes:
            sizes[declared.label] = observed_sizes(context, declared, first.leaf)
        message = f"{second.title} overlaps {first.title}: {region}"
        bounds = [pair.at(end, "memory-size") for pair in (first, second) for end in ("min", "max")]
        odd = [place for place in bounds if place in unlikely]
        for low, high in ((first, second), (second, first)):
            parting = (name for name in FILLING if low.minimum[name] < high.minimum[name])
            odd += [place for name in parting if (place := low.at("max", name)) in beyond]
        hint, slip = _cure(first, second, sizes[declared.label])
        related = (Related(place, "most likely this is wrong") for place in odd)
        yield hit(declared, message, slip or second.span, hint, (*first.here, *related))


@information("GP229")
def spec_touch(context: Context) -> Iterator[Hit]:
    for declared, first, second, region in _overlaps(context, touching=True):
        message = f"{second.title} touches {first.title}: {region}"
        yield hit(declared, message, second.span, _cure(first, second, ())[0], first.here)


def _cure(first: Pair, second: Pair, sizes: Sequence[Mapping[str, int]]) -> tuple[str, Span | None]:
    """Return what parts two sizes and refuses no instance that has `sizes`; and the place of the slip that explains it.

    What they share only one value of comes last: that is often meant. Where one is the smaller in nearly all, what goes
    beyond the other comes first.
    """
    bounds = [(first.bound(end)[name], second.bound(end)[name]) for name in FILLING for end in ("min", "max")]
    more = sum((one > other) - (one < other) for one, other in bounds)
    small, big = (second, first) if more >= 0 else (first, second)
    ways, slips = list[tuple[bool, bool, str]](), list[tuple[str, Span]]()
    for name in FILLING:
        is_turned = all(small.bound(end)[name] > big.bound(end)[name] for end in ("min", "max"))
        low, high = (big, small) if is_turned else (small, big)
        begin, end = high.minimum[name], low.maximum[name]
        cures = []
        if low.minimum[name] < begin and not _refuses(low, high, name, range(begin, end + 1), sizes):
            cures.append(f"end {low.title} below {name} {amount(name, begin)}")
        if end < high.maximum[name] and not _refuses(high, low, name, range(begin, end + 1), sizes):
            cures.append(f"begin {high.title} above {name} {amount(name, end)}")
        is_odd = abs(more) > 2 and (begin < low.minimum[name] or end > high.maximum[name])
        ways += [(begin == end, not is_odd, ", or ".join(cures))] if cures else []
        parting = (
            (high, "min", range(end + 1, min(high.maximum[name], 2 * end) + 1)),
            (low, "max", range(max(low.minimum[name], begin // 2), begin)),
        )
        for pair, bound, values in parting if is_odd and begin < end else ():
            meant = (amount(name, value) for value in slips_of(name, pair.bound(bound)[name]) if value in values)
            slips += [(f"is {name} {value} meant? Else ", pair.at(bound, name)) for value in meant]
    other = True, True, "let one of them begin above the end of the other in at least one parameter"
    cure = min(ways, key=lambda way: way[:2], default=other)
    return (f"{slips[0][0]}{cure[2]}", slips[0][1]) if len(slips) == 1 else (cure[2], None)


def _refuses(pair: Pair, other: Pair, name: str, values: range, sizes: Iterable[Mapping[str, int]]) -> bool:
    """Return whether instances are of one size only, by a parameter whose values that size is to lose."""
    return any(
        size[name] in values and not pair.outside(size.items()) and other.outside(size.items()) for size in sizes
    )


def _touch(region: Mapping[str, tuple[int, int]], first: Pair, second: Pair) -> bool:
    """Whether two specs have no more in common than the end of one and the beginning of the other.

    That of memory, CPUs and disk, where they differ in these: in the other parameters most specs allow the same.
    """
    differing = [name for name in region if first.ends(name) != second.ends(name)]
    main = [name for name in differing if name in FILLING]
    return all(
        region[name][0] == region[name][1]
        and (first.maximum[name] == second.minimum[name] or second.maximum[name] == first.minimum[name])
        for name in main or differing
    )


@warning("GP203")
def spec_contained(context: Context) -> Iterator[Hit]:
    for declared, first, second in _compared_pairs(context):
        inner, outer = (second, first) if first.contains(second) else (first, second)
        if outer.contains(inner) and not inner.same_as(outer):
            message = f"{inner.title} lies inside {outer.title}: it allows nothing more"
            hint = "correct the bounds of one of the two; remove it only if it is meant to allow nothing more"
            yield hit(declared, message, inner.span, hint, outer.here)


@warning("GP204")
def spec_duplicate(context: Context) -> Iterator[Hit]:
    for declared, first, second in _compared_pairs(context):
        if first.same_as(second):
            message = f"{second.title} has the bounds of {first.title}"
            leaf, fix = second.leaf, None
            if second.name in (None, first.name):
                fix = edits.fix("remove it", edits.remove_entry(leaf.document, (*leaf.pointer, second.index)))
            yield hit(declared, message, second.span, "remove one", first.here, fix=fix)


@error("GP208", explains=11, role=Role.SAME_NAME)
def spec_name_twice(context: Context) -> Iterator[Hit]:
    for declared, _, pairs in context.minmax():
        named = (pair for pair in pairs if pair.name is not None)
        for pair, other in repeated(named, lambda pair: str(pair.name).lower()):
            almost = "" if pair.name == other.name else f", almost as {other.name!r}"
            message = f"a second size is named {pair.name!r}{almost}"
            hint = "remove it: it is a copy" if pair.same_as(other) else "give it another name"
            yield hit(declared, message, pair.leaf.at(pair.index, "name"), hint, other.here)


@warning("GP209")
def too_many_specs(context: Context) -> Iterator[Hit]:
    for declared, leaf, pairs in context.minmax():
        if len(pairs) > MAX_PAIRS:
            message = f"{len(pairs)} sizes: only the first {MAX_PAIRS} are compared with one another"
            yield hit(declared, message, leaf.at(MAX_PAIRS), "merge sizes that belong together")
