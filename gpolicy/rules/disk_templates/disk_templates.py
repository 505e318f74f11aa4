"""GP301 to GP311: the templates that the cluster has enabled, and those that instance policies allow."""

from collections.abc import Iterator
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, information, see, warning
from gpolicy.findings import REFUSED, Role
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, DISK_TEMPLATES, ENABLED_TEMPLATES, MINMAX, Level, Path
from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, Leaf
from gpolicy.printable import listed
from gpolicy.rules.shared import HELPER, grouped, of_cluster

_DIRECTORIES: Final[dict[str, Path]] = {"file": ("file_storage_dir",), "sharedfile": ("shared_file_storage_dir",)}


@error("GP301", When.MORE_WITH_STATE, stays=REFUSED, unless_declared=(ENABLED_TEMPLATES,))
def template_not_enabled(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    for declared, leaf in context.explicit_at(ALLOWED_TEMPLATES):
        for template in leaf.texts:
            if enabled is not None and template not in enabled.texts:
                message = f"{template} is not enabled on the cluster"
                hint = f"add it to enabled_disk_templates, or allow only {', '.join(enabled.texts)}"
                written: Any = leaf.document.root  # the value itself is sorted
                span = leaf.at(written["ipolicy"]["disk-templates"].index(template))
                related = see(enabled.span, "enabled here")
                yield hit(declared, message, span, hint, related, missing=f"enabled {template}")


@error("GP304", When.MORE_WITH_STATE, stays=REFUSED, unless_declared=(ENABLED_TEMPLATES,))
def lvm_without_volume_group(context: Context) -> Iterator[Hit]:
    yield from _needs(context, ("volume_group_name",), ("plain", "drbd"), "a volume group")


@error("GP311", When.MORE_WITH_STATE, stays=REFUSED, unless_declared=(ENABLED_TEMPLATES,))
def files_without_directory(context: Context) -> Iterator[Hit]:
    for template, path in _DIRECTORIES.items():
        yield from _needs(context, path, (template,), "a directory")


@error("GP305", When.MORE_WITH_STATE, stays=REFUSED, unless_declared=(ENABLED_TEMPLATES,))
def drbd_without_helper(context: Context) -> Iterator[Hit]:
    yield from _needs(context, HELPER, ("drbd",), "a helper")
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    for declared, leaf in context.explicit_at(HELPER) if enabled and "drbd" in enabled.texts else ():
        text = str(leaf.value)
        if text and (" " in text or not text.startswith("/")):
            message = f"drbd_usermode_helper is {text!r}, which no kernel starts: it is no path of a program"
            yield hit(declared, message, leaf.span, "write the path alone, such as /bin/true")


def _needs(context: Context, path: Path, templates: tuple[str, ...], what: str) -> Iterator[Hit]:
    enabled, leaf = of_cluster(context, ENABLED_TEMPLATES), context.cluster_leaf(path)
    in_use = [template for template in templates if enabled and template in enabled.texts]
    if enabled and in_use and leaf is not None and leaf.value == "":
        message = f"{' and '.join(in_use)} cannot be enabled without {what}"
        hint = f"declare {path[0]}, or disable {' and '.join(in_use)}"
        yield hit("cluster", message, leaf.span, hint, see(enabled.span, "enabled here"))


@warning("GP307", When.MORE_WITH_STATE, unless_declared=(ENABLED_TEMPLATES,), role=Role.WEAK)
def parameters_of_disabled_template(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    if enabled is None:
        return
    for template, path in _DIRECTORIES.items():
        leaf, other = context.cluster_leaf(path), next(item for item in _DIRECTORIES if item != template)
        lacks = other in enabled.texts and context.cluster_leaf(_DIRECTORIES[other]) is None
        if leaf is not None and leaf.value and template not in enabled.texts and lacks:
            message = f"{template} is not enabled, so {path[0]} has no effect, and {other} has no directory"
            yield hit("cluster", message, leaf.span, f"declare {_DIRECTORIES[other][0]}, or enable {template}")
    for declared in context.cluster_and_groups:
        own = [leaf for leaf in context.leaves(declared).values() if _is_set(leaf, declared)]
        first = {leaf.path[1]: leaf for leaf in reversed(own)}
        allowed = context.own(declared, ALLOWED_TEMPLATES) if declared.level is Level.GROUP else None
        for template, leaf in first.items():
            span = leaf.document.key_span(leaf.pointer[:2])
            if template not in enabled.texts:
                message = f"{template} is not enabled on the cluster: its parameters have no effect"
                hint = f"enable {template}, or leave its parameters out"
                related = see(enabled.span, "enabled here")
                yield hit(declared, message, span, hint, related, missing=f"enabled {template}")
            elif allowed and template not in allowed.texts and leaf.document is declared.document:
                message = f"{declared.title} does not allow {template}: its parameters have no effect"
                hint, missing = f"leave its parameters out here, or allow {template}", f"{template} in {allowed.span}"
                place, related = span, see(allowed.span, "allowed here")
                if any(item.finding.missing == missing for item in context.found_with(Role.ASKS_TEMPLATE)):
                    hint = f"is {template} meant too, as a test has it? Else leave its parameters out"
                    place, related = allowed.span, see(span, "its parameters are here")
                yield hit(declared, message, place, hint, related, missing=missing)


def _is_set(leaf: Leaf, declared: Declared) -> bool:
    """Return whether a leaf is a disk parameter with a value of its own; every cluster has Ganeti's defaults anyway."""
    parameter = parameter_at(leaf.path) if leaf.path[0] == "diskparams" else None
    is_group = isinstance(declared, GroupPolicy)
    return parameter is not None and leaf.value is not INHERIT and (is_group or leaf.value != parameter.default)


@error("GP308", When.STATE | When.WHOLE)
def stale_group_templates(context: Context) -> Iterator[Hit]:
    enabled = context.cluster_leaf(ENABLED_TEMPLATES)
    if enabled is None or not context.observed.readable(Level.GROUP, ALLOWED_TEMPLATES):
        return
    now = context.observed.cluster.own.get(ENABLED_TEMPLATES)
    gone = set(map(str, now) if isinstance(now, list) else DISK_TEMPLATES) - set(enabled.texts)
    for name, group in sorted(context.observed.groups.items()):
        observed = group.own.get(ALLOWED_TEMPLATES)
        managed = _declares(context, name) or _declares(context, context.old_names.get(name, name))
        if managed or not isinstance(observed, list):
            continue
        stale = sorted(str(template) for template in observed if template in gone)
        if stale:
            message = f"group {name} on the cluster still allows {', '.join(stale)}, which is to be disabled"
            hint = f"declare ipolicy.disk-templates of group {name}, or `inherit` there"
            yield hit("cluster", message, enabled.span, hint)


def _declares(context: Context, name: str) -> bool:
    group = context.policy.groups.get(name)
    return group is not None and (group.removed is not None or ALLOWED_TEMPLATES in group.leaves)


@error("GP309", When.STATE, stays=REFUSED, explains=12)
def template_in_use(context: Context) -> Iterator[Hit]:
    enabled = context.cluster_leaf(ENABLED_TEMPLATES)
    observed = context.observed.cluster.own.get(ENABLED_TEMPLATES)
    if enabled is None or not isinstance(observed, list):
        return
    gone = {str(template) for template in observed} - set(enabled.texts)
    instances = sorted(context.observed.instances.items())
    used = ((name, {disk.template for disk in item.disks} or {item.disk_template}) for name, item in instances)
    users = grouped((template, name) for name, templates in used for template in templates)
    for template in sorted(gone & set(users)):
        first, *others = users[template]
        have = f" and {len(others)} more have" if others else " has"
        message = f"{template} is to be disabled, but {first}{have} disks of it"
        hint = f"convert or remove them first, or leave {template} enabled"
        yield hit("cluster", message, enabled.span, hint, missing=f"enabled {template}")


@warning("GP302")
def default_template_not_allowed(context: Context) -> Iterator[Hit]:
    enabled, allowed = context.cluster_leaf(ENABLED_TEMPLATES), context.cluster_leaf(ALLOWED_TEMPLATES)
    if enabled is None:
        return
    first, *others = enabled.texts
    usable = [template for template in others if allowed is None or template in allowed.texts]
    if first == "diskless" and usable:
        message = "diskless is the default template of new instances, as it is enabled first"
        yield hit("cluster", message, enabled.at(0), f"begin with {usable[0]}")
    elif allowed is not None and first not in allowed.texts:
        message = f"{first} is the default template of new instances (it is enabled first), but not allowed"
        hint = f"allow {first}, or begin enabled_disk_templates with {listed(allowed.texts, 'or')}"
        related = see(allowed.span, "allowed here")
        yield hit("cluster", message, enabled.at(0), hint, related, missing=f"{first} in {allowed.span}")


@information("GP303")
def group_template_beyond_cluster(context: Context) -> Iterator[Hit]:
    allowed = context.cluster_leaf(ALLOWED_TEMPLATES)
    if allowed is None:
        return
    for group in context.groups:
        leaf = context.own(group, ALLOWED_TEMPLATES)
        more = [template for template in leaf.texts if template not in allowed.texts] if leaf else []
        if leaf and more:
            message = f"{group.title} also allows {', '.join(more)}, which the cluster's policy does not"
            place = leaf.at(leaf.texts.index(more[0])) if len(more) < len(leaf.texts) else leaf.span
            yield hit(group, message, place, related=see(allowed.span, "the cluster's list"))


@information("GP306", When.WHOLE)
def template_never_allowed(context: Context) -> Iterator[Hit]:
    enabled, allowed = context.cluster_leaf(ENABLED_TEMPLATES), context.cluster_leaf(ALLOWED_TEMPLATES)
    if enabled is None or allowed is None:
        return
    used = {template for _, leaf in context.explicit_at(ALLOWED_TEMPLATES) for template in leaf.texts}
    for index, template in enumerate(enabled.texts):
        if template not in used:
            message = f"{template} is enabled, but no instance policy allows it"
            yield hit("cluster", message, enabled.at(index), "remove it here, or allow it in an instance policy")


@warning("GP310")
def only_diskless(context: Context) -> Iterator[Hit]:
    enabled = context.cluster_leaf(ENABLED_TEMPLATES)
    bound = "minimum" if enabled is not None and set(enabled.texts) == {"diskless"} else "maximum"
    for declared, (allowed, _) in context.combined(ALLOWED_TEMPLATES, MINMAX):
        pairs = context.pairs(declared)
        about_disks = any(getattr(pair, bound)["disk-count"] and pair.maximum["disk-size"] for pair in pairs)
        if set(allowed.texts) == {"diskless"} and about_disks and not context.exclusive(declared):
            message = f"{declared.title} allows only diskless: no instance there can have a disk"
            hint, missing = "allow a template that has disks", f"templates with disks in {allowed.span}"
            yield hit(declared, message, allowed.span, hint, missing=missing)
