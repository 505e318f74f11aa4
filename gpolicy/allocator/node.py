"""The state of one node with its instances, and derived quantities.

As in htools, resources are counted twice: without forthcoming instances, and (`forth_*`) with them, from the reported
free memory. A `Node` is a value: the functions in `gpolicy.allocator.node_changes` return a changed copy.
"""

from __future__ import annotations

from operator import attrgetter

from gpolicy.allocator.cluster_data import Load, NodeData
from gpolicy.allocator.ghc_numbers import divide, truncate
from gpolicy.light_dataclasses import dataclass, field

NO_LOAD: Load = (0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Node:
    """One node: its facts, and its resources without and with (`forth_*`) forthcoming instances.

    `primaries` and `secondaries` hold instance indices, newest first. `peers` maps primary nodes to the memory that
    this node reserves for their failure, the entry written last at the end; `reserved_memory` is the maximum.
    `ratio_*` are the shares in the cluster score.
    """

    facts: NodeData
    instance_memory: int
    free_disk: int
    free_spindles: int
    used_cpus: int
    peers: dict[int, int]
    exclusion_tags: dict[str, int]
    location_exclusions: dict[tuple[str, str], int]
    ratio_disk: float
    forth_free_memory: int
    forth_free_disk: int
    forth_free_spindles: int
    forth_used_cpus: int
    instance_spindles: float = 0.0
    primaries: tuple[int, ...] = ()
    secondaries: tuple[int, ...] = ()
    reserved_memory: int = 0
    fails_n1: bool = False
    load: Load = NO_LOAD
    location_score: int = 0
    ratio_memory: float = 0.0
    ratio_reserved: float = 0.0
    ratio_cpu: float = 0.0
    forth_instance_spindles: float = 0.0
    forth_load: Load = NO_LOAD
    forth_ratio_memory: float = 0.0
    forth_ratio_disk: float = 0.0
    forth_ratio_cpu: float = 0.0
    score_values: tuple[float, ...] | None = field(default=None, compare=False, repr=False)

    def copy(self) -> Node:
        """Return a shallow copy. Its mappings are shared: replace a mapping instead of changing it."""
        return Node(*_values(self))

    def with_facts(self, facts: NodeData) -> Node:
        """Return a copy with other facts."""
        new = self.copy()
        new.facts = facts
        return new

    @property
    def index(self) -> int:
        """The place in the input."""
        return self.facts.index

    @property
    def unallocated_memory(self) -> int:
        """The expected free memory (total less node and instances), less unaccounted memory."""
        facts = self.facts
        expected = truncate(facts.total_memory) - facts.node_memory - self.instance_memory
        return expected - max(0, facts.unaccounted_memory)

    @property
    def available_memory(self) -> int:
        """Unallocated memory less the reservation for another node's failure."""
        return max(0, self.unallocated_memory - self.reserved_memory)

    @property
    def available_disk(self) -> int:
        """Free disk above the limit of `--min-disk`."""
        return max(0, self.free_disk - self.facts.low_disk)

    @property
    def available_cpus(self) -> int:
        """Virtual CPUs that the ratio still allows."""
        return max(0, self.facts.high_cpus - self.used_cpus)

    @property
    def exceeds_vcpu_ratio(self) -> bool:
        """Whether hbal calls it policy-violating by its virtual CPUs; without CPUs, any virtual one is too many."""
        return self.ratio_cpu > self.facts.vcpu_ratio

    @property
    def exceeds_spindle_ratio(self) -> bool:
        """Whether hbal calls it policy-violating by the spindles in use."""
        return self.instance_spindles > self.facts.high_spindles

    def memory_ratio(self, memory: int) -> float:
        """`memory` as a share of the node's total."""
        return divide(memory, self.facts.total_memory)


_values = attrgetter(*(name for name in Node.__match_args__ if name != "score_values"))
