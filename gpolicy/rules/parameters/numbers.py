"""GP114, GP115, GP152, GP194 and GP195: numbers that make no sense, and how many times over a node may be used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gpolicy.checking.context import SPINDLE_COUNT, SPINDLE_RATIO, VCPU_RATIO, Context, number
from gpolicy.checking.pairs import Pair, comparable
from gpolicy.checking.rule import Hit, When, hit, information, warning
from gpolicy.findings import Related, RuleParameter, Span
from gpolicy.ganeti.amounts import KIB_PER_SECOND, MIB, SENSIBLE, SensibleRange, is_without_limit
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import MAX_NICS, SPEC_PARAMETERS, SPEC_SIZES, Parameter, Path, Type
from gpolicy.policy.building import LEAST_WITHOUT_UNIT
from gpolicy.policy.model import Declared, Leaf
from gpolicy.printable import listed
from gpolicy.rules.shared import MOST_BITS, RANGES, conflict, in_force, places, sizes_of, value_of

_GIB: Final = 1024
_WHOLE_NUMBERS: Final = frozenset({Type.INT, Type.SIZE, Type.MIB})
_SPECS: Final = tuple(
    (name, SENSIBLE[name], _GIB if name in SPEC_SIZES else SENSIBLE[name].least)
    for name in SPEC_PARAMETERS
    if name in SENSIBLE
)
"""With the least number that is sensible and, of a size, cannot lack a unit."""
_OVERSUBSCRIPTION: Final = "oversubscription"
_MEMORY_STEP: Final = 64
"""Sizes of memory below 1 GiB that people write on purpose are multiples of this (MiB)."""
_WHOLE: Final = {"mem_node": "mem_total", "mem_hv": "mem_total", "minmem": "maxmem"} | dict.fromkeys(
    ("disk_reserved", "disk_overhead"), "disk_total"
)
"""The size of which another one is a part."""
_ACCEPTED: Final[dict[Path, tuple[float, float]]] = {
    ("master_netmask",): (0, MOST_BITS),
    ("hvparams", "xen-hvm", "cpu_cap"): (-math.inf, math.inf),
} | {("diskparams", "drbd", name): (low, high) for name, (low, high, _) in RANGES.items()}
"""Outside of these the number is refused, as any below 0: rules of their own report that."""
_USED: Final[dict[Path, str]] = {VCPU_RATIO: "CPUs", SPINDLE_RATIO: "spindles"}


@warning("GP152", explains=4, also_related=True)
def number_unlikely(context: Context) -> Iterator[Hit]:
    for path, leaves in context.declared_at.items():
        parameter = parameter_at(path)
        for declared, leaf in leaves if parameter is not None and parameter.type in _WHOLE_NUMBERS else ():
            written = _written(context, leaf.span)
            if written.startswith("0") and written.isdecimal() and len(written) > 1:
                message = f"{leaf.dotted} is written {written}: many readers of YAML take it for an octal number"
                yield hit(declared, message, leaf.span, f"write {leaf.value}")
        sensible = parameter.sensible if parameter is not None else None
        if parameter is None or sensible is None:
            continue
        clear = _GIB if parameter.type in (Type.SIZE, Type.MIB) else sensible.least
        for declared, leaf in leaves:
            if sensible.gap is not None or not clear <= number(leaf) <= sensible.most:  # few are not
                yield from _value(context, declared, leaf, parameter, sensible)
    for declared, pair in context.each_pair():
        yield from _pair(context, declared, pair)
    for label, title, name, value, span in _others(context):
        yield _unlikely(context, label, title, SENSIBLE[name], value, span)
    for scenario in context.policy.scenarios:
        for key, size in (bare for sizes in sizes_of(scenario) for bare in sizes.bare):
            least = SENSIBLE["disk-size" if key == "disk-size" else "memory-size"].least
            if least <= size.value < _GIB and not (key != "disk-size" and size.value % _MEMORY_STEP == 0):
                title = f"test {scenario.name.value}: {key}"
                yield _bare(context, f"test/{scenario.name.value}", title, size.value, size.span)


def _value(
    context: Context, declared: Declared, leaf: Leaf, parameter: Parameter, sensible: SensibleRange
) -> Iterator[Hit]:
    value = number(leaf)
    low, high = _ACCEPTED.get(leaf.path, (0, math.inf))
    if not low <= value <= high:
        return  # an error
    written = leaf.document.value(leaf.pointer)
    is_rounded = isinstance(written, int) and written != value  # Ganeti stores another number
    if parameter.type is Type.SIZE and value <= LEAST_WITHOUT_UNIT and is_rounded:
        return  # GP015 asks for the unit
    if not sensible.takes(value):
        usual = parameter.default if isinstance(parameter.default, int | float) else 0
        unlikely = _unlikely(context, declared, leaf.dotted, sensible, value, leaf.span, usual)
        yield _with_bare(unlikely, leaf)
    elif parameter.type in (Type.SIZE, Type.MIB) and 0 < value < _GIB and _is_bare(leaf, value):
        whole = context.own(declared, (*leaf.path[:-1], _WHOLE.get(leaf.path[-1], "")))
        if whole is None or value * _GIB <= number(whole):
            yield _bare(context, declared, leaf.dotted, value, leaf.span)


def _pair(context: Context, declared: Declared, pair: Pair) -> Iterator[Hit]:
    for bound, values in (("min", pair.minimum), ("max", pair.maximum)):
        for name, sensible, clear in _SPECS:
            value = values[name]
            if clear <= value <= sensible.most:
                continue  # most are
            title = f"{pair.title}: {bound} {name}"
            is_small = 0 < value < _GIB and (bound == "max" or value * _GIB <= pair.maximum[name])
            if not sensible.takes(value):
                other_end = "max" if bound == "min" else "min"
                other = pair.bound(other_end)[name]
                fits = replace(sensible, most=other) if bound == "min" else replace(sensible, least=other)
                both = name in SPEC_SIZES and _is_bare_size(
                    pair.leaf.document.value((*pair.leaf.pointer, pair.index, other_end, name))
                )
                fits = fits if sensible.takes(other) and not both else sensible
                unlikely = _unlikely(context, declared, title, sensible, value, pair.at(bound, name), fits=fits)
                yield _with_bare(unlikely, pair.leaf, pair.index, bound, name)
            elif name in SPEC_SIZES and is_small and _is_bare(pair.leaf, value, pair.index, bound, name):
                yield _bare(context, declared, title, value, pair.at(bound, name))
    nics, sensible = pair.minimum["nic-count"], SENSIBLE["min nic-count"]
    if pair.possible and sensible.most < nics <= MAX_NICS:  # else GP206, GP213
        yield _unlikely(context, declared, f"{pair.title}: min nic-count", sensible, nics, pair.at("min", "nic-count"))


def _unlikely(
    context: Context,
    declared: Declared | str,
    title: str,
    sensible: SensibleRange,
    value: float,
    span: Span,
    usual: float = 0,
    fits: SensibleRange | None = None,
) -> Hit:
    written, shown = _written(context, span), sensible.shown(value)
    meant = (fits or sensible).meant(int(written) if written.isdecimal() else value, usual)
    default = f"; Ganeti's default is {sensible.shown(usual)}" if usual > 0 else ""
    if meant:
        hint = meant if sensible.unit in (MIB, KIB_PER_SECOND) else f"{meant}{default}"  # sizes and rates have a unit
    else:
        hint = f"correct the number{default or ' or its unit'}"
    is_named = shown.startswith(f"{written} ") or shown.removesuffix("/s") == written
    if written.isdecimal() and not is_named and shown[-1].isalpha():
        shown = f"{written}, that is {shown}"
    message = f"{title} is {shown}: sensible is {sensible.words}, since {sensible.why}"
    return hit(declared, message, span, hint)


def _with_bare(unlikely: Hit, leaf: Leaf, *steps: str | int) -> Hit:
    """Return a hit about a size that also names those beside it that lack a unit: who forgets one forgets several."""
    own, value_at = (*leaf.pointer, *steps), leaf.document.value
    root = own[: -2 if steps else -1]
    tables = [(*root, "min"), (*root, "max")] if steps else [root]  # of a pair: both its bounds
    places = [(*table, key) for table in tables for key in value_at(table)]
    sizes = [place for place in places if str(place[-1]) in SENSIBLE and SENSIBLE[str(place[-1])].unit == MIB]
    are_bare = all(_is_bare_size(value_at(place)) for place in sizes)
    others = [place for place in sizes if are_bare and place != own and SENSIBLE[str(place[-1])].takes(value_at(place))]
    if not others:
        return unlikely
    names = listed([f"{place[-1]} {value_at(place)}" for place in others])
    hint = f"{unlikely.finding.hint}; {names} beside it {'have' if len(others) > 1 else 'has'} no unit either"
    related = tuple(Related(leaf.document.value_span(place), "no unit either") for place in others)
    return replace(unlikely, finding=replace(unlikely.finding, hint=hint, related=related))


def _is_bare_size(written: object) -> bool:
    return type(written) is int and 0 < written <= _GIB


def _bare(context: Context, declared: Declared | str, title: str, value: float, span: Span) -> Hit:
    written = _written(context, span)
    number = written if written.isdecimal() else value  # before it is rounded to 4 MiB
    message = f"{title} is {number} MiB, but sizes beside it have a unit"
    return hit(declared, message, span, f"write {number}G, or {number}M if you mean MiB")


def _written(context: Context, span: Span) -> str:
    """Return the text at a place; nothing for a policy that adopt makes, which has no files yet."""
    file = context.policy.files.get(span.file)
    return file.written(span) if file is not None else ""


def _is_bare(leaf: Leaf, value: float, *steps: str | int) -> bool:
    """Return whether a size is written without a unit, unlike others beside it, and not a usual size of memory."""
    pointer = (*leaf.pointer, *steps)
    if "disk" not in str(pointer[-1]) and value % _MEMORY_STEP == 0:
        return False
    beside = leaf.document.value(pointer[: -2 if steps else -1])  # of a pair: of both its bounds
    written = beside[pointer[-2]][pointer[-1]] if steps else beside[pointer[-1]]
    sizes = [item for bound in ("min", "max") for item in beside[bound].values()] if steps else beside.values()
    return isinstance(written, int) and any(isinstance(item, str) and item[-1:].isalpha() for item in sizes)


def _others(context: Context) -> Iterator[tuple[str, str, str, float, Span]]:
    """Yield numbers beside Ganeti's parameters that make no sense: label, title, name of the range, value, place."""
    for item in context.cluster_and_groups:
        ratio = item.limits.get(_OVERSUBSCRIPTION)
        if ratio is not None and not SENSIBLE[_OVERSUBSCRIPTION].takes(ratio.value):
            yield item.label, f"limits.{_OVERSUBSCRIPTION}", _OVERSUBSCRIPTION, ratio.value, ratio.span
    for group, hardware in ((group, group.hardware) for group in context.groups if group.hardware):
        for name, figure in (*hardware.figures.items(), *(("pv_size", size) for size in hardware.pv_sizes)):
            if not SENSIBLE[name].takes(figure.value):
                yield group.label, f"hardware.{name}", name, figure.value, figure.span
    for scenario in context.policy.scenarios:
        for sizes in sizes_of(scenario):
            disks = (("disk-size", disk.size) for disk in sizes.disks or ())
            for name, value in (("memory-size", sizes.memory or 0), *disks):
                if 0 < value < SENSIBLE[name].least:  # a test may be about too large ones
                    yield f"test/{scenario.name.value}", f"test {scenario.name.value}: {name}", name, value, sizes.span


