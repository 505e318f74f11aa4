"""hbal: the moves that balance a node group."""

from __future__ import annotations

import sys
from functools import partial

from gpolicy.allocator.balancing import EngineSearch, Goal, balance
from gpolicy.allocator.cluster_score import COMPONENTS, cluster_score, least_reserved
from gpolicy.allocator.ghc_numbers import fixed
from gpolicy.allocator.native.library import MoveRules
from gpolicy.errors import InputError
from gpolicy.htools.backends import (
    load_cluster,
    node_status,
    run_program,
    save_cluster,
    warnings,
    with_node_options,
    write_file,
)
from gpolicy.htools.hbal_commands import command_lines, job_sets, script_text, touched_nodes
from gpolicy.htools.hbal_loading import (
    MissingReportError,
    check_names,
    movable_instances,
    read_loads,
    with_monitored_loads,
)
from gpolicy.htools.hbal_report import (
    GroupState,
    MoveLines,
    cluster_head,
    initial_check,
    instance_table,
    outcome,
    resources,
    score_lines,
    split_instances,
    well_balanced,
)
from gpolicy.htools.program_options import HBAL_OPTIONS, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.balancing import Balanced
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node


def main(argv: Sequence[str]) -> int:
    """Run hbal with the arguments `argv` (without the program's name) and return its exit code."""
    return run_program("hbal", HBAL_OPTIONS, "", argv, _run)


def _run(options: Options, arguments: Sequence[str]) -> None:
    if arguments:
        raise InputError("This program doesn't take any arguments.")
    cluster = _load(options)
    write = sys.stdout.write
    verbose = options.verbosity > 1
    if verbose:
        write(cluster_head(cluster))
    nodes = with_node_options(cluster.nodes, options)
    if not cluster.instances:
        write("Cluster is empty, exiting.\n")
        return
    if verbose:
        sys.stderr.write(split_instances(cluster))
    write(f"Loaded {len(nodes)} nodes, {len(cluster.instances)} instances\n")
    if verbose and cluster.common_suffix:
        write(f"Note: Stripping common suffix of '{cluster.common_suffix}' from names\n")
    save_cluster(options, "original", "before balancing", cluster, cluster.nodes, cluster.instances)
    group = _chosen_group(options, cluster, nodes)
    write(f"Group size {len(group.nodes)} nodes, {len(group.instances)} instances\n")
    write(f"Selected node group: {group.name}\n")
    write(initial_check(group, options))
    _show_tables(options, "Initial", group.nodes, group.instances)
    score = cluster_score(group.nodes.values())
    if options.verbosity > 2:
        write(score_lines("Initial coefficients: overall", group.nodes))
    else:
        write(f"Initial score: {fixed(score, 8)}\n")
    optimum = COMPONENTS[-1].weight * least_reserved(group.nodes.values())
    if score - optimum < options.min_score:
        write(well_balanced(score, optimum, options.min_score))
        return
    write("Trying to minimize the CV...\n")
    moves = _balance(options, group, movable_instances(options, cluster), optimum)
    _finish(options, cluster, group, moves)


def _load(options: Options) -> Cluster:
    loads = read_loads(options.dynu_file) if options.dynu_file is not None else None
    cluster = load_cluster(options, loads, partial(check_names, options))
    try:
        cluster, message = with_monitored_loads(options, cluster)
    except MissingReportError as error:
        sys.stderr.write(str(error))
        raise InputError("Not all required data available") from None
    sys.stderr.write(message)
    if options.verbosity != 0:
        sys.stderr.write(warnings(cluster))
    return cluster


def _chosen_group(options: Options, cluster: Cluster, nodes: Mapping[int, Node]) -> GroupState:
    """Return the group to balance. Raises InputError."""
    if options.group is None:
        populated = {node.facts.group for node in nodes.values()}
        found = [group for group in cluster.groups.values() if group.index in populated]
        if len(found) != 1:
            sys.stderr.write(_listed("Found multiple node groups:", [group.name for group in found]))
            raise InputError("Aborting.")
    else:
        found = [group for group in cluster.groups.values() if options.group in {group.name, group.uuid}]
        if len(found) != 1:
            title = f"Node group {options.group} not found. Node group list is:"
            sys.stderr.write(_listed(title, [group.name for group in cluster.groups.values()]))
            raise InputError("Aborting.")
    own = {index: node for index, node in nodes.items() if node.facts.group == found[0].index}
    instances = {index: item for index, item in cluster.instances.items() if item.primary in own}
    aliases = {index: item.name.removesuffix(cluster.common_suffix) for index, item in instances.items()}
    return GroupState(found[0].name, own, instances, aliases)


def _listed(title: str, names: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (title, *(f"  {name}" for name in names)))


def _show_tables(options: Options, when: str, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
    if options.print_instances:
        sys.stderr.write(f"\n{when} instance map:\n{instance_table(nodes, list(instances.values()))}")
    sys.stderr.write(node_status(f"{when} cluster", nodes, options))


def _balance(options: Options, group: GroupState, movable: frozenset[int], optimum: float) -> list[Balanced]:
    """Take the moves, and print the line of each at once."""
    given = (
        (options.no_disk_moves, MoveRules.NO_DISK_MOVES),
        (options.no_instance_moves, MoveRules.NO_INSTANCE_MOVES),
        (options.evac_mode, MoveRules.EVACUATION),
        (options.restricted_migration, MoveRules.RESTRICTED_MIGRATION),
        (options.ignore_soft_errors, MoveRules.FORCE),
    )
    rules = MoveRules(sum(rule for wanted, rule in given if wanted))
    goal = Goal(optimum, options.limit, options.min_score, options.min_gain, options.min_gain_limit)
    candidates = [index for index in group.instances if index in movable]
    search = EngineSearch(group.nodes, group.instances, candidates, rules)
    lines = MoveLines(group)
    moves: list[Balanced] = []
    for done in balance(group.nodes, group.instances, rules, goal, search):
        moves.append(done)
        sys.stdout.write(lines.line(len(moves), done))
        sys.stdout.flush()
    return moves


def _finish(options: Options, cluster: Cluster, group: GroupState, moves: Sequence[Balanced]) -> None:
    """Print what the moves achieve, the commands and the tables, and save the state."""
    write = sys.stdout.write
    nodes = moves[-1].nodes if moves else group.nodes
    instances = moves[-1].instances if moves else group.instances
    write(outcome(group, nodes, len(moves), options))
    if options.print_commands is not None:
        _write_commands(options, group, moves)
    if options.verbosity > 3:
        write(resources("Original:", group.nodes) + resources("Final:", nodes))
    save_cluster(options, "balanced", "after balancing", cluster, nodes, instances)
    _show_tables(options, "Final", nodes, instances)
    if options.exec and moves:
        raise InputError("hbal: Execution of commands possible only on LUXI")


def _write_commands(options: Options, group: GroupState, moves: Sequence[Balanced]) -> None:
    sets = job_sets(moves, touched_nodes)
    if options.first_job_group:
        sets = sets[:1]
    if options.print_commands in {None, "-"}:
        title = "First set of jobs:" if options.first_job_group else "Commands to run to reach the above solution:"
        lines = ["", title, *command_lines(sets, group.aliases, group.nodes)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return
    name = str(options.print_commands)
    write_file(name, script_text(command_lines(sets, group.aliases, group.nodes, script=True)))
    sys.stdout.write(f"The commands have been written to file '{name}'\n")
