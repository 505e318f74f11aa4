"""GP727: room for the metadata of DRBD disks."""

from __future__ import annotations

from collections.abc import Iterator

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.volumes import METAVG, VOLUME_GROUP, pools_in
from gpolicy.findings import warning_rule
from gpolicy.ganeti.vocabulary import DRBD_METADATA
from gpolicy.policy.model import GroupPolicy
from gpolicy.rules.examples import GROUP

_SSD = "physical_volumes: {volume_groups: {ssdvg: [/dev/sdb]}}\nipolicy: {disk-templates: [drbd]}\n"


class NoRoomForMetadata(Rule):
    info = warning_rule("GP727", "no-room-for-metadata")(
        summary="A node has no room for the metadata of another DRBD disk in metavg.",
        rationale="Each DRBD disk has a volume of 128 MiB in metavg on both of its nodes. Nodes report the free space"
        " of the cluster's own volume group only, so hail chooses the node all the same, and Ganeti fails when it makes"
        " the disk. The volumes of metavg are those that physical_volumes.volume_groups assigns to it.",
        source="Resource model, Disk parameters (metavg); Ganeti's issue 865",
        bad=f"{GROUP}diskparams:\n  drbd: {{metavg: ssdvg}}\n{_SSD}",
        good=f"{GROUP}diskparams:\n  drbd: {{metavg: xenvg}}\n{_SSD}",
    )
    needs_state = True

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
                    message = (
                        f"{node.name} in {name_of(group)} has {has}: no metadata of another DRBD disk fits (128 MiB)"
                    )
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
