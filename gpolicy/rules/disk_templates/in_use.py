"""GP309 and GP310: templates that instances have, and a policy without any disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, ENABLED_TEMPLATES, MINMAX, Context, name_of, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.rules.parameters.values import CLUSTER
from gpolicy.rules.specs.overlap import bounds

_PAIR: Final = f"  minmax:\n    - name: some\n      {bounds('1G 12G', '1 3', '10G 90G')}"


class TemplateInUse(Rule):
    """A template that is to be disabled, and that instances of the cluster have."""

    info = RuleInfo(
        code="GP309",
        name="template-in-use",
        severity=Severity.ERROR,
        summary="A disk template is not to be enabled any more, but instances of the cluster have disks of it.",
        rationale="Ganeti refuses to disable a template while there is a disk of it.",
        source="Ganeti 3.0, run: Cannot disable disk template",
        bad=f"{CLUSTER}enabled_disk_templates: [plain]\n",
        good=f"{CLUSTER}enabled_disk_templates: [plain, drbd]\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        cluster, enabled = context.policy.cluster, context.cluster_leaf(ENABLED_TEMPLATES)
        observed = context.state.cluster.own.get(ENABLED_TEMPLATES) if context.state else None
        if cluster is None or enabled is None or context.state is None or not isinstance(observed, list):
            return
        gone = {str(template) for template in observed} - set(texts(enabled))
        users: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for name, instance in sorted(context.state.instances.items()):
            for template in {disk.template for disk in instance.disks} or {instance.disk_template}:
                users[template] += 1
                examples.setdefault(template, name)
        for template in sorted(gone & set(users)):
            count = users[template]
            others = f" and {count - 1} more have" if count > 1 else " has"
            message = f"{template} is to be disabled, but {examples[template]}{others} disks of it"
            hint = f"convert or remove them first, or leave {template} enabled"
            yield self.hit(cluster, message, enabled.span, hint=hint)


class OnlyDiskless(Rule):
    """Specs with disks, and only diskless instances allowed."""

    info = RuleInfo(
        code="GP310",
        name="only-diskless",
        severity=Severity.WARNING,
        summary="Only the template diskless is allowed, but the specs are about disks.",
        rationale="No instance with a disk can be created there, and the bounds of disk-size and disk-count mean"
        " nothing.",
        source="Ganeti 3.0, checks of instances",
        bad=f"{CLUSTER}ipolicy:\n  disk-templates: [diskless]\n{_PAIR}",
        good=f"{CLUSTER}ipolicy:\n  disk-templates: [diskless, plain]\n{_PAIR}",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (allowed, _) in context.combined(DISK_TEMPLATES, MINMAX):
            about_disks = any(
                pair.maximum["disk-count"] and pair.maximum["disk-size"] for pair in context.pairs(declared)
            )
            if set(texts(allowed)) == {"diskless"} and about_disks and not context.exclusive(declared):
                message = f"{name_of(declared)} allows only diskless: no instance there can have a disk"
                own, related = context.own_first(declared, allowed)
                yield self.hit(declared, message, own.span, hint="allow a template that has disks", related=related)


TEMPLATE_USE_RULES: Final = (TemplateInUse(), OnlyDiskless())
