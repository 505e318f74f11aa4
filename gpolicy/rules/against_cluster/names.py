"""GP70x, GP727, GP728 and GP744 to GP747: what the observed cluster has and the policy names, or leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, ENABLED_HYPERVISORS, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.node_limits import METAVG, VOLUME_GROUP, pools_in
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.vocabulary import DRBD_METADATA
from gpolicy.policy.misspelt import MOST_GUESSES, name_meant
from gpolicy.policy.model import GroupPolicy
from gpolicy.printable import some
from gpolicy.resolve.rules import NODE_IN_TWO_GROUPS, NODE_SETS_DISAGREE, OTHER_CLUSTER, RENAME_CLASH, UNKNOWN_NODE
from gpolicy.rules.examples import CLUSTER, GROUP
from gpolicy.rules.shapes import StateRule
from gpolicy.rules.shared import FILES

_OUTSIDE: Final[tuple[Path, ...]] = (
    ("default_iallocator",),
    ("master_netdev",),
    ("instance_communication_network",),
    ("nicparams", "link"),
    ("ndparams", "ovs_name"),
    ("ndparams", "ovs_link"),
    ("diskparams", "rbd", "pool"),
    ("diskparams", "gluster", "host"),
    ("diskparams", "gluster", "volume"),
    *FILES,
)
"""Names of things that are outside of Ganeti: it cannot say whether they exist."""
_PLACES: Final[dict[Path, frozenset[str]]] = {
    ("volume_group_name",): frozenset({"plain", "drbd"}),
    ("file_storage_dir",): frozenset({"file"}),
    ("shared_file_storage_dir",): frozenset({"sharedfile"}),
}
"""Where new disks go, and the templates of these disks. Another place of rbd and gluster is a matter of the guards."""
_SSD = "physical_volumes: {volume_groups: {ssdvg: [/dev/sdb]}}\nipolicy: {disk-templates: [drbd]}\n"


class MisspeltGroup(StateRule):
    info = warning_rule("GP728", "misspelt-group")(
        summary="A new group has almost the name, or all nodes, of a group of the cluster that the policy does not"
        " name.",
        rationale="gpolicy creates a group that the cluster lacks. Where its name is misspelt or `renamed_from` is"
        " forgotten, the intended group keeps what it has, and the cluster gets another group beside it. Names that"
        " differ in a number or a single letter, such as rack1 and rack2, are no misspelling.",
        bad="gpolicy: v1\nkind: NodeGroup\nname: sliver\n",
        good="gpolicy: v1\nkind: NodeGroup\nname: silver\n",
    )
    needs_whole_policy = True  # what could not be read may name the other group

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None or context.desired is None:
            return
        named = {item.policy.renamed_from.value for item in context.desired.groups.values() if item.policy.renamed_from}
        left = [name for name in context.state.groups if name not in named and name not in context.desired.groups]
        new = [item.policy for item in context.desired.groups.values() if item.current is None]
        for group in [group for group in new if group.removed is None][:MOST_GUESSES]:
            old = group.renamed_from
            wanted, place = (old.value, old.span) if old else (group.name, group.span)
            near = name_meant(wanted, left)
            if near is not None:
                rename = "" if old else f" To rename it, add `renamed_from: {near}`."
                told = f"the cluster has no group {wanted}, but {near}, which the policy does not name"
                message = f"{told}: group {group.name} will be created"
                yield self.hit(group, message, place, hint=f"Did you mean `{near}`?{rename}")
            elif old is None and (emptied := _emptied_by(context, group, left)):
                message = f"the cluster has no group {group.name}, which takes all nodes of {emptied}"
                yield self.hit(group, message, place, hint=f"to rename that group, add `renamed_from: {emptied}`")


def _emptied_by(context: Context, group: GroupPolicy, left: list[str]) -> str | None:
    """Return the group of the cluster, of those in `left`, whose nodes are all that a new group gets."""
    state, desired = context.state, context.desired
    if state is None or desired is None:
        return None
    mine = {name for name, node in desired.nodes.items() if node.group and node.group.value == group.name}
    return next((name for name in left if mine and mine == {node.name for node in state.nodes_of(name)}), None)


class GroupNotThere(StateRule):
    info = warning_rule("GP744", "group-not-there")(
        summary="A group is to be renamed from one that the cluster does not have, or removed by a misspelt name.",
        rationale="gpolicy creates the renamed group then, without nodes; and a group that is removed by another name"
        " stays. Remove `renamed_from` when the rename is done.",
        source="gpolicy",
        bad=f"{GROUP}renamed_from: default\n",
        good=f"{GROUP}renamed_from: silver\n",
    )
    needs_whole_policy = True  # what could not be read may name the other group

    def check(self, context: Context) -> Iterator[Hit]:
        there = list(context.state.groups) if context.state else []
        old_names = Counter(group.renamed_from.value for group in context.groups if group.renamed_from)
        guess = MOST_GUESSES
        for name, item in context.desired.groups.items() if context.desired else ():
            group, old = item.policy, item.policy.renamed_from
            if item.current is not None:
                continue
            if group.removed is not None and guess > 0:
                guess -= 1
                near = name_meant(name, there)
                if near is not None and near not in context.policy.groups:
                    message = f"group {name} is to be removed, but the cluster has {near}"
                    yield self.hit(group, message, group.removed.span, hint=f"Did you mean `{near}`?")
            elif old is not None and old_names[old.value] == 1 and not name_meant(old.value, there):
                message = f"{name} is to be renamed from {old.value}, but the cluster has neither"
                yield self.hit(group, message, old.span, hint=f"its groups are {some(sorted(there))}")


class AlmostLiveName(StateRule):
    info = warning_rule("GP747", "almost-live-name")(
        summary="A bridge, pool, server, allocator, network or file has almost the name that the cluster has now.",
        rationale="Ganeti stores any name, and cannot say whether there is such a thing. One slip from the present name"
        " is most likely a misspelling: instances then find no network or no disk. Names that differ in a number or a"
        " single letter are no misspelling.",
        source="gpolicy",
        bad=f"{CLUSTER}nicparams: {{link: br-pubilc}}\n",
        good=f"{CLUSTER}nicparams: {{link: br-public}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None:
            return
        live = [context.state.cluster.own, *(group.own for group in context.state.groups.values())]
        for declared, leaf in context.explicit_at(*_OUTSIDE):
            now = {str(own[leaf.path]) for own in live if own.get(leaf.path)}
            near = name_meant(str(leaf.value), now) if str(leaf.value) not in now else None
            if near is not None:
                message = f"{leaf.dotted} is to be {leaf.value}, but the cluster has {near}"
                yield self.hit(declared, message, leaf.span, hint=f"Did you mean `{near}`?")


class _OfResolving(StateRule):
    """A rule about what resolving the policy on the cluster finds."""

    def check(self, context: Context) -> Iterator[Hit]:
        for finding in context.desired.findings if context.desired else ():
            if finding.code == self.info.code:
                yield Hit("", finding)  # no waiver can name it, so its object need not be known


class OtherCluster(_OfResolving):
    info = OTHER_CLUSTER


class UnknownNode(_OfResolving):
    info = UNKNOWN_NODE


class NodeInTwoGroups(_OfResolving):
    info = NODE_IN_TWO_GROUPS


class NodeSetsDisagree(_OfResolving):
    info = NODE_SETS_DISAGREE
    needs_whole_policy = True  # a leaf with an error inside does not hold what was written


class RenameClash(_OfResolving):
    info = RENAME_CLASH
    needs_whole_policy = True  # the other group's own new name may stand in what could not be read


class HypervisorInUse(StateRule):
    info = warning_rule("GP745", "hypervisor-in-use")(
        summary="A hypervisor is to be disabled, but instances of the cluster use it.",
        rationale="Ganeti does not check that. It asks nodes about enabled hypervisors only, so such instances count"
        " as stopped although they run, and none like them can be created.",
        source="Ganeti 3.0, sources: queries of instances, instance creation",
        bad=f"{CLUSTER}enabled_hypervisors: [xen-pvm]\n",
        good=f"{CLUSTER}enabled_hypervisors: [xen-pvm, kvm]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        cluster, enabled = context.policy.cluster, context.cluster_leaf(ENABLED_HYPERVISORS)
        if cluster is None or enabled is None or context.state is None:
            return
        users: dict[str, list[str]] = {}
        for instance in context.state.instances.values():
            if instance.hypervisor is not None and instance.hypervisor not in texts(enabled):
                users.setdefault(instance.hypervisor, []).append(instance.name)
        for hypervisor, names in sorted(users.items()):
            message = f"{hypervisor} is not to be enabled, but {some(sorted(names))} use it"
            yield self.hit(cluster, message, enabled.span, hint=f"leave {hypervisor} enabled, or convert them first")


class DisksLeftBehind(StateRule):
    info = warning_rule("GP746", "disks-left-behind")(
        summary="New disks are to go to another volume group or directory than the disks of existing instances.",
        rationale="Ganeti moves no disk. It counts the free space of the new place only, and refuses a volume group"
        " that a node does not have.",
        source="Ganeti 3.0, gnt-cluster modify",
        bad=f"{CLUSTER}volume_group_name: ssdvg\n",
        good=f"{CLUSTER}volume_group_name: xenvg\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        cluster, state = context.policy.cluster, context.state
        for path, templates in _PLACES.items() if cluster is not None and state is not None else ():
            leaf = context.cluster_leaf(path)
            now = state.cluster.own.get(path) if state else None
            if leaf is None or cluster is None or state is None or not leaf.value or not now or leaf.value == now:
                continue
            disks = ((item.name, disk.template) for item in state.instances.values() for disk in item.disks)
            users = sorted({name for name, template in disks if template in templates})
            if users:
                message = f"{path[0]} is to be {leaf.value}, but {some(users)} have disks in {now}"
                yield self.hit(cluster, message, leaf.span, hint=f"write {now}, or move the disks first")


class NoRoomForMetadata(StateRule):
    info = warning_rule("GP727", "no-room-for-metadata")(
        summary="A node has no room for the metadata of another DRBD disk in metavg.",
        rationale="Each DRBD disk has a volume of 128 MiB in metavg on both of its nodes. Nodes report the free space"
        " of the cluster's own volume group only, so hail chooses the node all the same, and Ganeti fails when it makes"
        " the disk. The volumes of metavg are those that physical_volumes.volume_groups assigns to it.",
        source="Resource model, Disk parameters (metavg); Ganeti's issue 865",
        bad=f"{GROUP}diskparams:\n  drbd: {{metavg: ssdvg}}\n{_SSD}",
        good=f"{GROUP}diskparams:\n  drbd: {{metavg: xenvg}}\n{_SSD}",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            metavg = _separate_metavg(context, group)
            for node in context.members.hosts_in(group) if metavg else ():
                pools = pools_in(context, group, node)
                pool = pools.others.get(metavg) if pools and metavg else None
                if pool is None or node.offline or node.drained:
                    continue
                free = sum(volume.free for volume in pool.allocatable)
                if free < DRBD_METADATA:
                    has = f"{amount('disk-size', free)} free in {metavg}" if pool.count else f"no volume of {metavg}"
                    message = f"{node.name} in {name_of(group)} has {has}:"
                    message += " no metadata of another DRBD disk fits (128 MiB)"
                    leaf = context.effective(group, METAVG)
                    hint = "add a volume to the group, or write another metavg"
                    yield self.hit(group, message, leaf.span if leaf else group.span, hint=hint)


def _separate_metavg(context: Context, group: GroupPolicy) -> str | None:
    """Return the volume group of the metadata of a group's DRBD disks, if it is known not to be the cluster's own."""
    metavg, own, exclusive = (in_force(context, group, path) for path in (METAVG, VOLUME_GROUP, EXCLUSIVE_STORAGE))
    if metavg is None or own is None or not own.value or metavg.value == own.value:
        return None
    has_drbd = all("drbd" in names for names in _templates(context, group))
    return str(metavg.value) if has_drbd and (exclusive is None or exclusive.value is not True) else None


def _templates(context: Context, group: GroupPolicy) -> Iterator[tuple[str, ...]]:
    """Give the enabled templates and those that a group allows, as far as they are known."""
    enabled, allowed = context.enabled_templates(), context.effective(group, DISK_TEMPLATES)
    if enabled is not None:
        yield enabled.values
    if allowed is not None:
        yield texts(allowed)
        return
    current = group.renamed_from.value if group.renamed_from else group.name
    now = context.state.groups.get(current) if context.state else None
    names = now.effective.get(DISK_TEMPLATES) if now else None
    if isinstance(names, list):
        yield tuple(map(str, names))
