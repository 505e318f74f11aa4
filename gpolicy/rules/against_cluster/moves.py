"""GP721 to GP723: groups that are to go, and nodes that are to move, on the observed cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.cluster.state import Instance
from gpolicy.findings import NO_PLAN, Related, Span, error_rule, warning_rule
from gpolicy.policy.model import GroupPolicy
from gpolicy.printable import count
from gpolicy.rules.examples import GROUP, bounds

_SILVER: Final = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


def _sized(memory: str) -> str:
    sizes = bounds(memory, "1 16", "1G 1T", "1 8")
    return f"{GROUP}nodes: [node1.example.org]\nipolicy:\n  minmax:\n    - name: some\n      {sizes}---\n{_SILVER}"


class LastGroupRemoved(Rule):
    info = error_rule("GP721", "last-group-removed", NO_PLAN)(
        summary="All groups of the cluster are to be removed.",
        rationale="Ganeti does not remove the last group, since a cluster always has one.",
        source="Ganeti 3.0, gnt-group remove",
        bad=f"{GROUP}removed: true\n",
        good=GROUP,
    )
    needs_state = True
    needs_whole_policy = True

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
        bad=f"{GROUP}removed: true\n---\n{_SILVER}",
        good=f"{GROUP}removed: true\n---\n{_SILVER}nodes: [node1.example.org]\n",
    )
    needs_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.policy.groups.values():
            if group.removed is None or context.state is None:
                continue
            left = [node.name for node in context.members.nodes_in(group)]
            if left:
                others = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
                message = f"{group.name} is to be removed, but {left[0]}{others} still in it"
                hint = "move these nodes to another group"
                yield self.hit(group, message, group.removed.span, hint=hint)


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
    needs_state = True
    needs_whole_policy = True

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
