"""GP114, GP115, GP152, GP194 and others: numbers that make no sense, how many times over a node may be used; hv_state
and disk_state, the resources that the resource model keeps in the configuration.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Hit, When, hit, information, see, warning
from gpolicy.findings import Located, Related, Role, RuleParameter, Span
from gpolicy.ganeti import vocabulary
from gpolicy.ganeti.amounts import KIB_PER_SECOND, MIB, SensibleRange, is_without_limit, sensible_ranges
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import SPEC_SIZES, SPINDLE_COUNT, SPINDLE_RATIO, VCPU_RATIO, Parameter, Path, Type
from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, Hardware, Leaf
from gpolicy.printable import listed
from gpolicy.rules import shared
from gpolicy.rules.node_limits import memory_limit, promised_disk, volume_group

_SENSIBLE: Final = sensible_ranges()
_GIB: Final = 1024
_WHOLE_NUMBERS: Final = frozenset({Type.INT, Type.SIZE, Type.MIB})
_SPECS: Final = tuple(
    (name, _SENSIBLE[name], _GIB if name in SPEC_SIZES else _SENSIBLE[name].least)
    for name in vocabulary.SPEC_PARAMETERS
    if name in _SENSIBLE
)
"""With the least number that is sensible and, of a size, cannot lack a unit."""
_OVERSUBSCRIPTION: Final = "oversubscription"
_MEMORY_STEP: Final = 64
"""Sizes of memory below 1 GiB that people write on purpose are multiples of this (MiB)."""
_PARTS: Final = {
    "mem_total": ("mem_node", "mem_hv"),
    "cpu_total": ("cpu_node",),
    "disk_total": ("disk_reserved", "disk_overhead"),
}
_WHOLE: Final = {"minmem": "maxmem"} | {part: total for total, parts in _PARTS.items() for part in parts}
"""The size of which another one is a part."""
_ACCEPTED: Final[dict[Path, tuple[float, float]]] = {
    ("master_netmask",): (0, shared.MOST_BITS),
    ("hvparams", "xen-hvm", "cpu_cap"): (float("-inf"), float("inf")),
} | {("diskparams", "drbd", name): (low, high) for name, (low, high, _) in shared.RANGES.items()}
"""Outside of these the number is refused, as any below 0: rules of their own report that."""
_USED: Final[dict[Path, str]] = {VCPU_RATIO: "CPUs", SPINDLE_RATIO: "spindles"}


@warning("GP152", explains=4, role=Role.DECIDES | Role.ALSO_RELATED)
def number_unlikely(context: Context) -> Iterator[Hit]:
    for path, leaves in context.declared_at.items():
        parameter = parameter_at(path)
        sensible = parameter.sensible if parameter is not None else None
        for declared, leaf in leaves if parameter is not None and parameter.type in _WHOLE_NUMBERS else ():
            written = _text_at(context, leaf.span)
            if written[:1] == "0" != written and written.isdecimal() and (not sensible or sensible.takes(leaf.number)):
                message = f"{leaf.dotted} is written {written}: many readers of YAML take it for an octal number"
                yield hit(declared, message, leaf.span, f"write {leaf.value}")
        if parameter is None or sensible is None:
            continue
        clear = _GIB if parameter.type in (Type.SIZE, Type.MIB) else sensible.least
        for declared, leaf in leaves:
            if sensible.gap is not None or not clear <= leaf.number <= sensible.most:  # few are not
                yield from _judge_value(context, declared, leaf, parameter, sensible)
    for declared, pair in context.each_pair():
        yield from _judge_pair(context, declared, pair)
    yield from _others(context)
    for scenario in context.policy.scenarios:
        for key, size in (bare for sizes in shared.sizes_of(scenario) for bare in sizes.bare):
            least = _SENSIBLE["disk-size" if key == "disk-size" else "memory-size"].least
            if least <= size.value < _GIB and not (key != "disk-size" and size.value % _MEMORY_STEP == 0):
                title = f"test {scenario.name.value}: {key}"
                yield _bare(context, f"test/{scenario.name.value}", title, size.value, size.span)


def _judge_value(
    context: Context, declared: Declared, leaf: Leaf, parameter: Parameter, sensible: SensibleRange
) -> Iterator[Hit]:
    value = leaf.number
    low, high = _ACCEPTED.get(leaf.path, (0, float("inf")))
    if not low <= value <= high:
        return  # an error
    if not sensible.takes(value):
        usual = parameter.default if isinstance(parameter.default, int | float) else 0
        unlikely = _with_bare(_unlikely(context, declared, leaf.dotted, sensible, value, leaf.span, usual), leaf)
        same = f"{value} at {leaf.document.value_span(leaf.pointer[:-1])}: {unlikely.finding.hint}"  # one slip in both
        yield replace(unlikely, finding=replace(unlikely.finding, missing=same))
    elif parameter.type in (Type.SIZE, Type.MIB) and 0 < value < _GIB and _is_bare(leaf, value):
        whole = context.own(declared, (*leaf.path[:-1], _WHOLE.get(leaf.path[-1], "")))
        if whole is None or value * _GIB <= whole.number:
            yield _bare(context, declared, leaf.dotted, value, leaf.span)


def _judge_pair(context: Context, declared: Declared, pair: Pair) -> Iterator[Hit]:
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
                place = (*pair.leaf.pointer, pair.index, other_end, name)
                both = name in SPEC_SIZES and _is_bare_size(pair.leaf.document.value(place))
                fits = fits if sensible.takes(other) and not both else sensible
                unlikely = _unlikely(context, declared, title, sensible, value, pair.at(bound, name), fits=fits)
                yield _with_bare(unlikely, pair.leaf, pair.index, bound, name)
            elif name in SPEC_SIZES and is_small and _is_bare(pair.leaf, value, pair.index, bound, name):
                yield _bare(context, declared, title, value, pair.at(bound, name))
    nics, sensible = pair.minimum["nic-count"], _SENSIBLE["min nic-count"]
    if pair.possible and sensible.most < nics <= vocabulary.MAX_NICS:  # else GP206, GP213
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
    written, shown = _text_at(context, span), sensible.shown(value)
    exact = written.removesuffix("M") if sensible.unit == MIB else written  # before it is rounded to 4 MiB
    meant = (fits or sensible).meant(int(exact) if exact.isdecimal() else value, usual)
    default = f"; Ganeti's default is {sensible.shown(usual)}" if usual > 0 else ""
    with_meant = meant if sensible.unit in (MIB, KIB_PER_SECOND) else f"{meant}{default}"  # sizes and rates have a unit
    hint = with_meant if meant else f"correct the number{default or ' or its unit'}"
    is_named = shown.startswith(f"{written} ") or shown.removesuffix("/s") == written
    if written.isdecimal() and not is_named and shown[-1].isalpha():
        shown = f"{written}, that is {shown}"
    return hit(declared, f"{title} is {shown}: sensible is {sensible.words}, since {sensible.why}", span, hint)


def _with_bare(unlikely: Hit, leaf: Leaf, *steps: str | int) -> Hit:
    """Return a hit about a size that also names those beside it that lack a unit: who forgets one forgets several."""
    own, value_at = (*leaf.pointer, *steps), leaf.document.value
    root = own[: -2 if steps else -1]
    tables = [(*root, "min"), (*root, "max")] if steps else [root]  # of a pair: both its bounds
    known = [(*table, key) for table in tables for key in value_at(table)]
    sizes = [place for place in known if str(place[-1]) in _SENSIBLE and _SENSIBLE[str(place[-1])].unit == MIB]
    bare = sizes if all(_is_bare_size(value_at(place)) for place in sizes) else []
    others = [place for place in bare if place != own and _SENSIBLE[str(place[-1])].takes(value_at(place))]
    if not others:
        return unlikely
    names = listed([f"{place[-1]} {value_at(place)}" for place in others])
    hint = f"{unlikely.finding.hint}; {names} beside it {'have' if len(others) > 1 else 'has'} no unit either"
    related = tuple(Related(leaf.document.value_span(place), "no unit either") for place in others)
    return replace(unlikely, finding=replace(unlikely.finding, hint=hint, related=related))


def _is_bare_size(written: object) -> bool:
    return type(written) is int and 0 < written <= _GIB


def _bare(context: Context, declared: Declared | str, title: str, value: float, span: Span) -> Hit:
    written = _text_at(context, span)
    number = written if written.isdecimal() else value  # before it is rounded to 4 MiB
    message = f"{title} is {number} MiB, but sizes beside it have a unit"
    return hit(declared, message, span, f"write {number}G, or {number}M if you mean MiB")


def _text_at(context: Context, span: Span) -> str:
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


def _others(context: Context) -> Iterator[Hit]:
    """Yield numbers beside Ganeti's parameters that make no sense."""
    for item in context.cluster_and_groups:
        ratio = item.limits.get(_OVERSUBSCRIPTION)
        if ratio is not None and not (sensible := _SENSIBLE[_OVERSUBSCRIPTION]).takes(ratio.value):
            yield _unlikely(context, item, f"limits.{_OVERSUBSCRIPTION}", sensible, ratio.value, ratio.span)
    for group, hardware in ((group, group.hardware) for group in context.groups if group.hardware):
        for name, figure in (*hardware.figures.items(), *(("pv_size", size) for size in hardware.pv_sizes)):
            if not (sensible := _SENSIBLE[name]).takes(figure.value):
                fits = replace(sensible, least=max(sensible.least, _needed(context, group, hardware).get(name, 0)))
                yield _unlikely(context, group, f"hardware.{name}", sensible, figure.value, figure.span, fits=fits)
    for scenario in context.policy.scenarios:
        for sizes in shared.sizes_of(scenario):
            disks = (("disk-size", disk.size) for disk in sizes.disks or ())
            for name, value in (("memory-size", sizes.memory or 0), *disks):
                if 0 < value < (sensible := _SENSIBLE[name]).least:  # a test may be about too large ones
                    title = f"test {scenario.name.value}: {name}"
                    yield _unlikely(context, f"test/{scenario.name.value}", title, sensible, value, sizes.span)


