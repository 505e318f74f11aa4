"""The cluster before and after a plan as pictures: geometry and facts only.

The sizes of groups are boxes over memory and disk, now and then, with the instances as dots. Both axes are
logarithmic, since pairs reach from megabytes to terabytes; lengths are in the units of the picture. Nodes and failure
domains show membership and use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gpolicy.analysis.allocator_input import natural_key, policy_of
from gpolicy.analysis.basis import NodeUse, StateReport
from gpolicy.analysis.health import LocationFacts
from gpolicy.analysis.size_words import pair_title
from gpolicy.cluster.state import LiveInstance
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.impact import LocationChange
from gpolicy.plan.sides import Sides
from gpolicy.printable import clipped, count
from gpolicy.report.answer import Picture, Section, size

WIDTH: Final = 560
HEIGHT: Final = 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 22, 34
_LEAST_SIDE: Final = 5.0  # a pair that allows one size only is still seen
_MOST_TICKS: Final = 7
_LINE: Final = 13.0  # between labels
_LETTER: Final = 6.6
_LOWEST: Final = HEIGHT - _BOTTOM - 2.0  # of a label's line
MOST_PICTURES: Final = 12

Edges = tuple[int, int, int, int]
"""Least and most memory, least and most disk (MiB)."""


@dataclass(frozen=True, slots=True)
class Box:
    """One pair. `kind` is now (removed), then (new) or same."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    label: str
    bounds: Edges


@dataclass(frozen=True, slots=True)
class Dot:
    """Instances of one size (MiB): `kind` is newly (violating), still (violating) or fine."""

    x: float
    y: float
    radius: float
    kind: str
    number: int
    memory: int
    disk: int


