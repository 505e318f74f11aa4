"""The effects of losing nodes at once: htools' evacuation of their instances.

The steps are those of the global N+1 test (`gpolicy.allocator.redundancy.evacuate`). That test stops at the first
instance without a new node; here all such instances are found, with the reason. Unlike htools, a node may be asked to
keep its vcpu-ratio when it takes an instance (`cpus`); otherwise a breach is a strain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.engines import EngineCluster, engine_cluster
from gpolicy.allocator.ghc_numbers import divide
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move, may_migrate
from gpolicy.allocator.node_changes import add_primary, keeps_vcpu_ratio, lacks_memory
from gpolicy.allocator.placement import Nodes
from gpolicy.allocator.redundancy import CapacityRules, evacuate
from gpolicy.analysis.binding import BY_REASON, Cause, bounds_detail, policy_refusal, short_of
from gpolicy.ganeti.amounts import compared_sizes, exact_size
from gpolicy.printable import count


@dataclass(frozen=True, slots=True)
class Homeless:
    """An instance that finds no new node (or one only against the policy), and why."""

    instance: str
    key: str
    explanation: str
    detail: str


def _homeless(instance: Instance, cause: Cause, detail: str) -> Homeless:
    return Homeless(instance.name, cause.key, cause.sentence, detail)


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of some nodes at once."""

    nodes: tuple[str, ...]
    homeless: tuple[Homeless, ...]
    strained: tuple[Homeless, ...] = ()

    @property
    def absorbed(self) -> bool:
        """Whether every instance that can be restarted finds a new node."""
        return not self.homeless


def lose(
    nodes: Nodes, instances: Mapping[int, Instance], lost: Sequence[int], engine: EngineCluster | None, *, cpus: bool
) -> Loss:
    """Return the effects of losing `lost`, nodes of one group, on their instances.

    A mirrored instance that loses both nodes, while others are left, does not count, as nothing can be restarted.
    `cpus`: a node that would break its vcpu-ratio does not take an instance; without, that is a strain. `engine` finds
    their new nodes (`EngineCluster.targets`); without it, or if it cannot answer, the law does.
    """
    residents = [instances[number] for index in lost for number in nodes[index].primaries]
    homes = None if engine is None else engine.targets(lost, cpus=cpus)

    def known_home(_state: Nodes, instance: Instance, _escape: Sequence[int]) -> int | None:
        assert homes is not None  # noqa: S101 (asked by the caller)
        return None if homes[instance.index] == NO_NODE else homes[instance.index]

    group = nodes[lost[0]].facts.group
    others = [instance for instance in residents if instance.template is not DiskTemplate.DRBD]
    all_at_home = homes is not None and not any(homes[instance.index] == NO_NODE for instance in others)
    state = dict(nodes)
    homeless, strained = list[Homeless](), list[Homeless]()

    def escape() -> list[int]:
        return [index for index, node in nodes.items() if node.facts.group == group and index not in lost]

    if len(lost) > 1 and all(nodes[index].facts.offline for index in escape()):
        # htools' steps skip an instance that loses both nodes; here it is lost
        both = (item for item in residents if item.template is DiskTemplate.DRBD and item.secondary in lost)
        homeless += (_nowhere([], item, Counter()) for item in both)
    for instance, home in evacuate(state, instances, lost, None if homes is None else known_home, cpus=cpus):
        if isinstance(home, FailReason):
            homeless.append(_homeless(instance, BY_REASON[home], _failover_detail(state, instance, home)))
        elif instance.template is DiskTemplate.DRBD:
            strained += _strain(nodes[instance.secondary], state[instance.secondary], instance)
        elif all_at_home:
            break
        elif home is None:
            causes = list(obstacles(state, instance, escape(), cpus=cpus))
            if None in causes:
                raise AssertionError("the engine and the node model disagree: an instance has a home")
            homeless.append(_nowhere([state[index] for index in escape()], instance, Counter(filter(None, causes))))
    return Loss(tuple(nodes[index].facts.name for index in lost), tuple(homeless), tuple(strained))