def _needed(context: Context, group: GroupPolicy, hardware: Hardware) -> dict[str, float]:
    """Return the least memory and size of a volume, MiB, that the CPUs and the sizes of a group need (GP222, GP212)."""
    cpus, pairs = hardware.cpus.value if hardware.cpus else 0, comparable(context.pairs(group))
    kept = memory_limit(context, group, hardware.memory).kept if hardware.memory else 0
    memory = max((pair.maximum["memory-size"] for pair in pairs), default=0) + kept
    disk = max((pair.maximum["disk-size"] * max(pair.minimum["disk-count"], 1) for pair in pairs), default=0)
    return {"memory": max(memory, cpus * (512 if cpus >= 16 else 100)), "pv_size": disk / (hardware.volume_count or 1)}


@warning("GP114", parameters=(RuleParameter("least", 0.75),), explains=7, role=Role.DECIDES)
def ratio_below_one(context: Context, least: float) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_USED):
        ignored = leaf.path == SPINDLE_RATIO and (context.exclusive(declared) or context.declares(SPINDLE_COUNT))
        if leaf.number < least and not ignored:
            what = _USED[leaf.path]
            message = f"{leaf.dotted} is {leaf.number:g}: a node is full before its {what} are used once"
            likely = [f"{item:g}" for item in (10 * leaf.number, 1 / leaf.number) if f"{item:g}".isdecimal()]
            meant = f"is {listed(likely, 'or')} meant? " if likely else ""
            yield hit(declared, message, leaf.span, f"{meant}1 uses the {what} once, 4 four times over")


