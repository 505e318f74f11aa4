"""The effective policy: the values of each object if only the policy decides, with their origins.

Values are filled by Ganeti's rules (`gpolicy.ganeti.parameters.fill`). Ganeti does not inherit hv_state and disk_state,
but where resources are counted, those of the group or the cluster count for a node that has none; so do, for a group,
the cluster's limits and what counts of physical volumes. A value that the policy does not manage has no effective value
here: only a cluster has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import STATES
from gpolicy.findings import Located, Span, values_of
from gpolicy.ganeti.parameters import INHERITED_FAMILIES, fill, position
from gpolicy.ganeti.vocabulary import Level, Path, Value, Values
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, Leaf, NodeSetPolicy


class Declaration(StrEnum):
    """The declaration of a value in an object's own document."""

    UNMANAGED = "unmanaged"
    INHERIT = "inherit"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A value, its object, and the place where it is written.

    `base` is the document of the value if the object extends that one. `pair_names` are the names of sizes, for
    `ipolicy.minmax`.
    """

    object: str
    value: Value
    span: Span
    base: str | None = None
    pair_names: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveValue:
    """One value of an object. `origin` is None if the policy does not define the value.

    `overrides` are the values that the own one overrides: those of bases, nearest first, then that of the level above.
    `span` is the place of the object's own value or `inherit`.
    """

    path: Path
    state: Declaration
    origin: Origin | None
    overrides: tuple[Origin, ...] = ()
    span: Span | None = None

    @property
    def value(self) -> Value:
        """The effective value, None if the policy does not define it."""
        return self.origin.value if self.origin else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveObject:
    """One object. `group` is the group of a node set's nodes, if the policy tells it."""

    label: str
    kind: str
    name: str
    span: Span
    values: tuple[EffectiveValue, ...]
    group: str | None = None
    nodes: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None

    @property
    def effective(self) -> dict[str, Any]:
        """The name, the tags, and all values that the policy defines, by dotted path: what a house rule sees."""
        lists = {"nodes": self.nodes, "tags": self.tags}
        about: dict[str, Any] = {"name": self.name} | ({} if self.group is None else {"group": self.group})
        about |= {key: list(items) for key, items in lists.items() if items is not None}
        return about | {".".join(item.path): item.value for item in self.values if item.origin is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """The cluster, the groups and the node sets; a set with nodes in several groups has an entry for each."""

    version: str
    objects: tuple[EffectiveObject, ...]


Origins = Mapping[Path, Origin]


def effective_view(policy: Policy) -> EffectivePolicy:
    """Return the own and effective values of every object that `policy` describes."""
    objects: list[EffectiveObject] = []

    def add(
        declared: Declared, above: Origins, nodes: tuple[str, ...] | None = None, group: str | None = None
    ) -> Origins:
        values, origins = _values(declared, above)
        about = {"label": declared.label, "kind": declared.document.root["kind"], "name": declared.name}
        tags = values_of(policy.cluster_tags if declared is policy.cluster else declared.tags)
        objects.append(EffectiveObject(**about, span=declared.span, values=values, group=group, nodes=nodes, tags=tags))
        return origins

    cluster = add(policy.cluster, {}) if policy.cluster is not None else {}
    groups = {group.name: add(group, cluster, values_of(group.nodes)) for group in policy.groups.values()}
    for node_set in policy.node_sets:
        members = (*(f"group {item.value}" for item in node_set.groups), *(node.value for node in node_set.nodes))
        names: list[str | None] = [*dict.fromkeys(_claimed(node_set, policy))]  # as far as the policy tells
        for name in names or [None]:
            add(node_set, groups.get(name or "", cluster), members, name)
    return EffectivePolicy(version=policy.version, objects=tuple(objects))


def effective_state(state: ClusterState, where: str) -> EffectivePolicy:
    """Return the own and effective values of a cluster, of its groups, and of nodes that have some; read from `where`.

    A value that is not an object's own comes from the cluster, for a node from its group.
    """
    span = Span(where, 1, 1, 1, 1)
    objects: list[EffectiveObject] = []

    def add(level: Level, name: str, own: Values, above: Origins, *, tags: Iterable[str], **more: Any) -> Origins:
        label = "cluster" if level is Level.CLUSTER else f"{level.value}/{name}"
        mine = {path: Origin(object=label, value=value, span=span) for path, value in own.items()}
        filled = fill(own, {path: item.value for path, item in above.items()}, level)
        origins = {path: mine.get(path) or above[path] for path in sorted(filled, key=position)}
        values = tuple(
            EffectiveValue(
                path=path,
                state=Declaration.EXPLICIT if path in mine else Declaration.INHERIT,
                origin=origin,
                overrides=(above[path],) if path in mine and path in above else (),
            )
            for path, origin in origins.items()
        )
        kind = {Level.CLUSTER: "Cluster", Level.GROUP: "NodeGroup", Level.NODE: "NodeSet"}[level]
        about: dict[str, Any] = {"label": label, "kind": kind, "name": name, "tags": tuple(sorted(tags)), **more}
        objects.append(EffectiveObject(**about, span=span, values=values))
        return origins

    cluster = add(Level.CLUSTER, state.name, state.cluster.own, {}, tags=state.cluster.tags)
    for name, group in state.groups.items():
        nodes = state.nodes_of(name)
        members = tuple(node.name for node in nodes)
        origins = add(Level.GROUP, name, group.own, cluster, tags=group.tags, nodes=members)
        for node in nodes:
            if node.own or node.tags:
                add(Level.NODE, node.name, node.own, origins, tags=node.tags, group=name)
    return EffectivePolicy(version=state.software_version or "", objects=tuple(objects))


def _values(declared: Declared, above: Origins) -> tuple[tuple[EffectiveValue, ...], Origins]:
    """Return the values of an object below one whose effective values come from `above`, and their origins."""
    settings = dict(_settings(declared))
    own = {path: _origin(leaf, declared) for path, leaf in declared.leaves.items() if leaf.value is not INHERIT}
    own |= settings
    counted = STATES if declared.level is Level.NODE else (*STATES, "limits", "physical_volumes")
    owned, given = ({path: item.value for path, item in origins.items()} for origins in (own, above))
    filled = [*fill(owned, given, declared.level), *(path for path in above if path[0] in counted)]
    origins = {path: own.get(path) or above[path] for path in filled}
    paths = sorted({*filled, *declared.leaves}, key=position)
    return tuple(_value(path, declared, settings, origins.get(path), above) for path in paths), origins


def _settings(declared: Declared) -> Iterator[tuple[Path, Origin]]:
    """Yield what an object says beyond Ganeti's parameters: limits, what counts of volumes, promised hardware."""
    found: dict[Path, Located[Any]] = {("limits", key): item for key, item in declared.limits.items()}
    found |= {("physical_volumes", key): item for key, item in declared.physical_volumes.items()}
    hardware = declared.hardware if isinstance(declared, GroupPolicy) else None
    found |= {("hardware", key): item for key, item in (hardware.figures if hardware else {}).items()}
    if hardware and hardware.pv_sizes:
        sizes = [item.value for item in hardware.pv_sizes]
        value = sizes[0] if len(sizes) == 1 else sizes
        found["hardware", "pv_size"] = Located(value, hardware.pv_sizes[0].span)
    for path, item in found.items():
        yield path, Origin(object=declared.label, value=item.value, span=item.span)


def _value(path: Path, declared: Declared, settings: Origins, origin: Origin | None, above: Origins) -> EffectiveValue:
    leaf = declared.leaves.get(path)
    if leaf is None and path not in settings:
        return EffectiveValue(path=path, state=Declaration.UNMANAGED, origin=origin)
    state = Declaration.INHERIT if leaf is not None and leaf.value is INHERIT else Declaration.EXPLICIT
    overrides = [_origin(base, declared) for base in leaf.overridden] if leaf is not None else []
    inherits = path[0] in (*INHERITED_FAMILIES, *STATES) and declared.level is not Level.CLUSTER
    if state is Declaration.EXPLICIT and path in above and (inherits or path in settings):
        overrides.append(above[path])
    span = leaf.span if leaf is not None else settings[path].span
    return EffectiveValue(path=path, state=state, origin=origin, overrides=tuple(overrides), span=span)


def _origin(leaf: Leaf, declared: Declared) -> Origin:
    base = None if leaf.document is declared.document else str(leaf.document.root["name"])
    names = leaf.pair_names if leaf.path == ("ipolicy", "minmax") and leaf.value is not INHERIT else ()
    value: Value = "inherit" if leaf.value is INHERIT else leaf.value
    return Origin(object=declared.label, value=value, span=leaf.span, base=base, pair_names=names)


def _claimed(node_set: NodeSetPolicy, policy: Policy) -> Iterator[str]:
    yield from (named.value for named in node_set.groups if named.value in policy.groups)
    patterns = [(group.name, pattern.value) for group in policy.groups.values() for pattern in group.nodes or ()]
    for node in node_set.nodes:
        exact = [name for name, pattern in patterns if pattern == node.value]
        yield from exact or [name for name, pattern in patterns if fnmatchcase(node.value, pattern)]
