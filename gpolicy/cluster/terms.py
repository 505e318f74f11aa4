"""What a policy says of the resources of a cluster beyond what Ganeti stores or shows: its terms.

A policy promises hardware, sets limits and names sizes, which Ganeti does not know, and its hv_state, disk_state and
parameters of the allocator count also where the source of the state cannot show them (design document "Resource model";
"Partitioned Ganeti" for volumes). Terms go with the state that they are for (`ClusterState.terms`), so that everything
that counts on the state finds them there; names of sizes go beside it (`PairNames`).

The arithmetic of exclusive storage is Ganeti's: physical volumes are spindles, and disks take whole ones. Sizes are
MiB. The floating-point operations are Ganeti's own, in its order, so that the answers are the same on every edge
(partitioned Ganeti, "Exclusive use of disks"). Margin and reserve are shares: Ganeti's own are fixed (PART_MARGIN,
PART_RESERVED), a policy may count with others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from gpolicy.errors import RequestError
from gpolicy.ganeti.amounts import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES, compared_sizes, exact_size
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS
from gpolicy.ganeti.vocabulary import Level, Path, Values
from gpolicy.printable import count

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState

MARGIN: Final = 0.01
"""How far the sizes of a group's volumes may lie from one another's middle."""

RESERVED: Final = 0.02
"""Share of each volume that is not counted."""


def sizes_differ(smallest: int, largest: int, margin: float = MARGIN) -> bool:
    """Return whether volumes of these sizes are too different to count as equal."""
    return smallest * (1 + margin) < largest * (1 - margin)


@dataclass(frozen=True, slots=True)
class VolumeSize:
    """How the volumes of a node count: all as the `smallest` (MiB), less margin and reserve."""

    smallest: int
    margin: float = MARGIN
    reserve: float = RESERVED

    @property
    def usable(self) -> int:
        """How much of each volume is counted."""
        return int(self.smallest // (1 + self.margin + self.reserve))

    def needed(self, size: int) -> int:
        """Return how many volumes a disk takes. `usable` must be at least 1: the smallest has at least 2 in Ganeti."""
        return math.ceil(float(size) / float(self.usable))

    def largest_disk(self, volumes: int) -> int:
        """Return the size of the largest disk that `volumes` volumes hold."""
        return volumes * self.usable


def is_empty(size: int, free: int) -> bool:
    """Return whether a volume counts as empty: Ganeti lets 1 MiB pass, for the rounding of LVM's figures."""
    return size <= free + 1


class SpindleFault(Enum):
    """What is wrong with the spindles of a disk."""

    MISSING = "missing"
    TOO_FEW = "too few"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class SpindleRefusal:
    """A disk (MiB) that Ganeti refuses. TOO_FEW: it needs `needed` volumes, the smallest of which has `volume` MiB."""

    fault: SpindleFault
    size: int
    spindles: int | None
    needed: int | None = None
    volume: int | None = None

    def __str__(self) -> str:
        match self.fault, self.volume:
            case SpindleFault.TOO_FEW, int(volume):
                size, each = compared_sizes(self.size, volume)
                return (
                    f"a disk of {size} on {count(self.spindles or 0, 'spindle')} needs"
                    f" {count(self.needed or 0, 'physical volume')} of {each}"
                )
            case SpindleFault.MISSING, _:
                return f"a disk of {exact_size(self.size)} has no spindles, but exclusive storage is on"
        return f"a disk of {exact_size(self.size)} has {count(self.spindles or 0, 'spindle')}, but storage is shared"


def spindle_refusal(
    size: int, spindles: int | None, *, exclusive: bool, volume: VolumeSize | None
) -> SpindleRefusal | None:
    """Return why Ganeti refuses a disk of `size` with so many spindles on a node, None if it makes it.

    `volume` is how the physical volumes of the node count, None where it is not known: the spindles are then not held
    against it.
    """
    if not exclusive:
        return None if spindles is None else SpindleRefusal(SpindleFault.SHARED, size, spindles)
    if volume is not None and volume.usable < 1:  # a volume of 1 MiB counts as nothing
        volume = None
    needed = None if volume is None else volume.needed(size)
    smallest = None if volume is None else volume.smallest
    if spindles is None:
        return SpindleRefusal(SpindleFault.MISSING, size, None, needed, smallest)
    if needed is not None and spindles < needed:
        return SpindleRefusal(SpindleFault.TOO_FEW, size, spindles, needed, smallest)
    return None


