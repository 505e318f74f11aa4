"""Built-in guards: against what Ganeti would refuse half-way, or do without asking.

Each has a name by which it can be overridden (`--allow NAME`). The guards that a policy declares itself are judged when
the impact of the plan is known.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpolicy.cluster.state import ClusterObject, ClusterState
from gpolicy.cluster.terms import Terms
from gpolicy.errors import RequestError
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import (
    ALLOWED_TEMPLATES,
    ENABLED_TEMPLATES,
    EXCLUSIVE_STORAGE,
    SPEC_PARAMETERS,
    Level,
    Path,
    TakesEffect,
    Value,
    Values,
)
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.plan.changes import MEMBERSHIP, NAME, Change, ChangeAction, Objection, contains, instances_with, words
from gpolicy.plan.diff import Difference
from gpolicy.plan.sides import Sides, sides_of
from gpolicy.policy.kinds import BUILT_IN, Policy
from gpolicy.printable import some
from gpolicy.resolve.desired import OTHER_CLUSTER

_NEEDS: tuple[tuple[frozenset[str], Path, str], ...] = (
    (frozenset({"plain", "drbd"}), ("volume_group_name",), "plain and drbd need a volume group"),
    (frozenset({"drbd"}), ("drbd_usermode_helper",), "drbd needs a helper"),
    (frozenset({"file"}), ("file_storage_dir",), "file needs a directory"),
    (frozenset({"sharedfile"}), ("shared_file_storage_dir",), "sharedfile needs a directory"),
)
"""Disk templates, the value of the cluster that they need when they are enabled, and that in words."""


@dataclass(frozen=True, slots=True)
class GuardResult:
    """The verdict of one guard. A guard that is overridden counts as passed, and says so."""

    name: str
    ok: bool
    message: str
    allowed: bool = False


def can_be_allowed(guard: GuardResult) -> bool:
    """Return whether `--allow` can pass a failed guard: a guard of the policy, or one of `OVERRIDABLE`."""
    return not guard.ok and (guard.name in OVERRIDABLE or guard.name not in BUILT_IN)


def check_allowed(allowed: frozenset[str], policy: Policy) -> None:
    """Raise RequestError for the name of an unknown guard, and of one that cannot be passed."""
    declared = [guard.name.value for guard in policy.guards]
    if unknown := sorted(allowed - BUILT_IN.keys() - set(declared)):
        hint = did_you_mean_one_of(unknown[0], "guards", [*BUILT_IN, *declared])
        raise RequestError(f"there is no guard {unknown[0]!r}", hint=hint)
    if futile := sorted(allowed - OVERRIDABLE - set(declared)):
        hint = f"guards that can be passed: {', '.join([*sorted(OVERRIDABLE), *declared])}"
        raise RequestError(f"guard {futile[0]} cannot be passed: Ganeti would refuse the step half-way", hint=hint)


def objections(sides: Sides) -> dict[str, list[Objection]]:
    """Return what each guard has against the plan; guards that have nothing against it are left out."""
    found = ((name, list(guard(sides))) for name, guard in GUARDS.items())
    return {name: raised for name, raised in found if raised}


def judge(sides: Sides, allowed: frozenset[str]) -> list[GuardResult]:
    """Return the verdict of every guard that has something to say; overridden ones pass."""
    results: list[GuardResult] = []
    for name, raised in objections(sides).items():
        message = "; ".join(objection.text for objection in raised)
        override = name in allowed & OVERRIDABLE
        results.append(GuardResult(name, override, message, allowed=override))
    return results


def judge_without_cluster(
    changes: Sequence[Change], own: Values, impossible: Sequence[Objection], allowed: frozenset[str]
) -> dict[str, GuardResult]:
    """Return the verdicts, by name, that follow from the changes and the cluster's own values alone."""
    cluster = ClusterObject(own=dict(own))
    state = ClusterState(source="", name="", software_version=None, cluster=cluster, groups={}, nodes={}, instances={})
    mine = [change for change in changes if change.level is Level.CLUSTER]
    results = judge(sides_of(state, Difference(mine), Terms(), tuple(impossible)), allowed)
    return {guard.name: guard for guard in results if guard.name in JUDGED_WITHOUT_CLUSTER}


