"""hspace: how many instances fit on a cluster (tiered and standard allocation)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance, Node, Spec
from gpolicy.allocator.cluster_score import cluster_score, ordered_sum
from gpolicy.allocator.compiled_allocation import Budget, CompiledAllocator
from gpolicy.allocator.engines import Usable, usable_groups
from gpolicy.allocator.ghc_numbers import divide, fixed, shown_float, shown_strings, truncate
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.placement import Candidates, NoCandidatesError, PairCandidates, SingleCandidates, candidate_nodes
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import wrapped
from gpolicy.htools.backends import load_cluster, node_status, save_cluster, warnings, with_node_options
from gpolicy.htools.program_options import Options
from gpolicy.light_dataclasses import dataclass, replace

_MOST_STEPS = 400_000_000
"""Of one run, which hspace does not bound: some 20 seconds. A thousand nodes take a twentieth of it."""


def run(options: Options) -> None:
    """Count on the cluster that the options name. Raises InputError."""
    cluster = load_cluster(options)
    if options.verbosity > 0:
        sys.stderr.write(warnings(cluster))
    nodes = with_node_options(cluster.nodes, options)
    policy = cluster.policy
    if options.disk_template is None and not policy.templates:
        raise InputError("null list of disk templates received from cluster")
    template = options.disk_template or policy.templates[0]
    specs = [pair.max for pair in policy.minmax] if options.tiered_alloc is None else [options.tiered_alloc]
    if not specs:
        raise InputError("Empty list of specs received from the cluster")
    standard = options.standard_alloc or policy.std
    spindle_use = options.spindle_use if options.spindle_use is not None else policy.std.spindle_use
    if options.verbosity > 1 and cluster.common_suffix:
        sys.stderr.write(f"Note: Stripping common suffix of '{cluster.common_suffix}' from names\n")
    sys.stderr.write(node_status("Initial cluster", nodes, options))
    if options.verbosity > 2:
        from gpolicy.htools.tables import score_table  # noqa: PLC0415 - only what is needed

        sys.stderr.write(score_table(nodes))
    usable = _usable(cluster, nodes, options, independent=options.independent_groups)
    if options.verbosity > 3:
        _show_bad(cluster, nodes, options)
    count = 2 if template is DiskTemplate.DRBD else 1
    kind = _MachineReport if options.machine_readable else _HumanReport
    report: _MachineReport | _HumanReport = kind(nodes, len(cluster.instances), count, template)
    report.cluster()
    candidates, failure = _find_candidates(nodes, count, usable, options)
    allocator, initial = None, AllocationState(nodes, cluster.instances)
    if not usable.stopped and failure is None:
        budget, checks = Budget(each=_MOST_STEPS), not options.no_capacity_checks
        allocator = CompiledAllocator(candidates, usable.rules, capacity_checks=checks, budget=budget)
    wanted = [Instance.wanted(spec, template, spindle_use) for spec in specs]
    final = initial if allocator is None else _tiered(allocator, initial, wanted, options.limit)
    _after(options, cluster, final, "tiered")
    report.tiered(specs[0], _Run(final, stopped=usable.stopped))
    if failure is not None:
        raise failure
    final = initial
    if allocator is not None:
        final = allocator.standard(initial, Instance.wanted(standard, template, spindle_use), options.limit)
    _after(options, cluster, final, "standard")
    report.standard(standard, _Run(final, stopped=usable.stopped))
    if options.machine_readable:
        sys.stdout.write("HTS_OK=1\n")


def _tiered(
    allocator: Allocator, state: AllocationState, wanted: Sequence[Instance], limit: int | None
) -> AllocationState:
    """Run the tiered allocation for each size in turn, at most `limit` instances in all (htools, Program/Hspace)."""
    for instance in wanted:
        placed = len(state.placed)
        if limit is None or limit > placed:
            state = allocator.tiered(state, instance, None if limit is None else limit - placed)
    return state


def _usable(cluster: Cluster, nodes: Mapping[int, Node], options: Options, *, independent: bool) -> Usable:
    accept = options.accept_existing_errors
    return usable_groups(cluster.groups, nodes, cluster.instances, accept_existing=accept, independent=independent)


def _show_bad(cluster: Cluster, nodes: Mapping[int, Node], options: Options) -> None:
    """Print the nodes and groups that fail N+1 already, even if they may still be used (`-v -v -v`)."""
    if bad := [node.facts.name for node in nodes.values() if node.fails_n1 and not node.facts.offline]:
        sys.stderr.write(f"Bad nodes: {shown_strings(bad)}\n")
    if failing := _usable(cluster, nodes, options, independent=True).rules.ignored_groups:
        sys.stderr.write(f"Bad groups: {shown_strings(cluster.groups[index].name for index in sorted(failing))}\n")


def _find_candidates(
    nodes: Mapping[int, Node], count: int, usable: Usable, options: Options
) -> tuple[Candidates, InputError | None]:
    """Return the nodes, or pairs of nodes, that may take an instance; or none, and the error that follows.

    Raises it, but not with a limit of 0: the tiered phase needs no candidates then, and its results are still printed.
    """
    candidates: Candidates = SingleCandidates(()) if count == 1 else PairCandidates(())
    failure = None
    try:
        candidates = candidate_nodes(usable.groups, nodes, count)
    except NoCandidatesError as error:
        failure = None if usable.stopped else InputError(f"failure during allocation: {error}")
    if options.verbosity > 3:
        from gpolicy.htools.tables import candidates_text  # noqa: PLC0415 - only what is needed

        sys.stderr.write(candidates_text(candidates))
    if failure is not None and options.limit != 0:
        raise failure
    return candidates, failure


def _after(options: Options, cluster: Cluster, state: AllocationState, kind: str) -> None:
    """Print the map of the instances and save the cluster, if the options request it."""
    title = f"{kind.capitalize()} allocation"
    if options.verbosity > 1:
        from gpolicy.htools.tables import allocation_map  # noqa: PLC0415 - only what is needed

        sys.stderr.write(allocation_map(title, state.placed[::-1], state.nodes))
    sys.stderr.write(node_status(title, state.nodes, options))
    after = replace(cluster, nodes=state.nodes, instances=state.instances)
    save_cluster(options, kind, f"after {kind} allocation", after)


class _Totals:
    """Sums (MiB) over all nodes of a cluster, offline ones included; `largest_*` are maxima over the nodes."""

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        """Add up `nodes`, doubles in index order."""
        everything, facts = list(nodes.values()), [node.facts for node in nodes.values()]
        self.free_memory = sum(node.unallocated_memory for node in everything)
        self.available_memory = sum(node.available_memory for node in everything)
        self.free_disk = sum(node.free_disk for node in everything)
        self.available_disk = sum(node.available_disk for node in everything)
        self.free_spindles = sum(node.free_spindles for node in everything)
        self.largest_memory = max((node.available_memory for node in everything), default=0)
        self.largest_disk = max((node.available_disk for node in everything), default=0)
        self.instance_memory = sum(node.instance_memory for node in everything)
        self.instance_disk = sum(truncate(node.facts.total_disk) - node.free_disk for node in everything)
        self.instance_spindles = sum(node.facts.spindles - node.free_spindles for node in everything)
        self.instance_cpus = sum(node.used_cpus for node in everything)
        self.total_memory = ordered_sum(own.total_memory for own in facts)
        self.total_disk = ordered_sum(own.total_disk for own in facts)
        self.total_spindles = ordered_sum(float(own.spindles) for own in facts)
        self.total_cpus = ordered_sum(own.total_cpus for own in facts)
        self.virtual_cpus = sum(own.high_cpus for own in facts)
        self.normalised_cpus = ordered_sum(divide(node.used_cpus, node.facts.vcpu_ratio) for node in everything)
        self.overhead_memory = sum(own.unaccounted_memory + own.node_memory for own in facts)
        self.instances = sum(len(node.primaries) for node in everything)

    @property
    def used(self) -> tuple[float, ...]:
        """What instances use: CPUs, these by the ratios of their nodes, memory, disk, spindles."""
        return (
            *(self.instance_cpus, self.normalised_cpus),
            *(self.instance_memory, self.instance_disk, self.instance_spindles),
        )

    @property
    def efficiencies(self) -> dict[str, float]:
        """The used shares of memory, disk, virtual CPUs and spindles."""
        return {
            "memory": divide(self.instance_memory, self.total_memory),
            "disk": divide(self.instance_disk, self.total_disk),
            "vcpu": divide(self.instance_cpus, float(self.virtual_cpus)),
            "spindles": divide(self.instance_spindles, self.total_spindles),
        }


@dataclass(frozen=True, slots=True)
class _Run:
    """One phase: its last state; `stopped` if the cluster's state forbade it."""

    final: AllocationState
    stopped: bool

    @property
    def failures(self) -> list[tuple[FailReason, int]]:
        """Reasons with their counts, most frequent first; only FailN1 if stopped."""
        if self.stopped:
            return [(FailReason.N1, 1)]
        counts = self.final.failures
        return [(reason, counts[reason]) for reason in sorted(FailReason, key=lambda r: -counts[r])]

    @property
    def spec_counts(self) -> list[tuple[Spec, int]]:
        """Runs of equal sizes in the order of allocation."""
        sizes = []
        for item in reversed(self.final.placed):
            spindles = item.disks[0].spindles if len(item.disks) == 1 else 0
            sizes.append(Spec(item.memory, item.vcpus, item.disk, disk_count=1, nic_count=1, spindle_use=spindles or 0))
        return [(size, len(list(same))) for size, same in groupby(sizes)]


