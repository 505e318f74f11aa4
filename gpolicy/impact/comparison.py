"""The two states that an impact compares, made into pairs once: of states, of groups, of clusters to count on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import LoadedState, load_state
from gpolicy.analysis.side_by_side import each_cluster
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


@dataclass(frozen=True, slots=True)
class StateComparison:
    """A cluster before and after a change. Groups are in the order of `after`, then those that are removed."""

    before: ClusterState
    after: ClusterState
    groups: tuple[GroupMatch, ...]


def compare(before: ClusterState, after: ClusterState) -> StateComparison:
    """Return the comparison of two states. A renamed group keeps its UUID, and a new one may get the name it had."""
    by_uuid = {group.identity.uuid: name for name, group in before.groups.items() if group.identity.uuid}
    same = {
        name: by_uuid[group.identity.uuid] for name, group in after.groups.items() if group.identity.uuid in by_uuid
    }
    by_name = before.groups.keys() - same.values()
    found = [GroupMatch(same.get(name, name if name in by_name else None), name) for name in after.groups]
    left = [name for name in before.groups if name not in {match.before for match in found}]
    return StateComparison(before, after, (*found, *(GroupMatch(name, None) for name in left)))


@dataclass(frozen=True, slots=True)
class CountedSides:
    """One group, or the whole cluster, before and after, ready to count. Sides that count the same are one object."""

    match: GroupMatch
    before: CountedCluster | None
    after: CountedCluster | None


@dataclass(frozen=True, slots=True)
class LoadedComparison:
    """What can be counted of two `states`. `unavailable` says by name why a group cannot be compared.

    `whole` is None where some group is not known.
    """

    states: StateComparison
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
    def declared(self) -> LoadedComparison:
        """The same states, counted by what is declared."""
        known = (*self.before.clusters, *self.after.clusters)
        return load(self.states, like=known, declared=True) if self.declares else self


def load(compared: StateComparison, *, like: Sequence[CountedCluster] = (), declared: bool = False) -> LoadedComparison:
    """Load both states; `like` and `declared` are those of `load_state`.

    Raise GpolicyError where no group of one of them is known.
    """
    old = load_state(compared.before, like=like, declared=declared)
    new = load_state(compared.after, like=(*like, *old.clusters), declared=declared)
    groups, unavailable = [], {}
    for match in compared.groups:
        why = old.unknown.get(match.before or "") or new.unknown.get(match.after or "")
        if why is not None:
            unavailable[match.name] = why.reason
        else:
            sides = CountedSides(match, old.groups.get(match.before or ""), new.groups.get(match.after or ""))
            groups.append(sides)
    uncounted = any(side.unknown or side.limits_differ for side in (old, new))
    whole = None if uncounted else CountedSides(GroupMatch(None, None), old.whole, new.whole)
    return LoadedComparison(compared, old, new, tuple(groups), whole, unavailable)


def measure_sides(
    sides: Sequence[CountedSides], measure: Callable[[CountedCluster, str], _Result]
) -> list[tuple[_Result | None, _Result | None]]:
    """Return what `measure` says of both sides; it is given a title. What is the same is measured once."""
    titles: dict[CountedCluster, str] = {}
    for item in sides:
        for cluster, name, when in ((item.before, item.match.before, "now"), (item.after, item.match.after, "after")):
            if cluster is not None:
                titles.setdefault(cluster, f"{f'group {name}' if name else 'the whole cluster'}, {when}: ")
    found = each_cluster(titles, measure)

    def of(cluster: CountedCluster | None) -> _Result | None:
        return None if cluster is None else found[cluster]

    return [(of(item.before), of(item.after)) for item in sides]
