"""Turn the input into a state for computing: with resolved tags and the instances on their nodes.

htools calls this merging and does it for every source (htools, Loader: `mergeData`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from gpolicy.allocator import node_changes
from gpolicy.allocator.cluster_data import DEFAULT_POLICY, Group, Instance, InstancePolicy, Load, Node, NodeData
from gpolicy.allocator.ghc_numbers import divide, floor, truncate
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Loads = Callable[[Instance], Load]

EXCLUSION_PREFIX = "htools:iextags:"
"""Instance tags that no two primaries of a node may share."""
DESIRED_PREFIX = "htools:desiredlocation:"
"""Instance tags that name its desired locations."""
LOCATION_PREFIX = "htools:nlocation:"
"""Node tags that name a failure domain (design document "location awareness")."""
MIGRATION_PREFIX = "htools:migration:"
"""Node tags that restrict migration."""
ALLOW_MIGRATION_PREFIX = "htools:allowmigration:"

_NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterData:
    """A whole cluster as read, before the merge.

    Nodes, groups and instances are in ascending index order. `hypervisor` is the cluster's default one, None if the
    source does not show it. `n1_by_unallocated`: nodes are judged for N+1 as Ganeti 3.1.0 and later do
    (`releases.n1_by_unallocated`).
    """

    groups: tuple[Group, ...]
    nodes: tuple[NodeData, ...]
    instances: tuple[Instance, ...]
    tags: tuple[str, ...] = ()
    policy: InstancePolicy = DEFAULT_POLICY
    hypervisor: str | None = None
    n1_by_unallocated: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster ready for computing. Mappings are by index, ascending, and never changed."""

    groups: Mapping[int, Group]
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]
    tags: tuple[str, ...]
    policy: InstancePolicy
    common_suffix: str


def merge(
    data: ClusterData,
    *,
    static_kvm_node_memory: int = 0,
    loads: Loads | None = None,
    exclusion_prefixes: tuple[str, ...] = (),
    twice: bool = False,
) -> Cluster:
    """Resolve tags and load all instances on their nodes.

    `static_kvm_node_memory` (MiB, 0: off) replaces the reported node memory on KVM clusters. `loads` returns the
    utilisation of an instance. `exclusion_prefixes` are further prefixes of exclusion tags. With `twice` every
    instance is loaded twice, the first time without these two, as htools does with an iallocator document (`-I`).
    """
    suffix = common_suffix([node.name for node in data.nodes] + [item.name for item in data.instances])
    static = static_kvm_node_memory if data.hypervisor == "kvm" and static_kvm_node_memory > 0 else None
    groups = {group.index: group for group in data.groups}
    locations = {node.index: frozenset(tags_of(LOCATION_PREFIX, data.tags, node.tags)) for node in data.nodes}
    migration: dict[tuple[str, ...], tuple[frozenset[str], frozenset[str]]] = {}
    passes = [_resolved(data, locations, exclusion_prefixes, loads)]
    if twice:
        passes.insert(0, _resolved(data, locations, (), None))
    instances = passes[-1]
    memory_used: dict[int, int] = {}
    for instance in data.instances:
        if instance.uses_memory:
            memory_used[instance.primary] = memory_used.get(instance.primary, 0) + instance.memory * len(passes)
    nodes = {}
    for read in data.nodes:
        node = read if static is None else replace(read, node_memory=static)
        used = memory_used.get(node.index, 0)
        if node.tags not in migration:
            own = frozenset(tags_of(MIGRATION_PREFIX, data.tags, node.tags))
            migration[node.tags] = own, receivable_tags(data.tags, own)
        tags = (locations[node.index], *migration[node.tags])
        nodes[node.index] = _empty_node(node, groups[node.group].policy, tags, suffix, used)
    for instance in (instance for table in passes for instance in table.values()):
        if instance.primary in nodes:
            _add_load(nodes[instance.primary], instance, primary=True)
        if instance.secondary in nodes:
            _add_load(nodes[instance.secondary], instance, primary=False)
    for node_state in nodes.values():
        _settle(node_state, instances, by_unallocated=data.n1_by_unallocated)
    return Cluster(groups, nodes, instances, data.tags, data.policy, suffix)