@dataclass(frozen=True, slots=True)
class _Printed:
    """What a report is about. Its parts are asked for in their order: cluster, tiered, standard."""

    nodes: Mapping[int, Node]
    instances: int
    required_nodes: int
    template: DiskTemplate


class _MachineReport(_Printed):
    """`HTS_KEY=value` lines, quoted for a shell."""

    def cluster(self) -> None:
        """Print totals and the initial state."""
        totals = _Totals(self.nodes)
        self._keys(
            "CLUSTER",
            MEM=fixed(totals.total_memory, 0),
            DSK=fixed(totals.total_disk, 0),
            CPU=fixed(totals.total_cpus, 0),
            VCPU=totals.virtual_cpus,
            SPN=fixed(totals.total_spindles, 0),
            NODES=len(self.nodes),
        )
        self._block("INI", self.nodes, totals)

    def tiered(self, size: Spec, run: _Run) -> None:
        """Print the tiered phase and the resources in three parts: used, allocable, unavailable."""
        self._print_size("TSPEC_INI", size)
        before, after = _Totals(self.nodes), _Totals(run.final.nodes)
        self._block("TRL", run.final.nodes, after)
        counts = (
            f"{size.memory},{size.disk_size},{size.cpus},{size.spindle_use}={count}" for size, count in run.spec_counts
        )
        self._print_key("TSPEC", " ".join(counts))
        self._resources("KM_USED", before.used)
        self._resources("KM_POOL", [a - b for a, b in zip(after.used, before.used, strict=True)])
        # with infinite ratios, the virtual CPUs left do not fit into the original's Int (RSpec), their sum above does
        limits = (after.total_cpus, *map(truncate, (after.total_memory, after.total_disk, after.total_spindles)))
        left = (a - b for a, b in zip(limits, after.used[1:], strict=True))
        self._resources("KM_UNAV", [wrapped(after.virtual_cpus - after.instance_cpus), *left])

    def standard(self, size: Spec, run: _Run) -> None:
        """Print the standard phase. Raises InputError if the numbers of instances disagree."""
        self._print_size("SPEC", size)
        placed = len(run.final.placed)
        totals = _Totals(run.final.nodes)
        if self.instances + placed != totals.instances:
            raise InputError(
                f"internal inconsistency, allocated ({self.instances + placed}) != counted ({totals.instances})\n"
            )
        self._block("FIN", run.final.nodes, totals)
        self._print_key("ALLOC_USAGE", fixed(divide(self.instances, float(self.instances + placed)), 8))
        self._print_key("ALLOC_INSTANCES", str(placed))
        self._print_key("ALLOC_FAIL_REASON", run.failures[0][0].title.upper())
        for reason, count in run.failures:
            self._print_key(f"ALLOC_{reason.title.upper()}_CNT", str(count))

    def _print_key(self, key: str, value: str) -> None:
        plain = all(character.isalnum() or character == "." for character in value)
        sys.stdout.write(f"HTS_{key}={value}\n" if plain else f"HTS_{key}='{value}'\n")

    def _keys(self, prefix: str, **values: str | int) -> None:
        for name, value in values.items():
            self._print_key(f"{prefix}_{name}", str(value))

    def _resources(self, prefix: str, values: Sequence[float]) -> None:
        """Print CPUs, these by the ratios of their nodes, memory, disk and spindles."""
        for name, value in zip(("CPU", "NPU", "MEM", "DSK", "SPN"), values, strict=True):
            self._print_key(f"{prefix}_{name}", shown_float(value) if isinstance(value, float) else str(value))

    def _print_size(self, prefix: str, size: Spec) -> None:
        self._keys(
            prefix,
            MEM=size.memory,
            DSK=size.disk_size,
            CPU=size.cpus,
            SPN=size.spindle_use,
            RQN=self.required_nodes,
            DISK_TEMPLATE=self.template.value,
        )

    def _block(self, prefix: str, nodes: Mapping[int, Node], totals: _Totals) -> None:
        used = totals.efficiencies
        self._keys(
            prefix,
            SCORE=fixed(cluster_score(nodes.values()), 8),
            INST_CNT=totals.instances,
            MEM_FREE=totals.free_memory,
            MEM_AVAIL=totals.available_memory,
            MEM_RESVD=totals.free_memory - totals.available_memory,
            MEM_INST=totals.instance_memory,
            MEM_OVERHEAD=totals.overhead_memory,
            MEM_EFF=fixed(used["memory"], 8),
            DSK_FREE=totals.free_disk,
            DSK_AVAIL=totals.available_disk,
            DSK_RESVD=totals.free_disk - totals.available_disk,
            DSK_INST=totals.instance_disk,
            DSK_EFF=fixed(used["disk"], 8),
            SPN_FREE=totals.free_spindles,
            SPN_INST=totals.instance_spindles,
            SPN_EFF=fixed(used["spindles"], 8),
            CPU_INST=totals.instance_cpus,
            CPU_EFF=fixed(used["vcpu"], 8),
            MNODE_MEM_AVAIL=totals.largest_memory,
            MNODE_DSK_AVAIL=totals.largest_disk,
        )


