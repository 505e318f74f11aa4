"""Small clusters for tests: groups, their nodes, tags, instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveInstance, LiveNode, PhysicalVolume
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import Level, Values
from tests.strategies import base_cluster


def cluster(
    own: Values,
    groups: Mapping[str, Values],
    nodes: Mapping[str, str],
    *instances: LiveInstance,
    tags: Iterable[str] = (),
    node_tags: Mapping[str, Iterable[str]] | None = None,
    volumes: Mapping[str, Iterable[tuple[int, int]]] | None = None,
) -> ClusterState:
    """Return a cluster with `own` values over Ganeti's defaults, groups with theirs, and the group of each node.

    `volumes` are size and free MiB of the physical volumes of nodes where they were measured.
    """
    values = base_cluster(["plain", "drbd", "file", "rbd", "diskless"]) | own
    preferred: Values = {("alloc_policy",): "preferred"}
    made = {
        name: LiveGroup(name=name, own=preferred | value, effective=fill(preferred | value, values, Level.GROUP))
        for name, value in groups.items()
    }
    return ClusterState(
        source="config:test",
        name="cluster.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own=values, tags=frozenset(tags)),
        groups=made,
        nodes={
            name: LiveNode(
                name=name,
                group=group,
                own={},
                tags=frozenset((node_tags or {}).get(name, ())),
                physical_volumes=_volumes(volumes[name]) if volumes and name in volumes else None,
            )
            for name, group in nodes.items()
        },
        instances={instance.name: instance for instance in instances},
    )


def _volumes(sizes: Iterable[tuple[int, int]]) -> tuple[PhysicalVolume, ...]:
    return tuple(
        PhysicalVolume(name=f"/dev/sd{chr(ord('b') + number)}", size=size, free=free, used=size - free)
        for number, (size, free) in enumerate(sizes)
    )