@warning("GP114", parameters=(RuleParameter("least", 0.75, "Report a ratio below this.", least=0),), explains=7)
def ratio_below_one(context: Context, least: float) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_USED):
        ignored = leaf.path == SPINDLE_RATIO and (context.exclusive(declared) or context.declares(SPINDLE_COUNT))
        if number(leaf) < least and not ignored:
            what = _USED[leaf.path]
            message = f"{leaf.dotted} is {number(leaf):g}: a node is full before its {what} are used once"
            likely = [f"{item:g}" for item in (10 * number(leaf), 1 / number(leaf)) if f"{item:g}".isdecimal()]
            meant = f"is {listed(likely, 'or')} meant? " if likely else ""
            yield hit(declared, message, leaf.span, f"{meant}1 uses the {what} once, 4 four times over")


@information("GP115")
def ratio_without_limit(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_USED):
        if is_without_limit(number(leaf)):
            yield hit(declared, f"{leaf.dotted} is {number(leaf):.0f}: that limits nothing", leaf.span)


@warning("GP194")
def ratios_exchanged(context: Context) -> Iterator[Hit]:
    for declared, leaves in context.combined(VCPU_RATIO, SPINDLE_RATIO):
        cpus, spindles = map(number, leaves)
        is_high = cpus >= 12 and SENSIBLE["vcpu-ratio"].takes(cpus) and not is_without_limit(cpus)
        is_alike = spindles <= 6 or spindles == cpus >= 16
        if is_high and is_alike and not context.exclusive(declared):
            place, related, _ = places(context, declared, *map(value_of, leaves))
            hint = "exchange the two" if spindles <= 6 else "correct the one that was copied"
            yield hit(declared, f"vcpu-ratio is {cpus:g} and spindle-ratio {spindles:g}", place, hint, related)


@warning("GP195", When.MORE_WITH_STATE)
def spindles_fill_first(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        ratio, count, cpus = (in_force(context, group, path) for path in (SPINDLE_RATIO, SPINDLE_COUNT, VCPU_RATIO))
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
        uses = [pair.minimum["spindle-use"] for pair in pairs]
        if all(use > 0 and times >= 5 * spindles / use for use, times in zip(uses, by_size, strict=True)):
            message = f"a node of group {group.name} is full with spindle-use {spindles:g}, and its memory and CPUs"
            message += f" would take {min(by_size):.0f} instances of the largest size"
            yield conflict(context, group, message, "raise spindle-ratio", ratio, count)