AxisMark = tuple[float, str]
"""A mark on an axis: its place and its text."""
TextAt = tuple[float, float, str]
"""The name of a pair at a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecPicture:
    """The picture of groups that have the same pairs now and then."""

    groups: tuple[str, ...]
    boxes: tuple[Box, ...]
    labels: tuple[TextAt, ...]
    dots: tuple[Dot, ...]
    x_ticks: tuple[AxisMark, ...]
    y_ticks: tuple[AxisMark, ...]
    summary: str
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


def spec_pictures(sides: Sides, renamed: Mapping[str, str], verdicts: Mapping[str, str]) -> list[SpecPicture]:
    """Return the pictures of groups whose pairs change or whose instances newly violate them.

    `renamed` leads from names after to names before, `verdicts` say newly or still by instance; what is not in it is
    fine.
    """
    before, after = sides.before, sides.after
    alike: dict[tuple[tuple[Edges, ...], tuple[Edges, ...]], list[str]] = {}
    for name, group in after.groups.items():
        old = before.groups.get(renamed.get(name, name))
        now, then = _pairs(old.effective) if old else (), _pairs(group.effective)
        alike.setdefault((now, then), []).append(name)
    pictures, homes = [], {name: node.group for name, node in after.nodes.items()}
    for (now, then), groups in alike.items():
        instances = [item for item in after.instances.values() if homes.get(item.primary_node) in groups]
        newly = any(verdicts.get(item.name) == "newly" for item in instances)
        if now != then or newly:
            labels = _pair_names(groups, sides.names, len(then))
            pictures.append(_picture(tuple(groups), now, then, labels, instances, verdicts))
    return pictures[:MOST_PICTURES]


def _pair_names(groups: Sequence[str], names: PairNames, pairs: int) -> list[str]:
    """Return the names of the pairs in the first of the groups that has names."""
    shown = [list(map(pair_title, names.of(group, pairs))) for group in groups]
    nameless = [f"size {place}" for place in range(1, pairs + 1)]
    return next((found for found in shown if found != nameless), nameless)


def _pairs(values: Values) -> tuple[Edges, ...]:
    with suppress(GpolicyError):
        pairs = policy_of(values, "").minmax
        return tuple((one.min.memory, one.max.memory, one.min.disk_size, one.max.disk_size) for one in pairs)
    return ()


def _picture(
    groups: tuple[str, ...],
    now: tuple[Edges, ...],
    then: tuple[Edges, ...],
    names: Sequence[str],
    instances: Sequence[LiveInstance],
    verdicts: Mapping[str, str],
) -> SpecPicture:
    spots = Counter(
        (item.maxmem, max(disk.size for disk in item.disks), verdicts.get(item.name, "fine"))
        for item in instances
        if item.disks
    )
    everything = [*now, *then]
    across = _Axis([*(n for box in everything for n in box[:2]), *(spot[0] for spot in spots)], _LEFT, WIDTH - _RIGHT)
    upward = _Axis([*(n for box in everything for n in box[2:]), *(spot[1] for spot in spots)], HEIGHT - _BOTTOM, _TOP)
    boxes = [_box(across, upward, bounds, "now", "") for bounds in now if bounds not in then]
    for number, bounds in enumerate(then):
        boxes.append(_box(across, upward, bounds, "same" if bounds in now else "then", names[number]))
    dots = []
    for (memory, disk, kind), number in sorted(spots.items(), key=lambda item: (item[0][2] != "fine", item[0])):
        radius = round(min(2.2 + math.sqrt(number) * 0.8, 9.0), 1)
        dots.append(Dot(across.at(memory), upward.at(disk), radius, kind, number, memory, disk))
    return SpecPicture(
        groups=groups,
        boxes=tuple(boxes),
        labels=tuple(_labels(boxes)),
        dots=tuple(dots),
        x_ticks=tuple(across.ticks()),
        y_ticks=tuple(upward.ticks()),
        summary=f"{count(len(now), 'size')} today, {len(then)} after, {count(sum(spots.values()), 'instance')}",
    )


def _box(across: _Axis, upward: _Axis, bounds: Edges, kind: str, label: str) -> Box:
    least_memory, most_memory, least_disk, most_disk = bounds
    left, right = _widened(across.at(least_memory), across.at(most_memory))
    top, bottom = _widened(upward.at(most_disk), upward.at(least_disk))
    return Box(left, top, round(right - left, 1), round(bottom - top, 1), kind, label, bounds)


def _widened(low: float, high: float) -> tuple[float, float]:
    short = max(_LEAST_SIDE - (high - low), 0.0) / 2
    return round(low - short, 1), round(high + short, 1)


def _labels(boxes: Sequence[Box]) -> Iterator[TextAt]:
    """Yield the names of the pairs, each at its box's upper left corner, or beside it without room there."""
    taken: list[tuple[float, float, float]] = []
    for box in boxes:
        if not box.label:
            continue
        text = clipped(box.label, 24)
        width = len(text) * _LETTER
        inside = box.width > width + 8 and box.height > _LINE + 4
        x = box.x + 4 if inside else box.x + box.width + 4
        if x + width > WIDTH:
            x = max(box.x - width - 4, 2.0)
        y = box.y + _LINE if inside else box.y + min(box.height / 2 + 4, _LINE)
        y = _free_line(min(y, _LOWEST), x - _LETTER, x + width + _LETTER, taken)
        taken.append((x, x + width, y))
        yield round(x, 1), round(y, 1), text


def _free_line(y: float, left: float, right: float, taken: Sequence[tuple[float, float, float]]) -> float:
    """Return the line nearest to `y` without other text between `left` and `right`."""
    for step in range(int((_LOWEST - _TOP) / _LINE) + 1):
        for line in (y + step * _LINE, y - step * _LINE):
            clash = any(abs(line - at) < _LINE and left < end and start < right for start, end, at in taken)
            if _TOP + _LINE <= line <= _LOWEST and not clash:
                return line
    return y


