"""Compare a policy with a cluster: per declared leaf, own value against own value; and the cluster as it will be.

The second is a state with the changes of a plan made: own values, effective values, groups, names, membership and tags
are those after the plan. Instances and measurements of nodes stay as they were read, except where exclusive storage
changes them. So a comparison of the cluster before and after the plan is a function of two states.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpolicy.cluster.state import ClusterState, LiveGroup, LiveNode, Resources
from gpolicy.cluster.terms import Terms, under_terms
from gpolicy.cluster.volume_pools import VolumePool, pools_of
from gpolicy.findings import Finding, Located, Span
from gpolicy.ganeti.parameters import as_word, canonical, fill, parameter_at, position
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE, Level, Path, Value, Values
from gpolicy.plan import changes
from gpolicy.plan.changes import MEMBERSHIP, NEW_GROUP, TAGS, Change, ChangeAction, NotCompared, new_names, words
from gpolicy.policy.model import INHERIT, Leaves, OwnedPrefix, Policy
from gpolicy.printable import some
from gpolicy.resolve.desired import Desired, DesiredGroup, DesiredNode, resolve, terms_of

TOOL_TAGS = ("ganeti:watcher:autorepair:pending:", "ganeti:watcher:autorepair:result:", "htools:standby:auto")
"""Tags that Ganeti's own tools set and remove; never pruned, even if a policy owns them."""

_Seen = Mapping[Path, Value]
_Pair = tuple[Value, Value]
_Risk = tuple[changes.Risk, str]
_LOW: Final[_Risk] = (changes.Risk.LOW, "")


@dataclass(slots=True)
class Difference:
    """The differences, values that could not be compared, and findings about parts that do not match the cluster."""

    changes: list[Change] = field(default_factory=list)
    unreadable: list[NotCompared] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    desired: Desired = field(default_factory=Desired)


def diff(
    policy: Policy, state: ClusterState, left_out: Collection[changes.ChangeKey] = (), desired: Desired | None = None
) -> Difference:
    """Return what must change so that `state` is what `policy` declares. Only declared values are compared.

    What is `left_out` is not compared either, as if the policy did not declare it. `desired` is what the policy wants
    of this state, where it is known already.
    """
    desired = desired or resolve(policy, state)
    if left_out:
        desired = changes.without(desired, left_out)
    return _Diff(policy, state, desired, left_out).run()


