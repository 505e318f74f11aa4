"""What the figures of nodes rest on: measurements, or declarations in their place.

A figure that nodes do not show (config.data, RAPI without an answer of the node, exclusive storage on Ganeti 3) follows
from hv_state and disk_state, by the formulas of `gpolicy.allocator.configured_resources`, or from the hardware that the
policy promises. On the declared basis hv_state and disk_state go before measurements, too. A total must be declared;
for the rest, what is not declared has Ganeti's own default, and for KVM htools' number of the node's memory.

Source: design document "Resource model": free values are computed "without having to actually live-query the nodes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Instance, Node, NodeData
from gpolicy.allocator.configured_resources import NodeResources
from gpolicy.allocator.ghc_numbers import truncate
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.analysis import allocator_input, node_resources
from gpolicy.analysis.allocator_input import Unknown
from gpolicy.cluster.state import ClusterState, LiveNode, Snapshot
from gpolicy.cluster.terms import LimitsInForce
from gpolicy.cluster.volume_pools import VolumesFrom
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS, HailParameters, hail_parameters
from gpolicy.ganeti.releases import unknown_release
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE
from gpolicy.printable import some

MEMORY_AND_CPUS: Final = "memory and CPUs"
DISK: Final = "disk"
VOLUMES: Final = "disk and spindles"
_MOST_NODES: Final = 3


class BasisKind(StrEnum):
    """What figures rest on."""

    MEASURED = "measured"
    DECLARED = "declared"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Basis:
    """What the figures of some nodes rest on."""

    kind: BasisKind
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    release: str = ""

    @property
    def sentence(self) -> str:
        """The basis in words; empty where all is measured, and judged by the cluster's own release."""
        release = f"; {self.release}" if self.release else ""
        if self.kind is BasisKind.MEASURED:
            return f"basis: measured{release}" if release else ""
        parts = [f"{what} of {some(nodes, _MOST_NODES)}" for what, nodes in self.declared.items()]
        rest = "" if self.kind is BasisKind.DECLARED else "; all else is measured"
        return f"basis: {self.kind.value}; declared: {', '.join(parts)}{rest}{release}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """What every answer to a question about one state says: its source, what figures rest on, and what counted.

    `what_if` says what is supposed, or counted otherwise than by Ganeti on request; `limits` are those in force.
    `unknown` are the groups that the question is about and that did not count. `parameters` says what the cluster's
    parameters for hail change of the answer. `nodes_before` are what the answer is about, `nodes_after` the same when
    its advice was followed; none where it has none.
    """

    source: str
    cluster_name: str
    basis: Basis
    """What the figures of nodes rest on."""
    snapshot: Snapshot | None = None
    what_if: tuple[str, ...] = ()
    limits: tuple[LimitsInForce, ...] = ()
    parameters: tuple[str, ...] = ()
    unknown: Mapping[str, Unknown] = field(default_factory=dict)
    nodes_before: tuple[NodeUse, ...] = ()
    nodes_after: tuple[NodeUse, ...] = ()

    @property
    def not_known(self) -> tuple[str, ...]:
        """The groups that did not count, with the reason of each, as sentences."""
        return allocator_input.not_known(self.reasons)

    @property
    def reasons(self) -> dict[str, str]:
        """Why groups did not count, by name."""
        return {group: item.reason for group, item in self.unknown.items()}

    @property
    def grounds(self) -> tuple[str, ...]:
        """What the figures rest on, as sentences, and what would make known what is not."""
        basis = "basis: simulated, no node was asked" if self.source.startswith("sim:") else self.basis.sentence
        ways_out = dict.fromkeys(item.way_out for item in self.unknown.values())
        return (*self.what_if, basis, *(item.sentence for item in self.limits), *self.parameters, *ways_out)


def origin_of(state: ClusterState, counted_otherwise: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a `StateReport` says of the origin of its state, of what is supposed there and counted otherwise."""
    what_if = (*state.supposed, *counted_otherwise)
    return {"source": state.source, "cluster_name": state.name, "snapshot": state.snapshot, "what_if": what_if}


