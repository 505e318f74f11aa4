"""The state of one node while instances come and go, and quantities that follow from it.

Two books are kept, as in htools: the real one, and a second one ("forth") that also counts
forthcoming instances and starts from the reported free memory. A `Node` is treated as a value: the
functions in `gpolicy.allocator.node_changes` return a changed copy and leave the original alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpolicy.allocator.ghc_numbers import divide, truncate

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Load, Policy

NO_LOAD: Load = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What no placement changes about a node (MiB).

    `reported_free_memory` is the measured value; `unaccounted_memory` is what is missing from it
    after node and running instances (negative when there is more free than there should be).
    `vcpu_ratio` is the one in force (an option may override the policy's); negative: no limit.
    `high_cpus` and `high_spindles` are the ceilings that follow from the ratios, `low_disk` the disk
    space to keep free.
    """

    index: int
    name: str
    alias: str
    group: int
    policy: Policy
    total_memory: float
    node_memory: int
    reported_free_memory: int
    unaccounted_memory: int
    total_disk: float
    total_cpus: float
    node_cpus: int
    cpu_speed: float
    spindles: int
    exclusive: bool
    offline: bool
    master: bool
    tags: tuple[str, ...]
    location_tags: frozenset[str]
    migration_tags: frozenset[str]
    receivable_tags: frozenset[str]
    vcpu_ratio: float
    high_cpus: int
    high_spindles: float
    min_disk_ratio: float
    low_disk: int

    def disk_ratio(self, spindles: int, disk: int) -> float:
        """Free share of the scarce disk resource: spindles under exclusive storage, else space."""
        if self.exclusive:
            return 1.0 if self.spindles == 0 else spindles / self.spindles
        return 1.0 if self.total_disk == 0 else disk / self.total_disk


@dataclass(slots=True)
class Node:
    """One node: facts plus the two books (`forth_*` is the second).

    `primaries` and `secondaries` hold instance indices, newest first. `peers` maps the primary node
    of our secondaries to the memory that we keep for its failure; `reserved_memory` is their maximum.
    `ratio_*` are the shares that enter the cluster score.
    """

    facts: NodeFacts
    instance_memory: int
    free_disk: int
    free_spindles: int
    used_cpus: int
    instance_spindles: float
    primaries: tuple[int, ...]
    secondaries: tuple[int, ...]
    peers: dict[int, int]
    reserved_memory: int
    fails_n1: bool
    load: Load
    exclusion_tags: dict[str, int]
    location_score: int
    location_exclusions: dict[tuple[str, str], int]
    ratio_memory: float
    ratio_disk: float
    ratio_reserved: float
    ratio_cpu: float
    forth_free_memory: int
    forth_free_disk: int
    forth_free_spindles: int
    forth_used_cpus: int
    forth_instance_spindles: float
    forth_load: Load
    forth_ratio_memory: float
    forth_ratio_disk: float
    forth_ratio_cpu: float
    score_values: tuple[float, ...] | None = field(default=None, compare=False, repr=False)

    def copy(self) -> Node:
        """Return a shallow copy; whoever changes a mapping of it must replace the mapping."""
        return Node(
            self.facts,
            self.instance_memory,
            self.free_disk,
            self.free_spindles,
            self.used_cpus,
            self.instance_spindles,
            self.primaries,
            self.secondaries,
            self.peers,
            self.reserved_memory,
            self.fails_n1,
            self.load,
            self.exclusion_tags,
            self.location_score,
            self.location_exclusions,
            self.ratio_memory,
            self.ratio_disk,
            self.ratio_reserved,
            self.ratio_cpu,
            self.forth_free_memory,
            self.forth_free_disk,
            self.forth_free_spindles,
            self.forth_used_cpus,
            self.forth_instance_spindles,
            self.forth_load,
            self.forth_ratio_memory,
            self.forth_ratio_disk,
            self.forth_ratio_cpu,
        )

    @property
    def index(self) -> int:
        """Place in the input."""
        return self.facts.index

    @property
    def recorded_free_memory(self) -> int:
        """Memory that is free by the books: total minus node minus instances."""
        facts = self.facts
        return truncate(facts.total_memory) - facts.node_memory - self.instance_memory

    @property
    def unallocated_memory(self) -> int:
        """Recorded free memory minus what is missing without an explanation."""
        return self.recorded_free_memory - max(0, self.facts.unaccounted_memory)

    @property
    def available_memory(self) -> int:
        """Unallocated memory that is not kept for another node's failure."""
        return max(0, self.unallocated_memory - self.reserved_memory)

    @property
    def available_disk(self) -> int:
        """Free disk above the floor of `--min-disk`."""
        return max(0, self.free_disk - self.facts.low_disk)

    @property
    def available_cpus(self) -> int:
        """Virtual cpus left under the ratio."""
        return max(0, self.facts.high_cpus - self.used_cpus)

    def memory_ratio(self, memory: int) -> float:
        """`memory` as a share of the node's total."""
        return divide(memory, self.facts.total_memory)
