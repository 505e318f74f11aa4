"""The clusters that the parts of an impact count on: each made and loaded once, however many parts ask for it.

Clusters are interned: two that differ only in what no number depends on are one and the same object, so that whoever
keeps results can keep them by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpolicy.impact.capacity_run import loaded
from gpolicy.impact.group_data import group_data
from gpolicy.impact.known_part import known_part

if TYPE_CHECKING:
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.model import ClusterData
    from gpolicy.cluster.state import ClusterState
    from gpolicy.impact.known_part import KnownPart


@dataclass(slots=True)
class Clusters:
    """Clusters by the states that they are made from. States and parts are told apart by identity."""

    _parts: list[tuple[ClusterState, KnownPart]] = field(default_factory=list)
    _data: list[tuple[KnownPart, str | None, ClusterData]] = field(default_factory=list)
    _loaded: dict[int, Cluster] = field(default_factory=dict)

    def part(self, state: ClusterState) -> KnownPart:
        """Return what can be counted of `state`; errors as for `known_part`."""
        for known, part in self._parts:
            if known is state:
                return part
        part = known_part(state)
        self._parts.append((state, part))
        return part

    def data(self, part: KnownPart, group: str | None) -> ClusterData:
        """Return the group of that name as a cluster of its own; None: all of `part`."""
        for known, name, data in self._data:
            if known is part and name == group:
                return data
        if group is None:
            made = _decisive(part.data)
        else:
            made = _decisive(group_data(part.data, next(x.index for x in part.data.groups if x.name == group))[0])
        made = next((data for _, _, data in self._data if data == made), made)
        self._data.append((part, group, made))
        return made

    def loaded(self, data: ClusterData) -> Cluster:
        """Return a cluster that `data` gave, ready to calculate with."""
        if id(data) not in self._loaded:
            self._loaded[id(data)] = loaded(data)
        return self._loaded[id(data)]


def _decisive(data: ClusterData) -> ClusterData:
    """Return `data` without what no number depends on: names of groups, tags and networks that htools ignores."""
    tags = tuple(tag for tag in data.tags if tag.startswith("htools:"))
    groups = tuple(replace(group, name="", uuid="", tags=(), networks=()) for group in data.groups)
    return replace(data, groups=groups, tags=tags)
