"""GP407, GP408, GP411, GP412 and GP417: what else exclusive storage wants of nodes, templates and disks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameters import release_key
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, Leaf
from gpolicy.rules.examples import GROUP
from gpolicy.rules.exclusive_storage.examples import EXCLUSIVE

_EXCLUSIVE: Final = "Partitioned Ganeti, Exclusive use of disks"


class TemplateNotExclusive(Rule):
    info = RuleInfo(
        code="GP407",
        name="template-not-exclusive",
        severity=Severity.WARNING,
        summary="Disk templates other than plain are allowed where exclusive storage is on.",
        rationale="The design aims at plain and drbd, but Ganeti has it for plain only: creating another disk fails,"
        " and verify reports existing ones as errors.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain, drbd]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [plain]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            others = [template for template in texts(allowed) if template not in ("plain", "diskless")]
            if exclusive.value is True and others:
                message = f"{name_of(declared)} allows {', '.join(others)}: exclusive storage is for plain only"
                hint = "allow only plain (and diskless) here"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveWithoutPlain(Rule):
    info = RuleInfo(
        code="GP408",
        name="exclusive-without-plain",
        severity=Severity.ERROR,
        summary="Exclusive storage is on, and plain is not among the allowed disk templates.",
        rationale="No instance with a disk can be created there.",
        source=f"{_EXCLUSIVE}; Ganeti 2.15 to 3.1",
        bad=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless]}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{disk-templates: [diskless, plain]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, DISK_TEMPLATES):
            if exclusive.value is True and "plain" not in texts(allowed):
                message = f"{name_of(declared)} has exclusive storage, but does not allow plain"
                hint = "allow plain"
                yield exclusive_hit(self, context, declared, allowed, exclusive, message, hint)


class ExclusiveStorageReads(Rule):
    info = RuleInfo(
        code="GP411",
        name="exclusive-storage-reads",
        severity=Severity.INFO,
        summary="Exclusive storage is turned on: Ganeti 3.0 then reports no storage figures of the nodes.",
        rationale="Its node daemon compares a number with text and fails: free and total disk and spindles come back"
        " unknown, and hspace -L stops. The defect is in 3.0.2 and still in the newest source.",
        source="Ganeti 3.0.2, run on a cluster",
        bad=EXCLUSIVE,
        good="gpolicy: v1\nkind: NodeGroup\nname: shared\nndparams: {exclusive_storage: false}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
            if leaf.value is True and release_key(context.version) >= (3, 0):
                message = f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage"
                yield self.hit(declared, message, leaf.span, hint="have the fix in Ganeti's node daemon before")


class ExclusiveStorageMixed(Rule):
    info = RuleInfo(
        code="GP412",
        name="exclusive-storage-mixed",
        severity=Severity.ERROR,
        summary="A node on the cluster has a value of exclusive_storage that is not its group's.",
        rationale="The flag must be the same in a whole group: whether a disk has its volumes to itself would depend on"
        " the node it lands on. Ganeti does not let it be set on a node; an old configuration may still have it.",
        source=_EXCLUSIVE,
        bad=EXCLUSIVE,
        good=EXCLUSIVE,
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            leaf = context.effective(group, EXCLUSIVE_STORAGE)
            if leaf is None or context.state is None:
                continue
            odd = [
                node.name
                for node in context.state.nodes_of(group.renamed_from.value if group.renamed_from else group.name)
                if node.own.get(EXCLUSIVE_STORAGE, leaf.value) != leaf.value
            ]
            if odd:
                message = (
                    f"{', '.join(sorted(odd)[:5])} in {name_of(group)}: exclusive_storage is not the group's value"
                )
                yield self.hit(group, message, leaf.span, hint="remove the nodes' own value")


def exclusive_hit(
    rule: Rule,
    context: Context,
    declared: ClusterPolicy | GroupPolicy,
    leaf: Leaf,
    exclusive: Leaf,
    message: str,
    hint: str,
) -> Hit:
    """Return a hit at what the object says itself, with the other half of the contradiction as related place."""
    if context.own(declared, leaf.path) is not None:
        related = (Related(exclusive.span, "exclusive storage is on"),)
        return rule.hit(declared, message, leaf.span, hint=hint, related=related)
    related = (Related(leaf.span, "inherited from the cluster"),)
    return rule.hit(declared, message, exclusive.span, hint=hint, related=related)


class ExclusiveStorageOnOtherDisks(Rule):
    info = RuleInfo(
        code="GP417",
        name="exclusive-storage-on-other-disks",
        severity=Severity.WARNING,
        summary="Exclusive storage is on for nodes that have instances with other disks than plain ones.",
        rationale="Ganeti turns it on without a look, and converts nothing. Such disks show as errors of gnt-cluster"
        " verify, and cannot be grown or made anew.",
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
                more = f" and {len(others) - 1} more instances have" if len(others) > 1 else " has"
                message = f"{name}{more} other disks than plain ones ({template}) in {name_of(group)}"
                hint = "convert their disks to plain, or move them to another group first"
                yield self.hit(group, message, leaf.span, hint=hint)