def _templates_enabled(sides: Sides) -> Iterator[Objection]:
    enabled = set(words(sides.after.cluster.own.get(ENABLED_TEMPLATES)))
    if not enabled:
        return
    lists_change = any(change.path in (ENABLED_TEMPLATES, ALLOWED_TEMPLATES) for change in sides.changes)
    touched = [change for change in sides.changes if change.path[0] == "ipolicy"]
    groups = [(f"group {name}", name, group.own) for name, group in sides.after.groups.items()]
    for label, name, own in [("the cluster's policy", None, sides.after.cluster.own), *groups]:
        if ALLOWED_TEMPLATES not in own:
            continue
        allowed = words(own[ALLOWED_TEMPLATES])
        extra = sorted(set(allowed) - enabled)
        if extra and lists_change:
            text = f"{label} allows {', '.join(extra)}, which would not be enabled: declare its disk-templates as well"
            yield sides.object_to(text, ALLOWED_TEMPLATES, ENABLED_TEMPLATES, group=name)
        elif not set(allowed) & enabled and any(change.object_name == name for change in touched):
            text = (
                f"{label} allows no enabled template (Ganeti cuts its list to the enabled ones) and cannot be changed"
                " like that: declare its disk-templates as well"
            )
            yield sides.object_to(text, *(change.path for change in touched), group=name)


def _templates_in_use(sides: Sides) -> Iterator[Objection]:
    change = sides.cluster_change(ENABLED_TEMPLATES)
    for template in sorted(set(words(change.before)) - set(words(change.after))) if change else ():
        users = instances_with(sides.before, template)
        if template == "diskless":
            users = sorted(item.name for item in sides.before.instances.values() if not item.disks)
        if template == "plain":  # the volumes below DRBD disks are plain ones
            users = sorted({*users, *instances_with(sides.before, "drbd")})
        if users:
            yield sides.object_to(f"{template} cannot be disabled, {some(users)} use it", ENABLED_TEMPLATES)


def _standard_in_bounds(sides: Sides) -> Iterator[Objection]:
    paths = {("ipolicy", "minmax"), *(("ipolicy", "std", name) for name in SPEC_PARAMETERS)}
    if not any(change.level is Level.CLUSTER and change.path in paths for change in sides.changes):
        return
    std = {name: sides.after.cluster.own.get(("ipolicy", "std", name)) for name in SPEC_PARAMETERS}
    pairs = sides.after.cluster.own.get(("ipolicy", "minmax"))
    only: Value = {"min": std, "max": std}
    if isinstance(pairs, list) and None not in std.values() and not any(contains(pair, only) for pair in pairs):
        text = "the standard instance (ipolicy.std) lies outside every size: declare both, they go in one command"
        yield sides.object_to(text, *paths)


def _groups_empty(sides: Sides) -> Iterator[Objection]:
    removed = {str(change.before) for change in sides.changes if change.action is ChangeAction.REMOVE}
    for name in sorted(removed):
        if nodes := sorted(node.name for node in sides.after.nodes_of(name)):
            text = f"group {name} is not empty: {some(nodes)} must go to another group first"
            yield sides.object_to(text, NAME, group=name)
    if removed and not sides.after.groups.keys() - removed:
        yield sides.object_to("the last group cannot be removed", NAME, group=min(removed))


def _pairs_together(sides: Sides) -> Iterator[Objection]:
    def are_apart(state: ClusterState, one: str, other: str) -> bool:
        return one in state.nodes and other in state.nodes and state.nodes[one].group != state.nodes[other].group

    instances = sides.before.instances.values()
    pairs = ((item.name, (item.primary_node, other)) for item in instances for other in item.secondary_nodes)
    split = {name: pair for name, pair in pairs if are_apart(sides.after, *pair) and not are_apart(sides.before, *pair)}
    if split:
        moved = {node for nodes in split.values() for node in nodes}
        moves = [item.span for item in sides.changes if item.path == MEMBERSHIP and item.object_name in moved]
        hint = "move both nodes of a DRBD pair, or empty the node first (gpolicy evacuate)"
        text = f"the nodes of {some(sorted(split))} would be in two groups; {hint}"
        yield Objection(text, moves[0] if moves else None)


def _disks_stay(sides: Sides) -> Iterator[Objection]:
    """Compare, instance by instance, where its disks are looked for: by the group that its primary node is in."""
    moved: dict[Path, list[str]] = {}
    paths = [item.path for item in PARAMETERS if item.takes_effect is TakesEffect.EXISTING_DISKS_AT_ONCE]
    for instance in sides.before.instances.values():
        templates = {disk.template for disk in instance.disks}
        for path in paths if instance.primary_node in sides.before.nodes else ():
            before, after = sides.group_values(instance.primary_node, path) if path[1] in templates else (None, None)
            if before != after:
                moved.setdefault(path, []).append(instance.name)
    for path, users in moved.items():
        groups = {sides.after.nodes[sides.before.instances[name].primary_node].group for name in users}
        text = f"{'.'.join(path)}: existing disks of {some(sorted(users))} are redirected at once"
        yield sides.object_to(text, path, group=min(groups))


