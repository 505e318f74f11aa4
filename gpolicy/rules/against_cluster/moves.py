"""GP721 to GP723 and GP741 to GP743: groups that go, nodes that move, and what built-in guards say of the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.cluster.state import Instance
from gpolicy.findings import NO_PLAN, Related, Span, error_rule, warning_rule
from gpolicy.ganeti.releases import release_of, unknown_release
from gpolicy.policy.guard import BUILT_IN
from gpolicy.policy.model import GroupPolicy
from gpolicy.printable import count
from gpolicy.rules.examples import CLUSTER, GROUP, SILVER, bounds

if TYPE_CHECKING:
    from gpolicy.plan.change import Objection


def _sized(memory: str) -> str:
    sizes = bounds(memory, "1 16", "1G 1T", "1 8")
    return f"{GROUP}nodes: [node1.example.org]\nipolicy:\n  minmax:\n    - name: some\n      {sizes}---\n{SILVER}"


class LastGroupRemoved(Rule):
    info = error_rule("GP721", "last-group-removed", NO_PLAN)(
        summary="All groups of the cluster are to be removed.",
        rationale="Ganeti does not remove the last group, since a cluster always has one.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\n",
        good=GROUP,
    )
    needs_state = needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        removed = {group.name: group for group in context.policy.groups.values() if group.removed is not None}
        observed = set(context.state.groups) if context.state else set()
        if removed and observed and observed <= set(removed) and not context.groups:
            group = removed[min(observed)]
            place = group.removed.span if group.removed else group.span
            message = f"{group.name} is the last group: Ganeti does not remove it"
            yield self.hit(group, message, place, hint="keep one group, or declare the one that takes its place")


class RemovedGroupHasNodes(Rule):
    info = error_rule("GP722", "removed-group-has-nodes", NO_PLAN)(
        summary="A group is to be removed, but the policy leaves nodes of the cluster in it.",
        rationale="Only an empty group can be removed.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\n---\n{SILVER}",
        good=f"{GROUP}removed: true\n---\n{SILVER}nodes: [node1.example.org]\n",
    )
    needs_state = needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.policy.groups.values():
            if group.removed is None or context.state is None:
                continue
            left = [node.name for node in context.members.nodes_in(group)]
            if left:
                others = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
                message = f"{group.name} is to be removed, but {left[0]}{others} still in it"
                yield self.hit(group, message, group.removed.span, hint="move these nodes to another group")


class MoveIntoStricterGroup(Rule):
    info = warning_rule("GP723", "move-into-stricter-group")(
        summary="A node is to move into a group whose instance policy does not allow the node's instances.",
        rationale="Ganeti moves nodes between groups without checking the policy or the exclusive storage of the"
        " target; only `gnt-cluster verify` reports it. hail and Ganeti then refuse to modify or move such instances"
        " without --ignore-ipolicy.",
        source="Ganeti 3.0, gnt-group assign-nodes, run",
        bad=_sized("8G 16G"),
        good=_sized("1G 16G"),
    )
    needs_state = needs_whole_policy = True

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


def _refused(context: Context, group: GroupPolicy, instance: Instance) -> str:
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


def _outside(pair: Pair, instance: Instance, *, exclusive: bool) -> Mapping[str, int]:
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


class OtherRelease(Rule):
    info = warning_rule("GP743", "other-release")(
        summary="The cluster has another release of Ganeti than the policy says, or one that gpolicy does not know.",
        rationale="Plans go by the cluster's release, and so does `check --state`. `check` alone and editors go by"
        " `ganeti_version`: they judge which parameters and values exist by a release that the cluster does not have.",
        source="gpolicy",
        bad=f'{CLUSTER}ganeti_version: "2.16"\n',
        good=f'{CLUSTER}ganeti_version: "3.0"\n',
    )
    needs_state = True

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