class _Diff:
    def __init__(
        self, policy: Policy, state: ClusterState, desired: Desired, left_out: Collection[changes.ChangeKey]
    ) -> None:
        self.policy, self.state, self.desired = policy, state, desired
        self.result = Difference(findings=[*desired.findings], desired=desired)
        declared = policy.cluster.leaves if policy.cluster else {}
        self.cluster_leaves = {path: leaf for path, leaf in declared.items() if ("cluster", path) not in left_out}
        self.cluster_tags = None if ("cluster", changes.TAGS) in left_out else policy.cluster_tags
        self.cluster_after = self._own_after(state.cluster.own, self.cluster_leaves)
        self.groups_after: dict[str, Values] = {}

    def run(self) -> Difference:
        own = self.state.cluster.own
        self._leaves(Level.CLUSTER, None, self.cluster_leaves, own, own, self.cluster_after)
        self._tags(Level.CLUSTER, None, _places(self.cluster_tags), self.state.cluster.tags)
        for _, group in sorted(self.desired.groups.items()):
            self._group(group)
        for _, node in sorted(self.desired.nodes.items()):
            self._node(node)
        return self.result

    # --- objects -------------------------------------------------------------------------------------------------

    def _group(self, desired: DesiredGroup) -> None:
        policy = desired.policy
        if policy.removed is not None:
            if desired.current is not None:
                risk = changes.RISK_OF_ACTION[ChangeAction.REMOVE], ""
                self._add(Level.GROUP, policy.name, changes.NAME, (desired.current, None), policy.removed.span, risk)
            return
        current = self.state.groups[desired.current] if desired.current else None
        if current is None:
            self._add(Level.GROUP, policy.name, changes.NAME, (None, policy.name), policy.span)
        elif current.name != policy.name:
            span = policy.renamed_from.span if policy.renamed_from else policy.span
            self._add(Level.GROUP, policy.name, changes.NAME, (current.name, policy.name), span)
        own = current.own if current else changes.NEW_GROUP
        before: Mapping[Path, Value] = current.effective if current else {}
        after = fill(self._own_after(own, policy.leaves), self.cluster_after, Level.GROUP)
        self.groups_after[policy.name] = after
        self._leaves(Level.GROUP, policy.name, policy.leaves, own, before, after)
        self._tags(Level.GROUP, policy.name, _places(policy.tags), current.tags if current else frozenset())

    def _node(self, desired: DesiredNode) -> None:
        node = self.state.nodes[desired.name]
        group_after = desired.group.value if desired.group else self.desired.name_after(node.group)
        moves = desired.group is not None and self.desired.name_after(node.group) != desired.group.value
        if moves or desired.leaves:
            own_after = self._own_after(node.own, desired.leaves)
            before = self.state.effective_of_node(node)
            known = self.state.groups.get(group_after)
            of_group = fill(known.own, self.cluster_after, Level.GROUP) if known else self.cluster_after
            after = fill(own_after, self.groups_after.get(group_after) or of_group, Level.NODE)
            if moves and desired.group is not None:
                risk = changes.RISK_OF_ACTION[ChangeAction.MOVE], _silent_changes(before, after, desired.leaves)
                move = (node.group, group_after)
                self._add(Level.NODE, node.name, changes.MEMBERSHIP, move, desired.group.span, risk)
            self._leaves(Level.NODE, node.name, desired.leaves, node.own, before, after)
        self._tags(Level.NODE, node.name, desired.tags, node.tags)

    # --- leaves --------------------------------------------------------------------------------------------------

    def _own_after(self, own: Mapping[Path, Value], leaves: Leaves) -> Values:
        after = dict(own)
        for path, leaf in leaves.items():
            if leaf.value is not INHERIT:
                after[path] = canonical(path, leaf.value)
            elif path[-1] != "access":
                after.pop(path, None)
            elif path in own:
                after[path] = self.cluster_after.get(path)
        return after

    def _leaves(self, level: Level, name: str | None, leaves: Leaves, own: _Seen, before: _Seen, after: _Seen) -> None:
        now = self.desired.groups[name].current if level is Level.GROUP and name else name
        is_new = level is Level.GROUP and now is None
        for path in sorted(leaves, key=position):
            leaf = leaves[path]
            if not self.state.readable(level, path) and not is_new:
                wanted = "inherit" if leaf.value is INHERIT else leaf.value
                self.result.unreadable.append(NotCompared(changes.label_of(level, name), path, wanted, leaf.span))
                continue
            own_before = canonical(path, own.get(path)) if path in own else None
            own_after = None if leaf.value is INHERIT else canonical(path, leaf.value)
            if leaf.value is INHERIT and path[-1] == "access" and path in own:
                own_after = after.get(path)  # Ganeti cannot remove this one: it gets the value that it would inherit
            if (path in own and own_before == own_after) or (path not in own and leaf.value is INHERIT):
                continue
            effective = before.get(path), after.get(path)
            affects = self._followers(level, name, path) if effective[0] != effective[1] else ()
            risk = changes.risk_when_new(path) if is_new else changes.risk_of(self.state, now, path, *effective)
            if leaf.value is INHERIT and own_after is not None:
                risk = risk[0], changes.STANDS_IN
            follows = {"effective_before": effective[0], "effective_after": effective[1], "affects": affects}
            self._add(level, name, path, (own_before, own_after), leaf.span, risk, **follows)

    def _followers(self, level: Level, name: str | None, path: Path) -> tuple[str, ...]:
        """Return the groups (of the cluster) or nodes (of a group) that have no own value at `path`."""
        parameter = parameter_at(path)
        if parameter is None or path[0] not in ("ipolicy", "diskparams", "ndparams"):
            return ()
        if level is Level.CLUSTER and Level.GROUP in parameter.levels and self.state.readable(Level.GROUP, path):
            return tuple(f"group/{group}" for group in self.state.groups if self._follows(group, path))
        if level is Level.GROUP and path[0] == "ndparams" and self.state.readable(Level.NODE, path):
            nodes = self.state.nodes.values()
            return tuple(f"node/{node.name}" for node in nodes if name == self._inherits_from(node, path))
        return ()

    def _inherits_from(self, node: LiveNode, path: Path) -> str | None:
        """Return the group that a node stays in without an own value at `path`, by its name after the plan."""
        desired = self.desired.nodes.get(node.name)
        group = self.desired.name_after(node.group)
        if desired is not None and desired.group is not None and desired.group.value != group:
            return None  # the change of its group says what changes for it
        leaf = desired.leaves.get(path) if desired is not None else None
        inherits = leaf.value is INHERIT if leaf is not None else path not in node.own
        return group if inherits else None

    def _follows(self, group: str, path: Path) -> bool:
        """Return whether a group of the cluster stays, without an own value at `path`."""
        desired = self.desired.current_groups.get(group)
        if desired is not None and (desired.removed is not None or path in desired.leaves):
            return desired.removed is None and desired.leaves[path].value is INHERIT and path[-1] != "access"
        return path not in self.state.groups[group].own

    # --- changes and tags ----------------------------------------------------------------------------------------

    def _add(
        self, level: Level, name: str | None, path: Path, own: _Pair, span: Span | None, risk: _Risk = _LOW, **more: Any
    ) -> None:
        """Add a change of own values (before, after); `more` says whom it affects, and of other effective values."""
        values = {"before": own[0], "after": own[1], "effective_before": own[0], "effective_after": own[1], **more}
        change = Change(level=level, object_name=name, path=path, span=span, risk=risk[0], reason=risk[1], **values)
        self.result.changes.append(change)

    def _tags(self, level: Level, name: str | None, wanted: dict[str, Span] | None, have: frozenset[str]) -> None:
        if wanted is None:
            return
        extra = {tag for tag in have - set(wanted) if owned(tag, level, self.policy.owned)}
        missing = set(wanted) - have
        if not extra and not missing:
            return
        before: list[Value] = [*sorted(have)]
        after: list[Value] = [*sorted((have - extra) | missing)]
        self._add(level, name, changes.TAGS, (before, after), wanted[min(missing)] if missing else None)


