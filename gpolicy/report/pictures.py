"""The cluster before and after a plan as pictures: geometry and facts only.

The spec pairs of groups are boxes over memory and disk, now and then, with the instances as dots. Both axes are
logarithmic, since pairs reach from megabytes to terabytes; lengths are in the units of the picture. Nodes and failure
domains show membership and use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.node_use import NodeUse
from gpolicy.analysis.spec_pairs import PairNames, pair_title
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.parameter import Value
from gpolicy.impact.comparison import Sides
from gpolicy.impact.location_change import LocationChange
from gpolicy.printable import clipped, count
from gpolicy.report.answer import Picture, Section, rough_size, size

WIDTH: Final = 560
HEIGHT: Final = 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 22, 34
_LEAST_SIDE: Final = 5.0  # a pair that allows one size only is still seen
_MOST_TICKS: Final = 7
_LINE: Final = 13.0  # between labels
_LETTER: Final = 6.6
_LOWEST: Final = HEIGHT - _BOTTOM - 2.0  # of a label's line
MOST_PICTURES: Final = 12


@dataclass(frozen=True, slots=True)
class Box:
    """One pair. `kind` is now (removed), then (new) or same."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a pair, and its place."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """Instances of one size: `kind` is newly (violating), still (violating) or fine."""

    x: float
    y: float
    radius: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecPicture:
    """The picture of groups that have the same pairs now and then."""

    groups: tuple[str, ...]
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]
    dots: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    summary: str
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    top: float = _TOP
    bottom: float = HEIGHT - _BOTTOM


_Bounds = tuple[int, int, int, int]
"""Least and most memory, least and most disk (MiB)."""


def spec_pictures(sides: Sides, renamed: Mapping[str, str], verdicts: Mapping[str, str]) -> list[SpecPicture]:
    """Return the pictures of groups whose pairs change or whose instances newly violate them.

    `renamed` leads from names after to names before, `verdicts` say newly or still by instance; what is not in it is
    fine.
    """
    before, after = sides.before, sides.after
    alike: dict[tuple[tuple[_Bounds, ...], tuple[_Bounds, ...]], list[str]] = {}
    for name, group in after.groups.items():
        old = before.groups.get(renamed.get(name, name))
        now = _pairs(old.effective.get(("ipolicy", "minmax"))) if old else ()
        then = _pairs(group.effective.get(("ipolicy", "minmax")))
        alike.setdefault((now, then), []).append(name)
    pictures = []
    for (now, then), groups in alike.items():
        instances = [item for item in after.instances.values() if _group(after, item) in groups]
        newly = any(verdicts.get(item.name) == "newly" for item in instances)
        if now != then or newly:
            labels = _names(groups, sides.names, len(then))
            pictures.append(_picture(tuple(groups), now, then, labels, instances, verdicts))
    return pictures[:MOST_PICTURES]


def _names(groups: Sequence[str], names: PairNames, pairs: int) -> list[str]:
    """Return the names of the pairs in the first of the groups that has names."""
    shown = [list(map(pair_title, names.of(group, pairs))) for group in groups]
    nameless = [f"pair {place}" for place in range(1, pairs + 1)]
    return next((found for found in shown if found != nameless), nameless)


def _group(state: ClusterState, instance: LiveInstance) -> str | None:
    node = state.nodes.get(instance.primary_node)
    return node.group if node else None


def _pairs(value: Value) -> tuple[_Bounds, ...]:
    return tuple(bounds for pair in value if (bounds := _bounds(pair))) if isinstance(value, list) else ()


def _bounds(pair: Value) -> _Bounds | None:
    if not isinstance(pair, dict):
        return None
    low, high = pair.get("min"), pair.get("max")
    if not isinstance(low, dict) or not isinstance(high, dict):
        return None
    found = [side.get(name) for name in ("memory-size", "disk-size") for side in (low, high)]
    numbers = [item for item in found if isinstance(item, int)]
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else None