@dataclass(slots=True)
class Figures:
    """What counts of one node that is not offline: configured resources, and words on what they rest on.

    `measured` are the figures that the node reports, in words, `declared` those that rest on hv_state and disk_state or
    on hardware that a policy promises, `gaps` those that nothing gives. `assumed` are the defaults that count, by name.
    `stated` is what hv_state and disk_state say beside what the node reports, whether it counts or not.
    """

    hypervisor: Mapping[str, int] | None = None
    disk: Mapping[str, int] | None = None
    declared: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    stated: tuple[node_resources.DeclaredNumber, ...] = ()
    assumed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settled:
    """What is known of a state as the allocator's input, with what takes the place of measured figures.

    `state` and `data` lack the groups in `unknown`; the instances `split` have lost their secondary node with one of
    them. `volumes` is what physical volumes say of nodes with exclusive storage that do not show disk and spindles.
    `figures` are those of each node that is not offline, by name. `hail` is what the cluster's parameters make of hail.
    """

    state: ClusterState
    data: ClusterData
    volumes: Mapping[str, node_resources.VolumeResources]
    figures: Mapping[str, Figures]
    hail: HailParameters
    unknown: Mapping[str, Unknown] = field(default_factory=dict)
    split: tuple[str, ...] = ()

    @property
    def resources(self) -> dict[str, NodeResources]:
        """The configured resources of the nodes that have some, by name."""
        found = self.figures.items()
        return {name: NodeResources(item.hypervisor, item.disk) for name, item in found if item.hypervisor or item.disk}

    @property
    def stated(self) -> dict[str, tuple[node_resources.DeclaredNumber, ...]]:
        """What hv_state and disk_state say of the nodes of which they say something, by name."""
        return {name: item.stated for name, item in self.figures.items() if item.stated}

    @property
    def gaps(self) -> dict[str, tuple[str, ...]]:
        """The figures that nothing gives, of the nodes that lack any, by name."""
        return {name: tuple(item.gaps) for name, item in self.figures.items() if item.gaps}

    def basis(self, nodes: Iterable[str]) -> Basis:
        """Return what the figures of `nodes` rest on."""
        found: dict[str, list[str]] = {}
        some_measured = False
        for name in sorted(self.figures.keys() & set(nodes)):
            some_measured = some_measured or bool(self.figures[name].measured)
            for what in self.figures[name].declared:
                found.setdefault(what, []).append(name)
        kind = BasisKind.MEASURED if not found else BasisKind.MIXED if some_measured else BasisKind.DECLARED
        declared = {what: tuple(names) for what, names in found.items()}
        return Basis(kind, declared, unknown_release(self.state.software_version))


def settle(state: ClusterState, *, resource_model: bool = False) -> Settled:
    """Return what counts of the nodes of `state`: measured figures and, where they are missing, declared ones.

    With `resource_model` what hv_state and disk_state declare goes before measured figures. Groups that cannot be
    counted are left out (`unknown`). Limits of the policy change nothing of it.
    """
    settled = settle_readable(state, resource_model=resource_model)
    if settled.gaps:
        unknown = {**settled.unknown, **allocator_input.groups_with_gaps(state, settled.gaps)}
        known, split = allocator_input.without_groups(state, unknown)
        settled = replace(_settle_all(known, resource_model=resource_model), unknown=unknown, split=split)
    instances = (on_primary(item) if item.name in settled.split else item for item in settled.data.instances)
    return replace(settled, data=replace(settled.data, instances=tuple(instances))) if settled.split else settled


def settle_readable(state: ClusterState, *, resource_model: bool = False) -> Settled:
    """Return what counts of all groups whose instances htools can read, though nodes there lack figures (`gaps`)."""
    unknown = allocator_input.groups_with_unreadable_instances(state)
    known, split = allocator_input.without_groups(state, unknown)
    return replace(_settle_all(known, resource_model=resource_model), unknown=unknown, split=split)


def on_primary(instance: Instance) -> Instance:
    """Return a split instance without its secondary. Its disk keeps the metadata of DRBD, as on the real primary."""
    template = DiskTemplate.PLAIN if instance.template is DiskTemplate.DRBD else instance.template
    return replace(instance, secondary=NO_NODE, template=template)