STATES: Final = ("hv_state", "disk_state")
"""The families of values that declare resources."""
COUNTED: Final = (*STATES, *ALLOCATOR_PARAMETERS)
"""What a policy declares that counts also where the source cannot show it."""
VOLUME_GROUP: Final[Path] = ("volume_group_name",)
"""With ENABLED_HYPERVISORS, what says which part of STATES counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of capacity; None where nothing is declared."""

    max_node_failures: int | None = None
    oversubscription: float | None = None
    cpus_after_failure: bool | None = None

    def __post_init__(self) -> None:
        if self.max_node_failures is not None and not 0 <= self.max_node_failures <= MOST_NODE_FAILURES:
            raise RequestError(f"max-node-failures is {self.max_node_failures}, it must be 0 to {MOST_NODE_FAILURES}")
        if self.oversubscription is not None and not 0 < self.oversubscription <= GREATEST_OVERSUBSCRIPTION:
            words = f"it must be above 0 and at most {GREATEST_OVERSUBSCRIPTION}"
            raise RequestError(f"the over-subscription ratio is {self.oversubscription:g}, {words}")

    @property
    def beyond_htools(self) -> bool:
        """Whether they limit capacity in ways that htools does not."""
        return self.max_node_failures is not None or self.oversubscription is not None or bool(self.cpus_after_failure)

    @property
    def words(self) -> dict[str, str]:
        """What each limit says, by its key."""
        found = {}
        if self.max_node_failures is not None:
            nodes = count(self.max_node_failures, "node")
            found["max_node_failures"] = f"{nodes} of a group may fail at once"
        if self.oversubscription is not None:
            found["oversubscription"] = f"memory may be over-subscribed {self.oversubscription:g} times"
        if self.cpus_after_failure is not None:
            verb = "must" if self.cpus_after_failure else "need not"
            found["cpus_after_failure"] = f"nodes that take over {verb} keep their vcpu-ratio"
        return found

    def over(self, others: Limits) -> Limits:
        """Return these limits, and those of `others` where there is none here."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(others, **{key: value for key, value in own.items() if value is not None})


NO_LIMITS: Final = Limits()


def _percent(share: float) -> str:
    """Return a share as people write it: 99.999999 % is not 100 %, and 7 % has no digits of its binary form."""
    return f"{100 * share:.12g} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeTerms:
    """Which physical volumes of a group count, and how much of each.

    Volumes that match `exclude` (names or globs) are in no pool, and those that match a pattern of `volume_groups` in
    that group; all others are in the cluster's own. `margin` and `reserve` are the shares of Ganeti's exclusive
    storage (1 % and 2 %).
    """

    exclude: tuple[str, ...] = ()
    volume_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    margin: float = MARGIN
    reserve: float = RESERVED

    @property
    def what_if(self) -> str | None:
        """What to say of another margin or reserve than Ganeti's; None if they are Ganeti's."""
        if (self.margin, self.reserve) == (MARGIN, RESERVED):
            return None
        return (
            f"counted with a margin of {_percent(self.margin)} and a reserve of {_percent(self.reserve)} of each"
            f" physical volume: a what-if, since Ganeti 3 has {_percent(MARGIN)} and {_percent(RESERVED)} fixed"
            " (PART_MARGIN, PART_RESERVED)"
        )

    def sizes_differ(self, smallest: int, largest: int) -> bool:
        """Return whether volumes of these sizes (MiB) are too different to count as equal."""
        return sizes_differ(smallest, largest, self.margin)

    def volume_size(self, smallest: int) -> VolumeSize:
        """Return how volumes count when `smallest` (MiB) is the size of the smallest."""
        return VolumeSize(smallest, self.margin, self.reserve)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promised hardware of each node of a group: MiB, logical CPUs, and the sizes of its physical volumes."""

    memory: int | None = None
    cpus: int | None = None
    volumes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTerms:
    """The terms of one group."""

    limits: Limits = Limits()
    volumes: VolumeTerms = VolumeTerms()
    promise: Promise = Promise()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a policy: of groups by name, of all other groups, and the declared values of `COUNTED` by object
    (`cluster`, `group/NAME`, `node/NAME`), with ENABLED_HYPERVISORS and VOLUME_GROUP; and its release of Ganeti."""

    groups: Mapping[str, GroupTerms] = field(default_factory=dict)
    others: GroupTerms = GroupTerms()
    values: Mapping[str, Values] = field(default_factory=dict)
    release: str | None = None


def with_limits(terms: Terms, asked: Limits) -> Terms:
    """Return `terms` with the limits `asked` instead of those that the policy declares."""
    groups = {name: _with_limits(item, asked) for name, item in terms.groups.items()}
    return replace(terms, groups=groups, others=_with_limits(terms.others, asked))


def _with_limits(item: GroupTerms, asked: Limits) -> GroupTerms:
    return replace(item, limits=asked.over(item.limits))


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """The limits that count for groups, and the keys of those that are options of the run, not of the policy."""

    groups: tuple[str, ...]
    limits: Limits
    options: tuple[str, ...] = ()
    too_small: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The limits in words, with where they come from."""
        said = self.limits.words.items()
        shown = [f"{words} ({'option' if key in self.options else 'policy'})" for key, words in said]
        title = "group" if len(self.groups) == 1 else "groups"
        small = f"; no more nodes than may fail: {', '.join(self.too_small)}" if self.too_small else ""
        return f"limits of {title} {', '.join(self.groups)}: {', '.join(shown)}{small}"


