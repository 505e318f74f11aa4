"""hroller: which nodes can be rebooted together, so that no instance loses both of its nodes at once.

Colours: nodes of one colour may be rebooted together. The vertices of the graph of nodes are the numbers from `first`
on; each has the list of its neighbours. A neighbour that is listed more than once counts as often, and a vertex may be
its own neighbour.

Groups: nodes of one colour join a group as long as the first nodes outside of it that have room take their instances;
the others form the next groups, each from the initial state. Only memory, disk and spindles count, no policies, tags or
N+1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.ghc_numbers import shown_ints, shown_strings
from gpolicy.allocator.instance_moves import node_at
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.errors import InputError
from gpolicy.htools import backends
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gpolicy.allocator.merge import Cluster
    from gpolicy.htools.program_options import Options

    Change = tuple[dict[int, Any], int, Any]

Graph = Mapping[int, Sequence[int]]
Colours = Mapping[int, int]
Colourings = list[tuple[str, list[list[int]]]]


def colour_nodes(graph: Graph) -> Colourings:
    """Return the names of the three algorithms and the vertices of each colour, ascending; fewer colours come first."""
    found = [(name, _by_colour(colour(graph))) for name, colour in _ALGORITHMS.items()]
    return sorted(found, key=lambda result: len(result[1]))


def fewest_colours(found: Colourings) -> list[list[int]]:
    """Return what counts for hroller: of the algorithms with as few colours as the first one, the last one's."""
    return [colours for _, colours in found if len(colours) == len(found[0][1])][-1]


def _by_colour(colours: Colours) -> list[list[int]]:
    classes: list[list[int]] = [[] for _ in range(max(colours.values()) + 1)]
    for vertex in sorted(colours):
        classes[colours[vertex]].append(vertex)
    return classes


def _least_free(graph: Graph, colours: Colours, vertex: int) -> int:
    used = {colours[other] for other in graph[vertex] if other in colours}
    return next(colour for colour in range(len(used) + 1) if colour not in used)


def _largest_first(graph: Graph) -> Colours:
    """Colour the vertices in the order of their degrees, of equal ones the later first."""
    colours: dict[int, int] = {}
    for vertex in sorted(graph, key=lambda vertex: (len(graph[vertex]), vertex), reverse=True):
        colours[vertex] = _least_free(graph, colours, vertex)
    return colours


def _dynamic(graph: Graph, *, distinct: bool) -> Colours:
    """Colour the vertex with the most coloured neighbours next (with `distinct` those of most colours).

    Of equal ones the one with the greater degree is next, then the later one.
    """
    first, unit = min(graph), 1 + max(map(len, graph.values()))
    # coloured neighbours, degree and number of each vertex as one number; -1 if it has its colour
    ranks = [len(graph[vertex]) * len(graph) + vertex - first for vertex in sorted(graph)]
    colours: dict[int, int] = {}
    seen: list[set[int]] = [set() for _ in ranks]
    for _ in ranks:
        vertex = first + max(ranks) % len(graph)
        colour = colours[vertex] = _least_free(graph, colours, vertex)
        ranks[vertex - first] = -1
        for other in graph[vertex]:
            place = other - first
            if other not in colours and not (distinct and colour in seen[place]):
                seen[place].add(colour)
                ranks[place] += unit * len(graph)
    return colours


_ALGORITHMS: Mapping[str, Callable[[Graph], Colours]] = {
    "Dcolor": lambda graph: _dynamic(graph, distinct=False),
    "Dsatur": lambda graph: _dynamic(graph, distinct=True),
    "LF": _largest_first,
}

_NONE = float("-inf")
"""Less than the least room: no need at all."""


@dataclass(frozen=True, slots=True)
class RebootGroup:
    """The nodes of a group, and the new primary and secondary node of each instance that moves (NO_NODE: not shown)."""

    nodes: Sequence[int]
    moves: Mapping[int, tuple[int, int]]


def is_redundant(instance: Instance) -> bool:
    """Return whether hroller takes the instance as one with two copies of its disks."""
    return instance.template is DiskTemplate.DRBD


def split_groups(
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
    groups: Sequence[Sequence[int]],
    *,
    ignore_non_redundant: bool,
    full_evacuation: bool,
) -> list[RebootGroup]:
    """Return the groups in parts that can be emptied. Raises InputError if one node cannot."""
    state = _ChangingCluster(nodes, instances)
    parts: list[tuple[Sequence[int], list[Change]]] = [(group, []) for group in groups]
    if not ignore_non_redundant:
        message = "Not enough capacity to move non-redundant instances"
        parts = [part for group in groups for part in state.split(group, state.move_primaries, message)]
    if not full_evacuation:
        return [state.reboot_group(*part) for part in parts]
    migrated = [(part, state.migrated(*part)) for part in parts]
    return [group for (part, _), changes in migrated for group in state.evacuated(part, changes)]


