"""GP211, GP212, GP222, GP223 and GP226: specs against what a node of the group can give, and one figure for many."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from operator import attrgetter
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import amount, comparable
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.findings import Finding, Related, Role, RuleParameter, Span
from gpolicy.ganeti.vocabulary import SPINDLE_COUNT, SPINDLE_RATIO, VCPU_RATIO, Level
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Leaf
from gpolicy.printable import count, named
from gpolicy.rules.node_limits import excesses_by_group, kept_by_node, kept_disk, most_of_size, promised_size
from gpolicy.rules.shared import groups_where, in_force, with_lost_digit

_MANY_VOLUMES: Final = 4
"""With fewer, a volume may be an array of many disks."""
_ONE_DIGIT_MORE: Final = (8, 12)
"""How many times as large a number is that has a digit too many, roughly."""
_GIB: Final = 1024
_START: Final = attrgetter("file", "line", "column")
_OTHER_UNIT: Final = 64
"""How many times too small a size is that has the wrong unit, at least."""
_REPORTED: Final = 0.95
"""The share of its memory that Linux shows of a machine, at the least."""
_MEMORIES: Final = tuple(sorted(odd << power for odd in (1, 3, 5, 7, 9, 15) for power in range(2, 14)))
"""In GiB: what memory modules of usual sizes make."""
_USUALLY_KEPT: Final = 8
"""The part of its memory or CPUs that a node may well keep for itself, at the most: one in so many."""
_SMALL_NODE: Final = 16 * 1024
"""MiB of memory: with less, a node is a virtual one for tests, or a small board."""
_SPINDLES_SHARED: Final = 32
"""Ganeti's default of spindle-ratio: the weights of instances are arbitrary, and 1 may be too little."""


