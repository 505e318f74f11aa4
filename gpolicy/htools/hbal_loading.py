"""What hbal reads beside the cluster: utilisation (`-U`, `--mond-data`), and the names of instances to move or not."""

from __future__ import annotations

import sys
from functools import partial

from gpolicy.allocator.cluster_score import ordered_sum
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.instance_moves import is_split
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import parse_float
from gpolicy.htools.backends import find_name, read_file
from gpolicy.htools.haskell_text import shown_strings
from gpolicy.htools.json_fields import Fields, as_float, as_int, as_list, as_object, as_text, parse_json
from gpolicy.light_dataclasses import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from gpolicy.allocator.cluster_data import Load
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.htools.json_fields import Json
    from gpolicy.htools.program_options import Options

    Item = TypeVar("Item")

CPU_COLLECTOR, XEN_COLLECTOR = "cpu-avg-load", "xen-cpu-avg-load"


def read_loads(path: str) -> dict[str, Load]:
    """Read a utilisation file: an instance's name and its four loads on each line. Raises InputError."""
    lines = read_file(path).split("\n")
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


def check_names(options: Options, cluster: Cluster) -> None:
    """Raise InputError if an instance that is named on the command line does not exist."""
    names = {index: instance.name for index, instance in cluster.instances.items()}
    unknown = [
        name for name in (*options.select_instances, *options.exclude_instances) if find_name(name, names) is None
    ]
    if unknown:
        raise InputError(f"failed to load data, aborting: Unknown instance(s): {shown_strings(unknown)}")


def movable_instances(options: Options, cluster: Cluster) -> frozenset[int]:
    """Return the instances that may be moved, by index."""
    names = {index: instance.name for index, instance in cluster.instances.items()}

    def found(wanted: Iterable[str]) -> set[int | None]:
        return {find_name(name, names) for name in wanted}

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


def with_monitored_loads(options: Options, cluster: Cluster) -> Cluster:
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
    text = read_file(path)
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
            fields.get(key, lambda value: value)
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
    missing = [item.name for item in cluster.instances.values() if item.name not in named]
    if missing:
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
