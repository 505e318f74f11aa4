"""What a policy says of the resources of a cluster beyond what Ganeti stores or shows: its terms.

A policy promises hardware and sets limits that Ganeti does not know, and its hv_state, disk_state and parameters of the
allocator count also where the source of the state cannot show them (design document "Resource model"; "Partitioned
Ganeti" for volumes). Terms go with the state that they are for (`ClusterState.terms`), so that everything that counts
on the state finds them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final

from gpolicy.errors import RequestError
from gpolicy.ganeti.amounts import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS
from gpolicy.ganeti.vocabulary import Level, Path, Values
from gpolicy.ganeti.volume_arithmetic import MARGIN, RESERVED, VolumeSize, sizes_differ
from gpolicy.printable import count

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState

STATES: Final = ("hv_state", "disk_state")
"""The families of values that declare resources."""
COUNTED: Final = (*STATES, *ALLOCATOR_PARAMETERS)
"""What a policy declares that counts also where the source cannot show it."""
HYPERVISORS: Final[Path] = ("enabled_hypervisors",)
VOLUME_GROUP: Final[Path] = ("volume_group_name",)
"""With HYPERVISORS, what says which part of STATES counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of capacity; None where nothing is declared."""

    max_node_failures: int | None = None
    """Nodes of a group that may fail at once; None where nothing says."""
    oversubscription: float | None = None
    """Of memory, by the greatest memories of instances; None: no limit."""
    cpus_after_failure: bool | None = None
    """Whether nodes that take over must keep their vcpu-ratio; None where nothing says."""

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
    """Names or globs of volumes that are in no group."""
    volume_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names or globs of volumes by volume group."""
    margin: float = MARGIN
    """By which share sizes may differ; Ganeti's is 0.01."""
    reserve: float = RESERVED
    """The share of each volume that does not count; Ganeti's is 0.02."""

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
    (`cluster`, `group/NAME`, `node/NAME`), with HYPERVISORS and VOLUME_GROUP; and its release of Ganeti."""

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
    """The groups that have them."""
    limits: Limits
    """The limits."""
    options: tuple[str, ...] = ()
    """Keys of those that are options of the run; all others are from the policy."""
    too_small: tuple[str, ...] = ()
    """Those of them of which all nodes may fail at once: no room can save their instances then."""

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
