"""GP407, GP408, GP411, GP412 and GP417: what else exclusive storage wants of nodes, templates and disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.in_force import in_force
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import error_rule, info_rule, warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.releases import release_key
from gpolicy.printable import count
from gpolicy.rules.examples import EXCLUSIVE, GROUP
from gpolicy.rules.shared import exclusive_hit

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"


class TemplateNotExclusive(Rule):
    info = warning_rule("GP407", "template-not-exclusive")(
        summary="Exclusive storage is on, but other disk templates than plain are allowed.",
        rationale="The design is for plain and drbd, but Ganeti implements it for plain only: creating another disk"
        " fails, and verify reports existing ones as errors.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain, drbd]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain]}}\n",
    )
    explains = Explains(order=9, also_related=True, may_be_meant=True)

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            others = [template for template in texts(allowed) if template not in ("plain", "diskless")]
            if exclusive.value is True and others and "plain" in texts(allowed):  # without plain: GP408
                message = f"{name_of(declared)} allows {', '.join(others)}: exclusive storage is for plain only"
                hint = "allow only plain here, or turn exclusive storage off"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveWithoutPlain(Rule):
    info = error_rule("GP408", "exclusive-without-plain")(
        summary="Exclusive storage is on, but plain is not allowed.",
        rationale="No instance with a disk can be created.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless, plain]}}\n",
    )
    explains = Explains(order=8, also_related=True, may_be_meant=True)

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            if exclusive.value is True and "plain" not in texts(allowed):
                message = f"{name_of(declared)} has exclusive storage, but does not allow plain"
                hint = "allow plain, or turn exclusive storage off"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveStorageReads(Rule):
    info = info_rule("GP411", "exclusive-storage-reads")(
        summary="Exclusive storage is turned on, and Ganeti 3.0 then reports no storage figures of the nodes.",
        rationale="Ganeti's node daemon compares a number with text and fails. Free and total disk and spindles are"
        " unknown, and hspace -L stops. The defect is in 3.0.2 and still in the newest source.",
        source="Ganeti 3.0.2, run on a cluster",
        bad=EXCLUSIVE,
        good="gpolicy: v1\nkind: NodeGroup\nname: shared\nndparams: {exclusive_storage: false}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
            if leaf.value is True and release_key(context.version) >= (3, 0):
                yield self.hit(
                    declared,
                    f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage",
                    leaf.span,
                    hint="patch ganeti-noded first; until then gpolicy counts on their physical volumes, if they"
                    " are read (gpolicy snapshot --physical-volumes) or promised (hardware)",
                )


class ExclusiveStorageMixed(Rule):
    info = error_rule("GP412", "exclusive-storage-mixed")(
        summary="A node has another value of exclusive_storage than the group that it is in or moves to.",
        rationale="All nodes of a group must have the same value; otherwise the node decides whether a disk has its"
        " own volumes. Ganeti does not let you set it on a node, but an old configuration may have it, and Ganeti moves"
        " such a node into any group without a check.",
        source=_EXCLUSIVE,
        bad=EXCLUSIVE,
        good=EXCLUSIVE,
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        if context.state is None or context.desired is None:
            return
        if not context.state.readable(Level.GROUP, EXCLUSIVE_STORAGE):
            return  # the source shows the values of groups at their nodes
        for group in context.groups:
            value = in_force(context, group, EXCLUSIVE_STORAGE)
            odd = [
                node
                for node in context.members.nodes_in(group)
                if value is not None and node.own.get(EXCLUSIVE_STORAGE, value.value) != value.value
            ]
            wanted = context.desired.groups.get(group.name)
            moving = {node.name for node in odd if wanted is None or node.group != wanted.current}
            here = [node.name for node in odd if node.name not in moving]
            hint = "remove the nodes' own value"
            if here and value is not None and value.leaf is not None:
                message = f"{_some(here)} in {name_of(group)}: exclusive_storage differs from the group's value"
                yield self.hit(group, message, value.leaf.span, hint=hint)
            if moving:
                span = next(
                    node.group.span for name, node in context.desired.nodes.items() if name in moving and node.group
                )
                own, other = ("on", "off") if value is not None and value.value is False else ("off", "on")
                message = (
                    f"{_some(moving)}: exclusive_storage is {own} there, of the node itself, and {other} in"
                    f" {name_of(group)}, which it moves into"
                )
                yield self.hit(group, message, span, hint=hint)


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


class ExclusiveStorageOnOtherDisks(Rule):
    info = warning_rule("GP417", "exclusive-storage-on-other-disks")(
        summary="Exclusive storage is on for nodes whose instances have other disks than plain ones.",
        rationale="Ganeti turns exclusive storage on without a check, and converts nothing. `gnt-cluster verify`"
        " reports such disks as errors, and they cannot be grown or recreated.",
        source=f"{_EXCLUSIVE}; Ganeti 3.0, run",
        bad=f"{GROUP}ndparams: {{exclusive_storage: true}}\n",
        good=f"{GROUP}ndparams: {{exclusive_storage: false}}\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            leaf = context.exclusive(group)
            if leaf is None or context.state is None:
                continue
            nodes = {node.name for node in context.members.hosts_in(group)}
            others = [
                (name, template)
                for name, instance in sorted(context.state.instances.items())
                if nodes.intersection((instance.primary_node, *instance.secondary_nodes))
                for template in sorted({disk.template for disk in instance.disks} - {"plain"})[:1]
            ]
            if others:
                name, template = others[0]
                more = f" and {count(len(others) - 1, 'more instance')} have" if len(others) > 1 else " has"
                message = f"{name}{more} other disks than plain ones ({template}) in {name_of(group)}"
                hint = "convert their disks to plain, or move them to another group first"
                yield self.hit(group, message, leaf.span, hint=hint)