def _settle_all(state: ClusterState, *, resource_model: bool) -> Settled:
    """Return what counts of all groups. Physical volumes stand for disk and spindles that nodes do not show."""
    silent = [node for node in state.nodes.values() if "spindles" in allocator_input.missing_figures(node, state)]
    found = {node.name: node_resources.volume_resources(state, node) for node in silent}
    volumes = {name: item for name, item in found.items() if item is not None}
    if volumes:
        filled = {
            name: replace(state.nodes[name], resources=replace(state.nodes[name].resources, **item.figures))
            for name, item in volumes.items()
        }
        state = replace(state, nodes={**state.nodes, **filled})
    data = allocator_input.cluster_data(state)
    promised = {name for name, item in volumes.items() if item.known_from is VolumesFrom.PROMISED}
    hail = hail_parameters(state.cluster.own.get(ALLOCATOR_PARAMETERS))
    finder = _FigureFinder(state, data, hail.static_kvm_node_memory, model_first=resource_model, promised=promised)
    figures = {item.name: finder.find(item) for item in data.nodes if state.nodes[item.name].is_measured}
    return Settled(state, data, volumes, figures, hail)


def _shows_disk(node: LiveNode) -> bool:
    return None not in (node.resources.disk_total, node.resources.disk_free)


@dataclass
class _FigureFinder:
    """Finds the figures of nodes. `promised` are the nodes whose disk and spindles are those that a policy promises.

    `kvm_node_memory` is what hail takes for the memory of a node itself, as in `HailParameters`. Of each node, the
    methods are given the figures that it does not show, in words, and by Ganeti's names those of the resource model
    (`model`), and all that is `known` of it.
    """

    state: ClusterState
    data: ClusterData
    kvm_node_memory: int
    model_first: bool
    promised: set[str]

    @cached_property
    def _merged_cluster(self) -> Cluster:
        return merge(self.data, static_kvm_node_memory=self.kvm_node_memory)

    @cached_property
    def _status_unknown(self) -> set[str]:
        return {item.primary_node for item in self.state.instances.values() if item.status is None}

    def find(self, item: NodeData) -> Figures:
        """Return the figures of one node that is online."""
        node = self.state.nodes[item.name]
        missing = allocator_input.missing_figures(node, self.state)
        model = node_resources.declared_numbers(self.state, node)
        figures, shown = Figures(), dict[str, int]()
        if missing or model:
            values = node_resources.reported(self._merged_cluster.nodes[item.index], self._merged_cluster)
            hidden = {*missing, *([] if _shows_disk(node) else [DISK])}
            shown = {name: value for name, value in values.items() if _figure_of(name) not in hidden}
            figures.stated = node_resources.compared(self.state, node, shown)
        known = {**shown, **model} if self.model_first else {**model, **shown}
        self._memory_and_cpus(figures, node, missing, model, known)
        self._disk(figures, node, missing, model, known)
        return figures

    def _memory_and_cpus(
        self, figures: Figures, node: LiveNode, missing: Collection[str], model: Collection[str], known: dict[str, int]
    ) -> None:
        if not {"memory", "CPUs"} & set(missing) and not self._goes_first(HV_STATE, model):
            figures.measured.append(MEMORY_AND_CPUS)
            if node.name in self._status_unknown:
                figures.gaps.append("whether instances run")
            return
        promise = self.state.terms_of(node.group).promise
        static = self.kvm_node_memory if self.kvm_node_memory > 0 else allocator_input.KVM_NODE_MEMORY
        kept = static if self.data.hypervisor == "kvm" else 0
        defaults = {"mem_node": kept, "mem_hv": 0, "cpu_node": HV_STATE["cpu_node"][0]}
        promised = self._promised({"mem_total": promise.memory, "cpu_total": promise.cpus}, node, HV_STATE)
        found = {**defaults, **promised, **known}
        gaps = [what for what, name in (("memory", "mem_total"), ("CPUs", "cpu_total")) if name not in found]
        figures.gaps += gaps
        if not gaps:
            figures.hypervisor = {name: found[name] for name in HV_STATE}
            figures.assumed |= {name: value for name, value in defaults.items() if name not in {*promised, *known}}
            figures.declared.append(MEMORY_AND_CPUS)

    def _disk(
        self, figures: Figures, node: LiveNode, missing: Collection[str], model: Collection[str], known: dict[str, int]
    ) -> None:
        what = VOLUMES if self.state.has_exclusive_storage(node) else DISK
        if "spindles" in missing:
            figures.gaps += [word for word in (DISK, "spindles") if word in missing]
        elif not _shows_disk(node) or self._goes_first(DISK_STATE, model):
            promise = self.state.terms_of(node.group).promise
            promised = self._promised({"disk_total": sum(promise.volumes or ()) or None}, node, DISK_STATE)
            found = {"disk_reserved": 0, "disk_overhead": 0, **promised, **known}
            if "disk_total" in found:
                figures.disk = {name: found[name] for name in DISK_STATE}
                figures.declared.append(what)
            elif DISK in missing:
                figures.gaps.append(DISK)
        elif node.name in self.promised:
            figures.declared.append(what)
        else:
            figures.measured.append(what)

    def _goes_first(self, table: Collection[str], model: Collection[str]) -> bool:
        return self.model_first and any(name in model for name in table)

    def _promised(self, hardware: Mapping[str, int | None], node: LiveNode, table: Collection[str]) -> dict[str, int]:
        """Return the promised `hardware`, and before it what the policy declares that is not in force yet."""
        known = {name: value for name, value in hardware.items() if value is not None}
        to_come = node_resources.declared_by_policy(self.state, node)
        return known | {name: value for name, value in to_come.items() if name in table}


