"""Run the tests of a policy, or those that take no time: whose cluster the policy itself describes, and is small.

The cluster of a test is a snapshot or simulated, with the policy applied and then the test's edits.
The hardware of a simulated one does not exist: a test says it, or the groups of a policy promise it. The policy is
applied as a plan would do it; only the groups of nodes come from the test. A node has its memory less that of the node
itself (`hv_state`: mem_node and mem_hv of the cluster's hypervisor), its CPUs of which `cpu_node` are in use, and its
disk: under exclusive storage what Ganeti counts of its physical volumes. If `hv_state` and `disk_state` of the policy
name only one hypervisor or volume group, that is the cluster's. Sources: design documents "resource model" and
"partitioned Ganeti".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import comb
from pathlib import Path
from typing import Final

from gpolicy.allocator.compiled_allocation import Budget
from gpolicy.analysis.node_resources import declared_numbers, only_named
from gpolicy.cluster.htools_sources import built_in_values
from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode, PhysicalVolume, Resources
from gpolicy.cluster.state_files import parse_snapshot
from gpolicy.errors import GpolicyError
from gpolicy.findings import Located, Severity
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import MINMAX, Level, Values
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.opening import read_below, real_path, reason
from gpolicy.plan.changes import MEMBERSHIP
from gpolicy.plan.diff import diff
from gpolicy.plan.sides import planned_sides, sides_of
from gpolicy.policy.files import boundary
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import LARGEST_SNAPSHOT
from gpolicy.policy.model import GroupPolicy, promised_nodes
from gpolicy.policy.scenario import Action, Machine, Scenario, SimulatedGroup, SimulatedNode, Stage, StageEdit
from gpolicy.printable import count
from gpolicy.resolve.desired import pair_names, promise_of, terms_of
from gpolicy.testing.checks import check_capacity, check_conformity, check_place, check_redundancy
from gpolicy.testing.outcome import CannotRunError, Outcome, errors_at, known_name, with_instances
from gpolicy.what_if.load import moved, offline, without, without_node
from gpolicy.what_if.supposing import WhatIf, read_more, read_upgrade, suppose


class Stages:
    """Makes the clusters of tests; `given` replaces the promised hardware for tests that name no cluster."""

    def __init__(self, policy: Policy, given: ClusterState | None = None) -> None:
        self._policy = policy
        self._given = given
        self._known: dict[str, ClusterState] = {}

    def cluster(self, stage: Stage, name: str) -> ClusterState:
        """Return the cluster of the test called `name`. Raise GpolicyError if it cannot be made."""
        state = self.before_edits(stage, name)
        for edit in stage.edits:
            state = edited(self._policy, state, edit)
        return state

    def before_edits(self, stage: Stage, name: str) -> ClusterState:
        """Return the cluster of a test without its edits. Raise GpolicyError if it cannot be made."""
        if stage.simulated:
            source = f"test {name!r}"
            return self._once(f"stage {id(stage)}", lambda: simulated_cluster(self._policy, stage.simulated, source))
        if (snapshot := stage.snapshot) is not None:
            return self._once(snapshot.value, lambda: self._read(snapshot))
        if self._given is not None:
            given = self._given
            return self._once("", lambda: self._under_policy(given, None))
        return self._once("promised", lambda: promised_cluster(self._policy, "the promised hardware"))

    def _once(self, key: str, make: Callable[[], ClusterState]) -> ClusterState:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _read(self, snapshot: Located[str]) -> ClusterState:
        try:
            home = boundary(self._policy.root or Path()).home
            data = read_below(home, real_path(snapshot.value), LARGEST_SNAPSHOT)
        except OSError as error:
            raise CannotRunError(f"{snapshot.value}: {reason(error)}", snapshot.span) from None
        with errors_at(snapshot.span):
            state = parse_snapshot(data, snapshot.value)
        return self._under_policy(state, snapshot)

    def _under_policy(self, state: ClusterState, snapshot: Located[str] | None) -> ClusterState:
        made = planned_sides(self._policy, state)
        wrong = next((item for item in made.difference.findings if item.severity is Severity.ERROR), None)
        if wrong is not None:
            message = f"the policy does not match the cluster: {wrong.message}"
            raise CannotRunError(message, snapshot.span if snapshot else wrong.span, hint=wrong.hint or None)
        return made.after


def edited(policy: Policy, state: ClusterState, edit: StageEdit) -> ClusterState:
    """Return `state` after an edit. Raise CannotRunError if the edit is impossible."""
    with errors_at(edit.span):
        if edit.add is not None:
            return with_instances(policy, state, edit.add)
        if edit.removed_instance is not None:
            return without(state, [known_name(edit.removed_instance, state.instances, "instance")])
        if edit.removed_node is not None:
            return without_node(state, known_name(edit.removed_node, state.nodes, "node"))
        if edit.instance is not None:
            instance = state.instances[known_name(edit.instance, state.instances, "instance")]
            changed = replace(instance, tags=(instance.tags - set(edit.remove_tags)) | set(edit.add_tags))
            return replace(state, instances={**state.instances, instance.name: changed})
        if edit.node is not None:
            return _changed_node(state, known_name(edit.node, state.nodes, "node"), edit)
        what_if = WhatIf(
            more=() if edit.more is None else (read_more(edit.more.value),),
            upgrades=() if edit.upgrade is None else (read_upgrade(edit.upgrade.value),),
            lost=() if edit.lost is None else (edit.lost.value,),
        )
        return suppose(state, what_if, pair_names(policy, state))


def _changed_node(state: ClusterState, name: str, edit: StageEdit) -> ClusterState:
    if edit.group is not None:
        state = moved(state, name, known_name(edit.group, state.groups, "group"))
    if edit.offline:
        state = offline(state, [name])
    node = state.nodes[name]
    changed = replace(
        node,
        offline=node.offline if edit.offline is None else edit.offline,
        drained=node.drained if edit.drained is None else edit.drained,
        tags=(node.tags - set(edit.remove_tags)) | set(edit.add_tags),
    )
    return replace(state, nodes={**state.nodes, name: changed})


FIRST_GROUP: Final = "default"
"""The group that Ganeti creates with a cluster, used for a policy without groups."""

_FREE_CPUS: Final = 1
"""Virtual CPUs that htools assumes for a node itself without a declaration."""


def simulated_cluster(policy: Policy, parts: Sequence[SimulatedGroup], source: str) -> ClusterState:
    """Return the cluster of `parts` under `policy`. Raise CannotRunError if a figure is missing."""
    machines: dict[str, tuple[SimulatedNode, Machine]] = {}
    groups: dict[str, str] = {}
    for part in parts:
        group = _group_of(part, policy)
        promised = _promised(policy.groups.get(group))
        for node in part.nodes:
            machines[node.name] = node, _filled_in(node.machine, part.machine, promised)
            groups[node.name] = group
    state = _under(policy, groups, machines, source)
    nodes = {
        name: _filled(state, _measured(state, state.nodes[name], machine), node)
        for name, (node, machine) in machines.items()
    }
    state = replace(state, nodes=nodes)
    for part in parts:
        for existing in part.instances:
            state = with_instances(policy, state, existing)
    nodes = {name: replace(node, resources=Resources()) if node.offline else node for name, node in state.nodes.items()}
    return replace(state, nodes=nodes)  # an offline node reports nothing


def promised_cluster(policy: Policy, source: str) -> ClusterState:
    """Return the promised cluster of `policy`: the nodes that its groups name, with their hardware.

    A group with incomplete hardware or an open number of nodes has no nodes here.
    """
    parts = []
    for group in policy.groups.values():
        nodes = promised_nodes(group) if group.removed is None else None
        promised = _promised(group)
        if nodes is None or group.hardware is None or promised.memory is None or promised.cpus is None:
            continue
        span = group.hardware.span
        simulated = tuple(SimulatedNode(name=name, span=span) for name in nodes)
        named = Located(group.name, group.span)
        parts.append(SimulatedGroup(span=span, group=named, machine=Machine(), nodes=simulated))
    return simulated_cluster(policy, parts, source)


def _group_of(part: SimulatedGroup, policy: Policy) -> str:
    known = [group.name for group in policy.groups.values() if group.removed is None] or [FIRST_GROUP]
    if part.group is None:
        if len(known) > 1:
            hint = f"say `group:`, one of {', '.join(known)}"
            raise CannotRunError("the simulated nodes have no group", part.span, hint=hint)
        return known[0]
    if part.group.value not in known:
        hint = did_you_mean_one_of(part.group.value, "groups", known)
        raise CannotRunError(f"the policy has no group {part.group.value!r}", part.group.span, hint=hint)
    return part.group.value


def _under(
    policy: Policy, groups: Mapping[str, str], machines: Mapping[str, tuple[SimulatedNode, Machine]], source: str
) -> ClusterState:
    """Return the cluster after the policy is applied, without any figures of nodes."""
    built_in = built_in_values(policy.version)
    built_in |= only_named(path for item in policy.objects for path in item.leaves)
    preferred: Values = {("alloc_policy",): "preferred"}
    names = [group.name for group in policy.groups.values() if group.removed is None]
    names = list(dict.fromkeys([*names, *groups.values()])) or [FIRST_GROUP]
    bare = ClusterState(
        source=source,
        name=policy.cluster.name if policy.cluster else "test.example.org",
        software_version=None,
        cluster=ClusterObject(own=built_in),
        groups={
            name: LiveGroup(name=name, own=preferred, effective=fill(preferred, built_in, Level.GROUP), position=place)
            for place, name in enumerate(names)
        },
        nodes={
            name: LiveNode(
                name=name,
                group=groups[name],
                own={} if machine.spindles is None else {("ndparams", "spindle_count"): machine.spindles},
                tags=frozenset(node.tags),
                offline=node.offline,
                drained=node.drained,
                master=place == 0,
                position=place,
            )
            for place, (name, (node, machine)) in enumerate(machines.items())
        },
        instances={},
    )
    difference = diff(policy, bare)
    changes = [change for change in difference.changes if change.path != MEMBERSHIP]
    return sides_of(bare, replace(difference, changes=changes), terms_of(policy, difference.desired)).after


def _promised(group: GroupPolicy | None) -> Machine:
    if group is None or group.hardware is None:
        return Machine()
    promise = promise_of(group.hardware)
    return Machine(memory=promise.memory, cpus=promise.cpus, pv_sizes=promise.volumes)


def _filled_in(*machines: Machine) -> Machine:
    """Return the first of `machines` with missing values from the next ones; disk and volumes go together."""
    disks = next((item for item in machines if item.disk is not None or item.pv_sizes is not None), Machine())

    def first(key: str) -> int | None:
        return next((getattr(item, key) for item in machines if getattr(item, key) is not None), None)

    numbers = {key: first(key) for key in ("memory", "memory_node", "cpus", "spindles")}
    return Machine(**numbers, disk=disks.disk, pv_sizes=disks.pv_sizes)


def _measured(state: ClusterState, node: LiveNode, machine: Machine) -> LiveNode:
    """Return the node with all its resources free."""
    kept = declared_numbers(state, node)
    if machine.memory is None or machine.cpus is None:
        missing = [name for name in ("memory", "cpus") if getattr(machine, name) is None]
        hint = f"write {' and '.join(missing)} beside the nodes, or as `hardware` of group {node.group}"
        raise CannotRunError(f"unknown for node {node.name}: {', '.join(missing)}", hint=hint)
    memory_node = machine.memory_node if machine.memory_node is not None else kept.get("mem_node", 0)
    free = machine.memory - memory_node - kept.get("mem_hv", 0)
    if free < 0:
        raise CannotRunError(f"node {node.name} keeps more memory for itself than its {machine.memory} MiB")
    disk, volumes = _storage(state, node, machine)
    sizes = enumerate(machine.pv_sizes or (), start=1)
    listed = tuple(PhysicalVolume(name=f"pv{number}", size=size, free=size, used=0) for number, size in sizes)
    resources = Resources(
        memory_total=machine.memory,
        memory_node=memory_node,
        memory_free=free,
        disk_total=disk,
        disk_free=disk,
        cpu_total=machine.cpus,
        cpu_node=kept.get("cpu_node", _FREE_CPUS),
        spindles_total=volumes,
        spindles_free=volumes,
    )
    return replace(node, resources=resources, physical_volumes=listed if volumes else None)


def _storage(state: ClusterState, node: LiveNode, machine: Machine) -> tuple[int | None, int | None]:
    """Return the disk (MiB) of an empty node, and its physical volumes if they count."""
    sizes = machine.pv_sizes
    if state.has_exclusive_storage(node):
        if not sizes:
            hint = f"write pv_size and pv_count beside the nodes, or as `hardware` of group {node.group}"
            raise CannotRunError(f"unknown for node {node.name}: its physical volumes", hint=hint)
        usable = state.terms_of(node.group).volumes.volume_size(min(sizes)).usable
        return len(sizes) * usable, len(sizes)
    if machine.disk is not None:
        return machine.disk, None
    return (sum(sizes), None) if sizes else (None, None)


def _filled(state: ClusterState, node: LiveNode, simulated: SimulatedNode) -> LiveNode:
    """Return the (still empty) `node` with as many quarters in use as `simulated` says.

    A quarter of a node is a quarter of its resources for instances: memory, virtual CPUs under the group's vcpu-ratio,
    disk or physical volumes, each rounded down. Used quarters count as the node's own use, not as instances: those
    would have no size of the policy, so htools could not move them and would find no redundancy.
    """
    quarters, resources = simulated.filled, node.resources
    if not quarters:
        return node
    ratio = state.groups[node.group].effective.get(("ipolicy", "vcpu-ratio"))
    cpu_node = resources.cpu_node or 0
    cpus = (resources.cpu_total or 0) * (ratio if isinstance(ratio, int | float) else 1) - cpu_node
    volumes, disk, memory = resources.spindles_total, resources.disk_total, resources.memory_free or 0
    if volumes is not None and volumes % 4:
        message = f"node {node.name} has {count(volumes, 'physical volume')}: no quarter of them can be in use"
        raise CannotRunError(message, simulated.span, hint="name the instances that are there instead")
    used = replace(
        resources,
        memory_node=(resources.memory_node or 0) + quarters * (memory // 4),
        memory_free=memory - quarters * (memory // 4),
        disk_free=None if disk is None else disk - quarters * (disk // 4),
        cpu_node=cpu_node + quarters * max(0, int(cpus // 4)),
        spindles_free=None if volumes is None else volumes - quarters * (volumes // 4),
    )
    return replace(node, resources=used)


_MOST_STEPS: Final = 100_000_000
"""Of all tests of a run: 20 seconds, at 5 million steps a second."""
_MOST_OF_ONE: Final = 30_000_000
"""Of one count of a test."""
_STEPS_OF_RECORD: Final = 500
"""What it takes to make a node or an instance of the cluster of a test."""


def run_tests(
    policy: Policy, *, chosen: Iterable[Scenario] | None = None, stages: Stages | None = None
) -> list[Outcome]:
    """Return the outcomes of the tests of `policy` (by default all, else those in `chosen`), in their order.

    `stages` makes their clusters. A test that cannot run is an outcome, not an exception.
    """
    stages, budget = stages or Stages(policy), Budget(_MOST_STEPS, _MOST_OF_ONE)
    return [_run(policy, stages, scenario, budget) for scenario in (policy.scenarios if chosen is None else chosen)]


def _run(policy: Policy, stages: Stages, scenario: Scenario, budget: Budget) -> Outcome:
    outcome = Outcome(name=scenario.name.value, action=scenario.action, span=scenario.span)
    if budget.left <= 0:
        hint = "run it alone (-k NAME), or split the policy"
        return replace(outcome, error="not run: the tests before it took all the time that there is", hint=hint)
    try:
        cluster = stages.cluster(scenario.stage, scenario.name.value)
        budget.left -= _STEPS_OF_RECORD * (len(cluster.nodes) + len(cluster.instances))
        match scenario.action:
            case Action.PLACE:
                checks = check_place(policy, cluster, scenario)
            case Action.CHECK_INSTANCE:
                checks = check_conformity(policy, cluster, scenario)
            case Action.CAPACITY:
                checks = check_capacity(policy, cluster, scenario, budget)
            case Action.REDUNDANCY:
                checks = check_redundancy(cluster, scenario)
        return replace(outcome, checks=tuple(checks))
    except GpolicyError as error:
        place = error.span if isinstance(error, CannotRunError) else None
        return replace(outcome, error=error.message, hint=error.hint, place=place)


MOST_TESTS: Final = 100
MOST_NODES: Final = 24
MOST_INSTANCES: Final = 20_000
"""The greatest number of instances that may fit for their capacity to be counted."""
_MOST_LOSSES: Final = 300
_LARGE_SNAPSHOT: Final = 512 * 1024
_STANDARD: Final = ("ipolicy", "std", "memory-size")


def run_small_tests(policy: Policy) -> list[Outcome]:
    """Return the outcomes of the first MOST_TESTS small tests of a policy."""
    stages = Stages(policy)
    small = (scenario for scenario in policy.scenarios if _is_small(stages, scenario))
    return run_tests(policy, chosen=list(islice(small, MOST_TESTS)), stages=stages)


def idle_edits(policy: Policy) -> Iterator[tuple[Scenario, StageEdit]]:
    """Yield the edits of small tests that leave their cluster as it was."""
    stages = Stages(policy)
    small = (scenario for scenario in policy.scenarios if scenario.stage.edits and _is_small(stages, scenario))
    for scenario in islice(small, MOST_TESTS):
        try:
            state = stages.before_edits(scenario.stage, scenario.name.value)
            for edit in scenario.stage.edits:
                before, state = state, edited(policy, state, edit)
                if state == before:
                    yield scenario, edit
        except GpolicyError:
            continue  # the test cannot run, which is said by its outcome


def _is_small(stages: Stages, scenario: Scenario) -> bool:
    stage = scenario.stage
    if sum(len(part.nodes) for part in stage.simulated) > MOST_NODES or _is_large(stage.snapshot):
        return False
    if sum(existing.count or 1 for part in stage.simulated for existing in part.instances) > MOST_INSTANCES:
        return False
    try:
        state = stages.before_edits(stage, scenario.name.value)
    except GpolicyError:
        return True  # it cannot run, at once
    failures = (scenario.redundancy.failures or 1) if scenario.redundancy is not None else 0
    if len(state.nodes) > MOST_NODES or comb(len(state.nodes), failures) > _MOST_LOSSES:
        return False
    return scenario.action is not Action.CAPACITY or _is_counted_soon(state)


def _is_large(snapshot: Located[str] | None) -> bool:
    """Return whether it takes long to read a snapshot."""
    with suppress(OSError):
        return snapshot is not None and real_path(snapshot.value).stat().st_size > _LARGE_SNAPSHOT
    return False


def _is_counted_soon(state: ClusterState) -> bool:
    """Return whether few instances fit, even of the smallest size."""
    sizes = [group.effective.get(_STANDARD) for group in state.groups.values()] + [state.cluster.own.get(_STANDARD)]
    for group in state.groups.values():
        pairs = group.effective.get(MINMAX)
        for pair in pairs if isinstance(pairs, list) else ():
            low = pair.get("min") if isinstance(pair, dict) else None
            sizes.append(low.get("memory-size") if isinstance(low, dict) else None)
    least = min((size for size in sizes if isinstance(size, int) and size > 0), default=1)
    return sum(node.resources.memory_total or 0 for node in state.nodes.values()) <= MOST_INSTANCES * least
