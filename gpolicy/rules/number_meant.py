"""What number is meant where one of a size is wrong: by the other sizes, std, the nodes and the observed instances."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import log
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import FILLING, MAX_PAIRS, Pair, comparable
from gpolicy.ganeti.amounts import format_size, sensible_ranges
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES
from gpolicy.policy.model import Declared, GroupPolicy, Leaf
from gpolicy.rules import node_limits
from gpolicy.rules.shared import groups_where

_GIB: Final = 1024
CLEARLY: Final = log(1.5)
"""By how much more one of two numbers must be out of line to be the wrong one."""
_SHARES: Final = (log(1.01), log(1.2), log(2))
"""How far two sizes differ in a share that are made alike: exactly, and about so."""
_SHARED: Final = {"cpu-count": "memory-size"} | dict.fromkeys(("memory-size", "disk-size", "spindle-use"), "cpu-count")
_SENSIBLE: Final = sensible_ranges()
_MOST_INSTANCES: Final = 500
"""That are looked at for each two sizes."""


def sizes_beside(context: Context, declared: Declared, pair: Pair) -> list[Pair]:
    """Return what a size is compared with: the other possible ones of its list, else of other lists; and std."""
    others = [other for other in comparable(context.pairs(declared)[:MAX_PAIRS]) if other.index != pair.index]
    others = others or comparable(item for of, item in islice(context.each_pair(), MAX_PAIRS) if of is not declared)
    std = {name: int(leaf.number) for name, leaf in declared_std(context).items()}
    return [*others, *([Pair(pair.leaf, -1, "std", std, std)] if len(std) == len(SPEC_PARAMETERS) else [])]


def declared_std(context: Context) -> dict[str, Leaf]:
    """Return what the policy declares of the standard spec, by parameter."""
    leaves = ((name, context.cluster_leaf(("ipolicy", "std", name))) for name in SPEC_PARAMETERS)
    return {name: leaf for name, leaf in leaves if leaf is not None}


def out_of_line(pair: Pair, end: str, name: str, others: Sequence[Pair]) -> tuple[int, float]:
    """Return how little a bound is like the same one of other sizes: how many of these are smaller, or bigger, in all
    else only; and how far (logarithm of a factor) its share of CPUs or memory is from the nearest, if there are two.
    """
    beside = [(item, bound) for item in FILLING for bound in ("min", "max") if item != name]
    own, against = pair.bound(end)[name], 0
    for other in others:
        sizes = [(pair.bound(bound)[item], other.bound(bound)[item]) for item, bound in beside]
        more = sum((one > two) - (one < two) for one, two in sizes)
        its = other.bound(end)[name]
        against += (more > 0 and own < its) or (more < 0 and own > its)
    share = share_of(pair.bound(end), name)
    far = [abs(log(share / share_of(other.bound(end), name))) for other in others]
    return against, min(far) if len(far) > 1 and pair.bound(end).get(_SHARED.get(name, ""), 1) else 0


def share_of(bound: Mapping[str, int], name: str) -> float:
    """Return how much of a parameter there is for each CPU, and of CPUs for each MiB of memory."""
    return max(bound[name], 1) / max(bound.get(_SHARED.get(name, ""), 1), 1)


def bound_meant(
    context: Context, declared: Declared, pair: Pair, end: str, name: str, takes: Sequence[Mapping[str, int]] = ()
) -> int | None:
    """Return the only number that may be meant by a bound that is wrong and that fits the other sizes and the nodes.

    Digits may be exchanged or lost, or the unit another one. What has the share of another size comes first. Of what
    the size `takes` the first is to lie in it, and of the others most, whatever the zeros and the unit.
    """
    others, number = sizes_beside(context, declared, pair), pair.written(end, name)
    usual = slips_of(name, number) if len(others) > 1 else _in_other_units(name, number)
    found, taking = dict[int, float](), dict[int, int]()
    values = slips_of(name, number, lost=True) if len(others) > 1 else usual
    if takes[1:] and name in SPEC_SIZES:
        digits = format_size(number).rstrip("0GT")
        values = {int(f"{digits}{zeros}") * unit for zeros in ("", "0", "00") for unit in (1, _GIB, _GIB * _GIB)}
    for value in sorted(values):
        changed = pair.with_bound(end, name, value)
        is_apart = not any(changed.overlap(other) for other in others if other.index >= 0)
        is_sensible = name not in _SENSIBLE or _SENSIBLE[name].takes(value)
        fits = is_apart and is_sensible and changed.minimum[name] <= changed.maximum[name]
        against, far = out_of_line(changed, end, name, others)
        inside = [not changed.outside(sizes.items()) for sizes in takes]
        if fits and not against and all(inside[:1]):
            found[value], taking[value] = far, sum(inside[1:])
    if most := max(taking.values(), default=0):
        return min((value for value in found if taking[value] == most), key=lambda value: abs(value - number))
    fitting = taken(context, groups_where(context, declared, pair.leaf), pair, name, list(found))
    likely = [{value for value in fitting if found[value] <= far} for far in _SHARES if len(others) > 1]
    likely = [*likely[:2], *(values & usual for values in likely[2:]), {*fitting}]
    return next((next(iter(values)) for values in likely if len(values) == 1), None)


def observed_sizes(context: Context, declared: Declared, leaf: Leaf) -> list[dict[str, int]]:
    """Return what the observed instances have that a list of pairs is about, of many the first."""
    homes = {node.name for group in groups_where(context, declared, leaf) for node in context.members.hosts_in(group)}
    here = (item for item in context.observed.instances.values() if item.primary_node in homes)
    figures = ((item.maxmem, item.vcpus, max((disk.size for disk in item.disks), default=0)) for item in here)
    return [dict(zip(FILLING, each, strict=True)) for each in islice(figures, _MOST_INSTANCES)]


def slips_of(name: str, number: int, *, lost: bool = False) -> set[int]:
    """Return what may be meant by a number: with digits exchanged, another last one, another unit.

    `lost`: also with another first digit, or two zeros after it.
    """
    unit = next((unit for unit in (_GIB * _GIB, _GIB) if number % unit == 0 and name in SPEC_SIZES), 1)
    digits = str(number // unit)
    words = {digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :] for at in range(len(digits) - 1)}
    words |= {f"{digits}0", digits[:-1]}
    words |= {f"{digits}00", digits[1:], *(f"{digit}{digits}" for digit in range(1, 10))} if lost else set()
    numbers = {int(word) * unit for word in words if word[:1] not in ("", "0")}
    return (numbers | with_other_zeros(name, number)) - {number}


def with_other_zeros(name: str, number: int) -> set[int]:
    """Return ten times a number, a tenth of it, and what it is in other units."""
    return {number * 10, number // 10 if number % 10 == 0 else number * 10} | _in_other_units(name, number)


def _in_other_units(name: str, number: int) -> set[int]:
    units = (_GIB * _GIB, _GIB) if name in SPEC_SIZES else ()
    return {number * unit for unit in units} | {number // unit for unit in units if number % unit == 0}


def taken(context: Context, groups: Iterable[GroupPolicy], pair: Pair, name: str, fitting: list[int]) -> list[int]:
    """Return the guesses of what is meant by a maximum that the nodes of these groups have, and that fill volumes."""
    for group in groups if fitting else ():
        limits = (limit.usable for limit in node_limits.limits(context, group) if limit.parameter == name)
        most = node_limits.most_of_size(context, group, pair, name, min(limits, default=float("inf")))
        hardware = group.hardware if name == "disk-size" and context.exclusive(group) else None
        volume = node_limits.promised_size(context, group, hardware) if hardware else None
        fitting = [size for size in fitting if size <= most and (volume is None or node_limits.is_whole(volume, size))]
    return fitting
