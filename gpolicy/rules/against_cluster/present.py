"""GP745 and GP746: hypervisors and places of disks that the observed cluster uses, and the policy leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import ENABLED_HYPERVISORS, Context, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.printable import some
from gpolicy.rules.examples import CLUSTER


class HypervisorInUse(Rule):
    info = warning_rule("GP745", "hypervisor-in-use")(
        summary="A hypervisor is to be disabled, but instances of the cluster use it.",
        rationale="Ganeti does not check that. It asks nodes about enabled hypervisors only, so such instances count"
        " as stopped although they run, and none like them can be created.",
        source="Ganeti 3.0, sources: queries of instances, instance creation",
        bad=f"{CLUSTER}enabled_hypervisors: [xen-pvm]\n",
        good=f"{CLUSTER}enabled_hypervisors: [xen-pvm, kvm]\n",
    )
    needs_state = True

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
            hint = f"leave {hypervisor} enabled, or convert them first"
            yield self.hit(cluster, message, enabled.span, hint=hint)


_PLACES: Final[dict[Path, frozenset[str]]] = {
    ("volume_group_name",): frozenset({"plain", "drbd"}),
    ("file_storage_dir",): frozenset({"file"}),
    ("shared_file_storage_dir",): frozenset({"sharedfile"}),
}
"""Where new disks go, and the templates of these disks. Another place of rbd and gluster is a matter of the guards."""


class DisksLeftBehind(Rule):
    info = warning_rule("GP746", "disks-left-behind")(
        summary="New disks are to go to another volume group or directory than the disks of existing instances.",
        rationale="Ganeti moves no disk. It counts the free space of the new place only, and refuses a volume group"
        " that a node does not have.",
        source="Ganeti 3.0, gnt-cluster modify",
        bad=f"{CLUSTER}volume_group_name: ssdvg\n",
        good=f"{CLUSTER}volume_group_name: xenvg\n",
    )
    needs_state = True

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