def _picture(
    groups: tuple[str, ...],
    now: tuple[_Bounds, ...],
    then: tuple[_Bounds, ...],
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
        title = f"{count(number, 'instance')} of {size(memory)} memory, largest disk {size(disk)}"
        violating = "" if kind == "fine" else f": {kind} violating"
        dots.append(Dot(across.at(memory), upward.at(disk), radius, kind, f"{title}{violating}"))
    return SpecPicture(
        groups=groups,
        boxes=tuple(boxes),
        labels=tuple(_labels(boxes)),
        dots=tuple(dots),
        x_ticks=tuple(across.ticks()),
        y_ticks=tuple(upward.ticks()),
        summary=f"{count(len(now), 'spec pair')} now, {len(then)} then, {count(sum(spots.values()), 'instance')}",
    )


def _box(across: _Axis, upward: _Axis, bounds: _Bounds, kind: str, label: str) -> Box:
    least_memory, most_memory, least_disk, most_disk = bounds
    left, right = _widened(across.at(least_memory), across.at(most_memory))
    top, bottom = _widened(upward.at(most_disk), upward.at(least_disk))
    word = {"now": "now only", "then": "then only", "same": "now and then"}[kind]
    title = (
        f"{label + ', ' if label else ''}{word}: memory {size(least_memory)} to {size(most_memory)},"
        f" disk {size(least_disk)} to {size(most_disk)}"
    )
    return Box(left, top, round(right - left, 1), round(bottom - top, 1), kind, label, title)


def _widened(low: float, high: float) -> tuple[float, float]:
    short = max(_LEAST_SIDE - (high - low), 0.0) / 2
    return round(low - short, 1), round(high + short, 1)


def _labels(boxes: Sequence[Box]) -> Iterator[Label]:
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
        yield Label(round(x, 1), round(y, 1), text)


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

    def ticks(self) -> Iterator[Tick]:
        """Yield powers of two, as few as needed."""
        first, last = max(math.ceil(self.low), 0), math.floor(self.high)
        step = max(1, -(-(last - first + 1) // _MOST_TICKS))
        yield from (Tick(self.at(2**power), size(2**power)) for power in range(first, last + 1, step))


MEMORY: Final = "Memory of nodes"
_DOMAIN_KIND: Final = "htools:nlocation:"
MOST_ROWS: Final = 16
"""Nodes of a group that are shown one a line; more become small boxes."""


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

    @property
    def disk(self) -> str:
        """The used part of its disk, in words; empty where it is not known."""
        use = self.uses[-1]
        return f"{rough_size(use.disk_used)} of {rough_size(use.disk_total)}" if use.disk_total else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPicture:
    """The nodes of a group after the changes, and those that leave it, by name. `rows` says what they are."""

    name: str
    renamed_from: str | None = None
    nodes: tuple[NodePicture, ...]
    rows: str = "node"

    @property
    def sizes(self) -> tuple[int, int]:
        """How many nodes there are before and after."""
        return sum(bool(node.before) for node in self.nodes), sum(bool(node.after) for node in self.nodes)

    @property
    def compact(self) -> bool:
        """Whether there are too many nodes for a line each."""
        return len(self.nodes) > MOST_ROWS

    @property
    def changed(self) -> tuple[NodePicture, ...]:
        """The nodes that change."""
        return tuple(node for node in self.nodes if node.changes)

    @property
    def short(self) -> bool:
        """Whether some node has too little memory."""
        return any(node.uses[-1].short for node in self.nodes)

    @property
    def scale(self) -> int:
        """The memory (MiB) of the longest bar."""
        return max((max(use.total, use.needed) for node in self.nodes for use in node.uses), default=0) or 1


@dataclass(frozen=True, slots=True)
class DomainNode:
    """A node in a failure domain: stays, comes or goes."""

    name: str
    turn: str


@dataclass(frozen=True, slots=True)
class DomainPicture:
    """One failure domain: its nodes, and mirrored instances with both halves in it now and then (None: not known)."""

    tag: str
    nodes: tuple[DomainNode, ...]
    halves_now: int | None
    halves_then: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainKind:
    """A kind of failure domains, such as rack: it stays one, comes or goes."""

    name: str
    turn: str
    domains: tuple[DomainPicture, ...]


_TURNS: Final = {(True, True): "stays", (False, True): "comes", (True, False): "goes"}
"""Whether something stays, comes or goes."""


def group_pictures(
    before: Sequence[NodeUse], after: Sequence[NodeUse] = (), renamed: Mapping[str, str] | None = None
) -> list[GroupPicture]:
    """Return all groups with nodes, before and after (empty: the same). `renamed` leads from names after to before."""
    old_names = renamed or {}
    new_names = {old: new for new, old in old_names.items()}
    now = {(new_names.get(item.group, item.group), item.name): item for item in before}
    then = {(item.group, item.name): item for item in after or before}
    homes = [{name: group for group, name in side} for side in (then, now)]
    groups: dict[str, list[NodePicture]] = {}
    for group, name in sorted({**then, **now}, key=lambda key: (key[0], key not in then, _natural(key[1]))):
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


def _natural(name: str) -> tuple[int, str]:
    return len(name), name  # node2 before node10


def domain_pictures(sides: Sides, location: LocationChange | None) -> list[DomainKind]:
    """Return the failure domains of each kind, now or then."""
    before, after = sides.before, sides.after
    kinds_now, kinds_then = _kinds(before), _kinds(after)
    members_now, members_then = _members(before, kinds_now), _members(after, kinds_then)
    found = []
    for kind in sorted({*kinds_now, *kinds_then}):
        now, then = members_now.get(kind, {}), members_then.get(kind, {})
        domains = tuple(
            DomainPicture(
                tag,
                tuple(_domain_nodes(now.get(tag, ()), then.get(tag, ()))),
                *(_halves(location, tag, then=side) for side in (False, True)),
            )
            for tag in sorted({*now, *then}, key=_natural)
        )
        found.append(DomainKind(name=kind, turn=_TURNS[kind in kinds_now, kind in kinds_then], domains=domains))
    return found


def _kinds(state: ClusterState) -> list[str]:
    return [tag.removeprefix(_DOMAIN_KIND) for tag in state.cluster.tags if tag.startswith(_DOMAIN_KIND)]


def _members(state: ClusterState, kinds: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """Return the nodes that have each tag of each kind: a tag is of a kind that stands before one of its colons."""
    members: dict[str, dict[str, list[str]]] = {kind: {} for kind in kinds}
    for node in state.nodes.values():
        for tag in node.tags:
            for kind in (tag[:place] for place, letter in enumerate(tag) if letter == ":"):
                if kind in members:
                    members[kind].setdefault(tag, []).append(node.name)
    return members


def _domain_nodes(now: Sequence[str], then: Sequence[str]) -> list[DomainNode]:
    names = sorted({*now, *then}, key=_natural)
    return [DomainNode(name, _TURNS[name in now, name in then]) for name in names]


def _halves(location: LocationChange | None, tag: str, *, then: bool) -> int | None:
    if location is None:
        return None
    shared = location.shared_domains
    pairs = [*shared.still, *(shared.new if then else shared.gone)]
    return sum(tag in pair.tags for pair in pairs)
