"""hroller: which nodes can be rebooted together, so that no instance loses both of its nodes at once."""

from __future__ import annotations

import sys

from gpolicy.allocator.enumerations import NO_NODE
from gpolicy.errors import InputError
from gpolicy.htools import backends
from gpolicy.htools.colouring import colour_nodes, fewest_colours
from gpolicy.htools.haskell_text import shown_ints, shown_strings
from gpolicy.htools.reboot_groups import is_redundant, split_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.htools.colouring import Found
    from gpolicy.htools.program_options import Options
    from gpolicy.htools.reboot_groups import RebootGroup


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
        chosen = {
            index: node
            for index, node in chosen.items()
            if all(is_redundant(cluster.instances[number]) for number in node.primaries)
        }
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


def _comparison(found: Found) -> str:
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