def _resolved(
    data: ClusterData, locations: Mapping[int, frozenset[str]], exclusion_prefixes: tuple[str, ...], loads: Loads | None
) -> dict[int, Instance]:
    """Return the instances with their tags resolved, by index."""
    exclusion = _Prefixes((*tagged_values(data.tags, EXCLUSION_PREFIX), *exclusion_prefixes))
    desired = _prefixes(data.tags, DESIRED_PREFIX)
    located = any(locations.values())
    instances = {}
    for instance in data.instances:
        found: dict[str, Any] = {}
        if instance.tags:
            found["exclusion_tags"] = tuple(exclusion.of(instance.tags))
            found["desired_tags"] = frozenset(desired.of(instance.tags))
        if located:
            near = locations.get(instance.primary, _NOWHERE) & locations.get(instance.secondary, _NOWHERE)
            found["location_score"] = len(near)
        if loads is not None:
            found["load"] = loads(instance)
        changed = found and any(getattr(instance, name) != value for name, value in found.items())
        instances[instance.index] = replace(instance, **found) if changed else instance
    return instances


def tagged_values(cluster_tags: tuple[str, ...], prefix: str) -> list[str]:
    """Return the values of the cluster tags that begin with `prefix`, without empty ones."""
    return [tag[len(prefix) :] for tag in cluster_tags if tag.startswith(prefix) and len(tag) > len(prefix)]


class _Prefixes:
    """Prefixes of tags, by length: a lookup takes one step for each length, not for each prefix."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._prefixes = frozenset(prefixes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def of(self, tags: Iterable[str]) -> Iterator[str]:
        """Yield the tags that begin with one of the prefixes."""
        yield from (tag for tag in tags if any(tag[:length] in self._prefixes for length in self._lengths))


@lru_cache(maxsize=16)  # every node and instance of a cluster asks
def _prefixes(cluster_tags: tuple[str, ...], family: str) -> _Prefixes:
    colon = ":" if family in (LOCATION_PREFIX, MIGRATION_PREFIX) else ""
    return _Prefixes(f"{value}{colon}" for value in tagged_values(cluster_tags, family))


def tags_of(family: str, cluster_tags: tuple[str, ...], tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of `tags` that belong to a family, by the prefixes that the cluster's tags name for it."""
    return tuple(_prefixes(cluster_tags, family).of(tags))


def receivable_tags(cluster_tags: tuple[str, ...], migration: frozenset[str]) -> frozenset[str]:
    """Return the migration tags of the nodes from which a node with tags `migration` may receive instances."""
    allowed = set(migration)
    for value in tagged_values(cluster_tags, ALLOW_MIGRATION_PREFIX):
        parts = value.split("::")
        if len(parts) == 2 and parts[1] in migration:
            allowed.add(parts[0])
    return frozenset(allowed)


def common_suffix(names: list[str]) -> str:
    """Return the longest suffix of all names that begins with a dot, empty if there is none.

    Names are shown without it (htools, Loader).
    """
    first = names[0] if names else ""
    suffixes = (first[place:] for place, letter in enumerate(first) if letter == ".")
    return next((suffix for suffix in suffixes if all(name.endswith(suffix) for name in names)), "")


def _empty_node(
    node: NodeData, policy: InstancePolicy, tags: Sequence[frozenset[str]], suffix: str, memory_used: int
) -> Node:
    """Return the node without instances, but with their memory; `_settle` fills in what depends on all of them.

    `tags` are those of its location, and of the migration from it and to it.
    """
    facts = replace(
        node,
        alias=node.name.removesuffix(suffix),
        policy=policy,
        unaccounted_memory=truncate(node.total_memory) - node.node_memory - memory_used - node.free_memory,
        location_tags=tags[0],
        migration_tags=tags[1],
        receivable_tags=tags[2],
        vcpu_ratio=policy.vcpu_ratio,
        high_cpus=floor(policy.vcpu_ratio * node.total_cpus),
        high_spindles=policy.spindle_ratio * node.spindles,
    )
    return Node(
        facts,
        instance_memory=memory_used,
        free_disk=node.free_disk,
        free_spindles=node.free_spindles,
        used_cpus=node.node_cpus,
        peers={},
        exclusion_tags={},
        location_exclusions={},
        ratio_disk=facts.disk_ratio(node.free_spindles, node.free_disk),
        forth_free_memory=node.free_memory,
        forth_free_disk=node.free_disk,
        forth_free_spindles=node.free_spindles,
        forth_used_cpus=node.node_cpus,
    )