def limits_in_force(state: ClusterState, asked: Limits, group: str | None = None) -> tuple[LimitsInForce, ...]:
    """Return the limits that count in the groups of `state` (or in `group` alone) if a run asks for some itself."""
    by_limits: dict[Limits, list[str]] = {}
    for name in state.groups:
        limits = asked.over(state.terms_of(name).limits)
        if group in (None, name) and limits != NO_LIMITS:
            by_limits.setdefault(limits, []).append(name)
    nodes = Counter(node.group for node in state.nodes.values())

    def in_force(limits: Limits, names: list[str]) -> LimitsInForce:
        too_small = tuple(name for name in names if 0 < nodes[name] <= (limits.max_node_failures or 0))
        return LimitsInForce(tuple(names), limits, tuple(asked.words), too_small)

    return tuple(in_force(limits, names) for limits, names in by_limits.items())


def limited(state: ClusterState, asked: Limits) -> ClusterState:
    """Return `state` with the limits `asked` for each of its groups instead of those that the policy declares."""
    return replace(state, terms={name: _with_limits(state.terms_of(name), asked) for name in state.groups})


def shared_limits(state: ClusterState, group: str | None = None) -> Limits:
    """Return the limits of `group`; without, those that all groups with nodes share (none where they differ)."""
    if group is not None:
        return state.terms_of(group).limits
    found = {state.terms_of(node.group).limits for node in state.nodes.values()}
    return found.pop() if len(found) == 1 else NO_LIMITS


def under_terms(state: ClusterState, terms: Terms, new_names: Mapping[str, str] | None = None) -> ClusterState:
    """Return `state` under `terms`; `new_names` are the names in `terms` of groups that are to be renamed.

    Declared values of `COUNTED` are the object's own where the source does not show those.
    """
    names = {name: (new_names or {}).get(name, name) for name in state.groups}

    def own(level: Level, label: str, shown: Values) -> Values:
        said = terms.values.get(label, {})
        hidden = {path: item for path, item in said.items() if path[0] in COUNTED and not state.readable(level, path)}
        return {**shown, **hidden} if hidden else shown

    of_groups = {f"group/{name}": terms.values.get(f"group/{new}", {}) for name, new in names.items()}
    return replace(
        state,
        cluster=replace(state.cluster, own=own(Level.CLUSTER, "cluster", state.cluster.own)),
        groups={
            name: replace(group, own=own(Level.GROUP, f"group/{names[name]}", group.own))
            for name, group in state.groups.items()
        },
        nodes={
            name: replace(node, own=own(Level.NODE, f"node/{name}", node.own)) for name, node in state.nodes.items()
        },
        terms={name: terms.groups.get(new, terms.others) for name, new in names.items()},
        declared_release=terms.release or state.declared_release,
        declared={**terms.values, **of_groups},
    )


NamesInOrder = tuple[str | None, ...]
"""The name of each pair in the order of `ipolicy.minmax`; None for a pair without one."""


@dataclass(frozen=True, slots=True)
class PairNames:
    """Names by group (its name after the change) and of the cluster's own pairs.

    A group without pairs of its own has those of the cluster. Without a declaration no pair has a name.
    """

    cluster: NamesInOrder = ()
    groups: Mapping[str, NamesInOrder] = field(default_factory=dict)

    @property
    def by_object(self) -> dict[str, NamesInOrder]:
        """The names by object, as plan files write them: cluster, group/NAME."""
        return {"cluster": self.cluster, **{f"group/{name}": pairs for name, pairs in self.groups.items()}}

    def of(self, group: str | None, count: int) -> tuple[str, ...]:
        """Return a name for each of the `count` pairs of `group` (None: of the cluster), by default its place."""
        names = self.cluster if group is None else self.groups.get(group, ())
        if len(names) != count:
            names = (None,) * count
        return tuple(name or str(place) for place, name in enumerate(names, start=1))


def names_by_object(names: Mapping[str, NamesInOrder]) -> PairNames:
    """Return the names that a plan file has by object."""
    groups = {name.removeprefix("group/"): pairs for name, pairs in names.items() if name != "cluster"}
    return PairNames(names.get("cluster", ()), groups)
