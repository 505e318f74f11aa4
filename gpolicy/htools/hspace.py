"""hspace: how many instances fit on a cluster (tiered and standard allocation)."""

from __future__ import annotations

import sys

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.compiled_allocation import Budget, make_allocator
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.placement import Candidates, NoCandidatesError, PairCandidates, SingleCandidates, candidate_nodes
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.allocator.usable import Usable, usable_groups
from gpolicy.errors import InputError
from gpolicy.htools.backends import load_cluster, node_status, run_program, save_cluster, warnings, with_node_options
from gpolicy.htools.hspace_report import HumanReport, MachineReport, Report, Run
from gpolicy.htools.program_options import HSPACE_OPTIONS, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.node import Node


_MOST_STEPS = 400_000_000
"""Of one run, which hspace does not bound: some 20 seconds. A thousand nodes take a twentieth of it."""


def main(argv: Sequence[str]) -> int:
    """Run hspace with the arguments `argv` (without the program's name) and return its exit code."""
    return run_program("hspace", HSPACE_OPTIONS, "", argv, _run)


def _run(options: Options, arguments: Sequence[str]) -> None:
    if arguments:
        raise InputError("This program doesn't take any arguments.")
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
    kind = MachineReport if options.machine_readable else HumanReport
    report: Report = kind(sys.stdout.write, nodes, len(cluster.instances), count, template)
    report.cluster()
    try:
        allocator = _allocator(nodes, count, usable, options)
    except NoCandidatesError as error:
        if options.limit != 0:
            raise InputError(f"failure during allocation: {error}") from None
        # with a limit of 0 the tiered phase needs no candidates, so its results are still printed
        state = AllocationState(nodes, cluster.instances)
        _after(options, cluster, state, "tiered")
        report.tiered(specs[0], Run(state, state, stopped=False))
        raise InputError(f"failure during allocation: {error}") from None
    initial = AllocationState(nodes, cluster.instances)
    wanted = [Instance.wanted(spec, template, spindle_use) for spec in specs]
    final = initial if allocator is None else _tiered(allocator, initial, wanted, options.limit)
    _after(options, cluster, final, "tiered")
    report.tiered(specs[0], Run(initial, final, stopped=allocator is None))
    final = initial
    if allocator is not None:
        final = allocator.standard(initial, Instance.wanted(standard, template, spindle_use), options.limit)
    _after(options, cluster, final, "standard")
    report.standard(standard, Run(initial, final, stopped=allocator is None))
    report.end()


def _tiered(
    allocator: Allocator, state: AllocationState, wanted: Sequence[Instance], limit: int | None
) -> AllocationState:
    """Run the tiered allocation for each size in turn, at most `limit` instances in all.

    The instances of one size reduce the limit of the next (htools, Program/Hspace).
    """
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
    from gpolicy.htools.haskell_text import shown_strings  # noqa: PLC0415 - only what is needed

    bad = [node.facts.name for node in nodes.values() if node.fails_n1 and not node.facts.offline]
    if bad:
        sys.stderr.write(f"Bad nodes: {shown_strings(bad)}\n")
    failing = _usable(cluster, nodes, options, independent=True).rules.ignored_groups
    if failing:
        sys.stderr.write(f"Bad groups: {shown_strings(cluster.groups[index].name for index in sorted(failing))}\n")


def _allocator(nodes: Mapping[int, Node], count: int, usable: Usable, options: Options) -> Allocator | None:
    """Return the allocator, or None if the state of the cluster forbids any allocation.

    Raises NoCandidatesError.
    """
    candidates: Candidates = SingleCandidates(()) if count == 1 else PairCandidates(())
    missing = None
    try:
        candidates = candidate_nodes(usable.groups, nodes, count)
    except NoCandidatesError as error:
        missing = error
    if options.verbosity > 3:
        from gpolicy.htools.tables import candidates_text  # noqa: PLC0415 - only what is needed

        sys.stderr.write(candidates_text(candidates))
    if usable.stopped:
        return None
    if missing is not None:
        raise missing
    budget = Budget(each=_MOST_STEPS)
    return make_allocator(candidates, usable.rules, capacity_checks=not options.no_capacity_checks, budget=budget)


def _after(options: Options, cluster: Cluster, state: AllocationState, kind: str) -> None:
    """Print the map of the instances and save the cluster, if the options request it."""
    title = f"{kind.capitalize()} allocation"
    if options.verbosity > 1:
        from gpolicy.htools.tables import allocation_map  # noqa: PLC0415 - only what is needed

        sys.stderr.write(allocation_map(title, state.placed[::-1], state.nodes))
    sys.stderr.write(node_status(title, state.nodes, options))
    save_cluster(options, kind, f"after {kind} allocation", cluster, state.nodes, state.instances)
