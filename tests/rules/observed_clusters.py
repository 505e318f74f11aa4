"""The clusters on which rules about an observed cluster show their examples."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.cluster.state import ClusterObject, ClusterState, PhysicalVolume
from gpolicy.ganeti.vocabulary import Values
from tests.rules.run_rules import cluster, with_instance, with_resources


def with_volumes(state: ClusterState, *sizes: int) -> ClusterState:
    """Return the cluster with physical volumes of these sizes (MiB) on every node."""
    volumes = tuple(
        PhysicalVolume(name=f"/dev/sd{letter}", size=size, free=size, used=0)
        for letter, size in zip("abcdefgh", sizes, strict=False)
    )
    nodes = {name: replace(node, physical_volumes=volumes) for name, node in state.nodes.items()}
    return replace(state, nodes=nodes)


def with_enabled(state: ClusterState, *templates: str) -> ClusterState:
    """Return the cluster with these disk templates enabled."""
    return replace(state, cluster=ClusterObject(own={("enabled_disk_templates",): list(templates)}))


_ONE = cluster({"gold": {}}, {"node1.example.org": "gold"})
_EXCLUSIVE = cluster({"gold": {("ndparams", "exclusive_storage"): True}}, {"node1.example.org": "gold"})
_TWO = cluster({"gold": {}, "silver": {}}, {"node1.example.org": "gold"})
_MOVING = cluster({"gold": {}, "silver": {}}, {"node1.example.org": "silver"})
_SIZES = {"cpu-count": 1, "disk-size": 1024, "disk-count": 1, "nic-count": 1, "spindle-use": 1}
_PAIRS: Values = {
    ("ipolicy", "disk-templates"): ["plain"],
    ("ipolicy", "minmax"): [{"min": {**_SIZES, "memory-size": 512}, "max": {**_SIZES, "memory-size": 2048}}],
}
_SIZED = cluster({"gold": _PAIRS}, {"node1.example.org": "gold"})
_INSTANCE = {"node": "node1.example.org", "hypervisor": "kvm"}

_HOSTING = with_instance(_SIZED, template="plain", **_INSTANCE)
_BOTH = cluster({"gold": {}, "silver": {}}, {"node1.example.org": "gold", "node2.example.org": "gold"})
_PAIR = with_instance(_BOTH, template="drbd", **_INSTANCE)
_THREE = cluster({"gold": {}}, {f"node{number}.example.org": "gold" for number in (1, 2, 3)})
_ON_ONE = with_instance(_THREE, template="drbd", **_INSTANCE)
_MIRRORED = replace(
    _ON_ONE,
    instances={name: replace(item, secondary_nodes=("node2.example.org",)) for name, item in _ON_ONE.instances.items()},
)

OBSERVED: dict[str, ClusterState] = {
    "GP309": with_enabled(with_instance(_ONE, template="drbd", **_INSTANCE), "drbd", "plain"),
    "GP417": with_instance(_ONE, template="drbd", **_INSTANCE),
    "GP418": with_volumes(_EXCLUSIVE, 1000 * 1024, 1021 * 1024),
    "GP420": with_volumes(_ONE, 1000 * 1024),
    "GP619": _BOTH,
    "GP721": cluster({"gold": {}}),
    "GP722": _TWO,
    "GP723": with_instance(_MOVING, template="plain", **_INSTANCE),
    "GP724": with_resources(_ONE, memory_total=64 * 1024, cpu_total=16, disk_total=1024 * 1024),
    "GP725": with_resources(_ONE, memory_total=64 * 1024, cpu_total=16),
    "GP726": cluster({"gold": {("ndparams", "spindle_count"): 0}}, {"node1.example.org": "gold"}),
    "GP728": _TWO,
    "GP727": replace(with_volumes(_BOTH, 1000, 64), cluster=ClusterObject(own={("volume_group_name",): "xenvg"})),
    "GP705": _ONE,
    "GP742": replace(_ONE, cluster=ClusterObject(own={("master_netdev",): "eth0"})),
    "GP743": _ONE,
    "GP744": cluster({"silver": {}}),
    "GP747": replace(_ONE, cluster=ClusterObject(own={("nicparams", "link"): "br-public"})),
    "GP748": _ONE,
    "GP749": replace(_SIZED, instances={name: replace(item, nic_count=1) for name, item in _HOSTING.instances.items()}),
    "GP750": _MIRRORED,
    "GP745": with_instance(_ONE, template="plain", **_INSTANCE),
    "GP746": replace(
        with_instance(_ONE, template="plain", **_INSTANCE),
        cluster=ClusterObject(own={("volume_group_name",): "xenvg"}),
    ),
    "GP741": replace(
        _PAIR,
        instances={
            name: replace(instance, secondary_nodes=("node2.example.org",))
            for name, instance in _PAIR.instances.items()
        },
    ),
}
