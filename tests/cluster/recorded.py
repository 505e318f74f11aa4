"""Recorded output of real five-node Ganeti 3.0.2 clusters, and when two states of one cluster agree.

`base`: fresh, five instances; `rich`: three groups with policies of their own; `full`: the same and all that the other
sources show; `exclusive`: the same after exclusive_storage was turned on for a group and one of its nodes went offline.
The last column of `instance-list.txt` is what the remote API showed at the time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode
from gpolicy.cluster.state_files import read_config_file
from gpolicy.ganeti.vocabulary import Level

DATA = Path(__file__).parent.parent / "data" / "clusters"
CLUSTERS = ("base", "rich", "full", "exclusive")


def path(cluster: str, file: str) -> Path:
    return DATA / cluster / file


def load(cluster: str, file: str) -> Any:
    return json.loads(path(cluster, file).read_text())


def from_config(cluster: str) -> ClusterState:
    return read_config_file(path(cluster, "config.data"))


def own_disagreements(one: ClusterState, other: ClusterState) -> list[str]:
    """Return where own values that both sources show, tags, effective values or versions differ."""
    if one.groups.keys() != other.groups.keys() or one.nodes.keys() != other.nodes.keys():
        return ["names of groups or nodes"]
    found = _differ(one, other, Level.CLUSTER, one.cluster, other.cluster)
    for name, group in one.groups.items():
        found += _differ(one, other, Level.GROUP, group, other.groups[name])
        effective = other.groups[name].effective
        found += [
            f"{name}: {key}" for key in group.effective.keys() & effective if group.effective[key] != effective[key]
        ]
    for name, node in one.nodes.items():
        twin = other.nodes[name]
        found += _differ(one, other, Level.NODE, node, twin)
        here, there = one.effective_of_node(node), other.effective_of_node(twin)
        found += [f"{name}: {key}" for key in _EFFECTIVE_OF_NODES if here[key] != there[key]]
        if node.group != twin.group or node.master != twin.master:
            found.append(f"{name}: group or master")
    return found


_EFFECTIVE_OF_NODES = [("ndparams", name) for name in ("spindle_count", "cpu_speed", "exclusive_storage")]
_Owner = ClusterObject | LiveGroup | LiveNode


def _differ(one: ClusterState, other: ClusterState, level: Level, left: _Owner, right: _Owner) -> list[str]:
    name = getattr(left, "name", "cluster")
    readable = [
        path
        for path in sorted(left.own.keys() | right.own.keys())
        if one.readable(level, path) and other.readable(level, path)
    ]
    found = [f"{name}: {path}" for path in readable if left.own.get(path, "absent") != right.own.get(path, "absent")]
    if left.tags != right.tags:
        found.append(f"{name}: tags")
    if known_differences(left.identity, right.identity, but=("mtime",)):
        found.append(f"{name}: uuid or serial number")
    times = [time for time in (left.identity.mtime, right.identity.mtime) if time is not None]
    if times and max(times) - min(times) > 1e-5:  # Ganeti prints the same time with different last digits
        found.append(f"{name}: mtime: {times}")
    return found


def known_differences(one: object, other: object, *, but: tuple[str, ...] = ()) -> list[str]:
    """Return the fields in which two records differ although both know them."""
    names = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
    return [
        name
        for name in names
        if name not in but
        and None not in (getattr(one, name), getattr(other, name))
        and getattr(one, name) != getattr(other, name)
    ]