@dataclass(frozen=True, slots=True)
class FirstLoss:
    """The first loss of nodes that leaves an instance without a new node."""

    nodes: tuple[str, ...]
    homeless: Homeless
    memory: int

    @property
    def sentence(self) -> str:
        """The loss in words."""
        item = self.homeless
        why = ", fits no size of the policy" if item.key == Cause.BOUNDS.key else f": {item.key}, {item.detail}"
        what = f"{item.instance}, {exact_size(self.memory)}{why}"
        return f"the loss of {' + '.join(self.nodes)} cannot be absorbed ({what})"


def first_loss(
    nodes: Nodes, instances: Mapping[int, Instance], members: Sequence[int], rules: CapacityRules
) -> FirstLoss | None:
    """Return the first loss of as many nodes of one group, among `members`, as may fail, that is not absorbed."""
    engine = engine_cluster(nodes, instances)
    memory = {item.name: item.memory for item in instances.values()}
    for size in range(1, rules.failures + 1):
        for lost in combinations(members, size):
            if len({nodes[index].facts.group for index in lost}) == 1:
                loss = lose(nodes, instances, lost, engine, cpus=rules.cpus)
                if loss.homeless:
                    return FirstLoss(loss.nodes, loss.homeless[0], memory[loss.homeless[0].instance])
    return None


def needs_only_memory(nodes: Nodes, instance: Instance, node: Node) -> bool:
    """Whether surely only lack of memory can stop the fail-over of `instance` from `node`; False if unsure.

    The fail-over takes from both nodes as much disk as it gives back.
    """
    target = nodes.get(instance.secondary)
    return (
        target is not None
        and target is not node
        and not instance.forthcoming
        and instance.memory >= 0
        and not (node.facts.exclusive or target.facts.exclusive)
        and node.free_disk > 0
        and target.free_disk > 0
        and may_migrate(node, target)
    )


def _failover_detail(state: Nodes, instance: Instance, reason: FailReason) -> str:
    secondary = state[instance.secondary]
    name = secondary.facts.name
    match reason:
        case FailReason.MEM:
            wanted = instance.memory if instance.uses_memory else 0
            return f"{name}: {short_of(secondary, 'memory', wanted, secondary.unallocated_memory)}"
        case FailReason.DISK:
            full = [node for node in (secondary, state[instance.primary]) if node.free_disk <= 0]
            places = ", ".join(f"{node.facts.name} has {exact_size(node.free_disk)}" for node in full)
            return f"no disk is free: {places or name}"
        case FailReason.MIG:
            return f"{state[instance.primary].facts.name} may not migrate to {name}"
        case FailReason.CPU:
            return _cpu_detail(secondary, instance)
    return f"{name}: {count(secondary.free_spindles, 'spindle')} free"


def _cpu_detail(node: Node, instance: Instance) -> str:
    facts, cpus = node.facts, node.used_cpus + instance.vcpus
    return f"{facts.name}: {count(cpus, 'virtual CPU')} on {facts.total_cpus:g} CPUs, allowed {facts.vcpu_ratio:g} each"


def _strain(before: Node, node: Node, instance: Instance) -> list[Homeless]:
    """Return the breaches of the policy when the secondary takes over `instance`; `before`: before any loss."""
    found = []
    if before.ratio_cpu <= before.facts.vcpu_ratio and not keeps_vcpu_ratio(node, instance):
        found.append(_homeless(instance, Cause.VCPU_RATIO, _cpu_detail(node, instance)))
    if tags := [tag for tag in instance.exclusion_tags if tag in node.exclusion_tags]:
        found.append(_homeless(instance, Cause.TAGS, f"{node.facts.name}: has {', '.join(tags)} already"))
    return found


def _at_most(what: str, wanted: int, free: int) -> str:
    shown_wanted, shown_free = compared_sizes(wanted, max(0, free))
    return f"{shown_wanted} {what} wanted, at most {shown_free} free"


