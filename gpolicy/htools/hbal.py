"""hbal: the moves that balance a node group."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import isnan

from gpolicy.allocator.balancing import Balanced, Goal, balance, engine_search
from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.cluster_score import COMPONENTS, cluster_score, least_reserved
from gpolicy.allocator.enumerations import NO_NODE, InstanceStatus
from gpolicy.allocator.ghc_numbers import fixed, general
from gpolicy.allocator.instance_moves import MoveKind, is_split
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.native.library import MoveRules
from gpolicy.allocator.node import Node
from gpolicy.errors import InputError
from gpolicy.htools import backends, hbal_loading
from gpolicy.htools.hbal_commands import command_lines, job_sets, touched_nodes
from gpolicy.htools.program_options import Options
from gpolicy.htools.tables import aligned, score_table
from gpolicy.light_dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Group:
    """The nodes of one group, and the instances whose primary node is among them."""

    name: str
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]
    aliases: Mapping[int, str]


def run(options: Options, arguments: Sequence[str]) -> None:
    """Balance a group of the cluster that the options name. Raises InputError."""
    if arguments:
        raise InputError("This program doesn't take any arguments.")
    cluster = _load(options)
    write = sys.stdout.write
    verbose = options.verbosity > 1
    if verbose:
        from gpolicy.htools.haskell_records import shown  # noqa: PLC0415 - only what is needed

        write(f"Loaded cluster tags: {','.join(cluster.tags)}\nLoaded cluster ipolicy: {shown(cluster.policy)}\n")
    nodes = backends.with_node_options(cluster.nodes, options)
    if not cluster.instances:
        write("Cluster is empty, exiting.\n")
        return
    split = [item.name for item in cluster.instances.values() if is_split(item, cluster.nodes)]
    if verbose and split:
        sys.stderr.write(_listed("Found instances belonging to multiple node groups:", split))
        sys.stderr.write("These instances will not be moved.\n")
    write(f"Loaded {len(nodes)} nodes, {len(cluster.instances)} instances\n")
    if verbose and cluster.common_suffix:
        write(f"Note: Stripping common suffix of '{cluster.common_suffix}' from names\n")
    backends.save_cluster(options, "original", "before balancing", cluster)
    group = _chosen_group(options, cluster, nodes)
    write(f"Group size {len(group.nodes)} nodes, {len(group.instances)} instances\n")
    write(f"Selected node group: {group.name}\n")
    write(_initial_check(group, options))
    _show_tables(options, "Initial", group.nodes, group.instances)
    score = cluster_score(group.nodes.values())
    if options.verbosity > 2:
        write(score_table(group.nodes))
    else:
        write(f"Initial score: {fixed(score, 8)}\n")
    optimum = COMPONENTS[-1].weight * least_reserved(group.nodes.values())
    if score - optimum < options.min_score:
        write(
            f"Cluster is already well balanced (initial score {general(score)},\n"
            f"optimum score due to N+1 reservations {general(optimum)},\n"
            f"minimum score {general(options.min_score)}).\n"
            "Nothing to do, exiting\n"
        )
        return
    write("Trying to minimize the CV...\n")
    moves = _balance(options, group, hbal_loading.movable_instances(options, cluster), optimum)
    _finish(options, cluster, group, moves)


def _load(options: Options) -> Cluster:
    loads = hbal_loading.read_loads(options.dynu_file) if options.dynu_file is not None else None
    cluster = backends.load_cluster(options, loads)
    hbal_loading.check_names(options, cluster)
    cluster = hbal_loading.with_monitored_loads(options, cluster)
    if options.verbosity != 0:
        sys.stderr.write(backends.warnings(cluster))
    return cluster


def _chosen_group(options: Options, cluster: Cluster, nodes: Mapping[int, Node]) -> _Group:
    groups = list(cluster.groups.values())
    if options.group is None:
        populated = {node.facts.group for node in nodes.values()}
        groups = found = [group for group in groups if group.index in populated]
        title = "Found multiple node groups:"
    else:
        found = [group for group in groups if options.group in {group.name, group.uuid}]
        title = f"Node group {options.group} not found. Node group list is:"
    if len(found) != 1:
        sys.stderr.write(_listed(title, [group.name for group in groups]))
        raise InputError("Aborting.")
    own = {index: node for index, node in nodes.items() if node.facts.group == found[0].index}
    instances = {index: item for index, item in cluster.instances.items() if item.primary in own}
    aliases = {index: item.name.removesuffix(cluster.common_suffix) for index, item in instances.items()}
    return _Group(found[0].name, own, instances, aliases)


def _listed(title: str, names: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (title, *(f"  {name}" for name in names)))


def _initial_check(group: _Group, options: Options) -> str:
    bad = [node for node in group.nodes.values() if node.fails_n1 and not node.facts.offline]
    good = [node for node in group.nodes.values() if not node.fails_n1 or node.facts.offline or _has_nan(node)]
    concerned = {number for node in bad for number in (*node.primaries, *node.secondaries)}
    violating = [node for node in good if _broken_policy(node)]
    text = ""
    if options.verbosity > 0:
        text = f"Initial check done: {len(bad)} bad nodes, {len(concerned)} bad instances.\n"
    if options.verbosity > 4:
        from gpolicy.htools.haskell_records import shown  # noqa: PLC0415 - only what is needed

        names = (shown(tuple(node.facts.name for node in nodes)) for nodes in (bad, good))
        text += "Bad nodes: {}\nN+1 happy nodes: {}\n".format(*names)
        status = (f"({shown(node.facts.name)},{_broken_policy(node) or 'Ok ()'})" for node in good)
        text += f"Node policy status: [{','.join(status)}]\n"
    if bad:
        text += "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end N+1 happy.\n"
    if violating:
        text += f"The cluster contains {len(violating)} policy-violating nodes.\nContinuing, "
        text += (
            "ignoring soft errors.\n"
            if options.ignore_soft_errors
            else "but the set of moves might be too restricted; consider using the --ignore-soft-errors option.\n"
        )
    return text


def _has_nan(node: Node) -> bool:
    """Return whether a node, such as one without memory, is not equal to itself: htools takes it off no list."""
    ratios = (node.ratio_memory, node.ratio_disk, node.ratio_reserved, node.ratio_cpu)
    return any(map(isnan, (*ratios, node.forth_ratio_memory, node.forth_ratio_disk, node.forth_ratio_cpu)))


def _broken_policy(node: Node) -> str:
    if node.exceeds_spindle_ratio:
        return "Bad FailDisk"
    return "Bad FailCPU" if node.exceeds_vcpu_ratio else ""


def _show_tables(options: Options, when: str, nodes: Mapping[int, Node], instances: Mapping[int, Instance]) -> None:
    if options.print_instances:
        headings = [
            "F",
            "Name",
            "Pri_node",
            "Sec_node",
            "Auto_bal",
            "vcpu",
            "mem",
            "dsk",
            "lCpu",
            "lMem",
            "lDsk",
            "lNet",
        ]
        rows = [headings, *(_instance_row(nodes, instance) for instance in instances.values())]
        lines = (f" {line}\n" for line in aligned(rows, [False] * 5 + [True] * 7))
        sys.stderr.write(f"\n{when} instance map:\n{''.join(lines)}")
    sys.stderr.write(backends.node_status(f"{when} cluster", nodes, options))


def _instance_row(nodes: Mapping[int, Node], instance: Instance) -> list[str]:
    running = instance.status in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}
    return [
        "R" if running else " ",
        instance.name,
        *(backends.node_name(nodes, instance, index) for index in (instance.primary, instance.secondary)),
        "Y" if instance.auto_balance else "N",
        f"{instance.vcpus:3d}",
        f"{instance.memory:5d}",
        f"{instance.disk // 1024:5d}",
        *(f"{fixed(load, 3):>5}" for load in instance.load),
    ]


def _balance(options: Options, group: _Group, movable: frozenset[int], optimum: float) -> list[Balanced]:
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
    search = engine_search(group.nodes, group.instances, candidates, rules)
    moves: list[Balanced] = []
    for done in balance(group.nodes, group.instances, rules, goal, search):
        moves.append(done)
        sys.stdout.write(_move_line(group, len(moves), done))
        sys.stdout.flush()
    return moves


def _move_line(group: _Group, number: int, done: Balanced) -> str:
    """Return the line of move `number`, in columns as wide as the longest names of the group."""

    def alias(index: int) -> str:
        return "" if index == NO_NODE else group.nodes[index].facts.alias

    def places(instance: Instance) -> str:
        return ":".join(filter(None, (alias(instance.primary), alias(instance.secondary))))

    target = alias(done.move.target)
    what = {
        MoveKind.FAILOVER: "f",
        MoveKind.FAILOVER_TO: f"fa:{target}",
        MoveKind.REPLACE_SECONDARY: f"r:{target}",
        MoveKind.REPLACE_AND_FAILOVER: f"r:{target} f",
        MoveKind.REPLACE_PRIMARY: f"f r:{target} f",
        MoveKind.FAILOVER_AND_REPLACE: f"f r:{target}",
    }[done.move.kind]
    name = group.aliases[done.instance.index].ljust(max(map(len, group.aliases.values())))
    width = 2 * max(len(node.facts.alias) for node in group.nodes.values()) + 1
    old, new = places(done.move.instance).ljust(width), places(done.instance).ljust(width)
    return f"  {number:3d}. {name} {old} => {new} {fixed(done.score, 8):>12} a={what}\n"


def _finish(options: Options, cluster: Cluster, group: _Group, moves: Sequence[Balanced]) -> None:
    """Print what the moves achieve, the commands and the tables, and save the state."""
    write = sys.stdout.write
    nodes = moves[-1].nodes if moves else group.nodes
    instances = moves[-1].instances if moves else group.instances
    if not moves:
        write("No solution found\n")
    elif options.verbosity > 2:
        write(score_table(nodes, "Final coefficients:   overall"))
    else:
        before, after = (fixed(cluster_score(state.values()), 8) for state in (group.nodes, nodes))
        write(f"Cluster score improved from {before} to {after}\n")
    if options.verbosity > 0:
        write(f"Solution length={len(moves)}\n")
    if options.print_commands is not None:
        _write_commands(options.print_commands, group, moves, only_first=options.first_job_group)
    for label, state in (("Original:", group.nodes), ("Final:", nodes)) if options.verbosity > 3 else ():
        memory, disk = sum(n.unallocated_memory for n in state.values()), sum(n.free_disk for n in state.values())
        write(f"{label:9} mem={memory} disk={disk}\n")
    backends.save_cluster(options, "balanced", "after balancing", replace(cluster, nodes=nodes, instances=instances))
    _show_tables(options, "Final", nodes, instances)
    if options.exec and moves:
        raise InputError("hbal: Execution of commands possible only on LUXI")


def _write_commands(name: str, group: _Group, moves: Sequence[Balanced], *, only_first: bool) -> None:
    """Write the commands of the moves into the file `name`; `-` prints them."""
    sets = job_sets(moves, touched_nodes)[: 1 if only_first else None]
    lines = command_lines(sets, group.aliases, group.nodes, script=name != "-")
    text = "".join(f"{line}\n" for line in lines)
    if name == "-":
        title = "First set of jobs:" if only_first else "Commands to run to reach the above solution:"
        sys.stdout.write(f"\n{title}\n{text}")
        return
    backends.write_file(name, text)
    sys.stdout.write(f"The commands have been written to file '{name}'\n")