def _add_load(node: Node, instance: Instance, *, primary: bool) -> None:
    add = node_changes.add_load if primary else node_changes.add_disk_load
    cpus = instance.vcpus if primary and instance.online else 0
    if not instance.forthcoming:
        node.used_cpus += cpus
        node.load = add(node.load, instance.load)
        node.instance_spindles = node_changes.spindle_use_after(node, instance, node.instance_spindles, 1)
    node.forth_used_cpus += cpus
    node.forth_load = add(node.forth_load, instance.load)
    node.forth_instance_spindles = node_changes.spindle_use_after(node, instance, node.forth_instance_spindles, 1)
    if instance.forthcoming:
        if instance.template.local:
            node.forth_free_disk -= instance.disk
        node.forth_free_spindles = node_changes.spindles_after(node, instance, node.forth_free_spindles)
    if not primary:
        if not instance.forthcoming:
            node.secondaries = (instance.index, *node.secondaries)
        return
    node.exclusion_tags = node_changes.with_counts(node.exclusion_tags, instance.exclusion_tags, 1)
    if not instance.uses_memory:
        node.forth_free_memory -= instance.memory
    if not instance.forthcoming:
        node.primaries = (instance.index, *node.primaries)
        node.location_score += instance.location_score + node_changes.desired_misses(node, instance)
        node.location_exclusions = node_changes.with_counts(
            node.location_exclusions, node_changes.exclusion_keys(node, instance), 1
        )


def _settle(node: Node, instances: Mapping[int, Instance], *, by_unallocated: bool) -> None:
    """Fill in the values that depend on all instances of the node: peers, the reservation for them, and ratios.

    htools up to 3.0 compare the reservation with the memory that the node reports as free; `by_unallocated`: later ones
    with its unallocated memory, as all of them do after each move.
    """
    peers: dict[int, int] = {}
    for index in reversed(node.secondaries):
        instance = instances[index]
        memory = instance.memory if instance.needs_secondary_memory else 0
        peers[instance.primary] = peers.pop(instance.primary, 0) + memory
    node.peers = peers
    node.reserved_memory = max(peers.values(), default=0)
    node.ratio_reserved = node.memory_ratio(node.reserved_memory)
    if by_unallocated:
        node.fails_n1 = node.unallocated_memory <= node.reserved_memory
    else:
        node.fails_n1 = node.facts.free_memory < node.reserved_memory
    node.ratio_memory = node.memory_ratio(node.unallocated_memory)
    node.ratio_cpu = divide(node.used_cpus, node.facts.total_cpus)
    node.forth_ratio_memory = node.memory_ratio(node.forth_free_memory)
    node.forth_ratio_disk = node.facts.disk_ratio(node.forth_free_spindles, node.forth_free_disk)
    node.forth_ratio_cpu = divide(node.forth_used_cpus, node.facts.total_cpus)


def inconsistent_nodes(cluster: Cluster) -> list[tuple[Node, int, int]]:
    """Return (node, missing memory MiB, missing disk MiB) of nodes whose figures are inconsistent.

    More than 512 MiB of memory or 1 GiB of disk must be missing (htools, Loader: `checkData`).
    """
    found = []
    for node in cluster.nodes.values():
        used = sum(cluster.instances[index].disk for index in (*node.primaries, *node.secondaries))
        missing_disk = truncate(node.facts.total_disk) - node.free_disk - used
        missing_memory = node.facts.unaccounted_memory
        if missing_memory > 512 or missing_disk > 1024:
            found.append((node, missing_memory, missing_disk))
    return found