def _nowhere(nodes: Sequence[Node], instance: Instance, causes: Counter[Cause]) -> Homeless:
    """Return why no node of `nodes` takes `instance`: the most frequent cause, and the best figure."""
    if not causes:
        return _homeless(instance, Cause.NO_NODES, "no other node in the group")
    cause, number = causes.most_common(1)[0]
    match cause:
        case Cause.MEMORY:
            memory = instance.memory if instance.uses_memory else 0
            text = _at_most("memory", memory, max(node.unallocated_memory for node in nodes))
        case Cause.DISK:
            text = _at_most("disk", instance.disk, max(node.free_disk for node in nodes))
        case Cause.SPINDLES:
            number_wanted = instance.total_spindles
            what = "the spindles of its disks are unknown"
            if number_wanted is not None:
                what = f"{count(number_wanted, 'spindle')} wanted"
            text = f"{what}, at most {max(node.free_spindles for node in nodes)} free"
        case Cause.VCPU_RATIO:
            most = max(node.available_cpus for node in nodes)
            text = f"{count(instance.vcpus, 'virtual CPU')} wanted, at most {most} left"
        case Cause.BOUNDS:
            text = bounds_detail(nodes[0].facts.policy, instance, exclusive=nodes[0].facts.exclusive)
        case _:
            text = cause.sentence
    others = sum(causes.values()) - number
    rest = f"; {count(others, 'node')} for other reasons" if others else ""
    return _homeless(instance, cause, f"{text} on {count(number, 'node')}{rest}" if cause in _COUNTED else text)


_COUNTED = (Cause.MEMORY, Cause.DISK, Cause.SPINDLES, Cause.VCPU_RATIO)


def obstacles(state: Nodes, instance: Instance, targets: Sequence[int], *, cpus: bool) -> Iterator[Cause | None]:
    """Yield for each target, all of one group, what stops a forced move (or copy) of `instance` there, or None."""
    for index, cause in zip(targets, _forced(state, instance, targets), strict=True):
        too_many = cpus and cause is None and not keeps_vcpu_ratio(state[index], instance)
        yield Cause.VCPU_RATIO if too_many else cause


def _forced(state: Nodes, instance: Instance, targets: Sequence[int]) -> Iterator[Cause | None]:
    if instance.template.movable_foreign:
        for index in targets:
            if may_migrate(state[instance.primary], state[index]) and lacks_memory(state[index], instance):
                yield Cause.MEMORY
                continue
            moved = apply_move(state, InstanceMove(MoveKind.FAILOVER_TO, instance, index), force=True)
            yield BY_REASON[moved] if isinstance(moved, FailReason) else None
        return
    verdicts: dict[bool, Cause | None] = {}
    for index in targets:
        node, exclusive = state[index], state[index].facts.exclusive
        if exclusive not in verdicts:
            refused = policy_refusal(node.facts.policy, instance, exclusive=exclusive)
            verdicts[exclusive] = None if refused is None else refused[1]
        cause = verdicts[exclusive]
        if cause is None:
            added = add_primary(node, instance, force=True)
            cause = BY_REASON[added] if isinstance(added, FailReason) else None
        yield cause


