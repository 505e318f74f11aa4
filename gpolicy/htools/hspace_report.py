"""The output of hspace: `HTS_*` keys for programs, or sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpolicy.allocator.cluster_data import Spec
from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.enumerations import DiskTemplate, FailReason
from gpolicy.allocator.ghc_numbers import divide, fixed, shown_float, truncate
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import wrapped
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.repeated_allocation import AllocationState

Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Totals:
    """Cluster-wide sums (MiB) over all nodes, offline ones included; `largest_*` are maxima over the nodes."""

    free_memory: int
    available_memory: int
    free_disk: int
    available_disk: int
    free_spindles: int
    largest_memory: int
    largest_disk: int
    instance_memory: int
    instance_disk: int
    instance_spindles: int
    instance_cpus: int
    total_memory: float
    total_disk: float
    total_spindles: float
    total_cpus: float
    virtual_cpus: int
    normalised_cpus: float
    overhead_memory: int
    instances: int


def cluster_totals(nodes: Mapping[int, Node]) -> Totals:
    """Add up `nodes`, doubles in index order."""
    everything = list(nodes.values())
    total_memory = total_disk = total_spindles = total_cpus = normalised = 0.0
    for node in everything:
        facts = node.facts
        total_memory += facts.total_memory
        total_disk += facts.total_disk
        total_spindles += float(facts.spindles)
        total_cpus += facts.total_cpus
        normalised += divide(float(node.used_cpus), facts.vcpu_ratio)
    return Totals(
        free_memory=sum(node.unallocated_memory for node in everything),
        available_memory=sum(node.available_memory for node in everything),
        free_disk=sum(node.free_disk for node in everything),
        available_disk=sum(node.available_disk for node in everything),
        free_spindles=sum(node.free_spindles for node in everything),
        largest_memory=max((node.available_memory for node in everything), default=0),
        largest_disk=max((node.available_disk for node in everything), default=0),
        instance_memory=sum(node.instance_memory for node in everything),
        instance_disk=sum(truncate(node.facts.total_disk) - node.free_disk for node in everything),
        instance_spindles=sum(node.facts.spindles - node.free_spindles for node in everything),
        instance_cpus=sum(node.used_cpus for node in everything),
        total_memory=total_memory,
        total_disk=total_disk,
        total_spindles=total_spindles,
        total_cpus=total_cpus,
        virtual_cpus=sum(node.facts.high_cpus for node in everything),
        normalised_cpus=normalised,
        overhead_memory=sum(node.facts.unaccounted_memory + node.facts.node_memory for node in everything),
        instances=sum(len(node.primaries) for node in everything),
    )


@dataclass(frozen=True, slots=True)
class Run:
    """One phase: its first and last state; `stopped` if the cluster's state forbade it."""

    initial: AllocationState
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
        runs: list[tuple[Spec, int]] = []
        for instance in reversed(self.final.placed):
            spindles = instance.disks[0].spindles if len(instance.disks) == 1 else 0
            size = Spec(
                instance.memory, instance.vcpus, instance.disk, disk_count=1, nic_count=1, spindle_use=spindles or 0
            )
            if runs and runs[-1][0] == size:
                runs[-1] = (size, runs[-1][1] + 1)
            else:
                runs.append((size, 1))
        return runs


@dataclass(frozen=True, slots=True)
class _Printed:
    """Where a report is written to, and what it is about."""

    write: Write
    nodes: Mapping[int, Node]
    instances: int
    required_nodes: int
    template: DiskTemplate


