"""Exclusive storage: the flag itself, and what does not go with it where it is on (GP406 and others)."""

from collections.abc import Iterable, Iterator

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, information, see, warning
from gpolicy.findings import Role
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, EXCLUSIVE_STORAGE, VCPU_RATIO, Level
from gpolicy.printable import count, named
from gpolicy.rules.shared import exclusive_hit, in_force, moved


@information("GP406")
def dedicated_vcpu_ratio(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, ratio) in context.combined(EXCLUSIVE_STORAGE, VCPU_RATIO):
        if exclusive.value is True and ratio.number > 1:
            message = f"{declared.title} shares its CPUs: vcpu-ratio is {ratio.value:g}"
            hint = "write vcpu-ratio: 1 if each instance is to have CPUs of its own"
            yield exclusive_hit(context, declared, ratio, exclusive, message, hint, ratio.span)


@warning("GP407", explains=9, role=Role.ALSO_RELATED)
def template_not_exclusive(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, ALLOWED_TEMPLATES):
        others = [template for template in allowed.texts if template not in ("plain", "diskless")]
        if exclusive.value is True and others and "plain" in allowed.texts:  # without plain: GP408
            message = f"{declared.title} allows {', '.join(others)}: exclusive storage is for plain only"
            hint = "is exclusive storage meant here? If it is, allow only plain"
            place = allowed.at(allowed.texts.index(others[0]))
            own = [(group.name, context.own(group, ALLOWED_TEMPLATES)) for group in context.groups]
            fit = [name for name, leaf in own if leaf is not None and leaf.texts == ("plain",)]
            if fit and declared is context.policy.cluster:
                hint = f"is it meant for {named('group', fit)} only, which allows only plain? Then write it there"
                yield hit(declared, message, exclusive.span, hint, see(place, f"{others[0]} is allowed"))
            else:
                yield exclusive_hit(context, declared, allowed, exclusive, message, hint, place)


@error("GP408", explains=8, role=Role.ALSO_RELATED)
def exclusive_without_plain(context: Context) -> Iterator[Hit]:
    for declared, (exclusive, allowed) in context.combined(EXCLUSIVE_STORAGE, ALLOWED_TEMPLATES):
        if exclusive.value is True and "plain" not in allowed.texts:
            message = f"{declared.title} has exclusive storage, but does not allow plain"
            hint = "is exclusive storage meant here? If it is, allow only plain"
            yield exclusive_hit(context, declared, allowed, exclusive, message, hint, allowed.span)


@information("GP411", When.ASKED)
def exclusive_storage_reads(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(EXCLUSIVE_STORAGE):
        if leaf.value is True and context.is_since("3.0"):
            message = f"Ganeti {context.version} shows no storage figures of nodes with exclusive storage"
            hint = "patch ganeti-noded first; until then gpolicy counts on their physical volumes, if they"
            hint += " are read (gpolicy snapshot --physical-volumes) or promised (hardware)"
            yield hit(declared, message, leaf.span, hint)


@error("GP412", When.STATE)
def exclusive_storage_mixed(context: Context) -> Iterator[Hit]:
    if not context.observed.readable(Level.GROUP, EXCLUSIVE_STORAGE):
        return  # the source shows the values of groups at their nodes
    for group in context.groups:
        value = in_force(context, group, EXCLUSIVE_STORAGE)
        if value is None:
            continue
        nodes = context.members.nodes_in(group)
        odd = [node for node in nodes if node.own.get(EXCLUSIVE_STORAGE, value.value) != value.value]
        wanted = context.desired.groups.get(group.name)
        moving = {node.name for node in odd if wanted is None or node.group != wanted.current}
        here = [node.name for node in odd if node.name not in moving]
        hint = "remove the nodes' own value"
        if here and value.leaf is not None:
            message = f"{_some(here)} in {group.title}: exclusive_storage differs from the group's value"
            yield hit(group, message, value.leaf.span, hint)
        if moving:
            wants = context.desired.nodes.items()
            span = next(node.group.span for name, node in wants if name in moving and node.group)
            own, other = ("on", "off") if value.value is False else ("off", "on")
            message = f"{_some(moving)}: exclusive_storage is {own} there, of the node itself, and {other} in"
            message += f" {group.title}, which it moves into"
            yield hit(group, message, span, hint)


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


@warning("GP417", When.STATE)
def exclusive_storage_on_other_disks(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        leaf = context.exclusive(group)
        nodes = {node.name for node in context.members.hosts_in(group)}
        others = [
            (name, template, nodes.intersection((instance.primary_node, *instance.secondary_nodes)))
            for name, instance in sorted(context.observed.instances.items() if leaf else ())
            if nodes.intersection((instance.primary_node, *instance.secondary_nodes))
            for template in sorted({disk.template for disk in instance.disks} - {"plain"})[:1]
        ]
        if leaf and others:
            name, template, homes = others[0]
            more = f" and {count(len(others) - 1, 'more instance')} have" if len(others) > 1 else " has"
            message = f"{name}{more} other disks than plain ones ({template}) in {group.title}"
            hint = "convert their disks to plain, or move them to another group first"
            yield hit(group, message, leaf.span, hint, moved(context, sorted(homes)))
