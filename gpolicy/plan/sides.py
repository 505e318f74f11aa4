"""A cluster before and after a plan: one value for guards, rules, impact and pictures.

The cluster as it will be is a state with the changes of a plan made: own values, effective values, groups, names,
membership and tags are those after the plan. Instances and measurements of nodes stay as they were read, except where
exclusive storage changes them. So a comparison of the cluster before and after the plan is a function of two states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gpolicy.cluster.state import ClusterState, LiveGroup, LiveNode, Resources
from gpolicy.cluster.terms import PairNames, Terms, under_terms
from gpolicy.cluster.volume_pools import VolumePool, pools_of
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE, Level, Path, Value, Values
from gpolicy.plan.changes import MEMBERSHIP, NAME, NEW_GROUP, TAGS, Change, ChangeAction, Objection, new_names, words
from gpolicy.plan.diff import Difference, diff
from gpolicy.policy.kinds import Policy
from gpolicy.printable import some
from gpolicy.resolve.desired import Desired, pair_names, terms_of

_ByObject = dict[tuple[Level, str | None], list[Change]]
_NO_VALUES: Final = (NAME, MEMBERSHIP, TAGS)
_ROUNDING: Final = 8  # MiB: by how much each volume may be counted larger or smaller than in its group


@dataclass(frozen=True, slots=True)
class GroupMatch:
    """A group's name before and after; None where there is no such group. Both None: the whole cluster."""

    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        """What to call it: its name after the change, else the one before; empty for the whole cluster."""
        return self.after or self.before or ""

    @property
    def renamed_from(self) -> str | None:
        """The name before, where the group gets another one."""
        return self.before if self.after is not None and self.before != self.after else None


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: what is counted of it is remembered
class Sides:
    """A cluster before and after a change.

    Both are under the terms of the policy, if one leads to the change. `names` are what sizes are called after it,
    `difference` is what changes, and `impossible` what no step of the plan can do, where steps were made.
    """

    before: ClusterState
    after: ClusterState
    names: PairNames = field(default_factory=PairNames)
    difference: Difference = field(default_factory=Difference)
    impossible: tuple[Objection, ...] = ()

    @property
    def changes(self) -> list[Change]:
        """The changes of the plan."""
        return self.difference.changes

    @property
    def groups(self) -> list[GroupMatch]:
        """The groups in the order of `after`, then those that are removed.

        A renamed group keeps its UUID, and a new one may get the name it had.
        """
        before, after = self.before.groups, self.after.groups
        by_uuid = {group.identity.uuid: name for name, group in before.items() if group.identity.uuid}
        same = {name: by_uuid[group.identity.uuid] for name, group in after.items() if group.identity.uuid in by_uuid}
        by_name = before.keys() - same.values()
        found = [GroupMatch(same.get(name, name if name in by_name else None), name) for name in after]
        stay = {match.before for match in found}
        return [*found, *(GroupMatch(name, None) for name in before if name not in stay)]

    def group_values(self, node: str, path: Path) -> tuple[Value, Value]:
        """Return the effective value of the group that a node is in, before the changes and after them."""
        groups = (state.groups.get(state.nodes[node].group) for state in (self.before, self.after))
        before, after = (group.effective.get(path) if group else None for group in groups)
        return before, after

    def cluster_change(self, path: Path) -> Change | None:
        """Return the change of one value of the cluster, if there is one."""
        return next((item for item in self.changes if (item.level, item.path) == (Level.CLUSTER, path)), None)

    def object_to(self, text: str, *paths: Path, group: str | None = None) -> Objection:
        """Return an objection at the first change of one of `paths`; one of `group` goes before the cluster's."""
        causes = [item for item in self.changes if item.path in paths and item.object_name in (group, None)]
        causes.sort(key=lambda item: item.object_name != group)
        return Objection(text, causes[0].span if causes else None)


def planned_sides(policy: Policy, state: ClusterState, desired: Desired | None = None) -> Sides:
    """Return the cluster before and after the plan that makes `state` what `policy` declares.

    `desired` is what the policy wants of this state, where it is known already.
    """
    difference = diff(policy, state, desired=desired)
    return named_by(policy, sides_of(state, difference, terms_of(policy, difference.desired)))