def _figure_of(name: str) -> str:
    """Return the figure that a number of hv_state or disk_state is part of."""
    return DISK if name in DISK_STATE else "CPUs" if name.startswith("cpu_") else "memory"


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node, its instances, memory and disk (MiB). A total of 0: its figures are not known.

    Of the memory, `own` is what the node itself and other programs keep, `used` what instances use, and `reserved` what
    N+1 keeps for the loss of another node. `tiled`: all instances are of one size. `state` is empty for an ordinary
    node.
    """

    name: str
    group: str
    total: int
    own: int
    used: int
    reserved: int
    instances: int
    state: str = ""
    disk_used: int = 0
    disk_total: int = 0
    tiled: bool = False

    @property
    def free(self) -> int:
        """The memory for more instances."""
        return max(0, self.total - self.own - self.used - self.reserved)

    @property
    def short(self) -> int:
        """The memory that is missing for all of it."""
        return max(0, self.own + self.used + self.reserved - self.total) if self.total else 0


def node_uses(state: ClusterState, nodes: Iterable[Node], group: str | None = None) -> tuple[NodeUse, ...]:
    """Return the `nodes` of the allocator; in `group`, or as the state has them, with those that it does not know."""
    found = {node.facts.name: _use(node, state.nodes.get(node.facts.name), group) for node in nodes}
    if group is None:
        runs = Counter(item.primary_node for item in state.instances.values())
        for name, node in state.nodes.items():
            found.setdefault(name, NodeUse(name, node.group, 0, 0, 0, 0, runs[name], _node_state(node)))
    return tuple(found.values())


def _use(node: Node, observed: LiveNode | None, group: str | None) -> NodeUse:
    total, disk = max(0, truncate(node.facts.total_memory)), max(0, truncate(node.facts.total_disk))
    used = node.instance_memory
    return NodeUse(
        name=node.facts.name,
        group=group or (observed.group if observed else ""),
        total=total,
        own=max(0, total - node.unallocated_memory - used),
        used=used,
        reserved=node.reserved_memory,
        instances=len(node.primaries),
        state=_node_state(observed) if observed else "",
        disk_used=max(0, disk - node.free_disk),
        disk_total=disk,
    )


def _node_state(node: LiveNode) -> str:
    return "offline" if node.offline else "drained" if node.drained else "master" if node.master else ""