@error("GP211", When.MORE_WITH_STATE, role=Role.JUDGES)
def spec_beyond_hardware(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        for excess in context.once(excesses_by_group).get(group.name, ()):
            by_spindles = context.exclusive(group) and excess.parameter in ("disk-size", "spindle-use")  # GP405
            if excess.bound == "min" and excess.limit.span is not None and not by_spindles:
                hint = "make the size smaller, or correct the hardware"
                message = f"{excess.sentence('a node')}: no instance of it fits"
                yield hit(group, message, excess.place, hint, excess.limit.places)


@warning("GP212", When.MORE_WITH_STATE, explains=25, role=Role.JUDGES)
def spec_max_beyond_hardware(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        for excess in context.once(excesses_by_group).get(group.name, ()):
            if excess.bound == "max" and excess.limit.span is not None:
                most = most_of_size(context, group, excess.pair, excess.parameter, excess.limit.usable)
                hint = f"{excess.cure(context, int(most))}, or correct the hardware of the group"
                places = excess.limit.places
                yield hit(group, excess.sentence("a node"), excess.place, hint, places, missing=excess.missing)
    if left_out := [group for group in context.groups if group.name not in context.once(excesses_by_group)]:
        message = f"the sizes of {count(len(left_out), 'group')} are not compared with what nodes have"
        yield hit(left_out[0], message, left_out[0].span, "the policy has too many groups and sizes for that: split it")


@warning(
    "GP222",
    When.BETTER_WITH_STATE,
    parameters=(RuleParameter("least", 512), RuleParameter("most", 256 * 1024, least=1, most=1024**3)),
    explains=5,
)
def hardware_unlikely(context: Context, least: float, most: float) -> Iterator[Hit]:
    yield from _spindles(context)
    for group in context.groups:
        for size in group.hardware.pv_sizes if group.hardware else ():
            if size.value == 0:
                yield hit(group, "a physical volume of size 0", size.span, "write its size")
        yield from _exchanged(group)
        yield from _unbalanced(context, group, least, most)


def _unbalanced(context: Context, group: GroupPolicy, least: float, most: float) -> Iterator[Hit]:
    """Yield memory that is far too little or too much for the CPUs."""
    memory, cpus = (group.hardware.memory, group.hardware.cpus) if group.hardware else (None, None)
    if memory is not None and cpus is not None:
        each, is_small = memory.value / cpus.value, memory.value < _SMALL_NODE and cpus.value < 16
        is_measured = {item.finding.span for item in context.found_with(Role.BROKEN_PROMISE)} & {memory.span, cpus.span}
        if not (least / 5 if is_small else least) <= each <= most and not is_measured:
            what = f"{amount('memory-size', memory.value)} of memory for {count(cpus.value, 'CPU')}"
            message = f"{what} is far too {'much' if each > most else 'little'}"
            related = see(cpus.span, "the CPUs are here")
            meant = memory.value // _GIB if each > most else memory.value * _GIB
            hint = "correct the unit, or exchange the two numbers"
            if least <= meant / cpus.value <= most and _is_usual_memory(meant // _GIB):
                hint = f"is {amount('memory-size', meant)} meant? Else correct the CPUs"
            yield hit(group, message, memory.span, hint, related)


def _spindles(context: Context) -> Iterator[Hit]:
    """Yield a spindle_count with a digit more than there are volumes; it may also be a weight of any size."""
    for declared, spindles in context.explicit_at(SPINDLE_COUNT):
        for group in groups_where(context, declared, spindles):
            volumes = group.hardware.pv_count if group.hardware else None
            times = spindles.number / volumes.value if volumes is not None and volumes.value else 0
            if volumes and volumes.value >= _MANY_VOLUMES and _ONE_DIGIT_MORE[0] <= times <= _ONE_DIGIT_MORE[1]:
                message = f"spindle_count is {spindles.value}, but nodes of {group.title} have {volumes.value}"
                message += " volumes"
                related = see(volumes.span, "they are promised here")
                yield hit(declared, message, spindles.span, "correct one of them", related)
                break


def _exchanged(group: GroupPolicy) -> Iterator[Hit]:
    """Yield memory in GiB and CPUs that no machine has, but one with two digits exchanged."""
    memory, cpus = (group.hardware.memory, group.hardware.cpus) if group.hardware else (None, None)
    if memory is not None and memory.value % _GIB == 0:
        gib = memory.value // _GIB
        if not _is_usual_memory(gib) and (meant := _exchanged_digits(gib, _MEMORIES.__contains__)):
            yield hit(group, f"hardly any machine has {gib}G of memory", memory.span, f"Did you mean `{meant}G`?")
    if cpus is not None and (meant := _exchanged_digits(cpus.value, _is_usual_cpus)):
        hint = f"is {meant} meant? Else write what the nodes have"
        yield hit(group, f"hardly any machine has {cpus.value} CPUs", cpus.span, hint)


def _exchanged_digits(figure: int, is_usual: Callable[[int], bool]) -> int:
    """Return the usual figure that one is with two neighbouring digits exchanged; 0 if it is usual, or none is."""
    digits = str(figure)
    if is_usual(figure) or not 2 <= len(digits) <= 4:
        return 0
    exchanged = (digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :] for at in range(len(digits) - 1))
    return next((int(word) for word in exchanged if word[0] != "0" and is_usual(int(word))), 0)


def _is_usual_memory(gib: int) -> bool:
    """Return whether machines have so much memory, or Linux shows so much of it."""
    return gib < 8 or gib in _MEMORIES or any(_REPORTED * size <= gib <= size for size in _MEMORIES)


def _is_usual_cpus(cpus: int) -> bool:
    if cpus < 8 or cpus in {84, 168}:  # rare numbers that there are: AMD EPYC 9634 has 84 cores
        return True
    odd = cpus // (cpus & -cpus)  # without its factors of 2
    return cpus % 2 == 0 and odd <= 15


@warning("GP223", When.MORE_WITH_STATE, role=Role.JUDGES)
def spindle_use_beyond_ratio(context: Context) -> Iterator[Hit]:
    sets = [leaf.number for declared, leaf in context.explicit_at(SPINDLE_COUNT) if declared.level is Level.NODE]
    for declared in context.cluster_and_groups:
        ratio, spindle_count = (in_force(context, declared, path) for path in (SPINDLE_RATIO, SPINDLE_COUNT))
        if ratio is None or spindle_count is None or spindle_count.number < 1 or context.exclusive(declared):  # GP107
            continue
        hosts = context.members.hosts_in(declared) if isinstance(declared, GroupPolicy) else ()
        own = [number for node in hosts if isinstance(number := node.own.get(SPINDLE_COUNT), int | float)]
        spindles = max([*_counts_within(context, declared, spindle_count.number), *sets, *own])
        limit = ratio.number * spindles
        for pair in comparable(context.pairs(declared)):
            bound = next((end for end in ("min", "max") if pair.bound(end)["spindle-use"] > limit), None)
            if bound is not None:
                verb = "requires" if bound == "min" else "allows"
                message = f"{pair.title} {verb} a spindle-use of {pair.bound(bound)['spindle-use']}, but a node"
                message += f" takes {limit:g} (spindle_count {spindles:g}, ratio {ratio.number:g})"
                places = {leaf.path[1]: leaf.span for leaf in (ratio.leaf, spindle_count.leaf) if leaf}
                places[pair.title] = pair.at(bound, "spindle-use")
                meant = with_lost_digit(context, ratio)
                place = places.pop("spindle-ratio" if meant else pair.title)
                related = tuple(Related(span, f"{what} is here") for what, span in places.items())
                hint = f"{meant}raise spindle-ratio or spindle_count, or lower the bound"
                yield hit(declared, message, place, hint, related, missing=f"spindle-ratio at {place}")


def _counts_within(context: Context, declared: Declared, own: float) -> Iterator[float]:
    """Yield the spindle_count of an object; of a cluster all of whose groups are declared, those of the groups."""
    is_cluster = isinstance(declared, ClusterPolicy) and context.groups != []
    counts = [in_force(context, group, SPINDLE_COUNT) for group in context.groups] if is_cluster else []
    yield from (count.number for count in counts if count is not None)
    if not is_cluster or context.members.has_undeclared_groups:
        yield own


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A number of the policy, and the policy of one group as it would be if the number took nothing from a node.

    `meant` is the size with the next unit, where the sizes of instances are made for such a one. One that `is_usual`
    takes no more than a node may well keep.
    """

    name: str
    span: Span
    without: Policy
    note: str = ""
    meant: str = ""
    is_usual: bool = False


@dataclass(slots=True)
class _Refusals:
    """What disappears without a figure: the groups, their number of specs, those that are refused, the findings."""

    figure: _Suspect
    groups: list[GroupPolicy] = field(default_factory=list)
    specs: int = 0
    refused: set[tuple[str, Span]] = field(default_factory=set)
    findings: dict[Finding, None] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether more than one spec is refused, and most of all: of one, the spec is more likely wrong."""
        return len({span for _, span in self.refused}) > 1 and len(self.refused) * 2 > self.specs


@warning("GP226", When.MORE_WITH_STATE | When.LAST | When.TOLD, explains=18)
def figure_refuses_specs(context: Context, found: Sequence[Finding]) -> Iterator[Hit]:
    """Yield the figures that decide most of what was found about specs."""
    codes = context.codes_with(Role.JUDGES)
    about = [finding for finding in found if finding.code in codes]
    judges = [code for code in codes if any(finding.code == code for finding in about)]
    decided: dict[Span, _Refusals] = {}
    for group in _refused_groups(context, about)[:20]:
        for figure, gone in _deciding(context, group, judges, about):
            refusals = decided.setdefault(figure.span, _Refusals(figure))
            refusals.groups.append(group)
            refusals.specs += len(context.pairs(group))
            refusals.findings.update(dict.fromkeys(gone))
            refusals.refused.update((group.name, span) for span in _refused_pairs(_pair_places(context, group), gone))
    said: set[Finding] = set()
    for span, refusals in decided.items():
        findings = [finding for finding in refusals.findings if finding not in said]
        if refusals.decides and findings:
            said.update(findings)
            yield _hit(context, span, refusals, findings)


def _hit(context: Context, span: Span, refusals: _Refusals, findings: list[Finding]) -> Hit:
    file = context.policy.files.get(span.file)
    value = f" is {file.written(span)}" if file is not None else ""
    what = f"{refusals.figure.name}{value}{refusals.figure.note}"
    first = min(findings, key=lambda finding: finding.severity.rank)
    which = named("group", [group.name for group in refusals.groups])
    message = f"{what}: by it {len(refusals.refused)} of {refusals.specs} sizes of {which} do not fit the"
    message += f" nodes as meant; {first.message}"
    meant = refusals.figure.meant
    hint = f"is {meant} meant? Else correct all these sizes" if meant else "correct this figure, or all these sizes"
    found = hit(refusals.groups[0], message, span, hint, tuple(item for item in first.related if item.span != span))
    return replace(found, finding=replace(found.finding, consequences=tuple(findings)))


def _refused_groups(context: Context, about: Sequence[Finding]) -> list[GroupPolicy]:
    """Return the groups some of whose specs are refused; none if it is one spec alone."""
    refused: dict[int, set[Span]] = {}  # by the list of pairs, which groups may share
    for group in context.groups if len({finding.span for finding in about if finding.span}) > 1 else ():
        if id(context.pairs(group)) not in refused:
            refused[id(context.pairs(group))] = _refused_pairs(_pair_places(context, group), about)
    several = len(set().union(*refused.values())) > 1
    return [group for group in context.groups if several and refused[id(context.pairs(group))]]


def _pair_places(context: Context, group: GroupPolicy) -> list[Span]:
    """Return the places of a group's pairs in their order; none lies within another."""
    return sorted(pair.span for pair in context.pairs(group))


def _around(place: Span | None, pairs: Sequence[Span]) -> Span | None:
    """Return the pair that a place lies within."""
    number = bisect_right(pairs, _START(place), key=_START) if place else 0
    pair = pairs[number - 1] if number else None
    return pair if place and pair and place.lies_within(pair) else None


def _refused_pairs(pairs: Sequence[Span], findings: Iterable[Finding]) -> set[Span]:
    return {pair for finding in findings if (pair := _around(finding.span, pairs))}


def _deciding(
    context: Context, group: GroupPolicy, judges: Sequence[str], about: Sequence[Finding]
) -> Iterator[tuple[_Suspect, list[Finding]]]:
    """Yield the figure of a group without which most of its specs fit, with the findings about these.

    What takes more than usual from a node comes before what the node has. Where two figures do the same, neither
    decides.
    """
    pairs = _pair_places(context, group)
    alone = _judged(context, replace(context.policy, groups={group.name: group}), judges)
    here = {(finding.span, finding.message) for finding in alone}
    own = [finding for finding in about if (finding.span, finding.message) in here]
    best: tuple[_Suspect, list[Finding]] | None = None
    for figures in (_taking(context, group), _having(context, group)):
        cured: list[tuple[_Suspect, list[Finding]]] = []
        for figure in figures:
            still = _refused_pairs(pairs, _judged(context, figure.without, judges))
            gone = [item for item in own if (pair := _around(item.span, pairs)) and pair not in still]
            cured.append((figure, gone))
        most = max((len(gone) for _, gone in cured), default=0)
        first = [item for item in cured if len(item[1]) == most]
        least = len(best[1]) + (not best[0].is_usual) if best else 1
        if len(first) == 1 and most >= least:
            best = first[0]
    if best is not None:
        yield best


def _judged(context: Context, policy: Policy, judges: Sequence[str]) -> list[Finding]:
    changed = replace(context, policy=policy)
    return [hit.finding for code in judges for hit in changed.found_by(code)]


def _taking(context: Context, group: GroupPolicy) -> Iterator[_Suspect]:
    """Yield the figures that take something from what a node of the group has."""
    of_hypervisor = (*kept_by_node(context, group, "mem_node", "mem_hv"), *kept_by_node(context, group, "cpu_node"))
    kept = (*of_hypervisor, *kept_disk(context, group))
    yield from (_of_leaf(context, group, leaf, 0) for leaf in kept if leaf.number > 0)
    for path, usual in ((VCPU_RATIO, 1), (SPINDLE_RATIO, _SPINDLES_SHARED)):
        ratio = in_force(context, group, path)
        if ratio is not None and ratio.leaf is not None and ratio.number < 1:
            yield _of_leaf(context, group, ratio.leaf, usual)
    volume = promised_size(context, group, group.hardware) if group.hardware else None
    for key in ("margin", "reserve") if volume is not None and context.exclusive(group) else ():
        owners = (owner for owner in (group, context.policy.cluster) if owner and key in owner.physical_volumes)
        owner = next(owners, None)
        if owner is not None and volume is not None:
            rest = {name: value for name, value in owner.physical_volumes.items() if name != key}
            without = _changed(context.policy, group, owner, physical_volumes=rest)
            note = f" (of each {amount('disk-size', volume.smallest)} {amount('disk-size', volume.usable)} count)"
            yield _Suspect(f"physical_volumes.{key}", owner.physical_volumes[key].span, without, note)


def _of_leaf(context: Context, group: GroupPolicy, leaf: Leaf, value: int) -> _Suspect:
    owner = group if context.own(group, leaf.path) is leaf else context.policy.cluster or group
    leaves = {**owner.leaves, leaf.path: replace(leaf, value=value)}
    whole = group.hardware.figures.get("cpus" if leaf.path[-1] == "cpu_node" else "memory") if group.hardware else None
    is_usual = whole is not None and leaf.path[0] == "hv_state" and leaf.number * _USUALLY_KEPT <= whole.value
    return _Suspect(leaf.dotted, leaf.span, _changed(context.policy, group, owner, leaves=leaves), is_usual=is_usual)


def _having(context: Context, group: GroupPolicy) -> Iterator[_Suspect]:
    """Yield the figures of the hardware that the group promises, each with enough for any spec.

    The size of a volume is what the sizes seem to be made for, if that is another one: by more than what is not used of
    a volume.
    """
    hardware = group.hardware
    if hardware is None:
        return
    plenty = {name: replace(figure, value=figure.value * 1024) for name, figure in hardware.figures.items()}
    meant: dict[str, Any] = {name: ({name: figure}, figure.span) for name, figure in plenty.items()}
    needed = {"memory": max((pair.maximum["memory-size"] for pair in context.pairs(group)), default=0)}
    volume = promised_size(context, group, hardware) if len(hardware.pv_sizes) == 1 else None
    if volume is not None and context.exclusive(group):
        sizes = [ceil(pair.maximum["disk-size"] / (pair.maximum["spindle-use"] or 1)) for pair in context.pairs(group)]
        whole = ceil(max(sizes, default=0) * volume.smallest / volume.usable)
        needed["pv_size"] = whole
        if abs(whole - volume.smallest) > 2 * (volume.smallest - volume.usable):
            size = hardware.pv_sizes[0]
            meant["pv_size"] = ({"pv_sizes": (replace(size, value=whole),)}, size.span)
    for name, (fields, span) in meant.items():
        without = _changed(context.policy, group, group, hardware=replace(hardware, **fields))
        size = hardware.pv_sizes[0] if name == "pv_size" else hardware.figures[name]
        is_unit = needed.get(name, 0) >= _OTHER_UNIT * size.value
        other_unit = amount("disk-size", size.value * _GIB) if is_unit else ""
        yield _Suspect(f"hardware.{name}", span, without, meant=other_unit)


def _changed(policy: Policy, group: GroupPolicy, owner: ClusterPolicy | GroupPolicy, **fields: Any) -> Policy:
    """Return the policy with `group` alone, and `owner` (the group, or the cluster) with other `fields`."""
    changed = replace(owner, **fields)
    if isinstance(changed, GroupPolicy):
        return replace(policy, groups={group.name: changed})
    return replace(policy, groups={group.name: group}, cluster=changed)