def sides_of(
    state: ClusterState, difference: Difference, terms: Terms, impossible: tuple[Objection, ...] = ()
) -> Sides:
    """Return the cluster before and after a difference, both under the terms of a policy; sizes have no names yet."""
    before = under_terms(state, terms, new_names(difference.changes))
    after = project(before, difference.changes, terms)
    return Sides(before, after, difference=difference, impossible=impossible)


def named_by(policy: Policy, sides: Sides) -> Sides:
    """Return the same with the names that a policy gives to sizes."""
    return replace(sides, names=pair_names(policy, sides.after))


def project(state: ClusterState, changes: Sequence[Change], terms: Terms | None = None) -> ClusterState:
    """Return `state` after `changes`, under `terms` if they are given.

    A group that would be removed while nodes are in it stays, as Ganeti refuses to remove it. Where the source cannot
    show own values of groups, a group that has the cluster's value is taken to follow it. A new group is listed last.
    """
    by_object: _ByObject = {}
    for change in changes:
        by_object.setdefault((change.level, change.object_name), []).append(change)
    names = new_names(changes)
    mine = by_object.get((Level.CLUSTER, None), ())
    cluster = replace(state.cluster, own=_own(state.cluster.own, mine), tags=_tags(state.cluster.tags, mine))
    nodes = {}
    for name, node in state.nodes.items():
        changed = by_object.get((Level.NODE, name), ())
        nodes[name] = _changed_node(node, changed, names) if changed or node.group in names else node
    home = {node.name: names.get(node.group, node.group) for node in state.nodes.values()}
    moved = [name for name, node in nodes.items() if node.group != home[name]]
    unknown: list[str] = []
    if not state.readable(Level.GROUP, EXCLUSIVE_STORAGE):  # then what a node shows is the flag of its group
        unknown = _give_flag_of_group(nodes, [name for name in moved if EXCLUSIVE_STORAGE in nodes[name].own])
    groups = _groups(state, cluster.own, by_object, names, occupied={node.group for node in nodes.values()})
    after = replace(state, cluster=cluster, groups=groups, nodes=nodes)
    if unknown:
        note = f"whether exclusive storage is on in {', '.join(unknown)} is not known: nodes keep it as they move"
        after = replace(after, notes=(*state.notes, note))
    return _measured(state, under_terms(after, terms) if terms else after)  # also groups that are new or renamed


def undo(state: ClusterState, changes: Sequence[Change]) -> ClusterState:
    """Return the cluster as it was before `changes`, of which `state` may show some or all.

    A removed group comes back without values of its own: it had no nodes.
    """
    old = {new: name for name, new in new_names(changes).items()}
    found = []
    for change in changes:
        made = str(change.after) in state.groups
        if change.action in (ChangeAction.CREATE, ChangeAction.RENAME) and not made:
            continue
        if change.action is ChangeAction.REMOVE and str(change.before) in state.groups:
            continue
        name = change.object_name
        if change.level is Level.GROUP and name is not None:
            name = old.get(name, name)
        back = replace(change, object_name=name, before=change.after, after=change.before)
        was, becomes = change.effective_after, change.effective_before
        found.append(replace(back, effective_before=was, effective_after=becomes))
    return project(state, found)


def _measured(before: ClusterState, after: ClusterState) -> ClusterState:
    """Return `after`, with what nodes will measure whose exclusive storage changes; a note names those without it."""
    nodes, lost = dict(after.nodes), []
    for name, node in after.nodes.items():
        on = after.has_exclusive_storage(node)
        if on != before.has_exclusive_storage(before.nodes[name]):
            pools = pools_of(after, node)
            nodes[name] = replace(node, resources=resources_when_turned(node, pools.own if pools else None, on=on))
            if node.resources.disk_free is not None and nodes[name].resources.disk_free is None:
                lost.append(name)
    if not lost:
        return replace(after, nodes=nodes)
    note = (
        f"exclusive storage changes what is free on {some(lost)}: how, only the physical volumes of its volume"
        " group could tell (--physical-volumes; and `physical_volumes` of the policy says which are in it)"
    )
    return replace(after, nodes=nodes, notes=(*after.notes, note))