class MachineReport(_Printed):
    """`HTS_KEY=value` lines, quoted for a shell."""

    def cluster(self) -> None:
        """Print totals and the initial state."""
        totals = cluster_totals(self.nodes)
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

    def tiered(self, size: Spec, run: Run) -> None:
        """Print the tiered phase and the resources in three parts: used, allocable, unavailable."""
        self._size("TSPEC_INI", size)
        before, after = cluster_totals(self.nodes), cluster_totals(run.final.nodes)
        self._block("TRL", run.final.nodes, after)
        counts = (
            f"{size.memory},{size.disk_size},{size.cpus},{size.spindle_use}={count}" for size, count in run.spec_counts
        )
        self._key("TSPEC", " ".join(counts))
        self._keys(
            "KM_USED",
            CPU=before.instance_cpus,
            NPU=shown_float(before.normalised_cpus),
            MEM=before.instance_memory,
            DSK=before.instance_disk,
            SPN=before.instance_spindles,
        )
        self._keys(
            "KM_POOL",
            CPU=after.instance_cpus - before.instance_cpus,
            NPU=shown_float(after.normalised_cpus - before.normalised_cpus),
            MEM=after.instance_memory - before.instance_memory,
            DSK=after.instance_disk - before.instance_disk,
            SPN=after.instance_spindles - before.instance_spindles,
        )
        # with infinite ratios, the virtual CPUs left do not fit into the original's Int (RSpec), their sum above does
        self._keys(
            "KM_UNAV",
            CPU=wrapped(after.virtual_cpus - after.instance_cpus),
            NPU=shown_float(after.total_cpus - after.normalised_cpus),
            MEM=truncate(after.total_memory) - after.instance_memory,
            DSK=truncate(after.total_disk) - after.instance_disk,
            SPN=truncate(after.total_spindles) - after.instance_spindles,
        )

    def standard(self, size: Spec, run: Run) -> None:
        """Print the standard phase. Raises InputError if the numbers of instances disagree."""
        self._size("SPEC", size)
        placed = len(run.final.placed)
        totals = cluster_totals(run.final.nodes)
        if self.instances + placed != totals.instances:
            raise InputError(
                f"internal inconsistency, allocated ({self.instances + placed}) != counted ({totals.instances})\n"
            )
        self._block("FIN", run.final.nodes, totals)
        usage = divide(float(self.instances), float(self.instances + placed))
        self._key("ALLOC_USAGE", fixed(usage, 8))
        self._key("ALLOC_INSTANCES", str(placed))
        self._key("ALLOC_FAIL_REASON", run.failures[0][0].title.upper())
        for reason, count in run.failures:
            self._key(f"ALLOC_{reason.title.upper()}_CNT", str(count))

    def end(self) -> None:
        """Print the marker of success."""
        self._key("OK", "1")

    def _key(self, key: str, value: str) -> None:
        plain = all(character.isalnum() or character == "." for character in value)
        self.write(f"HTS_{key}={value}\n" if plain else f"HTS_{key}='{value}'\n")

    def _keys(self, prefix: str, **values: str | int) -> None:
        for name, value in values.items():
            self._key(f"{prefix}_{name}", str(value))

    def _size(self, prefix: str, size: Spec) -> None:
        self._keys(
            prefix,
            MEM=size.memory,
            DSK=size.disk_size,
            CPU=size.cpus,
            SPN=size.spindle_use,
            RQN=self.required_nodes,
            DISK_TEMPLATE=self.template.value,
        )

    def _block(self, prefix: str, nodes: Mapping[int, Node], totals: Totals) -> None:
        used = efficiencies(totals)
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


class HumanReport(_Printed):
    """Sentences. They mention spindles if any node has exclusive storage."""

    def cluster(self) -> None:
        """Print the cluster's resources and how many instances it has."""
        totals = cluster_totals(self.nodes)
        spindles = f", SPN {fixed(totals.total_spindles, 0)}" if self._exclusive else ""
        self.write(
            f"The cluster has {len(self.nodes)} nodes and the following resources:\n"
            f"  MEM {fixed(totals.total_memory, 0)}, DSK {fixed(totals.total_disk, 0)},"
            f" CPU {fixed(totals.total_cpus, 0)}, VCPU {totals.virtual_cpus}{spindles}.\n"
            f"There are {totals.instances or 'no'} initial instances on the cluster.\n"
        )

    def tiered(self, size: Spec, run: Run) -> None:
        """Print the tiered phase."""
        self._head("Tiered (initial size)", size)
        self.write("Tiered allocation results:\n")
        counts = run.spec_counts
        for spec, count in counts:
            self.write(f"  - {count:3d} instances of spec {self._spec(spec)}\n")
        if not counts:
            self.write("  - no instances allocated\n")
        if not run.stopped and not run.final.attempted:
            # the original ends with an error here, too: there is no last attempt with failures
            raise InputError("no allocation was attempted, so there is no failure reason to report")
        self._tail(run)

    def standard(self, size: Spec, run: Run) -> None:
        """Print the standard phase."""
        self._head("Standard (fixed-size)", size)
        self.write("Normal (fixed-size) allocation results:\n")
        self.write(f"  - {len(run.final.placed):3d} instances allocated\n")
        self._tail(run)

    def end(self) -> None:
        """Nothing more to say."""

    @property
    def _exclusive(self) -> bool:
        return any(node.facts.exclusive for node in self.nodes.values())

    def _spec(self, size: Spec) -> str:
        spindles = f", SPN {size.spindle_use}" if self._exclusive else ""
        return f"MEM {size.memory}, DSK {size.disk_size}, CPU {size.cpus}{spindles}"

    def _head(self, kind: str, size: Spec) -> None:
        self.write(f"{kind} instance spec is:\n  {self._spec(size)}, using disk template '{self.template.value}'.\n")

    def _tail(self, run: Run) -> None:
        totals = cluster_totals(run.final.nodes)
        shown = efficiencies(totals)
        if not self._exclusive:
            del shown["spindles"]
        width = max(map(len, shown))
        self.write(
            f"  - most likely failure reason: {run.failures[0][0].title}\n"
            f"  - initial cluster score: {fixed(cluster_score(run.initial.nodes.values()), 8)}\n"
            f"  -   final cluster score: {fixed(cluster_score(run.final.nodes.values()), 8)}\n"
        )
        for name, value in shown.items():
            self.write(f"  - {name:>{width}} usage efficiency: {fixed(value * 100, 2):>5}%\n")


Report = MachineReport | HumanReport
"""The parts of the output are asked for in their order: cluster, tiered, standard, end."""


def efficiencies(totals: Totals) -> dict[str, float]:
    """Return the used shares of memory, disk, virtual CPUs and spindles."""
    return {
        "memory": divide(float(totals.instance_memory), totals.total_memory),
        "disk": divide(float(totals.instance_disk), totals.total_disk),
        "vcpu": divide(float(totals.instance_cpus), float(totals.virtual_cpus)),
        "spindles": divide(float(totals.instance_spindles), totals.total_spindles),
    }