@information("GP115")
def ratio_without_limit(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_USED):
        if is_without_limit(leaf.number):
            yield hit(declared, f"{leaf.dotted} is {leaf.number:.0f}: that limits nothing", leaf.span)


@warning("GP194")
def ratios_exchanged(context: Context) -> Iterator[Hit]:
    for declared, leaves in context.combined(VCPU_RATIO, SPINDLE_RATIO):
        cpus, spindles = (leaf.number for leaf in leaves)
        is_high = cpus >= 12 and _SENSIBLE["vcpu-ratio"].takes(cpus) and not is_without_limit(cpus)
        is_alike = spindles <= 6 or spindles == cpus >= 16
        if is_high and is_alike and not context.exclusive(declared):
            place, related, _ = shared.places(context, declared, *map(shared.value_of, leaves))
            hint = "exchange the two" if spindles <= 6 else "correct the one that was copied"
            yield hit(declared, f"vcpu-ratio is {cpus:g} and spindle-ratio {spindles:g}", place, hint, related)


@warning("GP195", When.MORE_WITH_STATE, role=Role.DECIDES)
def spindles_fill_first(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        hardware, count = group.hardware, shared.in_force(context, group, SPINDLE_COUNT)
        if count is None or hardware is None or hardware.memory is None or hardware.cpus is None:
            continue
        ratio, cpus = (shared.in_force(context, group, path) for path in (SPINDLE_RATIO, VCPU_RATIO))
        pairs = comparable(context.pairs(group))
        if ratio is None or ratio.leaf is None or cpus is None or not pairs or context.exclusive(group):
            continue
        room = {"memory-size": hardware.memory.value, "cpu-count": hardware.cpus.value * cpus.number}
        by_size = [min(size / max(pair.maximum[name], 1) for name, size in room.items()) for pair in pairs]
        spindles = ratio.number * count.number
        if any(pair.maximum["spindle-use"] > spindles for pair in pairs):
            continue  # GP223
        uses = [times * pair.minimum["spindle-use"] for times, pair in zip(by_size, pairs, strict=True)]
        meant = shared.with_lost_digit(context, ratio)
        if 0 < 5 * spindles <= min(uses) or (meant and 0 < spindles < max(uses)):
            most, pair = (max if meant else min)(zip(by_size, pairs, strict=True), key=lambda item: item[0])
            message = f"a node of group {group.name} is full with spindle-use {spindles:g}, and its memory and CPUs"
            message += f" would take {most:.0f} instances of {pair.title} at its largest"
            related = see(count.leaf.span if count.leaf else None, "spindle_count is here")
            missing = f"spindle-ratio at {ratio.leaf.span}"
            yield hit(group, message, ratio.leaf.span, f"{meant}raise spindle-ratio", related, missing=missing)


_STATE_HINT: Final = "keep it for gpolicy's own counts and guards, or leave it out: the cluster then keeps what it has"
_LEAST_SHARE: Final = 0.5
_LEAST_OF_DISK: Final = 0.1
"""A total below this share of what there is must be a mistake. A volume group may have fewer of the disks."""
_MEASURED: Final = {"mem_total": "memory_total", "cpu_total": "cpu_total", "disk_total": "disk_total"}


@warning("GP112", When.MORE_WITH_STATE, unless_declared=(vocabulary.ENABLED_HYPERVISORS,))
def hypervisor_not_enabled(context: Context) -> Iterator[Hit]:
    enabled = shared.of_cluster(context, vocabulary.ENABLED_HYPERVISORS)
    if enabled is None:
        return
    seen: set[tuple[str, str]] = set()
    for declared in context.policy.objects:
        leaves = [leaf for leaf in reversed(context.leaves(declared).values()) if _is_of_hypervisor(leaf)]
        for (family, hypervisor), leaf in {leaf.path[:2]: leaf for leaf in leaves}.items():
            if hypervisor not in enabled.texts and (family, hypervisor) not in seen:
                seen.add((family, hypervisor))
                related = see(enabled.span, "enabled here")
                source = "the policy" if enabled.leaf else "the cluster"
                message = f"{family} describes {hypervisor}, which {source} does not enable"
                span = leaf.document.key_span(leaf.pointer[:2])
                hint = f"correct the name, or leave it out: {', '.join(enabled.texts)} is enabled"
                yield hit(declared, message, span, hint, related, missing=f"enabled {hypervisor}")


def _is_of_hypervisor(leaf: Leaf) -> bool:
    parameter = parameter_at(leaf.path) if leaf.path[0] == "hvparams" else None
    is_default = parameter is not None and leaf.value == parameter.default
    return leaf.path[0] in ("hv_state", "hvparams") and leaf.value is not INHERIT and not is_default


@warning("GP155")
def fake_hypervisor(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(vocabulary.ENABLED_HYPERVISORS):
        words = leaf.texts
        if "fake" in words and len(words) > 1:
            message = "an instance of the hypervisor fake counts as running, but nothing runs"
            yield hit(declared, message, leaf.at(words.index("fake")), "remove fake")


@information("GP113", When.ASKED)
def state_without_effect(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        for family in ("hv_state", "disk_state"):
            leaf = next((leaf for leaf in context.leaves(declared).values() if leaf.path[0] == family), None)
            if leaf is not None:
                message = f"{family} has no effect in Ganeti; only gpolicy counts with it"
                yield hit(declared, message, leaf.document.key_span(leaf.pointer[:1]), _STATE_HINT)


@information("GP150", When.MORE_WITH_STATE)
def state_not_counted(context: Context) -> Iterator[Hit]:
    hypervisors = shared.of_cluster(context, vocabulary.ENABLED_HYPERVISORS)
    group = volume_group(context)
    for declared in context.policy.objects:
        for prefix, leaf in _records(context, declared).items():
            span = leaf.document.key_span(leaf.pointer[: len(prefix)])
            if prefix[0] == "hv_state" and hypervisors is not None and prefix[1] in hypervisors.texts[1:]:
                message = f"the figures of {prefix[1]} are ignored: capacity counts those of"
                message += f" {hypervisors.texts[0]} only"
                yield hit(declared, message, span)
            if prefix[0] == "disk_state" and group and prefix[2] != group:
                message = f"the figures of {prefix[2]} are ignored: capacity counts the volume group {group} only"
                yield hit(declared, message, span)


def _records(context: Context, declared: Declared) -> dict[Path, Leaf]:
    """Return the hypervisors and volume groups that an object describes, each with one of its leaves."""
    leaves = [leaf for path, leaf in context.leaves(declared).items() if path[0] in ("hv_state", "disk_state")]
    return {leaf.path[:-1]: leaf for leaf in reversed(leaves) if leaf.value is not INHERIT}


@warning("GP151", role=Role.DECIDES)
def state_beyond_total(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        for prefix in _records(context, declared):
            for total_name, names in _PARTS.items():
                total = context.effective(declared, (*prefix, total_name))
                parts = [leaf for name in names if (leaf := context.effective(declared, (*prefix, name)))]
                kept = sum(leaf.number for leaf in parts)
                own = [leaf for leaf in (*parts, total) if leaf and context.own(declared, leaf.path)]
                if total is None or not total.number or not parts or kept < total.number or not own:
                    continue
                what = " and ".join(leaf.path[-1] for leaf in parts)
                verb = "leave" if len(parts) > 1 else "leaves"
                sizes = [_shown(total_name, size) for size in (kept, total.number)]
                message = f"{what} ({sizes[0]}) {verb} nothing of {total_name} ({sizes[1]})"
                others = [leaf for leaf in (*parts, total) if leaf is not own[0]]
                related = tuple(Related(leaf.span, f"{leaf.path[-1]} is here") for leaf in others)
                hint = "exchange the two" if len(parts) == 1 and kept > 2 * total.number else "correct one of them"
                yield hit(declared, message, own[0].span, hint, related)


@warning("GP153", When.MORE_WITH_STATE, explains=8, role=Role.DECIDES)
def state_beyond_hardware(context: Context) -> Iterator[Hit]:
    own_group = volume_group(context)
    for declared in context.policy.objects:
        records = _records(context, declared)
        groups = {prefix[2] for prefix in records if prefix[0] == "disk_state"}
        promised = {own_group} if own_group or len(groups) > 1 else groups  # whose volumes the hardware has
        for prefix in records:
            if prefix[0] == "disk_state" and prefix[2] not in promised:
                continue
            for name in ("mem_total", "cpu_total", "disk_total"):
                leaf = context.own(declared, (*prefix, name))
                if leaf is not None:
                    yield from _compared(context, declared, leaf, name)


def _compared(context: Context, declared: Declared, leaf: Leaf, name: str) -> Iterator[Hit]:
    for group in shared.groups_where(context, declared, leaf):
        promised = _promised_amounts(group.hardware)[name] if group.hardware else None
        has = promised.value if promised else 0
        least = has * (_LEAST_OF_DISK if name == "disk_total" else _LEAST_SHARE)
        much, little = leaf.number > has, 0 < leaf.number < least  # 0: not known
        sizes = [_shown(name, leaf.number), _shown(name, has)]
        exchanged = sizes[0] != sizes[1] and sorted(sizes[0]) == sorted(sizes[1])
        if promised and has and (much or little or exchanged):
            only = "only " if little else ""
            message = f"{leaf.dotted} is {only}{sizes[0]}, but the promised hardware of {group.title} is {sizes[1]}"
            hint = "its digits are exchanged in one of them" if exchanged else "correct the one that is wrong"
            hint = f"{_part_meant(context, declared, leaf, has)}{hint}"
            yield hit(declared, message, leaf.span, hint, see(promised.span, "promised here"))
            return


def _part_meant(context: Context, declared: Declared, leaf: Leaf, has: float) -> str:
    """Return the beginning of a hint for a total that is rather what the node keeps of all that it has; or nothing."""
    part = _PARTS[leaf.path[-1]][0]
    is_part = 8 * leaf.number <= has and has / leaf.number not in (10, 100, _GIB)  # else a digit or a unit
    return f"is {part} meant? Else " if is_part and context.effective(declared, (*leaf.path[:-1], part)) is None else ""


def _shown(name: str, value: float) -> str:
    return str(int(value)) if name == "cpu_total" else amount("memory-size", int(value))


def _promised_amounts(hardware: Hardware) -> dict[str, Located[int] | None]:
    """Return what a node is promised to have, by the names of hv_state and disk_state."""
    return {"mem_total": hardware.memory, "cpu_total": hardware.cpus, "disk_total": promised_disk(hardware)}


@warning("GP154", When.STATE, parameters=(RuleParameter("share", 1.1),), role=Role.DECIDES)
def state_beyond_node(context: Context, share: float) -> Iterator[Hit]:
    own_group = volume_group(context)
    for path in sorted({leaf.path for _, leaf in context.explicit() if leaf.path[-1] in _MEASURED}):
        if path[0] == "disk_state" and path[2] != own_group:
            continue
        reported: set[int] = set()
        nodes = context.observed.nodes.values()
        measured = [(getattr(node.resources, _MEASURED[path[-1]]) or 0, node.name) for node in nodes]
        for has, name in sorted(measured):
            leaf = shared.declared_for(context, name, path)
            if leaf is None or not has or id(leaf) in reported:
                continue
            if leaf.number > has * share or (leaf.number < has * _LEAST_SHARE and leaf.number > 0):
                reported.add(id(leaf))
                only = "only " if leaf.number < has else ""
                shown = [_shown(path[-1], value) for value in (leaf.number, has)]
                message = f"{leaf.dotted} is {only}{shown[0]}, but node {name} reports {shown[1]}"
                owner = next(item for item in context.policy.objects if item.leaves.get(leaf.path) is leaf)
                hint = f"{_part_meant(context, owner, leaf, has)}correct the figure, or declare it for fewer nodes"
                yield hit(owner, message, leaf.span, hint)
