"""A cluster before and after a change, made into pairs once: of states, of groups, of clusters to count on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import LoadedState, load_state
from gpolicy.analysis.side_by_side import each_cluster
from gpolicy.analysis.size_words import PairNames
from gpolicy.cluster.state import ClusterState

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class GroupMatch:
    """A group's name before and after; None where there is no such group. Both None: the whole cluster."""

    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        """What to call it: its name after the change, else the one before; empty for the whole cluster."""
        return self.after or self.before or ""

    @property
    def renamed_from(self) -> str | None:
        """The name before, where the group gets another one."""
        return self.before if self.after is not None and self.before != self.after else None


@dataclass(frozen=True)
class Sides:
    """A cluster before and after a change. `names` are what sizes are called after it."""

    before: ClusterState
    after: ClusterState
    names: PairNames = field(default_factory=PairNames)

    @property
    def groups(self) -> list[GroupMatch]:
        """The groups in the order of `after`, then those that are removed.

        A renamed group keeps its UUID, and a new one may get the name it had.
        """
        before, after = self.before.groups, self.after.groups
        by_uuid = {group.identity.uuid: name for name, group in before.items() if group.identity.uuid}
        same = {name: by_uuid[group.identity.uuid] for name, group in after.items() if group.identity.uuid in by_uuid}
        by_name = before.keys() - same.values()
        found = [GroupMatch(same.get(name, name if name in by_name else None), name) for name in after]
        return [*found, *(GroupMatch(name, None) for name in before if name not in {match.before for match in found})]

    @cached_property
    def loaded(self) -> LoadedSides:
        """What can be counted of both. Raise GpolicyError where no group of one of them is known."""
        return _load(self)


@dataclass(frozen=True, slots=True)
class CountedSides:
    """One group, or the whole cluster, before and after, ready to count. Sides that count the same are one object."""

    match: GroupMatch
    before: CountedCluster | None
    after: CountedCluster | None


@dataclass(frozen=True, slots=True)
class LoadedSides:
    """What can be counted of both `sides`. `unavailable` says by name why a group cannot be compared.

    `whole` is None where some group is not known.
    """

    sides: Sides
    before: LoadedState
    after: LoadedState
    groups: tuple[CountedSides, ...]
    whole: CountedSides | None
    unavailable: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said about the states, once where it is true of both."""
        return tuple(dict.fromkeys((*self.before.notes, *self.after.notes)))

    @property
    def declares(self) -> bool:
        """Whether hv_state or disk_state declares anything of a node."""
        return any(side.settled.stated for side in (self.before, self.after))

    @property
    def declared(self) -> LoadedSides:
        """The same states, counted by what is declared."""
        known = (*self.before.clusters, *self.after.clusters)
        return _load(self.sides, like=known, declared=True) if self.declares else self


def _load(compared: Sides, *, like: Sequence[CountedCluster] = (), declared: bool = False) -> LoadedSides:
    """Load both states; `like` and `declared` are those of `load_state`."""
    old = load_state(compared.before, like=like, declared=declared)
    new = load_state(compared.after, like=(*like, *old.clusters), declared=declared)
    groups, unavailable = [], {}
    for match in compared.groups:
        why = old.settled.unknown.get(match.before or "") or new.settled.unknown.get(match.after or "")
        if why is not None:
            unavailable[match.name] = why.reason
        else:
            sides = CountedSides(match, old.groups.get(match.before or ""), new.groups.get(match.after or ""))
            groups.append(sides)
    uncounted = any(side.settled.unknown or side.limits_differ for side in (old, new))
    whole = None if uncounted else CountedSides(GroupMatch(None, None), old.whole, new.whole)
    return LoadedSides(compared, old, new, tuple(groups), whole, unavailable)


def measure_sides(
    sides: Sequence[CountedSides], measure: Callable[[CountedCluster, str], _Result]
) -> list[tuple[_Result | None, _Result | None]]:
    """Return what `measure` says of both sides; it is given a title. What is the same is measured once."""
    titles: dict[CountedCluster, str] = {}
    for item in sides:
        for cluster, name, when in ((item.before, item.match.before, "today"), (item.after, item.match.after, "after")):
            if cluster is not None:
                titles.setdefault(cluster, f"{f'group {name}' if name else 'the whole cluster'}, {when}: ")
    found = each_cluster(titles, measure)

    def of(cluster: CountedCluster | None) -> _Result | None:
        return None if cluster is None else found[cluster]

    return [(of(item.before), of(item.after)) for item in sides]
