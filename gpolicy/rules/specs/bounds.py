"""GP205 to GP207, GP213, GP214, GP216, GP220, GP221 and GP224: the bounds of one spec, and the standard instance."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import MAX_PAIRS, Pair, amount, as_written, nearest
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.findings import REFUSED, Related, Role, RuleParameter
from gpolicy.ganeti.amounts import is_without_limit, sensible_ranges
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, MAX_DISKS, MAX_NICS, MINMAX, SPEC_PARAMETERS
from gpolicy.policy.model import ClusterPolicy, Declared
from gpolicy.printable import count
from gpolicy.rules import number_meant
from gpolicy.rules.shared import lost_sizes

CEILINGS: Final = {"disk-count": MAX_DISKS, "nic-count": MAX_NICS}
_WORDS: Final = {"disk-count": "disks", "nic-count": "network interfaces"}
_GIB: Final = 1024
_USUAL: Final = 2048
"""MiB of memory for each CPU."""


@error("GP206", When.BETTER_WITH_STATE, stays=REFUSED)
def spec_min_above_max(context: Context) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        above = [name for name in SPEC_PARAMETERS if pair.minimum[name] > pair.maximum[name]]
        if len(above) > 1 and all(pair.minimum[name] >= pair.maximum[name] for name in SPEC_PARAMETERS):
            message, hint = f"{pair.title}: min and max are exchanged", "the smaller numbers belong under min"
            yield hit(declared, message, pair.leaf.at(pair.index, "min"), hint)
            continue
        for name in above:
            low, high = pair.written("min", name), pair.written("max", name)
            message = f"{pair.title}: min {name} {amount(name, low)} is above max {amount(name, high)}"
            end, hint = _end_meant(context, declared, pair, name, {"min": low, "max": high})
            related = see(pair.at("max" if end == "min" else "min", name), "the other bound is here")
            yield hit(declared, message, pair.at(end, name), hint, related)


def _end_meant(
    context: Context, declared: Declared, pair: Pair, name: str, written: Mapping[str, int]
) -> tuple[str, str]:
    """Return the bound of a size that is most likely wrong where min is above max, and what is most likely meant."""
    others = number_meant.sizes_beside(context, declared, pair)
    odd = {bound: number_meant.out_of_line(pair, bound, name, others) for bound in written}
    is_clear = odd["min"][0] != odd["max"][0] or abs(odd["min"][1] - odd["max"][1]) >= number_meant.CLEARLY
    ends = [max(odd, key=odd.__getitem__)] if is_clear else [*odd]
    guesses = {bound: number_meant.bound_meant(context, declared, pair, bound, name) for bound in ends}
    meant = [(bound, value) for bound, value in guesses.items() if value is not None]
    end, value = meant[0] if len(meant) == 1 else (ends[0], None)
    exchanged = pair.with_bound("min", name, written["max"]).with_bound("max", name, written["min"])
    peers = [other for other in others if other.index >= 0]
    may_be = not any(number_meant.out_of_line(exchanged, bound, name, peers)[0] for bound in written)
    std = {key: int(leaf.number) for key, leaf in number_meant.declared_std(context).items()}
    own = [(key, size) for key, size in std.items() if key == name and all(peer.outside(std.items()) for peer in peers)]
    if may_be and value is not None and pair.with_bound(end, name, value).outside(own) and not exchanged.outside(own):
        value = None  # std lies in the size only if the bounds are exchanged
    guess = f"is {amount(name, value)} meant?" if value is not None else ""
    low, high = (amount(name, size) for size in written.values())
    or_exchanged = f"if they are exchanged, write min {high} and max {low}" if may_be and not guess else ""
    if not is_clear:
        return end, guess or "; ".join(filter(None, ("correct one of them", or_exchanged)))
    wrong = f"{end} {amount(name, written[end])} is far from the other sizes: {guess or 'correct it'}"
    return end, "; ".join(filter(None, (wrong, or_exchanged)))


@error("GP207")
def spec_allows_nothing(context: Context) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        for name in ("memory-size", "cpu-count"):
            if pair.possible and pair.maximum[name] == 0:
                message = f"{pair.title} allows no instance: its maximum {name} is 0"
                yield hit(declared, message, pair.at("max", name), "write a bound above 0")


@error("GP213")
def spec_min_above_ceiling(context: Context) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        for name, most in CEILINGS.items():
            least = pair.minimum[name]
            if pair.possible and least > most:
                message = f"{pair.title} allows no instance: it requires at least {least} {_WORDS[name]}"
                yield hit(declared, message, pair.at("min", name), f"an instance can have {most}: lower the size")


@warning("GP214")
def spec_max_above_ceiling(context: Context) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        for name, most in CEILINGS.items():
            if pair.minimum[name] <= most < pair.maximum[name]:
                message = f"{pair.title}: no instance has {pair.maximum[name]} {_WORDS[name]}"
                hint = f"write {most} or less: Ganeti's own limit is {most}"
                yield hit(declared, message, pair.at("max", name), hint)


@warning("GP220")
def spec_min_zero(context: Context) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        templates = context.effective(declared, ALLOWED_TEMPLATES)
        with_disks = templates is not None and "diskless" not in templates.texts
        for name in ("memory-size", "cpu-count", *(["disk-count"] if with_disks else [])):
            if pair.minimum[name] == 0 < pair.maximum[name]:
                message = f"{pair.title} the minimum {name} is 0, but every instance has some"
                yield hit(declared, message, pair.at("min", name), "write the minimum that you mean")


@warning("GP221")
def spec_without_disks(context: Context) -> Iterator[Hit]:
    for declared, _, pairs in context.minmax():
        allowed = context.effective(declared, ALLOWED_TEMPLATES)
        if allowed is not None and "diskless" in allowed.texts:
            continue
        for pair in pairs:
            for name in ("disk-count", "disk-size"):
                if pair.possible and pair.maximum[name] == 0:
                    message = f"{pair.title} takes no instance with disks: its maximum {name} is 0"
                    hint = "write a bound above 0, or allow the disk template diskless"
                    yield hit(declared, message, pair.at("max", name), hint)


@warning(
    "GP224",
    parameters=(
        RuleParameter("each", 16),
        RuleParameter("most", 256 * 1024, least=1),
        RuleParameter("factor", 1000, least=2),
    ),
    explains=15,
    role=Role.ODD_MEMORY,
)
def spec_unlikely(context: Context, each: float, most: float, factor: float) -> Iterator[Hit]:
    for declared, pair in context.each_pair():
        if not pair.possible:
            continue  # GP206
        low, high = _memory_of_cpu(pair.minimum), _memory_of_cpu(pair.maximum)
        sizes = {"min": low, "max": high}
        wrong = {bound: size for bound, size in sizes.items() if size is not None and not each <= size <= most}
        if low is not None and high is not None and not wrong and not 1 / factor < high / low < factor:
            is_low = max(low / _USUAL, _USUAL / low) >= max(high / _USUAL, _USUAL / high)
            wrong = {"min": low} if is_low else {"max": high}
        most_memory, cpus = pair.maximum["memory-size"], pair.maximum["cpu-count"]
        if not wrong and low is not None and _are_exchanged(most_memory, cpus, low):
            memory = amount("memory-size", most_memory)
            message = f"{pair.title}: max is {memory} of memory for {count(cpus, 'CPU')}, far less for each than at min"
            hint = f"if they are exchanged, write {cpus}G and {most_memory // _GIB}"
            yield hit(declared, message, pair.at("max", "memory-size"), hint)
        for bound in wrong:
            values = pair.minimum if bound == "min" else pair.maximum
            memory, cpus = amount("memory-size", values["memory-size"]), values["cpu-count"]
            message = f"{pair.title}: {bound} is {memory} of memory for {count(cpus, 'CPU')}"
            yield hit(declared, message, pair.at(bound, "memory-size"), "correct the unit")


def _are_exchanged(memory: int, cpus: int, each: float) -> bool:
    """Return whether GiB and CPUs, once exchanged, have about `each` MiB for a CPU, and now have far less."""
    fits = memory % _GIB == 0 and memory > 0 and 0.7 <= cpus * _GIB / (memory // _GIB) / each <= 1.4
    return fits and each / (memory / cpus) >= 8


def _memory_of_cpu(bound: Mapping[str, int]) -> float | None:
    """Return the MiB of memory for each CPU of a bound; None where one of them says nothing, or is reported itself."""
    memory, cpus = bound["memory-size"], bound["cpu-count"]
    sensible = sensible_ranges()["memory-size"].takes(memory) and not is_without_limit(cpus)
    return memory / cpus if memory > 0 and cpus > 0 and sensible else None


class _Misfit(NamedTuple):
    """The number that most likely keeps std out of a size: of std, or else the bound of the size, and a hint."""

    pair: Pair
    name: str
    hint: str
    at_std: bool


@error("GP205", When.BETTER_WITH_STATE, stays=REFUSED, explains=12)
def std_outside(context: Context) -> Iterator[Hit]:
    std, cluster = number_meant.declared_std(context), context.policy.cluster
    pairs = context.pairs(cluster) if cluster else ()
    if cluster is None or not all(pair.possible for pair in pairs):
        return  # std may lie in what is meant
    numbers = {name: int(leaf.number) for name, leaf in std.items()}
    if not pairs or not all(pair.outside(numbers.items()) for pair in pairs):
        return
    fewest = min(len(pair.outside(numbers.items())) for pair in pairs)
    near = [pair for pair in pairs if len(pair.outside(numbers.items())) == fewest]
    first = nearest(near, numbers.items())
    outside = {item for pair in near for item in pair.outside(numbers.items())}
    sizes = numbers | {item: as_written(std[item], numbers[item]) for item in outside}
    refused = _refused_by(context, cluster, pairs)
    guesses = [(item, value) for item in std for value in _std_meant(pairs, sizes, item)]
    if len(guesses) == 1 and (len(pairs) > 1 or not refused):
        ((name, value),) = guesses
        misfit = _Misfit(first, name, f"is {amount(name, value)} meant?", at_std=True)
    elif fewest == 1 and (odd := _odd_bound(context, cluster, near, sizes, refused)):
        misfit = odd
    else:
        name = next(iter(first.outside(numbers.items())))
        misfit = _Misfit(first, name, "Ganeti refuses this: correct std, or the size", at_std=True)
    end = "min" if sizes[misfit.name] < misfit.pair.minimum[misfit.name] else "max"
    place, other = std[misfit.name].span, misfit.pair.at(end, misfit.name)
    message = f"std lies in no size; {misfit.pair.misfit(sizes.items())}"
    if misfit.at_std:
        found = hit("cluster", message, place, misfit.hint, see(other, f"{misfit.pair.title} is here"))
    else:
        found = hit("cluster", message, other, misfit.hint, see(place, "std is here"))
    yield lost_sizes(context, cluster, sizes, "std lies in no other size") or found


def _std_meant(pairs: Sequence[Pair], std: Mapping[str, int], name: str) -> list[int]:
    """Return what may be meant by a number of std that alone lies outside of a size, if its share does of all sizes."""
    shares = [number_meant.share_of(pair.bound(end), name) for pair in pairs for end in ("min", "max")]
    if min(shares) <= number_meant.share_of(std, name) <= max(shares):
        return []
    inside = ({**std, name: value} for value in number_meant.with_other_zeros(name, std[name]))
    return [sizes[name] for sizes in inside if not all(pair.outside(sizes.items()) for pair in pairs)]


def _odd_bound(
    context: Context,
    cluster: ClusterPolicy,
    pairs: Sequence[Pair],
    std: Mapping[str, int],
    refused: Sequence[Mapping[str, int]],
) -> _Misfit | None:
    """Return the bound that keeps std out of a size, if it is the one that is wrong.

    It keeps instances out as well, or it is out of line, and no instances are known.
    """
    found = list[tuple[tuple[float, ...], _Misfit]]()  # each with how sure it is
    known = number_meant.observed_sizes(context, cluster, pairs[0].leaf)
    for pair in pairs[:MAX_PAIRS]:
        (name,) = pair.outside(std.items())
        end, farthest = ("min", min) if std[name] < pair.minimum[name] else ("max", max)
        seen = [item[name] for item in refused if known and [*pair.outside(item.items())] == [name]]
        odd = number_meant.out_of_line(pair, end, name, number_meant.sizes_beside(context, cluster, pair))
        value = number_meant.bound_meant(context, cluster, pair, end, name, [std, *refused])
        guess = f"is {amount(name, value)} meant" if value is not None else ""
        beside = [item[name] for item in refused if {*pair.outside(item.items())} == {name} and value is not None]
        fits = sum(size <= (value or 0) if end == "max" else size >= (value or 0) for size in beside)
        if fits:
            sure, hint = fits, f"{guess}, as instances have?" if value in beside else f"{guess}?"
        elif seen and (farthest(seen) < pair.minimum[name]) == (end == "min"):
            sure, hint = len(seen), f"correct the size: instances have {amount(name, farthest(seen))}"
        elif not known and odd[0] + odd[1] > number_meant.CLEARLY:
            far = f"{end} {amount(name, pair.written(end, name))} is far from the other sizes"
            sure, hint = 0, f"{far}: {f'{guess}?' if guess else 'correct it'}"
        else:
            continue
        found.append(((sure, *odd), _Misfit(pair, name, hint, at_std=False)))
    return max(found, key=lambda item: item[0])[1] if found else None


def _refused_by(context: Context, cluster: ClusterPolicy, pairs: Sequence[Pair]) -> list[dict[str, int]]:
    """Return what observed instances have, or else the default one, that no size allows."""
    maxmem = context.cluster_leaf(("beparams", "maxmem"))
    default = [{"memory-size": int(maxmem.number)}] if maxmem is not None and context.state is None else []
    known = (*number_meant.observed_sizes(context, cluster, pairs[0].leaf), *default)
    return [item for item in known if all(pair.outside(item.items()) for pair in pairs)]


@warning("GP216", When.MORE_WITH_STATE | When.WHOLE, explains=12)
def std_fits_no_group(context: Context) -> Iterator[Hit]:
    std = number_meant.declared_std(context)
    groups = [(group, context.pairs(group)) for group in context.groups]
    known = bool(groups) and all(pairs for _, pairs in groups) and not context.members.has_undeclared_groups
    if len(std) != len(SPEC_PARAMETERS) or not known:
        return
    own = [group for group, _ in groups if context.own(group, MINMAX)]
    sizes = [(name, int(leaf.number)) for name, leaf in std.items()]
    cluster = context.pairs(context.policy.cluster) if context.policy.cluster else ()
    fits_nowhere = bool(cluster) and all(pair.outside(sizes) for pair in cluster)  # GP205
    if not own or fits_nowhere or not all(pair.outside(sizes) for _, pairs in groups for pair in pairs):
        return
    names = [group.name for group, _ in groups]
    which = f"group {names[0]}" if len(names) == 1 else f"the groups {', '.join(names[:5])}"
    message = f"std fits no size of {which}: hspace counts no standard instance"
    lost = [lost_sizes(context, group, dict(sizes), message) for group in own if not context.exclusive(group)]
    found = [item for item in lost if item is not None]
    related = tuple(Related(pairs[0].leaf.span, f"the sizes of {group.name}") for group, pairs in groups[:3])
    at_std = hit("cluster", message, std["memory-size"].span, "choose a std that one of the groups takes", related)
    yield found[0] if len(found) == 1 else at_std