def _exclusive_storage(sides: Sides) -> Iterator[Objection]:
    yield from _get_exclusive_storage(sides)
    if sides.before.readable(Level.GROUP, EXCLUSIVE_STORAGE):
        yield from _differ_in_exclusive_storage(sides)


def _get_exclusive_storage(sides: Sides) -> Iterator[Objection]:
    """Find the nodes that get exclusive storage, because their group does or because they move."""
    new: dict[str, set[str]] = {}
    readable = sides.before.readable(Level.GROUP, EXCLUSIVE_STORAGE)
    for node in sides.before.nodes.values():
        if readable and EXCLUSIVE_STORAGE in node.own:
            continue  # it keeps its own value
        before, after = sides.group_values(node.name, EXCLUSIVE_STORAGE)
        if before is not True and after is True:
            new.setdefault(sides.after.nodes[node.name].group, set()).add(node.name)
    for name, nodes in sorted(new.items()):
        there = (item for item in sides.before.instances.values() if nodes & {item.primary_node, *item.secondary_nodes})
        users = sorted(item.name for item in there if any(disk.template != "plain" for disk in item.disks))
        if users:
            text = f"nodes of group {name} get exclusive storage, but {some(users)} have disks there that are not plain"
            yield sides.object_to(text, EXCLUSIVE_STORAGE, group=name)
        text = (
            f"exclusive storage on nodes of group {name}: Ganeti up to 3.1 cannot report the disk space of such nodes"
            " (a defect of its node daemon), so hspace and the allocator lose them"
        )
        yield sides.object_to(text, EXCLUSIVE_STORAGE, group=name)


def _differ_in_exclusive_storage(sides: Sides) -> Iterator[Objection]:
    """Find the groups whose nodes come to differ, as one has a value of its own."""
    for name in sides.after.groups:
        members = sides.after.nodes_of(name)
        on = sorted(node.name for node in members if sides.after.in_force(node, EXCLUSIVE_STORAGE) is True)
        off = sorted(node.name for node in members if node.name not in set(on))
        had = {sides.before.in_force(sides.before.nodes[node.name], EXCLUSIVE_STORAGE) is True for node in members}
        moved = any(node.group != sides.before.nodes[node.name].group for node in members)
        if on and off and (moved or len(had) == 1):  # of those that stay, all were alike before
            text = (
                f"nodes of group {name} would differ in exclusive storage (on: {some(on)}; off: {some(off)}), which"
                " Ganeti does not check and `gnt-cluster verify` reports: remove the nodes' own value"
            )
            yield sides.object_to(text, EXCLUSIVE_STORAGE, group=name)


def _master_network(sides: Sides) -> Iterator[Objection]:
    for path in (("master_netdev",), ("master_netmask",)):
        if sides.cluster_change(path):
            yield sides.object_to(f"{path[0]} takes the master address down and up; run it on the master itself", path)


def _storage_set_up(sides: Sides) -> Iterator[Objection]:
    enabled = set(words(sides.after.cluster.own.get(ENABLED_TEMPLATES)))
    for templates, path, need in _NEEDS:
        touched = sides.cluster_change(ENABLED_TEMPLATES) or sides.cluster_change(path)
        if touched and templates & enabled and sides.after.cluster.own.get(path) == "":
            yield sides.object_to(f"{need}: declare {path[0]}", path, ENABLED_TEMPLATES)


GUARDS: dict[str, Callable[[Sides], Iterator[Objection]]] = {
    "right-cluster": lambda sides: (
        Objection(item.message, item.span) for item in sides.difference.findings if item.code == OTHER_CLUSTER.code
    ),
    "expressible": lambda sides: iter(sides.impossible),
    "templates-enabled": _templates_enabled,
    "templates-in-use": _templates_in_use,
    "std-in-bounds": _standard_in_bounds,
    "groups-empty": _groups_empty,
    "pairs-together": _pairs_together,
    "storage-set-up": _storage_set_up,
    "disks-stay": _disks_stay,
    "exclusive-storage": _exclusive_storage,
    "master-network": _master_network,
}
"""The built-in guards by name, in the order in which their verdicts are shown."""

JUDGED_WITHOUT_CLUSTER = frozenset({"expressible", "std-in-bounds", "storage-set-up", "master-network"})
"""Guards that look at nothing but the changes and the cluster's own values."""

OVERRIDABLE = frozenset(name for name, can_be in BUILT_IN.items() if can_be)
"""Guards against what Ganeti does without asking. The others stop what Ganeti refuses: no override would help."""