class _Axis:
    """A logarithmic axis from `start` to `end` with all `values` (MiB) on it."""

    def __init__(self, values: Sequence[int], start: float, end: float) -> None:
        logs = [math.log2(max(value, 1)) for value in values] or [0.0, 1.0]
        room = max((max(logs) - min(logs)) * 0.06, 0.4)
        self.low, self.high = min(logs) - room, max(logs) + room
        self.start, self.end = start, end

    def at(self, value: int) -> float:
        share = (math.log2(max(value, 1)) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> Iterator[AxisMark]:
        """Yield powers of two, as few as needed."""
        first, last = max(math.ceil(self.low), 0), math.floor(self.high)
        step = max(1, -(-(last - first + 1) // _MOST_TICKS))
        yield from ((self.at(2**power), size(2**power)) for power in range(first, last + 1, step))


MEMORY: Final = "Memory of nodes"


@dataclass(frozen=True, slots=True)
class NodePicture:
    """A node of a group before and after; None where it is not there. `elsewhere` is its group then: none, if new."""

    name: str
    before: NodeUse | None
    after: NodeUse | None
    elsewhere: str = ""

    @property
    def uses(self) -> tuple[NodeUse, ...]:
        """What is drawn: both sides where they differ."""
        return tuple(filter(None, dict.fromkeys((self.before, self.after))))

    @property
    def changes(self) -> bool:
        """Whether the node comes, goes, or gets another use."""
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPicture:
    """The nodes of a group after the changes, and those that leave it. `rows` says what they are."""

    name: str
    renamed_from: str | None = None
    nodes: tuple[NodePicture, ...]
    rows: str = "node"


@dataclass(frozen=True, slots=True)
class DomainPicture:
    """One failure domain: its nodes, which stay, come or go, and mirrored instances with both halves in it.

    `halves` is how many they are before and after; empty where it is not known.
    """

    tag: str
    nodes: tuple[tuple[str, str], ...]
    halves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DomainKind:
    """A kind of failure domains, such as rack: it stays one, comes or goes."""

    name: str
    turn: str
    domains: tuple[DomainPicture, ...]


def group_pictures(
    before: Sequence[NodeUse], after: Sequence[NodeUse] = (), renamed: Mapping[str, str] | None = None
) -> list[GroupPicture]:
    """Return all groups with nodes, before and after (empty: the same). `renamed` leads from names after to before."""
    old_names = renamed or {}
    new_names = {old: new for new, old in old_names.items()}
    named = [replace(item, group=new_names.get(item.group, item.group)) for item in before]
    now, then = ({(item.group, item.name): item for item in side} for side in (named, after or named))
    homes = [{name: group for group, name in side} for side in (then, now)]
    groups: dict[str, list[NodePicture]] = {}
    for group, name in sorted({**then, **now}, key=lambda key: (key[0], key not in then, natural_key(key[1]))):
        pair = now.get((group, name)), then.get((group, name))
        elsewhere = "" if all(pair) else homes[pair[0] is None].get(name, "")
        groups.setdefault(group, []).append(NodePicture(name, *pair, elsewhere))
    return [
        GroupPicture(name=group, renamed_from=old_names.get(group), nodes=tuple(nodes))
        for group, nodes in groups.items()
    ]


def memory_section(report: StateReport) -> Section:
    """Return the section with the memory of the nodes that a report is about."""
    draw = partial(group_pictures, report.nodes_before, report.nodes_after)
    return Section("memory", MEMORY, (Picture("nodes", draw),))


def domain_pictures(sides: Sides, location: LocationChange | None) -> list[DomainKind]:
    """Return the failure domains of each kind, before or after."""
    facts = [LocationFacts(state, {}) for state in (sides.before, sides.after)]
    kinds = sorted({kind for side in facts for kind in side.kinds})
    turns = ((kind, _turn(kind in side.kinds for side in facts)) for kind in kinds)
    return [DomainKind(kind, turn, tuple(_domains(f"{kind}:", facts, location))) for kind, turn in turns]


def _turn(there: Iterable[bool]) -> str:
    before, after = there
    return "goes" if not after else "stays" if before else "comes"


def _domains(prefix: str, facts: Sequence[LocationFacts], location: LocationChange | None) -> Iterator[DomainPicture]:
    members: dict[str, dict[str, list[bool]]] = {}
    for place, side in enumerate(facts):
        for name, tags in side.location.items():
            for tag in tags:
                if tag.startswith(prefix):
                    members.setdefault(tag, {}).setdefault(name, [False, False])[place] = True
    shared = location.shared_domains if location else None
    sides = [(*shared.still, *shared.gone), (*shared.still, *shared.new)] if shared else []
    for tag in sorted(members, key=natural_key):
        nodes = tuple((name, _turn(members[tag][name])) for name in sorted(members[tag], key=natural_key))
        yield DomainPicture(tag, nodes, tuple(sum(tag in pair.tags for pair in side) for side in sides))
