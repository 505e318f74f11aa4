"""Compare a policy with a cluster: per declared leaf, own value against own value."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.findings import Finding, Located, Span
from gpolicy.ganeti.parameters import as_word, canonical, fill, parameter_at, position
from gpolicy.ganeti.vocabulary import Level, Path, Value, Values, is_access
from gpolicy.plan import changes
from gpolicy.plan.changes import Change, ChangeAction, ChangeKey, NotCompared
from gpolicy.plan.part import without
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import INHERIT, Leaves, OwnedPrefix
from gpolicy.resolve.desired import Desired, DesiredGroup, DesiredNode, resolve

TOOL_TAGS = ("ganeti:watcher:autorepair:pending:", "ganeti:watcher:autorepair:result:", "htools:standby:auto")
"""Tags that Ganeti's own tools set and remove; never pruned, even if a policy owns them."""

_Seen = Mapping[Path, Value]
_Pair = tuple[Value, Value]
_Risk = tuple[changes.Risk, str]
_LOW: Final[_Risk] = (changes.Risk.LOW, "")


@dataclass(slots=True)
class Difference:
    """The differences, values that could not be compared, and findings about parts that do not match the cluster.

    `desired` is what the policy wants of it, less what was skipped.
    """

    changes: list[Change] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    desired: Desired = field(default_factory=Desired)


def diff(
    policy: Policy, state: ClusterState, skipped: Collection[ChangeKey] = (), desired: Desired | None = None
) -> Difference:
    """Return what must change so that `state` is what `policy` declares. Only declared values are compared.

    What is `skipped` is not compared either, as if the policy did not declare it. `desired` is what the policy wants
    of this state, where it is known already.
    """
    desired = desired or resolve(policy, state)
    if skipped:
        desired = without(desired, skipped)
    return _Diff(policy, state, desired, skipped).run()


