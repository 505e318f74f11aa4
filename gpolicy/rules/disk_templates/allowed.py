"""GP302, GP303, GP306 and GP310: the templates that instance policies allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, ENABLED_TEMPLATES, MINMAX, Context, name_of, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, info_rule, warning_rule
from gpolicy.rules.examples import CLUSTER, GROUP, bounds

_SOURCE: Final = "Ganeti 3.0, checks of the cluster and group commands"


class DefaultTemplateNotAllowed(Rule):
    info = warning_rule("GP302", "default-template-not-allowed")(
        summary="The default disk template is diskless, or the cluster's instance policy does not allow it.",
        rationale="The first template of enabled_disk_templates is the default of new instances. If the policy does"
        " not allow it, Ganeti refuses every creation that names no template. diskless before others makes each such"
        " instance one without a disk.",
        source=_SOURCE,
        bad=f"{CLUSTER}enabled_disk_templates: [plain, drbd]\nipolicy: {{disk-templates: [drbd]}}\n",
        good=f"{CLUSTER}enabled_disk_templates: [drbd, plain]\nipolicy: {{disk-templates: [drbd]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        cluster = context.policy.cluster
        enabled, allowed = context.cluster_leaf(ENABLED_TEMPLATES), context.cluster_leaf(DISK_TEMPLATES)
        if cluster is None or enabled is None:
            return
        first, *others = texts(enabled)
        usable = [template for template in others if allowed is None or template in texts(allowed)]
        if first == "diskless" and usable:
            message = "diskless is the default template of new instances, as it is enabled first"
            yield self.hit(cluster, message, enabled.at(0), hint=f"begin with {usable[0]}")
        elif allowed is not None and first not in texts(allowed):
            message = f"{first} is the default template of new instances (it is enabled first), but not allowed"
            hint = f"begin enabled_disk_templates with one of {', '.join(texts(allowed))}"
            related = (Related(allowed.span, "allowed here"),)
            missing = f"{first} in {allowed.span}"
            yield self.hit(cluster, message, enabled.at(0), hint=hint, related=related, missing=missing)


class GroupTemplateBeyondCluster(Rule):
    info = info_rule("GP303", "group-template-beyond-cluster")(
        summary="A group allows a disk template that the cluster's instance policy does not.",
        rationale="enabled_disk_templates limits groups, the cluster's instance policy does not: a group's list"
        " replaces the cluster's. This is legal, but easy to overlook.",
        source=_SOURCE,
        bad=f"{CLUSTER}ipolicy: {{disk-templates: [drbd]}}\n---\n{GROUP}ipolicy: {{disk-templates: [plain]}}\n",
        good=f"{CLUSTER}ipolicy: {{disk-templates: [drbd, plain]}}\n---\n{GROUP}ipolicy: {{disk-templates: [plain]}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        allowed = context.cluster_leaf(DISK_TEMPLATES)
        if allowed is None:
            return
        for group in context.groups:
            leaf = context.own(group, DISK_TEMPLATES)
            more = [template for template in texts(leaf) if template not in texts(allowed)] if leaf else []
            if leaf and more:
                message = f"{name_of(group)} also allows {', '.join(more)}, which the cluster's policy does not"
                related = (Related(allowed.span, "the cluster's list"),)
                yield self.hit(group, message, leaf.span, related=related)


class TemplateNeverAllowed(Rule):
    info = info_rule("GP306", "template-never-allowed")(
        summary="A disk template is enabled, but neither the cluster's policy nor a group's allows it.",
        rationale="No instance can use it, unless a group that the policy does not manage allows it.",
        source=_SOURCE,
        bad=f"{CLUSTER}enabled_disk_templates: [drbd, plain]\nipolicy: {{disk-templates: [drbd]}}\n",
        good=f"{CLUSTER}enabled_disk_templates: [drbd]\nipolicy: {{disk-templates: [drbd]}}\n",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        cluster = context.policy.cluster
        enabled, allowed = context.cluster_leaf(ENABLED_TEMPLATES), context.cluster_leaf(DISK_TEMPLATES)
        if cluster is None or enabled is None or allowed is None:
            return
        used = {template for _, leaf in context.explicit_at(DISK_TEMPLATES) for template in texts(leaf)}
        for index, template in enumerate(texts(enabled)):
            if template not in used:
                message = f"{template} is enabled, but no instance policy allows it"
                hint = "allow it somewhere, or do not enable it"
                yield self.hit(cluster, message, enabled.at(index), hint=hint)


_PAIR: Final = f"  minmax:\n    - name: some\n      {bounds('1G 12G', '1 3', '10G 90G')}"


class OnlyDiskless(Rule):
    info = warning_rule("GP310", "only-diskless")(
        summary="Only the template diskless is allowed, but the specs have disks.",
        rationale="No instance with a disk can be created, and the bounds of disk-size and disk-count have no effect."
        " Where no other template is enabled either, and the specs want no disk, that is on purpose.",
        source="Ganeti 3.0, checks of instances",
        bad=f"{CLUSTER}ipolicy:\n  disk-templates: [diskless]\n{_PAIR}",
        good=f"{CLUSTER}ipolicy:\n  disk-templates: [diskless, plain]\n{_PAIR}",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        enabled = context.cluster_leaf(ENABLED_TEMPLATES)
        bound = "minimum" if enabled is not None and set(texts(enabled)) == {"diskless"} else "maximum"
        for declared, (allowed, _) in context.combined(DISK_TEMPLATES, MINMAX):
            about_disks = any(
                getattr(pair, bound)["disk-count"] and pair.maximum["disk-size"] for pair in context.pairs(declared)
            )
            if set(texts(allowed)) == {"diskless"} and about_disks and not context.exclusive(declared):
                message = f"{name_of(declared)} allows only diskless: no instance there can have a disk"
                own, related = context.own_first(declared, allowed)
                yield self.hit(declared, message, own.span, hint="allow a template that has disks", related=related)