def _changed_node(node: LiveNode, changes: Sequence[Change], names: Mapping[str, str]) -> LiveNode:
    stays = names.get(node.group, node.group)
    group = next((str(change.after) for change in changes if change.path == MEMBERSHIP), stays)
    return replace(node, group=group, own=_own(node.own, changes), tags=_tags(node.tags, changes))


def _give_flag_of_group(nodes: dict[str, LiveNode], moved: Sequence[str]) -> list[str]:
    """Give moved nodes the exclusive_storage of the nodes that were in their new group before.

    A source that shows no values of groups (the text format) shows those of their group at the nodes. Return the groups
    of which no node shows it.
    """
    there = [node for name, node in nodes.items() if name not in set(moved)]
    flags = {node.group: node.own[EXCLUSIVE_STORAGE] for node in there if EXCLUSIVE_STORAGE in node.own}
    for name in moved:
        node = nodes[name]
        if node.group in flags:
            nodes[name] = replace(node, own={**node.own, EXCLUSIVE_STORAGE: flags[node.group]})
    return sorted({nodes[name].group for name in moved} - flags.keys())


def _groups(
    state: ClusterState, cluster: Values, by_object: _ByObject, names: Mapping[str, str], occupied: set[str]
) -> dict[str, LiveGroup]:
    groups: dict[str, LiveGroup] = {}
    for group in state.groups.values():
        name = names.get(group.name, group.name)
        changes = by_object.get((Level.GROUP, name), ())
        removed = any(change.action is ChangeAction.REMOVE and change.before == group.name for change in changes)
        if removed and name not in occupied:
            continue
        if not changes and name == group.name and cluster == state.cluster.own:
            groups[name] = group
            continue
        own = _own(group.own, changes)
        effective = _effective(state, group, own, cluster)
        groups[name] = replace(group, name=name, own=own, effective=effective, tags=_tags(group.tags, changes))
    last = max((group.position for group in state.groups.values() if group.position is not None), default=None)
    for (level, new), changes in by_object.items():
        if level is Level.GROUP and new is not None and any(change.action is ChangeAction.CREATE for change in changes):
            own, tags = _own(NEW_GROUP, changes), _tags(frozenset(), changes)
            last = None if last is None else last + 1
            effective = fill(own, cluster, Level.GROUP)
            groups[new] = LiveGroup(name=new, own=own, effective=effective, tags=tags, position=last)
    return dict(sorted(groups.items()))


def _effective(state: ClusterState, group: LiveGroup, own: Values, cluster: Values) -> Values:
    """Return the effective values of a group that stays, where own values may be hidden."""
    filled = fill(own, cluster, Level.GROUP)
    for path, now in group.effective.items():
        if path not in own and not state.readable(Level.GROUP, path) and now != state.cluster.own.get(path):
            filled[path] = now
    return filled


def _own(own: Mapping[Path, Value], changes: Sequence[Change]) -> Values:
    values = dict(own)
    for change in changes:
        if change.action is ChangeAction.RESET:
            values.pop(change.path, None)
        elif change.path not in _NO_VALUES:
            values[change.path] = change.after
    return values


def _tags(tags: frozenset[str], changes: Sequence[Change]) -> frozenset[str]:
    return next((frozenset(words(change.after)) for change in changes if change.path == TAGS), tags)


def resources_when_turned(node: LiveNode, pool: VolumePool | None, *, on: bool) -> Resources:
    """Return what `node` measures after exclusive storage is turned on or off, worked out from its physical volumes.

    `pool` are those of the cluster's volume group, None if they were not read. Under exclusive storage only empty
    volumes count as free, each without margin and reserve (design document "partitioned Ganeti", "Exclusive use of
    disks"). Where the volumes are not known, the figures become unknown.
    """
    measured = node.resources
    if measured.disk_total is None:
        return measured
    if pool is None or abs(pool.size - measured.disk_total) > _ROUNDING * max(len(pool.volumes), 1):
        return replace(measured, disk_free=None, spindles_total=None, spindles_free=None)
    if not on:
        return replace(measured, disk_free=pool.free, spindles_total=None, spindles_free=None)
    empty = len(pool.empty)
    return replace(measured, disk_free=empty * pool.usable, spindles_total=pool.count, spindles_free=empty)