def _places(tags: Iterable[Located[str]] | None) -> dict[str, Span] | None:
    return None if tags is None else {tag.value: tag.span for tag in tags}


def owned(tag: str, level: Level, prefixes: tuple[OwnedPrefix, ...]) -> bool:
    """Return whether gpolicy may remove `tag` from an object at `level`."""
    if tag.startswith(TOOL_TAGS):
        return False
    return any(level in owned.levels and tag.startswith(owned.prefix) for owned in prefixes)


def _silent_changes(before: Mapping[Path, Value], after: Mapping[Path, Value], declared: Leaves) -> str:
    """Return what to say of a node's move: the effective parameters that change although nobody asks for it."""
    names = [
        f"{path[-1]} {as_word(before.get(path))} → {as_word(value)}"
        for path, value in after.items()
        if path not in declared and before.get(path) != value
    ]
    return f"{changes.MOVE_CHANGES}{', '.join(names)}" if names else changes.MOVE_UNCHECKED


_ByObject = dict[tuple[Level, str | None], list[Change]]
_NO_VALUES: Final = (changes.NAME, MEMBERSHIP, TAGS)
_ROUNDING: Final = 8  # MiB: by how much each volume may be counted larger or smaller than in its group


@dataclass(frozen=True, slots=True)
class Prospect:
    """What the plan of a policy does to a cluster: the differences, and the cluster before and after them.

    Both clusters are under the terms of the policy.
    """

    policy: Policy
    difference: Difference
    before: ClusterState
    after: ClusterState


def prospect(policy: Policy, state: ClusterState, desired: Desired | None = None) -> Prospect:
    """Return what the plan does that makes `state` what `policy` declares; `desired` is that of `diff`."""
    difference = diff(policy, state, desired=desired)
    before, after = before_and_after(state, difference.changes, terms_of(policy, difference.desired))
    return Prospect(policy, difference, before, after)


def projected(state: ClusterState, changes: Sequence[Change], terms: Terms | None = None) -> ClusterState:
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
    stays = {node.name: names.get(node.group, node.group) for node in state.nodes.values()}
    moved = [name for name, node in nodes.items() if node.group != stays[name]]
    of_groups = not state.readable(Level.GROUP, EXCLUSIVE_STORAGE)
    unknown = _give_flag_of_group(nodes, [name for name in moved if of_groups and EXCLUSIVE_STORAGE in nodes[name].own])
    groups = _groups(state, cluster.own, by_object, names, occupied={node.group for node in nodes.values()})
    after = replace(state, cluster=cluster, groups=groups, nodes=nodes)
    if unknown:
        note = f"whether exclusive storage is on in {', '.join(unknown)} is not known: nodes keep it as they move"
        after = replace(after, notes=(*state.notes, note))
    return _measured(state, under_terms(after, terms) if terms else after)


def undone(state: ClusterState, changes: Sequence[Change]) -> ClusterState:
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
    return projected(state, found)


def before_and_after(state: ClusterState, changes: Sequence[Change], terms: Terms) -> tuple[ClusterState, ClusterState]:
    """Return the cluster as it is and as it will be, both under the terms of a policy."""
    before = under_terms(state, terms, new_names(changes))
    return before, projected(before, changes, terms)


def _measured(before: ClusterState, after: ClusterState) -> ClusterState:
    """Return `after` with the measurements of nodes whose exclusive storage changes; a note names those without any."""
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