def _primary_need(instance: Instance) -> tuple[float, float]:
    """Return the memory and disk (MiB) of which a new primary node must have more."""
    return instance.memory if instance.uses_memory else 0, instance.disk if instance.template.local else _NONE


class _ChangingCluster:
    """Nodes and instances while they change, and the changes so far, which can be taken back."""

    def __init__(self, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
        self.initial = instances
        self.nodes, self.instances = dict(nodes), dict(instances)
        self.rooms = {index: node.unallocated_memory for index, node in nodes.items()}
        self.disks = {index: node.free_disk for index, node in nodes.items()}
        self.shown: dict[int, int] = {}  # the primary node that hroller prints, where it is another one
        self.changes: list[Change] = []
        self.targets: dict[int, list[int]] = {}
        for index, node in nodes.items():
            if not node.facts.offline:
                self.targets.setdefault(node.facts.group, []).append(index)

    def _set(self, table: dict[int, Any], key: int, value: object) -> None:
        self.changes.append((table, key, table.get(key)))
        table[key] = value

    def _set_node(self, node: Node) -> None:
        self._set(self.nodes, node.index, node)
        self._set(self.rooms, node.index, node.unallocated_memory)
        self._set(self.disks, node.index, node.free_disk)

    def _undo(self, length: int = 0) -> None:
        """Take back the changes behind the first `length`."""
        for table, key, value in reversed(self.changes[length:]):
            if value is None:
                del table[key]
            else:
                table[key] = value
        del self.changes[length:]

    def _redo(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._set(*change)

    def _done(self) -> list[Change]:
        """Return the last value of all that changed."""
        keys = {(id(table), key): (table, key) for table, key, _ in self.changes}
        return [(table, key, table[key]) for table, key in keys.values()]

    def split(
        self, group: Sequence[int], clear: Callable[[int, set[int]], bool], message: str
    ) -> Iterator[tuple[list[int], list[Change]]]:
        """Yield the parts of a group whose nodes `clear` empties, and all changes. Raises InputError with `message`."""
        start = len(self.changes)
        while group:
            chosen: dict[int, None] = {}
            for index in group:
                length = len(self.changes)
                if clear(index, {*chosen, index}):
                    chosen[index] = None
                else:
                    self._undo(length)
            if not chosen:
                raise InputError(message)
            yield list(chosen), self._done()
            self._undo(start)
            group = [index for index in group if index not in chosen]

    def move_primaries(self, index: int, leaving: set[int]) -> bool:
        """Move the non-redundant instances off a node to the first others with room, none of those that are `leaving`.

        Return whether all of them found a place.
        """
        records = map(self.instances.__getitem__, self.nodes[index].primaries)
        needs = {instance.index: _primary_need(instance) for instance in records if not is_redundant(instance)}
        targets = self._targets_with_room(index, needs.values(), leaving)
        # an instance of an iallocator document is there twice, and then leaves the node to which it went
        for number in self.nodes[index].primaries:
            if number not in needs:
                continue
            instance, (memory, disk) = self.instances[number], needs[number]
            left = remove_primary(self.nodes[instance.primary], instance)
            for target in targets:
                if self.rooms[target] > memory and self.disks[target] > disk:
                    new = add_primary(self.nodes[target], instance, force=True)
                    if not isinstance(new, FailReason):
                        break
            else:
                return False
            self._set_node(new)
            self._set_node(left)
            self._set(self.instances, number, replace(instance, primary=target))
        return True

    def move_secondaries(self, index: int, leaving: set[int]) -> bool:
        """Move the secondaries off a node to the first others with room, as `move_primaries` does.

        With each of them, hroller prints its primary node for the redundant primaries of the node, too.
        """
        secondaries = [self.instances[number] for number in self.nodes[index].secondaries]
        if not all(map(is_redundant, secondaries)):
            return False
        targets = self._targets_with_room(index, [(_NONE, instance.disk) for instance in secondaries], leaving)
        for instance in secondaries:
            for target in targets:
                if self.disks[target] > instance.disk and target != instance.primary:
                    new = add_secondary(self.nodes[target], instance, instance.primary, force=True)
                    if not isinstance(new, FailReason):
                        break
            else:
                return False
            self._set_node(remove_secondary(self.nodes[index], instance))
            self._set_node(new)
            self._set(self.instances, instance.index, replace(instance, secondary=target))
            for other in self.nodes[index].primaries:
                if is_redundant(self.instances[other]):
                    self._set(self.shown, other, self.shown.get(instance.index, instance.primary))
        return True

    def _targets_with_room(self, index: int, needs: Collection[tuple[float, float]], leaving: set[int]) -> list[int]:
        """Return the nodes of the same group that have room for the least of these needs of memory and disk."""
        others = self.targets.get(self.nodes[index].facts.group, ()) if needs else ()
        memory, disk = (min(column) for column in zip(*needs, strict=True)) if needs else (_NONE, _NONE)
        staying = [other for other in others if other not in leaving]
        return [other for other in staying if self.rooms[other] > memory and self.disks[other] > disk]

    def migrated(self, group: Sequence[int], changes: Sequence[Change]) -> list[Change]:
        """Return the `changes` and those of a migration off all nodes of the group. Raises InputError if it fails."""
        self._redo(changes)
        for number in [number for index in group for number in self.nodes[index].primaries]:
            instance = self.instances[number]
            if is_redundant(instance):
                old, new = node_at(self.nodes, instance.primary), node_at(self.nodes, instance.secondary)
                primary = add_primary(remove_secondary(new, instance), instance, force=True)
                secondary = add_secondary(remove_primary(old, instance), instance, instance.secondary, force=True)
                if isinstance(primary, FailReason) or isinstance(secondary, FailReason):
                    raise InputError("Failed to migrate instances off nodes")
                self._set_node(primary)
                self._set_node(secondary)
                swapped = replace(instance, primary=instance.secondary, secondary=instance.primary)
                self._set(self.instances, number, swapped)
        done = self._done()
        self._undo()
        return done

    def evacuated(self, group: Sequence[int], changes: Sequence[Change]) -> list[RebootGroup]:
        """Return the parts of a group, after the `changes` so far, that secondaries can leave, too."""
        self._redo(changes)
        migrated = {key: value.secondary for table, key, value in changes if table is self.instances}
        parts = self.split(group, self.move_secondaries, "Not enough capacity to move secondaries")
        found = [self.reboot_group(*part, migrated=migrated) for part in parts]
        self._undo()
        return found

    def reboot_group(
        self, group: Sequence[int], changes: Sequence[Change], *, migrated: Mapping[int, int] | None = None
    ) -> RebootGroup:
        """Return a group with its moves. A redundant instance is shown if it left one of the nodes itself."""
        moves = {}
        for number, instance in sorted((key, value) for table, key, value in changes if table is self.instances):
            before = self.initial[number]
            if not is_redundant(instance):
                if instance.primary != before.primary:
                    moves[number] = (instance.primary, NO_NODE)
            elif migrated is not None:
                kept = migrated.get(number, before.secondary)
                was = (before.primary, before.secondary)
                after = (self.shown.get(number, instance.primary), instance.secondary)
                if (before.primary in group or instance.secondary != kept) and after != was:
                    moves[number] = after
        return RebootGroup(group, moves)


def run(options: Options) -> None:
    """Print the groups of nodes to reboot, of the cluster that the options name. Raises InputError."""
    if options.full_evacuation and options.ialloc_src is not None:
        raise InputError(
            "--full-evacuation: not with an iallocator document (-I), whose instances htools load twice; use -t or -m"
        )
    cluster = backends.load_cluster(options)
    if options.verbosity != 0:
        sys.stderr.write(backends.warnings(cluster))
    master = _find_master(options, cluster)
    nodes = backends.with_node_options(cluster.nodes, options)
    backends.save_cluster(options, "original", "before hroller run", cluster)
    chosen = _chosen_nodes(options, cluster, nodes)
    if not chosen:
        raise InputError("Cannot create node graph")
    graph = find_conflicts(options, cluster, nodes, chosen)
    found = colour_nodes(graph)
    if options.verbosity > 2:
        edges = ",".join(f"({node},{shown_ints(others)})" for node, others in graph.items())
        sys.stdout.write(f"Node Graph: array ({min(graph)},{max(graph)}) [{edges}]\n")
    groups = split_groups(
        nodes,
        cluster.instances,
        fewest_colours(found),
        ignore_non_redundant=options.ignore_non_redundant,
        full_evacuation=options.full_evacuation,
    )
    if options.verbosity > 1:
        sys.stdout.write(f"{_comparison(found)}\n")
    sys.stdout.write(_listed(options, cluster, _with_master_last(groups, chosen, master)))


def _find_master(options: Options, cluster: Cluster) -> int:
    """Return the master node, NO_NODE if `--force` lets it be unknown. Raises InputError."""
    masters = [node for node in cluster.nodes.values() if node.facts.master]
    if len(masters) == 1:
        return masters[0].index
    if masters:
        raise InputError(f"Found more than one master node: {shown_strings([node.facts.name for node in masters])}")
    unknown = "No master node found (maybe not supported by backend)."
    if not options.force:
        raise InputError(unknown)
    sys.stderr.write(f"Warning: {unknown}\n")
    return NO_NODE


def _chosen_nodes(options: Options, cluster: Cluster, nodes: Mapping[int, Node]) -> Mapping[int, Node]:
    """Return the nodes that are to be rebooted."""
    chosen = {index: node for index, node in nodes.items() if not node.facts.offline}
    if options.group is not None:
        groups = [group.index for group in cluster.groups.values() if options.group in {group.name, group.uuid}]
        if len(groups) != 1:
            raise InputError("Cannot find target group.")
        chosen = {index: node for index, node in chosen.items() if node.facts.group == groups[0]}
    if options.node_tags is not None:
        tags = frozenset(options.node_tags)
        chosen = {index: node for index, node in chosen.items() if not tags.isdisjoint(node.facts.tags)}
    if options.skip_non_redundant:
        redundant = {number for number, instance in cluster.instances.items() if is_redundant(instance)}
        chosen = {index: node for index, node in chosen.items() if redundant.issuperset(node.primaries)}
    return chosen


def find_conflicts(
    options: Options, cluster: Cluster, nodes: Mapping[int, Node], chosen: Mapping[int, Node]
) -> dict[int, list[int]]:
    """Return the neighbours of all nodes from the first chosen one to the last, in hroller's order.

    The two nodes of an instance are neighbours, once for each such instance. The primary nodes of instances with a
    common secondary node are, too, and each of them is its own one, unless all instances are down (`offline`).
    """
    graph: dict[int, list[int]] = {index: [] for index in range(min(chosen), max(chosen) + 1)}
    for instance in cluster.instances.values():
        primary, secondary = instance.primary, instance.secondary
        if is_redundant(instance) and primary in chosen and secondary in chosen:
            graph[primary].append(secondary)
            graph[secondary].append(primary)
    if not options.offline_maintenance:
        known = {index: set(others) for index, others in graph.items()}
        for node in nodes.values():
            primaries = dict.fromkeys(cluster.instances[number].primary for number in node.secondaries)
            together = {index: None for index in primaries if index in chosen}
            for index in together:
                if not together.keys() <= known[index]:
                    graph[index] += [other for other in together if other not in known[index]]
                    known[index] |= together.keys()
    return {index: others[::-1] for index, others in graph.items()}


def _comparison(found: Colourings) -> str:
    """Return the number and sizes of the colours of each algorithm, the fewest first."""
    text = ""
    before = 0
    for name, colours in found:
        if before:
            text += " TIE " if len(colours) == before else " LOOSE "
        before = len(colours)
        text += f"{name}: {before} ({','.join(str(len(nodes)) for nodes in colours)})"
    return text


def _with_master_last(
    groups: Sequence[RebootGroup], chosen: Mapping[int, Node], master: int
) -> list[tuple[list[int], RebootGroup]]:
    """Return the chosen nodes of each group and the group: the larger first, the master last in the last one."""
    found = [([index for index in group.nodes if index in chosen], group) for group in groups]
    found.sort(key=lambda pair: (master in pair[0], -len(pair[0])))
    for indices, _ in found:
        indices.sort(key=lambda index: index == master)
    return found


def _listed(options: Options, cluster: Cluster, groups: Sequence[tuple[list[int], RebootGroup]]) -> str:
    """Return the lines of all groups, or of the first one."""
    names = {index: node.facts.name for index, node in cluster.nodes.items()}
    header = "'First Reboot Group'" if options.one_step_only else "'Node Reboot Groups'"
    lines = [] if options.no_headers else [header]
    for indices, group in groups[: 1 if options.one_step_only else None]:
        found = [names[index] for index in indices]
        lines += found if options.one_step_only else [",".join(found)]
        for number, targets in group.moves.items() if options.print_moves else ():
            places = " ".join(names[index] for index in targets if index != NO_NODE)
            lines.append(f"  {cluster.instances[number].name} {places}")
    return "".join(f"{line}\n" for line in lines)