class _Diff:
    def __init__(self, policy: Policy, state: ClusterState, desired: Desired, skipped: Collection[ChangeKey]) -> None:
        self.policy, self.state, self.desired = policy, state, desired
        self.result = Difference(findings=[*desired.findings], desired=desired)
        declared = policy.cluster.leaves if policy.cluster else {}
        self.cluster_leaves = {path: leaf for path, leaf in declared.items() if ("cluster", path) not in skipped}
        self.cluster_tags = None if ("cluster", changes.TAGS) in skipped else policy.cluster_tags
        self.cluster_after = self._own_after(state.cluster.own, self.cluster_leaves)
        self.groups_after: dict[str, Values] = {}

    def run(self) -> Difference:
        own = self.state.cluster.own
        both = own, self.cluster_after
        self._leaves(Level.CLUSTER, None, self.cluster_leaves, both, both)
        self._tags(Level.CLUSTER, None, _places(self.cluster_tags), self.state.cluster.tags)
        for _, group in sorted(self.desired.groups.items()):
            self._group(group)
        for _, node in sorted(self.desired.nodes.items()):
            self._node(node)
        return self.result

    def _group(self, wanted: DesiredGroup) -> None:
        policy = wanted.policy
        if policy.removed is not None:
            if wanted.current is not None:
                risk = changes.RISK_OF_ACTION[ChangeAction.REMOVE], ""
                self._add(Level.GROUP, policy.name, changes.NAME, (wanted.current, None), policy.removed.span, risk)
            return
        current = self.state.groups[wanted.current] if wanted.current else None
        if current is None:
            self._add(Level.GROUP, policy.name, changes.NAME, (None, policy.name), policy.span)
        elif current.name != policy.name:
            span = policy.renamed_from.span if policy.renamed_from else policy.span
            self._add(Level.GROUP, policy.name, changes.NAME, (current.name, policy.name), span)
        own = current.own if current else changes.NEW_GROUP
        before: Mapping[Path, Value] = current.effective if current else {}
        own_after = self._own_after(own, policy.leaves)
        after = fill(own_after, self.cluster_after, Level.GROUP)
        self.groups_after[policy.name] = after
        self._leaves(Level.GROUP, policy.name, policy.leaves, (own, own_after), (before, after))
        self._tags(Level.GROUP, policy.name, _places(policy.tags), current.tags if current else frozenset())

    def _node(self, wanted: DesiredNode) -> None:
        node = self.state.nodes[wanted.name]
        group_after = wanted.group.value if wanted.group else self.desired.name_after(node.group)
        moves = wanted.group is not None and self.desired.name_after(node.group) != wanted.group.value
        if moves or wanted.leaves:
            own_after = self._own_after(node.own, wanted.leaves)
            before = self.state.effective_of_node(node)
            known = self.state.groups.get(group_after)
            of_group = fill(known.own, self.cluster_after, Level.GROUP) if known else self.cluster_after
            after = fill(own_after, self.groups_after.get(group_after) or of_group, Level.NODE)
            if moves and wanted.group is not None:
                risk = changes.RISK_OF_ACTION[ChangeAction.MOVE], _silent_changes(before, after, wanted.leaves)
                move = (node.group, group_after)
                self._add(Level.NODE, node.name, changes.MEMBERSHIP, move, wanted.group.span, risk)
            self._leaves(Level.NODE, node.name, wanted.leaves, (node.own, own_after), (before, after))
        self._tags(Level.NODE, node.name, wanted.tags, node.tags)

    def _own_after(self, own: Mapping[Path, Value], leaves: Leaves) -> Values:
        after = dict(own)
        for path, leaf in leaves.items():
            if leaf.value is not INHERIT:
                after[path] = canonical(path, leaf.value)
            elif not is_access(path):
                after.pop(path, None)
            elif path in own:  # Ganeti cannot remove this one: it gets the value that it would inherit
                after[path] = self.cluster_after.get(path)
        return after

    def _leaves(
        self, level: Level, name: str | None, leaves: Leaves, own: tuple[_Seen, _Seen], effective: tuple[_Seen, _Seen]
    ) -> None:
        """Compare the own values of an object, before and after, where any are declared; say which are in effect."""
        current = self.desired.groups[name].current if level is Level.GROUP and name else name
        is_new = level is Level.GROUP and current is None
        for path in sorted(leaves, key=position):
            leaf = leaves[path]
            if not self.state.readable(level, path) and not is_new:
                wanted = "inherit" if leaf.value is INHERIT else leaf.value
                self.result.not_compared.append(NotCompared(changes.label_of(level, name), path, wanted, leaf.span))
                continue
            own_before = canonical(path, own[0][path]) if path in own[0] else None
            own_after = own[1].get(path)
            if (path in own[0] and own_before == own_after) or (path not in own[0] and leaf.value is INHERIT):
                continue
            before, after = (values.get(path) for values in effective)
            affects = self._followers(level, name, path) if before != after else ()
            risk, reason = (
                changes.risk_when_new(path) if is_new else changes.risk_of(self.state, current, path, before, after)
            )
            if leaf.value is INHERIT and own_after is not None:
                reason = changes.STANDS_IN
            follows = {"effective_before": before, "effective_after": after, "affects": affects}
            self._add(level, name, path, (own_before, own_after), leaf.span, (risk, reason), **follows)

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
            return desired.removed is None and desired.leaves[path].value is INHERIT and not is_access(path)
        return path not in self.state.groups[group].own

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
    return any(level in item.levels and tag.startswith(item.prefix) for item in prefixes)


def _silent_changes(before: Mapping[Path, Value], after: Mapping[Path, Value], declared: Leaves) -> str:
    """Return what to say of a node's move: the effective parameters that change although nobody asks for it."""
    names = [
        f"{path[-1]} {as_word(before.get(path))} → {as_word(value)}"
        for path, value in after.items()
        if path not in declared and before.get(path) != value
    ]
    return f"{changes.MOVE_CHANGES}{', '.join(names)}" if names else changes.MOVE_UNCHECKED
