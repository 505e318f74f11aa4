"""The clusters that the parts of an impact count on: each made and loaded once, however many parts ask for it.

Clusters that differ only in what no number depends on are one and the same object, so that whoever keeps results can
keep them by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpolicy.analysis.capacity_run import Run, loaded
from gpolicy.analysis.group_data import group_data
from gpolicy.analysis.known_part import known_part

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import ClusterData
    from gpolicy.allocator.enumerations import DiskTemplate
    from gpolicy.allocator.merge import Cluster
    from gpolicy.analysis.known_part import KnownPart
    from gpolicy.cluster.state import ClusterState


@dataclass(eq=False, slots=True)
class SharedCluster:
    """The allocator's input, and what is made of it once. Equal is only what is the same."""

    data: ClusterData
    _loaded: Cluster | None = None
    _runs: dict[DiskTemplate | None, Run] = field(default_factory=dict)

    @property
    def cluster(self) -> Cluster:
        """The cluster, ready to calculate with."""
        if self._loaded is None:
            self._loaded = loaded(self.data)
        return self._loaded

    def run(self, template: DiskTemplate | None) -> Run:
        """Return the run with this template, which remembers what it has counted."""
        if template not in self._runs:
            self._runs[template] = Run(self.data, template, cluster=self.cluster)
        return self._runs[template]


@dataclass(slots=True)
class Clusters:
    """Clusters by the states that they are made from. States and parts are told apart by identity."""

    _parts: list[tuple[ClusterState, KnownPart]] = field(default_factory=list)
    _shared: list[tuple[KnownPart, str | None, SharedCluster]] = field(default_factory=list)

    def part(self, state: ClusterState) -> KnownPart:
        """Return what can be counted of `state`; errors as for `known_part`."""
        for known, part in self._parts:
            if known is state:
                return part
        part = known_part(state)
        self._parts.append((state, part))
        return part

    def of(self, part: KnownPart, group: str | None) -> SharedCluster:
        """Return the group of that name as a cluster of its own; None: all of `part`."""
        for known, name, shared in self._shared:
            if known is part and name == group:
                return shared
        if group is None:
            data = _decisive(part.data)
        else:
            data = _decisive(group_data(part.data, next(x.index for x in part.data.groups if x.name == group))[0])
        made = next((shared for _, _, shared in self._shared if shared.data == data), None) or SharedCluster(data)
        self._shared.append((part, group, made))
        return made


def _decisive(data: ClusterData) -> ClusterData:
    """Return `data` without what no number depends on: names of groups, tags and networks that htools ignores."""
    tags = tuple(tag for tag in data.tags if tag.startswith("htools:"))
    groups = tuple(replace(group, name="", uuid="", tags=(), networks=()) for group in data.groups)
    return replace(data, groups=groups, tags=tags)