class _HumanReport(_Printed):
    """Sentences. They mention spindles if any node has exclusive storage."""

    def cluster(self) -> None:
        """Print the cluster's resources and how many instances it has."""
        totals = _Totals(self.nodes)
        spindles = f", SPN {fixed(totals.total_spindles, 0)}" if self._exclusive else ""
        sys.stdout.write(
            f"The cluster has {len(self.nodes)} nodes and the following resources:\n"
            f"  MEM {fixed(totals.total_memory, 0)}, DSK {fixed(totals.total_disk, 0)},"
            f" CPU {fixed(totals.total_cpus, 0)}, VCPU {totals.virtual_cpus}{spindles}.\n"
            f"There are {totals.instances or 'no'} initial instances on the cluster.\n"
        )

    def tiered(self, size: Spec, run: _Run) -> None:
        """Print the tiered phase."""
        self._head("Tiered (initial size)", size)
        sys.stdout.write("Tiered allocation results:\n")
        counts = run.spec_counts
        for spec, count in counts:
            sys.stdout.write(f"  - {count:3d} instances of spec {self._spec_text(spec)}\n")
        if not counts:
            sys.stdout.write("  - no instances allocated\n")
        if not run.stopped and not run.final.attempted:
            # the original ends with an error here, too: there is no last attempt with failures
            raise InputError("no allocation was attempted, so there is no failure reason to report")
        self._tail(run)

    def standard(self, size: Spec, run: _Run) -> None:
        """Print the standard phase."""
        self._head("Standard (fixed-size)", size)
        sys.stdout.write("Normal (fixed-size) allocation results:\n")
        sys.stdout.write(f"  - {len(run.final.placed):3d} instances allocated\n")
        self._tail(run)

    @property
    def _exclusive(self) -> bool:
        return any(node.facts.exclusive for node in self.nodes.values())

    def _spec_text(self, size: Spec) -> str:
        spindles = f", SPN {size.spindle_use}" if self._exclusive else ""
        return f"MEM {size.memory}, DSK {size.disk_size}, CPU {size.cpus}{spindles}"

    def _head(self, kind: str, size: Spec) -> None:
        sys.stdout.write(
            f"{kind} instance spec is:\n  {self._spec_text(size)}, using disk template '{self.template.value}'.\n"
        )

    def _tail(self, run: _Run) -> None:
        shown = _Totals(run.final.nodes).efficiencies
        if not self._exclusive:
            del shown["spindles"]
        width = max(map(len, shown))
        sys.stdout.write(
            f"  - most likely failure reason: {run.failures[0][0].title}\n"
            f"  - initial cluster score: {fixed(cluster_score(self.nodes.values()), 8)}\n"
            f"  -   final cluster score: {fixed(cluster_score(run.final.nodes.values()), 8)}\n"
        )
        for name, value in shown.items():
            sys.stdout.write(f"  - {name:>{width}} usage efficiency: {fixed(value * 100, 2):>5}%\n")