class SureLosses:
    """Finds sets of at most `most` of `nodes` (one group) whose loss is surely absorbed without simulating it.

    199 nodes make 19,701 pairs, and the nodes of most pairs do not affect one another. A node is easy if its mirrored
    instances fail over to nodes that can only lack memory or CPUs, and each of its other instances has so many possible
    nodes that one remains for any set of lost nodes. A set of easy nodes is absorbed if each target has the memory, and
    the CPUs where they count, for all of its fail-overs. `cpus` is that of `lose`.
    """

    def __init__(self, nodes: Nodes, instances: Mapping[int, Instance], most: int, *, cpus: bool = True) -> None:
        counts = sorted((len(node.primaries) for node in nodes.values()), reverse=True)
        self._enough = sum(counts[:most]) + most  # each resident of a set changes one node, and the set itself is lost
        self._nodes, self._instances, self._cpus = nodes, instances, cpus
        self._online = frozenset(index for index, node in nodes.items() if not node.facts.offline)
        self._known: dict[int, dict[int, tuple[int, int]] | None] = {}
        self._takers: dict[Hashable, tuple[int, ...]] = {}

    def absorb(self, lost: Sequence[int]) -> bool:
        """Whether losing `lost` at once surely leaves no instance without a new node; False if unsure."""
        if len(lost) >= len(self._online) and self._online.issubset(lost):  # none is left to take over
            return False
        total: dict[int, tuple[int, int]] = {}
        for index in lost:
            if index not in self._known:
                self._known[index] = self._needs_of(index)
            needs = self._known[index]
            if needs is None:
                return False
            for target, (memory, cpus) in needs.items():
                before = total.get(target, (0, 0))
                total[target] = before[0] + memory, before[1] + cpus
        return all(target in lost or self._takes(self._nodes[target], *needs) for target, needs in total.items())

    def strains_nothing(self, lost: int) -> bool:
        """Whether losing one node is surely absorbed within the policy: within exclusion tags, and CPUs if `cpus`."""
        if not self.absorb((lost,)):
            return False
        moved = (self._instances[number] for number in self._nodes[lost].primaries)
        mirrored = (instance for instance in moved if instance.template is DiskTemplate.DRBD)
        tags = [(instance.secondary, tag) for instance in mirrored for tag in instance.exclusion_tags]
        return len(set(tags)) == len(tags) and not any(tag in self._nodes[one].exclusion_tags for one, tag in tags)

    def _takes(self, node: Node, memory: int, cpus: int) -> bool:
        too_many = 0 <= node.facts.vcpu_ratio < divide(node.used_cpus + cpus, node.facts.total_cpus)
        return memory < node.unallocated_memory and not (self._cpus and cpus and too_many)

    def _needs_of(self, lost: int) -> dict[int, tuple[int, int]] | None:
        """Return the memory (MiB) and CPUs that fail-overs from a node take, by target; None if it is not easy."""
        node = self._nodes[lost]
        needs: dict[int, tuple[int, int]] = {}
        for number in node.primaries:
            instance = self._instances[number]
            if instance.template is not DiskTemplate.DRBD:
                moves = instance.template.movable_foreign and not instance.forthcoming and self._all_move
                if not moves and sum(index != lost for index in self._takers_of(instance)) < self._enough:
                    return None
            elif needs_only_memory(self._nodes, instance, node) and instance.vcpus >= 0:
                memory, cpus = needs.get(instance.secondary, (0, 0))
                memory += instance.memory if instance.uses_memory else 0
                needs[instance.secondary] = memory, cpus + (instance.vcpus if instance.online else 0)
            else:
                return None
        return needs

    @cached_property
    def _all_move(self) -> bool:
        """Whether enough nodes would take an instance as large as any that moves: then each finds one."""
        if any(node.facts.migration_tags for node in self._nodes.values()):
            return False
        moving = [item for item in self._instances.values() if item.template.movable_foreign and not item.forthcoming]
        memory, cpus = max(0, *(item.memory for item in moving)), max(0, *(item.vcpus for item in moving))
        return sum(self._takes(node, memory, cpus) for node in self._nodes.values()) > self._enough

    def _takers_of(self, instance: Instance) -> tuple[int, ...]:
        """Return nodes that take an instance that is not mirrored, or a copy of it: one more than are enough."""
        moves, source = instance.template.movable_foreign and not instance.forthcoming, instance.primary
        if not instance.template.movable_foreign or (moves and not self._nodes[source].facts.migration_tags):
            source = NO_NODE  # the same for each: who asks leaves its own node out
        size = (instance.memory, instance.disk, instance.disks, instance.vcpus, instance.spindle_use, instance.networks)
        kind = (instance.template, instance.status, instance.forthcoming, instance.ignores_policy)
        key = (source, size, kind)
        if key not in self._takers:
            others = [index for index in self._nodes if index != source]
            if moves:  # only memory, CPUs and tags count
                memory = instance.memory if instance.uses_memory else 0
                cpus = max(0, instance.vcpus) if instance.online else 0
                here = self._nodes[instance.primary]
                near = (index for index in others if may_migrate(here, self._nodes[index]))
                taking = (index for index in near if self._takes(self._nodes[index], memory, cpus))
            else:
                found = zip(others, obstacles(self._nodes, instance, others, cpus=self._cpus), strict=True)
                taking = (index for index, obstacle in found if obstacle is None)
            self._takers[key] = tuple(islice(taking, self._enough + 1))
        return self._takers[key]
