"""GP70x, GP721 to GP723, GP726 to GP728 and GP743 to GP747: what the observed cluster has, and the policy names."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule, When, error, hit, see, warning
from gpolicy.cluster.state import LiveInstance
from gpolicy.cluster.terms import VOLUME_GROUP
from gpolicy.data import read_data
from gpolicy.findings import NO_PLAN, Related, Role, RuleInfo, Span
from gpolicy.ganeti import vocabulary
from gpolicy.ganeti.releases import release_of, unknown_release
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, SPINDLE_COUNT, Level, Path
from gpolicy.guessing import MOST_GUESSES, name_meant
from gpolicy.policy.model import GroupPolicy, ends, is_glob, matches
from gpolicy.printable import count, some
from gpolicy.resolve.desired import NODE_IN_TWO_GROUPS, NODE_SETS_DISAGREE, OTHER_CLUSTER, RENAME_CLASH, UNKNOWN_NODE
from gpolicy.rules.node_limits import METAVG, pools_in
from gpolicy.rules.shared import FILES, grouped, in_force, is_exclusive, of_cluster

_PLACES: Final[dict[Path, frozenset[str]]] = {
    ("volume_group_name",): frozenset({"plain", "drbd"}),
    ("file_storage_dir",): frozenset({"file"}),
    ("shared_file_storage_dir",): frozenset({"sharedfile"}),
}
"""Where new disks go, and the templates of these disks. Another place of rbd and gluster is a matter of the guards."""


@warning("GP728", when=When.STATE | When.WHOLE, explains=11, role=Role.DECIDES)
def misspelt_group(context: Context) -> Iterator[Hit]:
    named = {item.policy.renamed_from.value for item in context.desired.groups.values() if item.policy.renamed_from}
    left = [name for name in context.observed.groups if name not in named and name not in context.desired.groups]
    new = [item.policy for item in context.desired.groups.values() if item.current is None]
    for group in [group for group in new if group.removed is None][:MOST_GUESSES]:
        old = group.renamed_from
        wanted, place = (old.value, old.span) if old else (group.name, group.span)
        near = name_meant(wanted, left)
        if near is not None:
            rename = "" if old else f" To rename it, add `renamed_from: {near}`."
            told = f"the cluster has no group {wanted}, but {near}, which the policy does not name"
            yield hit(group, f"{told}: group {group.name} will be created", place, f"Did you mean `{near}`?{rename}")
        elif old is None:
            wants = context.desired.nodes.items()
            mine = {name for name, node in wants if node.group and node.group.value == group.name}
            homes = ((name, {node.name for node in context.observed.nodes_of(name)}) for name in left if mine)
            emptied = next((name for name, nodes in homes if nodes == mine), None)
            if emptied is not None:
                message = f"the cluster has no group {group.name}, which takes all nodes of {emptied}"
                hint = f"to rename that group, add `renamed_from: {emptied}`"
                yield hit(group, message, place, hint, missing=f"group {emptied}")


@warning("GP744", when=When.STATE | When.WHOLE)
def group_not_there(context: Context) -> Iterator[Hit]:
    there = list(context.observed.groups)
    old_names = Counter(group.renamed_from.value for group in context.groups if group.renamed_from)
    guess = MOST_GUESSES
    for name, item in context.desired.groups.items():
        group, old = item.policy, item.policy.renamed_from
        if item.current is not None:
            continue
        if group.removed is not None and guess > 0:
            guess -= 1
            near = name_meant(name, there)
            if near is not None and near not in context.policy.groups:
                message = f"group {name} is to be removed, but the cluster has {near}"
                yield hit(group, message, group.removed.span, f"Did you mean `{near}`?")
        elif old is not None and old_names[old.value] == 1 and not name_meant(old.value, there):
            message = f"{name} is to be renamed from {old.value}, but the cluster has neither"
            yield hit(group, message, old.span, f"its groups are {some(sorted(there))}")


@warning("GP747", when=When.STATE)
def almost_live_name(context: Context) -> Iterator[Hit]:
    live = [context.observed.cluster.own, *(group.own for group in context.observed.groups.values())]
    outside = (tuple(name.split(".")) for name in read_data("forms.toml")[almost_live_name.info.code]["outside"])
    for declared, leaf in context.explicit_at(*outside, *FILES):
        now = {str(own[leaf.path]) for own in live if own.get(leaf.path)}
        near = name_meant(str(leaf.value), now) if str(leaf.value) not in now else None
        if near is not None:
            message = f"{leaf.dotted} is to be {leaf.value}, but the cluster has {near}"
            yield hit(declared, message, leaf.span, f"Did you mean `{near}`?")


def _of_resolving(info: RuleInfo, when: When = When.STATE) -> Rule:
    def find(context: Context) -> Iterator[Hit]:
        # no waiver can name its object
        return (Hit("", item) for item in context.desired.findings if item.code == info.code)

    return Rule(info=info, find=find, when=when)


other_cluster = _of_resolving(OTHER_CLUSTER)
unknown_node = _of_resolving(UNKNOWN_NODE)
node_in_two_groups = _of_resolving(NODE_IN_TWO_GROUPS)
# what could not be read may say something else: a leaf with an error inside, the other group's own new name
node_sets_disagree = _of_resolving(NODE_SETS_DISAGREE, When.STATE | When.WHOLE)
rename_clash = _of_resolving(RENAME_CLASH, When.STATE | When.WHOLE)


@error("GP745", When.STATE, stays=NO_PLAN, explains=11)
def hypervisor_in_use(context: Context) -> Iterator[Hit]:
    enabled = context.cluster_leaf(vocabulary.ENABLED_HYPERVISORS)
    if enabled is None:
        return
    known = [item for item in context.observed.instances.values() if item.hypervisor not in (None, *enabled.texts)]
    for hypervisor, names in sorted(grouped((str(item.hypervisor), item.name) for item in known).items()):
        message = f"{hypervisor} is not to be enabled, but {some(sorted(names))} use it"
        yield hit("cluster", message, enabled.span, f"leave {hypervisor} enabled, or convert them first")


@warning("GP746", When.STATE, explains=14, role=Role.ALSO_RELATED)
def disks_left_behind(context: Context) -> Iterator[Hit]:
    disks = [(item.name, disk.template) for item in context.observed.instances.values() for disk in item.disks]
    for path, templates in _PLACES.items():
        leaf, now = context.cluster_leaf(path), context.observed.cluster.own.get(path)
        users = sorted({name for name, template in disks if template in templates})
        if leaf is not None and leaf.value and now and leaf.value != now and users:
            message = f"{path[0]} is to be {leaf.value}, but {some(users)} have disks in {now}"
            still = [other.span for _, other in context.explicit_at(METAVG) if other.value == now]
            related = tuple(Related(span, f"metavg is {now} still") for span in still)
            yield hit("cluster", message, leaf.span, f"write {now}, or move the disks first", related)


@warning("GP727", When.STATE)
def no_room_for_metadata(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        metavg = _separate_metavg(context, group)
        for node in context.members.hosts_in(group) if metavg else ():
            pools = pools_in(context, group, node)
            pool = pools.others.get(metavg) if pools and metavg else None
            if pool is None or node.offline or node.drained:
                continue
            free = sum(volume.free for volume in pool.allocatable)
            if free < vocabulary.DRBD_METADATA:
                has = f"{amount('disk-size', free)} free in {metavg}" if pool.count else f"no volume of {metavg}"
                message = f"{node.name} in {group.title} has {has}: no metadata of another DRBD disk fits (128 MiB)"
                leaf = context.effective(group, METAVG)
                hint = "add a volume to the group, or write another metavg"
                yield hit(group, message, leaf.span if leaf else group.span, hint)


def _separate_metavg(context: Context, group: GroupPolicy) -> str | None:
    """Return the volume group of the metadata of a group's DRBD disks, if it is known not to be the cluster's own."""
    metavg, own = (in_force(context, group, path) for path in (METAVG, VOLUME_GROUP))
    if metavg is None or own is None or not own.value or metavg.value == own.value:
        return None
    templates = (of_cluster(context, ENABLED_TEMPLATES), in_force(context, group, ALLOWED_TEMPLATES))
    has_drbd = all(item is None or "drbd" in item.texts for item in templates)
    return str(metavg.value) if has_drbd and not is_exclusive(context, group) else None


@error("GP721", When.STATE | When.WHOLE, stays=NO_PLAN, role=Role.DECIDES)
def last_group_removed(context: Context) -> Iterator[Hit]:
    removed = {group.name: group for group in context.policy.groups.values() if group.removed is not None}
    observed = set(context.observed.groups)
    if removed and observed and observed <= set(removed) and not context.groups:
        group = removed[min(observed)]
        place = group.removed.span if group.removed else group.span
        message = f"{group.name} is the last group: Ganeti does not remove it"
        yield hit(group, message, place, "keep one group, or declare the one that takes its place")


@error("GP722", When.STATE | When.WHOLE, stays=NO_PLAN, role=Role.DECIDES)
def removed_group_has_nodes(context: Context) -> Iterator[Hit]:
    for group in context.policy.groups.values():
        left = [node.name for node in context.members.nodes_in(group)]
        if group.removed is not None and left:
            others = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
            message = f"{group.name} is to be removed, but {left[0]}{others} still in it"
            missing = f"group {group.name}"
            yield hit(group, message, group.removed.span, "move these nodes to another group", missing=missing)


@warning("GP723", When.STATE | When.WHOLE, role=Role.DECIDES)
def move_into_stricter_group(context: Context) -> Iterator[Hit]:
    state, desired = context.observed, context.desired
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
        group = context.policy.groups[name]
        if (glob := next((entry.value for entry in group.nodes or () if entry.span == span), "")) and is_glob(glob):
            emptied, narrow = _widened(context, current[name], glob, span)
            message += f"; {glob} also takes in all nodes of group {some(emptied)}" if emptied else ""
            hint = f"is {narrow} meant? Else {hint}" if narrow else hint
        yield hit(group, message, span, hint, see(group.span, "the group"))


def _widened(context: Context, group: str | None, glob: str, span: Span) -> tuple[list[str], str]:
    """Return the other groups whose nodes a group's pattern takes all, and the pattern for its own nodes alone."""
    state, wanted = context.observed, context.desired.nodes.items()
    homes = {name: state.nodes[name].group for name, node in wanted if node.group and node.group.span == span}
    own = [name for name, home in homes.items() if home == group]
    removed = {name for name, item in context.desired.current_groups.items() if item.removed is not None}
    others = sorted({*homes.values()} - removed - {group})
    emptied = [name for name in others if all(node.name in homes for node in state.nodes_of(name))] if own else []
    narrow = f"{re.split('[0-9.]', own[0])[0]}*{ends(glob)[1]}" if own else ""
    is_exact = emptied and narrow.rstrip("*") and {name for name in state.nodes if matches(narrow, name)} == {*own}
    return emptied, narrow if is_exact else ""


