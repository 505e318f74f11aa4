"""A test of a policy as data: the cluster, the question, and the expected answer.

All sizes are MiB, exactly as written: they describe hardware and instances, and Ganeti does not store them. None means
not written.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpolicy.findings import Located, Span

MOST_NODES = 1000
"""Simulated nodes of one test."""

FILLINGS = {"empty": 0, "quarter-full": 1, "half-full": 2, "three-quarter-full": 3, "full": 4}
"""How full a simulated node is, in quarters."""


class Action(StrEnum):
    """The question of a test: its key in the document."""

    PLACE = "place"
    CHECK_INSTANCE = "check_instance"
    CAPACITY = "capacity"
    REDUNDANCY = "redundancy"


@dataclass(frozen=True, slots=True)
class DiskSize:
    """One disk: MiB, and its number of physical volumes under exclusive storage."""

    size: int
    spindles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size of an instance: of a named spec (its minimum, or with `bound` max its maximum), or as written.

    `bare` are the sizes (MiB) without a unit beside others that have one, with their keys.
    """

    span: Span
    group: Located[str] | None = None
    spec: Located[str] | None = None
    bound: str = "min"
    memory: int | None = None
    minmem: int | None = None
    cpus: int | None = None
    disks: tuple[DiskSize, ...] | None = None
    spindle_use: int | None = None
    nic_count: int | None = None
    template: Located[str] | None = None
    tags: tuple[str, ...] = ()
    ignore_ipolicy: bool = False
    bare: tuple[tuple[str, Located[int]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """Existing instances of a cluster: with `count` as many, named NAME-1, NAME-2, …"""

    name: Located[str]
    nodes: tuple[Located[str], ...]
    sizes: Sizes
    running: bool = True
    offline: bool = False
    count: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        if self.count is None:
            return (self.name.value,)
        return tuple(f"{self.name.value}-{number}" for number in range(1, self.count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The hardware of a node. `pv_sizes` lists all its physical volumes."""

    memory: int | None = None
    memory_node: int | None = None
    cpus: int | None = None
    disk: int | None = None
    spindles: int | None = None
    pv_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """One simulated node. `filled` is the used part of it, in quarters."""

    name: str
    span: Span
    machine: Machine = Machine()
    filled: int = 0
    offline: bool = False
    drained: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGroup:
    """Nodes of one group; `machine` is their default hardware."""

    span: Span
    machine: Machine
    nodes: tuple[SimulatedNode, ...]
    group: Located[str] | None = None
    instances: tuple[Existing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEdit:
    """One change of the cluster, of one kind. `more`, `upgrade` and `lost` are words of `gpolicy.what_if`."""

    span: Span
    node: Located[str] | None = None
    instance: Located[str] | None = None
    add: Existing | None = None
    removed_instance: Located[str] | None = None
    removed_node: Located[str] | None = None
    offline: bool | None = None
    drained: bool | None = None
    group: Located[str] | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    more: Located[str] | None = None
    upgrade: Located[str] | None = None
    lost: Located[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The cluster of a test. `snapshot` is a path as written; without it and `simulated`, the promised hardware."""

    snapshot: Located[str] | None = None
    simulated: tuple[SimulatedGroup, ...] = ()
    edits: tuple[StageEdit, ...] = ()

    @property
    def promised(self) -> bool:
        """Whether the cluster is the promised hardware of the groups."""
        return self.snapshot is None and not self.simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion:
    """How to count capacity. `standard` are the parameters of a standard instance that differ from the policy's."""

    group: Located[str] | None = None
    template: Located[str] | None = None
    standard: tuple[tuple[str, int], ...] = ()
    without: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    max_node_failures: int | None = None
    resource_model: bool = False
    oversubscription: float | None = None
    cpus_after_failure: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyQuestion:
    """The question which losses of `failures` nodes at once can be absorbed; None: as the limits of the policy say.

    `span` is the place of the question, or of its `failures`.
    """

    group: Located[str] | None = None
    failures: int | None = None
    span: Span | None = None
    cpus_after_failure: bool | None = None


@dataclass(frozen=True, slots=True)
class ExpectedNumber:
    """A number that must lie within bounds, both included."""

    least: int | None
    most: int | None

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        parts = [f"at least {self.least}"] if self.least is not None else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return " and ".join(parts)


ExpectedValue = bool | str | ExpectedNumber | tuple[str, ...] | tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected value: at `path` below `expect`, in words, flags, numbers or lists of words."""

    path: tuple[str, ...]
    wanted: ExpectedValue
    span: Span

    @property
    def title(self) -> str:
        """The name in reports."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One test. `sizes` is for place and check_instance, `capacity` and `redundancy` for those."""

    name: Located[str]
    action: Action
    span: Span
    stage: Stage
    expectations: tuple[Expectation, ...]
    sizes: Sizes | None = None
    capacity: CapacityQuestion | None = None
    redundancy: RedundancyQuestion | None = None

    @property
    def group(self) -> Located[str] | None:
        """The group of the test's question."""
        part = self.sizes or self.capacity or self.redundancy
        return part.group if part else None
