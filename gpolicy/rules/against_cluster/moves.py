"""GP721 to GP726 and GP741 to GP743: groups that go, nodes that move, what nodes have, and what built-in guards say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.node_limits import own_pool
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.cluster.state import LiveInstance
from gpolicy.findings import NO_PLAN, Related, RuleParameter, Span, error_rule, warning_rule
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.ganeti.releases import release_of, unknown_release
from gpolicy.policy.guard import BUILT_IN
from gpolicy.policy.model import GroupPolicy, Hardware
from gpolicy.policy.source_file import Located
from gpolicy.printable import count
from gpolicy.rules.examples import CLUSTER, GROUP, SILVER, bounds
from gpolicy.rules.shapes import StateRule, WholePolicyRule

if TYPE_CHECKING:
    from gpolicy.plan.change import Objection

_SPINDLE_COUNT: Final[Path] = ("ndparams", "spindle_count")


def _sized(memory: str) -> str:
    sizes = bounds(memory, "1 16", "1G 1T", "1 8")
    return f"{GROUP}nodes: [node1.example.org]\nipolicy:\n  minmax:\n    - name: some\n      {sizes}---\n{SILVER}"


class LastGroupRemoved(StateRule, WholePolicyRule):
    info = error_rule("GP721", "last-group-removed", NO_PLAN)(
        summary="All groups of the cluster are to be removed.",
        rationale="Ganeti does not remove the last group, since a cluster always has one.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\n",
        good=GROUP,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        removed = {group.name: group for group in context.policy.groups.values() if group.removed is not None}
        observed = set(context.state.groups) if context.state else set()
        if removed and observed and observed <= set(removed) and not context.groups:
            group = removed[min(observed)]
            place = group.removed.span if group.removed else group.span
            message = f"{group.name} is the last group: Ganeti does not remove it"
            yield self.hit(group, message, place, hint="keep one group, or declare the one that takes its place")


class RemovedGroupHasNodes(StateRule, WholePolicyRule):
    info = error_rule("GP722", "removed-group-has-nodes", NO_PLAN)(
        summary="A group is to be removed, but the policy leaves nodes of the cluster in it.",
        rationale="Only an empty group can be removed.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\n---\n{SILVER}",
        good=f"{GROUP}removed: true\n---\n{SILVER}nodes: [node1.example.org]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.policy.groups.values():
            if group.removed is None or context.state is None:
                continue
            left = [node.name for node in context.members.nodes_in(group)]
            if left:
                others = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
                message = f"{group.name} is to be removed, but {left[0]}{others} still in it"
                yield self.hit(group, message, group.removed.span, hint="move these nodes to another group")


class MoveIntoStricterGroup(StateRule, WholePolicyRule):
    info = warning_rule("GP723", "move-into-stricter-group")(
        summary="A node is to move into a group whose instance policy does not allow the node's instances.",
        rationale="Ganeti moves nodes between groups without checking the policy or the exclusive storage of the"
        " target; only `gnt-cluster verify` reports it. hail and Ganeti then refuse to modify or move such instances"
        " without --ignore-ipolicy.",
        source="Ganeti 3.0, gnt-group assign-nodes, run",
        bad=_sized("8G 16G"),
        good=_sized("1G 16G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        state, desired = context.state, context.desired
        if state is None or desired is None:
            return
        current = {name: group.current for name, group in desired.groups.items()}
        found: dict[str, list[tuple[str, str, Span]]] = defaultdict(list)
        for name, instance in sorted(state.instances.items()):
            node, wanted = state.nodes.get(instance.primary_node), desired.nodes.get(instance.primary_node)
            group = context.policy.groups.get(wanted.group.value) if wanted and wanted.group else None
            if node is None or wanted is None or wanted.group is None or group is None:
                continue
            if current.get(group.name) != node.group:
                reason = _refused(context, group, instance)
                if reason:
                    found[group.name].append((name, reason, wanted.group.span))
        for name, instances in found.items():
            first, reason, span = instances[0]
            others = f", nor {count(len(instances) - 1, 'more instance')}" if len(instances) > 1 else ""
            message = f"group {name} does not allow {first} ({reason}){others} of the nodes that move into it"
            hint = "move or change the instances first, or allow them there"
            place = context.policy.groups[name].span
            yield self.hit(
                context.policy.groups[name], message, span, hint=hint, related=(Related(place, "the group"),)
            )


def _refused(context: Context, group: GroupPolicy, instance: LiveInstance) -> str:
    """Return why the policy that the group is declared to have does not allow an instance, or nothing."""
    templates = {disk.template for disk in instance.disks} or {instance.disk_template}
    allowed = context.effective(group, DISK_TEMPLATES)
    if allowed is not None and (other := sorted(templates - set(texts(allowed)))):
        return f"disk template {other[0]}"
    value = in_force(context, group, EXCLUSIVE_STORAGE)
    exclusive = value is not None and value.value is True
    if exclusive and (other := sorted(templates - {"plain", "diskless"})):
        return f"{other[0]} disks with exclusive storage"
    broken = [_outside(pair, instance, exclusive=exclusive) for pair in context.pairs(group)]
    if not broken or not all(broken):
        return ""
    name, had = next(iter(min(broken, key=len).items()))
    return f"{name} {amount(name, had)}"


def _outside(pair: Pair, instance: LiveInstance, *, exclusive: bool) -> Mapping[str, int]:
    """Return what of an instance lies outside of a pair; what the source does not tell is taken to fit."""
    spindles = [disk.spindles for disk in instance.disks]
    numbers: list[tuple[str, int | None]] = [
        ("memory-size", instance.maxmem),
        ("cpu-count", instance.vcpus),
        ("nic-count", instance.nic_count),
        ("spindle-use", sum(n or 0 for n in spindles) if exclusive else instance.spindle_use),
        *(("disk-size", disk.size) for disk in instance.disks),
    ]
    if instance.disks and instance.summed_disk is None:
        numbers.append(("disk-count", len(instance.disks)))
    if exclusive and None in spindles:
        numbers = [entry for entry in numbers if entry[0] != "spindle-use"]
    return {
        name: number
        for name, number in numbers
        if number is not None and not pair.minimum[name] <= number <= pair.maximum[name]
    }


class _GuardRule(Rule):
    """A rule about what the built-in guards have against the plan."""

    needs_state = needs_whole_policy = said_by_plan = True
    better = (
        ("expressible", ("GP101", "GP102")),
        ("templates-enabled", ("GP301", "GP308")),
        ("templates-in-use", ("GP309",)),
        ("std-in-bounds", ("GP205",)),
        ("groups-empty", ("GP721", "GP722")),
        ("storage-set-up", ("GP304", "GP305", "GP311")),
        ("exclusive-storage", ("GP412", "GP417", "GP418")),
    )
    overridable: ClassVar[bool]
    hint: ClassVar[str]

    def check(self, context: Context) -> Iterator[Hit]:
        if context.desired is None or context.desired.findings:
            return  # what the plan would be is not known before these are mended
        for name, raised in context.once(_objections).items():
            for objection in raised if BUILT_IN[name].overridable is self.overridable else ():
                yield self.hit("", f"{name}: {objection.text}", objection.span, hint=self.hint.format(name), guard=name)


def _objections(context: Context) -> Mapping[str, Sequence[Objection]]:
    """Return what the built-in guards have against the plan for the observed cluster."""
    return context.forecast.objections(context.policy, context.state) if context.state else {}


class PlanImpossible(_GuardRule):
    info = error_rule("GP741", "plan-impossible", NO_PLAN)(
        summary="Ganeti would refuse a part of the plan that the policy leads to.",
        rationale="The guards of `gpolicy plan` object to it, and nothing can override them: the plan could not be"
        " carried out to its end. Guards that other rules know more about (GP301, GP309, GP722) are reported by these.",
        source="gpolicy plan, built-in guards",
        bad=f"{GROUP}nodes: [node1.example.org]\n---\n{SILVER}nodes: [node2.example.org]\n",
        good=f"{GROUP}nodes: [node1.example.org, node2.example.org]\n---\n{SILVER}",
    )
    overridable = False
    hint = "change what the policy says, or the cluster, first"


class PlanUnsafe(_GuardRule):
    info = warning_rule("GP742", "plan-unsafe")(
        summary="A built-in guard would stop the plan that the policy leads to.",
        rationale="Ganeti would do without a question what may cut off the master, or redirect disks. `gpolicy plan`"
        " stops there, unless `--allow` overrides the guard.",
        source="gpolicy plan, built-in guards",
        bad=f"{CLUSTER}master_netdev: eth1\n",
        good=f"{CLUSTER}master_netdev: eth0\n",
    )
    overridable = True
    hint = "correct the policy; if it is meant, override the guard with gpolicy plan --allow {}"


class OtherRelease(StateRule):
    info = warning_rule("GP743", "other-release")(
        summary="The cluster has another release of Ganeti than the policy says, or one that gpolicy does not know.",
        rationale="Plans go by the cluster's release, and so does `check --state`. `check` alone and editors go by"
        " `ganeti_version`: they judge which parameters and values exist by a release that the cluster does not have.",
        source="gpolicy",
        bad=f'{CLUSTER}ganeti_version: "2.16"\n',
        good=f'{CLUSTER}ganeti_version: "3.0"\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        declared, state = context.policy.cluster, context.state
        if state is None:
            return
        if unknown := unknown_release(state.software_version):
            yield self.hit(declared or "cluster", unknown, declared.span if declared else None)
        said = declared.ganeti_version if declared else None
        release = release_of(state.software_version)
        if declared is None or said is None or release in (release_of(said), None):
            return
        message = f"the cluster has Ganeti {state.software_version}, the policy is for {said}"
        span = declared.document.value_span(("ganeti_version",))
        yield self.hit(declared, message, span, hint=f'write ganeti_version: "{release}"')


def _size(memory: str) -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n    - name: big\n      {bounds(memory, '1 4', '1G 10G')}"


class SpecBeyondNodes(StateRule):
    info = warning_rule("GP724", "spec-beyond-nodes")(
        summary="The smallest or the largest instance of a spec is larger than every node of the group.",
        rationale="The spec is legal, but no instance of this size can be created until the group has larger nodes. If"
        " the group promises hardware, its specs are compared with that (GP211, GP212).",
        source="Partitioned Ganeti, Constrained instance sizes",
        bad=_size("96G 128G"),
        good=_size("16G 60G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            for excess in context.excesses.get(group.name, ()):
                if excess.limit.span is None:
                    hint = "make the spec smaller" if excess.bound == "min" else "lower the maximum"
                    yield self.hit(group, excess.sentence(f"any node of {name_of(group)}"), excess.place, hint=hint)


class HardwareNotAsPromised(StateRule):
    info = warning_rule("GP725", "hardware-not-as-promised")(
        summary="A node of the cluster has less than the hardware that its group promises.",
        rationale="gpolicy compares specs and tests with the promise, so their results are wrong for this node.",
        bad=f"{GROUP}hardware: {{memory: 128G, cpus: 16}}\n",
        good=f"{GROUP}hardware: {{memory: 64G, cpus: 16}}\n",
        parameters=(
            RuleParameter(
                name="tolerance",
                default=5,
                summary="Percent of the promised memory and volume size that may be missing, since the system keeps"
                " some.",
                most=100,
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        share = 1 - context.settings.parameter(self.info, "tolerance") / 100
        for group in context.groups:
            hardware = group.hardware
            if hardware is None:
                continue
            lacking: dict[str, list[tuple[str, str, str, Span]]] = {}
            for node in context.members.hosts_in(group):
                had = node.resources
                volumes = [volume.size for volume in own_pool(context, group, node).allocatable]
                promised = (
                    ("memory", "memory-size", hardware.memory, had.memory_total, share),
                    ("CPUs", "cpu-count", hardware.cpus, had.cpu_total, 1.0),
                    ("physical volumes", "disk-count", hardware.pv_count, len(volumes) or None, 1.0),
                    ("disk", "disk-size", None if volumes else _promised_disk(hardware), had.disk_total, share),
                )
                less = [
                    (what, amount(name, has), amount(name, item.value), item.span)
                    for what, name, item, has, part in promised
                    if item is not None and has and has < item.value * part
                ]
                smallest = min(hardware.pv_sizes, key=lambda size: size.value, default=None)
                if smallest is not None and volumes and min(volumes) < smallest.value * share:
                    sizes = [amount("disk-size", size) for size in (min(volumes), smallest.value)]
                    less.append(("a physical volume of", sizes[0], sizes[1], smallest.span))
                for what, has, wanted, span in less:
                    lacking.setdefault(what, []).append((node.name, has, wanted, span))
            for what, found in lacking.items():
                name, has, wanted, span = found[0]
                who = f"{name} in {name_of(group)} has"
                if len(found) > 1:
                    who = f"{name} and {count(len(found) - 1, 'more node')} of {name_of(group)} have"
                message = f"{who} less than promised: {what} {has}, not {wanted}"
                hint = "correct the promise, or put nodes that differ into another group"
                yield self.hit(group, message, span, hint=hint, related=(Related(hardware.span, "promised here"),))


def _promised_disk(hardware: Hardware) -> Located[int] | None:
    """Return the promised disk of a node, MiB: the sum of its volumes; None if they are not promised."""
    sizes, count = hardware.pv_sizes, hardware.volume_count
    if not sizes or count is None:
        return None
    total = sum(size.value for size in sizes) if len(sizes) > 1 else sizes[0].value * count
    return Located(total, sizes[0].span)


class NoSpindles(StateRule):
    info = warning_rule("GP726", "no-spindles")(
        summary="Nodes of the cluster have a spindle_count of 0 or less.",
        rationale="htools divides by it, so the cluster's score is not a number: hbal and hail cannot tell a good"
        " placement from a bad one. With exclusive storage it is not read.",
        source="Resource model, Node parameters; Ganeti 3.0 stores it unchecked",
        bad=f"{GROUP}alloc_policy: preferred\n",
        good=f"{GROUP}ndparams: {{spindle_count: 1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        if any(declared.level is Level.NODE for declared, _ in context.explicit_at(_SPINDLE_COUNT)):
            return  # the policy sees to it, node by node
        for group in context.groups:
            of_group, exclusive = (in_force(context, group, path) for path in (_SPINDLE_COUNT, EXCLUSIVE_STORAGE))
            if exclusive is not None and exclusive.value is True:
                continue
            inherited = of_group.value if of_group else None
            counts = {node.name: node.own.get(_SPINDLE_COUNT, inherited) for node in context.members.hosts_in(group)}
            without = [name for name, count in counts.items() if isinstance(count, int) and count <= 0]
            if without and (of_group is None or of_group.leaf is None or of_group.number > 0):  # else GP107 says it
                more = f" and {count(len(without) - 1, 'more node')} have" if len(without) > 1 else " has"
                message = f"{without[0]}{more} no spindles in {name_of(group)} (spindle_count 0 or less)"
                yield self.hit(group, message, group.span, hint="declare ndparams.spindle_count, 1 or more")