def _refused(context: Context, group: GroupPolicy, instance: LiveInstance) -> str:
    """Return why the policy that the group is declared to have does not allow an instance, or nothing."""
    templates = {disk.template for disk in instance.disks} or {instance.disk_template}
    allowed = context.effective(group, ALLOWED_TEMPLATES)
    if allowed is not None and (other := sorted(templates - set(allowed.texts))):
        return f"disk template {other[0]}"
    exclusive = is_exclusive(context, group)
    if exclusive and (other := sorted(templates - {"plain", "diskless"})):
        return f"{other[0]} disks with exclusive storage"
    broken = [_outside(pair, instance, exclusive=exclusive) for pair in context.pairs(group)]
    if not broken or not all(broken):
        return ""
    name, had = next(iter(min(broken, key=len).items()))
    return f"{name} {amount(name, had)}"


def _outside(pair: Pair, instance: LiveInstance, *, exclusive: bool) -> Mapping[str, int]:
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
    return pair.outside((name, number) for name, number in numbers if number is not None)


@warning("GP726", When.STATE)
def no_spindles(context: Context) -> Iterator[Hit]:
    if any(declared.level is Level.NODE for declared, _ in context.explicit_at(SPINDLE_COUNT)):
        return  # the policy sees to it, node by node
    for group in context.groups:
        of_group = in_force(context, group, SPINDLE_COUNT)
        if is_exclusive(context, group):
            continue
        inherited = of_group.value if of_group else None
        counts = {node.name: node.own.get(SPINDLE_COUNT, inherited) for node in context.members.hosts_in(group)}
        without = [name for name, count in counts.items() if isinstance(count, int) and count <= 0]
        if without and (of_group is None or of_group.leaf is None or of_group.number > 0):  # else GP107 says it
            more = f" and {count(len(without) - 1, 'more node')} have" if len(without) > 1 else " has"
            message = f"{without[0]}{more} no spindles in {group.title} (spindle_count 0 or less)"
            yield hit(group, message, group.span, "declare ndparams.spindle_count, 1 or more")


@warning("GP743", when=When.STATE, explains=13)
def other_release(context: Context) -> Iterator[Hit]:
    declared, state = context.policy.cluster, context.observed
    if unknown := unknown_release(state.software_version):
        yield hit(declared or "cluster", unknown, declared.span if declared else None)
    said = declared.ganeti_version if declared else None
    release = release_of(state.software_version)
    if declared is None or said is None or release in (release_of(said), None):
        return
    message = f"the cluster has Ganeti {state.software_version}, the policy is for {said}"
    span = declared.document.value_span(("ganeti_version",))
    yield hit(declared, message, span, f'write ganeti_version: "{release}"')
