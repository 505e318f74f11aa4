"""hbal: the moves that balance a node group."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isnan

from gpolicy.allocator.balancing import Balanced, Goal, balance, engine_search
from gpolicy.allocator.cluster_data import NO_NODE, Instance, InstanceStatus, Load, Node
from gpolicy.allocator.cluster_score import COMPONENTS, cluster_score, least_reserved, ordered_sum
from gpolicy.allocator.ghc_numbers import divide, fixed, general, shown_strings
from gpolicy.allocator.instance_moves import MoveKind, is_split
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.native.library import MoveRules
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import parse_float
from gpolicy.htools import backends
from gpolicy.htools.hbal_commands import command_lines, job_sets, touched_nodes
from gpolicy.htools.json_fields import Fields, Json, as_float, as_int, as_list, as_object, as_text, parse_json
from gpolicy.htools.program_options import Options
from gpolicy.htools.tables import aligned, score_table
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Item = TypeVar("Item")

_INSTANCE_COLUMNS = (
    *("F", "Name", "Pri_node", "Sec_node", "Auto_bal"),
    *("vcpu", "mem", "dsk", "lCpu", "lMem", "lDsk", "lNet"),
)


@dataclass(frozen=True, slots=True)
class _BalancedGroup:
    """The nodes of one group, and the instances whose primary node is among them."""

    name: str
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]
    aliases: Mapping[int, str]


def run(options: Options) -> None:
    """Balance a group of the cluster that the options name. Raises InputError."""
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
    moves = _balance(options, group, _movable_instances(options, cluster), optimum)
    _finish(options, cluster, group, moves)


def _load(options: Options) -> Cluster:
    loads = _read_loads(options.dynu_file) if options.dynu_file is not None else None
    cluster = backends.load_cluster(options, loads)
    _check_names(options, cluster)
    cluster = _with_monitored_loads(options, cluster)
    if options.verbosity != 0:
        sys.stderr.write(backends.warnings(cluster))
    return cluster


def _chosen_group(options: Options, cluster: Cluster, nodes: Mapping[int, Node]) -> _BalancedGroup:
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
    return _BalancedGroup(found[0].name, own, instances, aliases)


def _listed(title: str, names: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (title, *(f"  {name}" for name in names)))


def _initial_check(group: _BalancedGroup, options: Options) -> str:
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
        rows = [_INSTANCE_COLUMNS, *(_instance_row(nodes, instance) for instance in instances.values())]
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


def _balance(options: Options, group: _BalancedGroup, movable: frozenset[int], optimum: float) -> list[Balanced]:
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


def _move_line(group: _BalancedGroup, number: int, done: Balanced) -> str:
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


def _finish(options: Options, cluster: Cluster, group: _BalancedGroup, moves: Sequence[Balanced]) -> None:
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


def _write_commands(name: str, group: _BalancedGroup, moves: Sequence[Balanced], *, only_first: bool) -> None:
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


CPU_COLLECTOR, XEN_COLLECTOR = "cpu-avg-load", "xen-cpu-avg-load"


def _read_loads(path: str) -> dict[str, Load]:
    """Read a utilisation file: an instance's name and its four loads on each line. Raises InputError."""
    lines = backends.read_file(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    loads = {}
    for line in lines:
        words = line.split(" ")
        if len(words) != 5:
            raise InputError(f"can't parse utilisation data: Cannot parse line {line}")
        try:
            cpu, memory, disk, network = (parse_float(words[0], word) for word in words[1:])
        except InputError as error:
            raise InputError(f"can't parse utilisation data: {error}") from None
        loads[words[0]] = (cpu, memory, disk, network)
    return loads


def _check_names(options: Options, cluster: Cluster) -> None:
    """Raise InputError if an instance that is named on the command line does not exist."""
    names = {index: instance.name for index, instance in cluster.instances.items()}
    named = (*options.select_instances, *options.exclude_instances)
    if unknown := [name for name in named if backends.find_name(name, names) is None]:
        raise InputError(f"failed to load data, aborting: Unknown instance(s): {shown_strings(unknown)}")


def _movable_instances(options: Options, cluster: Cluster) -> frozenset[int]:
    """Return the instances that may be moved, by index."""
    names = {index: instance.name for index, instance in cluster.instances.items()}

    def found(wanted: Iterable[str]) -> set[int | None]:
        return {backends.find_name(name, names) for name in wanted}

    selected, excluded = found(options.select_instances), found(options.exclude_instances)
    return frozenset(
        index
        for index, instance in cluster.instances.items()
        if instance.template.balanced
        and instance.auto_balance
        and index not in excluded
        and (index in selected or not options.select_instances)
        and not is_split(instance, cluster.nodes)
    )


def _with_monitored_loads(options: Options, cluster: Cluster) -> Cluster:
    """Return the cluster with the CPU loads of the `--mond-data` file.

    If a load is not reported, which is noted on stderr, or all are ignored, nothing changes. Raises InputError.
    """
    if not options.mond:
        return cluster
    if options.mond_data is None:
        raise InputError(
            "--mond: gpolicy does not query monitoring daemons; write their answers to a file and name it with"
            " --mond-data=FILE"
        )
    collector = XEN_COLLECTOR if options.mond_xen else CPU_COLLECTOR
    reports = _read_reports(options.mond_data, collector)
    if options.ignore_dynu:
        return cluster
    try:
        loads = (_xen_loads if options.mond_xen else _cpu_loads)(cluster, reports)
    except _UnreportedError as error:
        message = str(error) or f"Didn't receive an answer by all MonDs, {collector}'s data will be ignored."
        sys.stderr.write(f"{message}\n")
        if options.exit_on_missing_mond_data:
            raise InputError("Not all required data available") from None
        return cluster
    of_nodes, of_instances = loads
    nodes = {}
    for index, node in cluster.nodes.items():
        nodes[index] = node.copy()
        nodes[index].load = (of_nodes[index], *node.load[1:])
    instances = {
        index: replace(item, load=(of_instances[index], *item.load[1:])) for index, item in cluster.instances.items()
    }
    return replace(cluster, nodes=nodes, instances=instances)


class _UnreportedError(Exception):
    """A load is not in the reports; the message may be empty."""


def _read_reports(path: str, collector: str) -> dict[str, Json]:
    """Return the data of each node's first report of the collector, by the node's name. Raises InputError."""
    text = backends.read_file(path)
    found: dict[str, Json] = {}
    try:
        answers = parse_json("MonD's answer", text)
        for entry in _within("MonD's answer", lambda: [Fields("", as_object(item)) for item in as_list(answers)]):
            node = _within("node's name", partial(entry.get, "node", as_text))
            reports = _within("node's reports", partial(entry.get, "reports", _as_reports))
            own = [report["data"] for report in reports if report["name"] == collector]
            found[node] = own[0] if own else None
    except InputError as error:
        raise InputError(f"can't parse MonD data: {error}") from None
    return found


def _within(what: str, read: Callable[[], Item]) -> Item:
    try:
        return read()
    except InputError as error:
        raise InputError(f"Parsing {what}: {error}") from None


def _as_reports(value: Json) -> list[dict[str, Json]]:
    """Return a list of reports; fields that do not matter here must exist."""
    reports = [as_object(item) for item in as_list(value)]
    for report in reports:
        fields = Fields("", report)
        fields.get("name", as_text)
        for key in ("version", "format_version", "timestamp", "kind", "data"):
            fields.get(key)
    return reports


def _cpu_loads(cluster: Cluster, reports: Mapping[str, Json]) -> tuple[dict[int, float], dict[int, float]]:
    """Return the CPU loads of nodes and instances: that of a node is shared out by virtual CPUs."""
    of_nodes = {index: _reported(_as_cpu_load, reports, node) for index, node in cluster.nodes.items()}
    of_instances = {
        index: divide(of_nodes[item.primary], float(cluster.nodes[item.primary].used_cpus)) * float(item.vcpus)
        for index, item in cluster.instances.items()
    }
    return of_nodes, of_instances


def _xen_loads(cluster: Cluster, reports: Mapping[str, Json]) -> tuple[dict[int, float], dict[int, float]]:
    """Return the CPU loads of nodes and instances; reports name the load of each instance."""
    named: dict[str, float] = {}
    for node in cluster.nodes.values():
        named.update(_reported(_as_loads, reports, node))
    if missing := [item.name for item in cluster.instances.values() if item.name not in named]:
        raise _UnreportedError(f"No CPU information available for {shown_strings(missing)}")
    of_instances = {index: named[item.name] for index, item in cluster.instances.items()}
    sums = {index: ordered_sum(of_instances[one] for one in node.primaries) for index, node in cluster.nodes.items()}
    return sums, of_instances


def _reported(read: Callable[[Json], Item], reports: Mapping[str, Json], node: Node) -> Item:
    """Return the content of a node's report. Raises _UnreportedError if it has none that can be read."""
    try:
        return read(reports[node.facts.name])
    except (InputError, KeyError):
        raise _UnreportedError from None


def _as_cpu_load(value: Json) -> float:
    fields = Fields("", as_object(value))
    fields.get("cpu_number", as_int)
    fields.get("cpus", lambda loads: [as_float(load) for load in as_list(loads)])
    return fields.number("cpu_total")


def _as_loads(value: Json) -> dict[str, float]:
    return {name: as_float(load) for name, load in as_object(value).items()}
