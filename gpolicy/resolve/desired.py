"""The groups and nodes of one cluster that a policy names, with globs, node sets and renames resolved; rules GP70x.

The terms of a policy (`gpolicy.cluster.terms`) for that cluster follow from them.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import COUNTED, VOLUME_GROUP, GroupTerms, Limits, PairNames, Promise, Terms, VolumeTerms
from gpolicy.findings import AMBIGUOUS, NO_PLAN, Finding, Located, Related, Span, error_rule
from gpolicy.ganeti.vocabulary import ENABLED_HYPERVISORS, MINMAX, Level, Path, Values
from gpolicy.guessing import MOST_GUESSES, MOST_KNOWN, closest, is_one_slip, name_meant
from gpolicy.policy import model
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Leaf, Leaves, NodeSetPolicy

_LETTERS = re.compile(r"[^\d.]*+")
_WILDCARD = re.compile(r"[]*?]")
_NODE = "node "
NO_NODE = "any node of the policy"
"""What is `missing` of a finding where the cluster has none of the nodes that the policy names."""
_DIGITS = dict.fromkeys(map(ord, "0123456789"))

UNKNOWN_NODE = error_rule("GP701", "unknown-node", NO_PLAN)
NODE_IN_TWO_GROUPS = error_rule("GP702", "node-in-two-groups", AMBIGUOUS)
NODE_SETS_DISAGREE = error_rule("GP703", "node-sets-disagree", AMBIGUOUS)
RENAME_CLASH = error_rule("GP704", "rename-clash", NO_PLAN)
OTHER_CLUSTER = error_rule("GP705", "other-cluster", NO_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredGroup:
    """A declared group: `current` is its name in the cluster now, None if it is to be created."""

    policy: GroupPolicy
    current: str | None


@dataclass(slots=True)
class DesiredNode:
    """The desired values of one node of the cluster. `tags` is None if they are not managed."""

    name: str
    group: Located[str] | None = None
    leaves: Leaves = field(default_factory=dict)
    tags: dict[str, Span] | None = None


@dataclass(slots=True)
class Desired:
    """The desired groups and nodes of one cluster, and findings about what does not match.

    `groups` are by the name that the policy gives them, `current_groups` by the one that they have in the cluster now.
    """

    groups: dict[str, DesiredGroup] = field(default_factory=dict)
    current_groups: dict[str, GroupPolicy] = field(default_factory=dict)
    nodes: dict[str, DesiredNode] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    lists: tuple[GroupPolicy | NodeSetPolicy, ...] = ()
    """The groups and node sets of the policy."""

    def name_after(self, group: str) -> str:
        """Return the desired name of a group of the cluster."""
        policy = self.current_groups.get(group)
        return policy.name if policy else group


def resolve(policy: Policy, state: ClusterState) -> Desired:
    """Return the groups and nodes of `state` as `policy` wants them."""
    desired = Desired(findings=other_cluster(policy, state), lists=(*policy.groups.values(), *policy.node_sets))
    current = _current_names(policy, state, desired.findings)
    desired.groups = {name: DesiredGroup(policy=group, current=current[name]) for name, group in policy.groups.items()}
    desired.current_groups = {item.current: item.policy for item in desired.groups.values() if item.current is not None}
    _memberships(policy, state, desired)
    _node_sets(policy, state, desired)
    if not desired.nodes:
        desired.findings = _about_none_of_the_nodes(desired.findings)
    return desired


def _about_none_of_the_nodes(findings: list[Finding]) -> list[Finding]:
    """Return findings about a cluster that has no node of the policy: where it lacks several, they ask one question."""
    unknown = [item for item in findings if item.missing.startswith(_NODE)]
    if len(unknown) < 2:
        return findings
    hint = "is it the state of another cluster? Else correct the names, or add the nodes first"
    first = f"the cluster has none of the {len(unknown)} nodes that the policy names"
    return [
        replace(item, message=first if item is unknown[0] else item.message, hint=hint, missing=NO_NODE)
        if item.missing.startswith(_NODE)
        else item
        for item in findings
    ]


def besides_other_cluster(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, but that the policy is for another cluster: the guard right-cluster says so."""
    return [item for item in findings if item.code != OTHER_CLUSTER.code]


def other_cluster(policy: Policy, state: ClusterState) -> list[Finding]:
    """Return the finding that `policy` is for another cluster than `state`; nothing if one of them has no name."""
    declared = policy.cluster
    if declared is None or not state.name or declared.name == state.name:
        return []
    message = f"the policy is for cluster {declared.name!r}, the state is of {state.name!r}"
    hint = "name the policy or the state of the same cluster; if the cluster was renamed, correct `name`"
    hint = f"Did you mean `{state.name}`?" if name_meant(declared.name, [state.name]) else hint
    return [OTHER_CLUSTER.finding(message, declared.document.value_span(("name",)), hint=hint)]


def _current_names(policy: Policy, state: ClusterState, findings: list[Finding]) -> dict[str, str | None]:
    """Return the present name of each declared group in the cluster, None if the cluster lacks it.

    A new name is free if no group has it, or if the group that has it is also renamed, to a free name.
    """
    current: dict[str, str | None] = {name: name if name in state.groups else None for name in policy.groups}
    waiting = {
        group.name: group.renamed_from
        for group in policy.groups.values()
        if group.renamed_from and group.removed is None and group.renamed_from.value in state.groups
    }
    taken, given_up = set(state.groups), set[str]()
    while ready := [name for name in waiting if name not in taken]:
        name, old = ready[0], waiting.pop(ready[0])
        if old.value in taken:
            current[name] = old.value
            taken = (taken - {old.value}) | {name}
            given_up.add(old.value)
        else:
            findings.append(_clash(f"{old.value} is to become {name}, but also another group", old))
    for name, old in waiting.items():
        holder = policy.groups.get(old.value)
        done = holder is not None and holder.removed is None and old.value not in waiting
        if old.value != name and not done:  # another group may have the old name now
            findings.append(_clash(f"{old.value} is to become {name}, but the cluster has a group {name}", old))
    # a declared group under the name that another one gives up is a new group
    return {name: None if now == name and name in given_up else now for name, now in current.items()}


def _clash(message: str, old: Located[str]) -> Finding:
    hint = "remove renamed_from if the rename is done, or say what becomes of the other group"
    return RENAME_CLASH.finding(message, old.span, hint=hint)


def _known(
    pattern: Located[str], nodes: Collection[str], desired: Desired, owner: GroupPolicy | NodeSetPolicy
) -> list[str]:
    """Return the nodes that `pattern` in the list of `owner` matches; report a name that matches none."""
    if model.is_glob(pattern.value):
        return [name for name in nodes if model.matches(pattern.value, name)]
    found = [pattern.value] if pattern.value in nodes else []
    if not found:
        hint = "add the node to the cluster first, or remove it from the policy"
        missing, findings = f"{_NODE}{pattern.value}", desired.findings
        near = closest(pattern.value, nodes) if len(findings) < MOST_GUESSES else None
        if near is not None and near.startswith(f"{pattern.value}."):
            missing, hint = "full names of nodes", f"write the full names of nodes: {near}"
        elif near and near.translate(_DIGITS) != pattern.value.translate(_DIGITS):
            hint = f"Did you mean `{near}`?"
        elif near and len(taken := _named_beside(owner, desired)) < MOST_KNOWN:
            slips = [near, *(name for name in nodes if is_one_slip(pattern.value, name))]
            free = dict.fromkeys(name for name in slips if not any(model.matches(entry, name) for entry in taken))
            hint = f"Did you mean `{next(iter(free))}`? Else {hint}" if near in free or len(free) == 1 else hint
        message = f"the cluster has no node {pattern.value!r}"
        findings.append(UNKNOWN_NODE.finding(message, pattern.span, hint=hint, missing=missing))
    return found


def _named_beside(owner: GroupPolicy | NodeSetPolicy, desired: Desired) -> list[str]:
    """Return the names and patterns in all lists of the same kind: what one of them has is hardly meant in another."""

    def kinds(declared: Declared) -> set[object]:
        families = {tag.value.partition(":")[0] for tag in declared.tags or ()}
        return {Level.GROUP} if declared.level is Level.GROUP else {*declared.leaves, *families}

    alike = (item for item in desired.lists if not kinds(item).isdisjoint(kinds(owner)))
    return [entry.value for item in alike for entry in item.nodes or ()]


class _Claim(NamedTuple):
    """What claims a node for a group: a name or glob of its list."""

    group: str
    pattern: Located[str]

    @property
    def is_glob(self) -> bool:
        return model.is_glob(self.pattern.value)


def _memberships(policy: Policy, state: ClusterState, desired: Desired) -> None:
    claims: dict[str, list[_Claim]] = {}
    for group in policy.groups.values():
        for pattern in (group.nodes or ()) if not group.removed else ():
            for name in _known(pattern, state.nodes, desired, group):
                claims.setdefault(name, []).append(_Claim(group.name, pattern))
    contested: dict[tuple[Span, Span], tuple[_Claim, _Claim, list[str]]] = {}
    for name, claimed in claims.items():
        first, *others = [claim for claim in claimed if not claim.is_glob] or claimed  # a name wins over a glob
        other = next((claim for claim in others if claim.group != first.group), None)
        if other is not None:
            contested.setdefault((first.pattern.span, other.pattern.span), (first, other, []))[2].append(name)
        else:
            _desired_node(desired, name).group = Located(first.group, first.pattern.span)
    for first, other, names in contested.values():
        message = f"{_some_nodes(names)} claimed by the groups {first.group} and {other.group}"
        hint = "name the node in one of them; a name wins over a glob"
        home = _home_of(names, (first.group, other.group), state, desired)
        wide, narrow = (first, other) if home == other.group else (other, first)
        meant = _own_glob(wide, state, desired, claims) if home is not None else ""
        hint = f"is {meant} meant? Else {hint}" if meant else hint
        missing = f"nodes of {narrow.group} beside {wide.group}"  # several by name are one mistake
        if wide.is_glob:
            missing = f"a narrower glob at {wide.pattern.span}" if home is not None else ""
        related = (Related(narrow.pattern.span, "also claimed here"),)
        found = NODE_IN_TWO_GROUPS.finding(message, wide.pattern.span, hint=hint, related=related, missing=missing)
        desired.findings.append(found)


def _home_of(names: list[str], groups: tuple[str, str], state: ClusterState, desired: Desired) -> str | None:
    """Return which of two groups nodes are in now, or else are called after; None where neither says it of all."""
    homes = {desired.name_after(state.nodes[name].group) for name in names}
    named = [group for group in groups if all(name.startswith(group) for name in names)]
    return homes.pop() if len(homes) == 1 and not homes.isdisjoint(groups) else max(named, key=len, default=None)


def _own_glob(claim: _Claim, state: ClusterState, desired: Desired, claimed: Collection[str]) -> str:
    """Return a glob that matches the nodes of a group that no other one claims, and none else; or nothing."""
    group, pattern = claim
    homes = {name: node.group.value for name, node in desired.nodes.items() if node.group}
    left = {name for name, node in state.nodes.items() if desired.name_after(node.group) == group}.difference(claimed)
    own = {*left, *(name for name, home in homes.items() if home == group)}
    begins = {found[0] for name in own if (found := _LETTERS.match(name))}
    glob = glob_beginning(begins.pop() if len(begins) == 1 else group, pattern.value)
    return glob if own and own == {name for name in state.nodes if model.matches(glob, name)} else ""


def glob_beginning(begin: str, pattern: str) -> str:
    """Return the glob of what begins with these letters, and ends like a pattern."""
    return f"{begin}*{_WILDCARD.split(pattern)[-1]}" if model.is_glob(pattern) else pattern


def _some_nodes(names: list[str]) -> str:
    """Return the subject of a finding about several nodes: one mistake is one finding."""
    return f"node {names[0]} is" if len(names) == 1 else f"node {names[0]} and {len(names) - 1} more are"


def _desired_node(desired: Desired, name: str) -> DesiredNode:
    return desired.nodes.setdefault(name, DesiredNode(name))


def _node_sets(policy: Policy, state: ClusterState, desired: Desired) -> None:
    ranked: dict[str, list[tuple[int, NodeSetPolicy]]] = {}
    for node_set in policy.node_sets:
        for name, rank in members(node_set, state, desired).items():
            ranked.setdefault(name, []).append((rank, node_set))
    disagreeing: dict[tuple[Span, Span], tuple[Path, list[str]]] = {}
    for name, entries in ranked.items():
        for path, first, second in _merge_sets(_desired_node(desired, name), entries):
            disagreeing.setdefault((first.span, second.span), (path, []))[1].append(name)
    for (one, other), (path, names) in disagreeing.items():
        message = f"{_some_nodes(names)} in two node sets that disagree about {'.'.join(path)}"
        related = (Related(one, "the other value"),)
        hint = "remove the node from one of the sets; a name wins over a glob"
        desired.findings.append(NODE_SETS_DISAGREE.finding(message, other, hint=hint, related=related))


def members(node_set: NodeSetPolicy, state: ClusterState, desired: Desired) -> dict[str, int]:
    """Return the nodes of a set with the rank of their best match: 0 by name, 1 by glob, 2 by group."""
    ranks: dict[str, int] = {}
    for group in node_set.groups:
        for node in state.nodes.values():
            wanted = desired.nodes[node.name].group if node.name in desired.nodes else None
            if (wanted.value if wanted else desired.name_after(node.group)) == group.value:
                ranks[node.name] = 2
    for pattern in node_set.nodes:
        rank = 1 if model.is_glob(pattern.value) else 0
        for name in _known(pattern, state.nodes, desired, node_set):
            ranks[name] = min(rank, ranks.get(name, rank))
    return ranks


def _merge_sets(node: DesiredNode, entries: list[tuple[int, NodeSetPolicy]]) -> Iterator[tuple[Path, Leaf, Leaf]]:
    """Add the values of its sets to `node`; yield conflicts between two sets of the same rank."""
    best: dict[Path, tuple[int, Leaf]] = {}
    for rank, node_set in sorted(entries, key=lambda entry: entry[0]):
        for path, leaf in node_set.leaves.items():
            first = best.setdefault(path, (rank, leaf))
            if first[0] == rank and first[1].value != leaf.value:
                yield path, first[1], leaf
        if node_set.tags is not None:
            node.tags = {**(node.tags or {}), **{tag.value: tag.span for tag in node_set.tags}}
    node.leaves = {path: leaf for path, (_, leaf) in best.items()}


def terms_of(policy: Policy, desired: Desired) -> Terms:
    """Return what `policy` says of the resources of a cluster beyond what Ganeti stores or shows."""
    cluster = policy.cluster
    limits = cluster.limits if cluster else {}
    groups = [group for group in policy.groups.values() if group.removed is None]
    declared = [(item.label, item.leaves) for item in (*([cluster] if cluster else []), *groups)]
    declared += [(f"node/{name}", node.leaves) for name, node in desired.nodes.items()]
    counted = (*COUNTED, *ENABLED_HYPERVISORS, *VOLUME_GROUP)
    values: dict[str, Values] = {}
    for label, leaves in declared:
        own = ((path, leaf.value) for path, leaf in leaves.items() if path[0] in counted)
        found = {path: value for path, value in own if value is not model.INHERIT}
        values |= {label: found} if found else {}
    return Terms(
        groups={
            group.name: GroupTerms(
                limits=_limits({**limits, **group.limits}),
                volumes=volume_terms(cluster, group),
                promise=Promise() if group.hardware is None else promise_of(group.hardware),
            )
            for group in groups
        },
        others=GroupTerms(limits=_limits(limits), volumes=volume_terms(cluster)),
        values=values,
        release=cluster.ganeti_version if cluster else None,
    )


def promise_of(hardware: model.Hardware) -> Promise:
    """Return the promised hardware as plain numbers."""
    sizes, count = [size.value for size in hardware.pv_sizes], hardware.volume_count
    volumes = tuple(sizes) if sizes and len(sizes) == count else None
    if len(sizes) == 1 and count is not None:
        volumes = (sizes[0],) * min(count, 1000)  # no node has more
    memory, cpus = hardware.memory, hardware.cpus
    return Promise(memory=memory.value if memory else None, cpus=cpus.value if cpus else None, volumes=volumes)


def _limits(written: model.WrittenTerms) -> Limits:
    return Limits(**{key: item.value for key, item in written.items()})


def volume_terms(cluster: ClusterPolicy | None, group: Declared | None = None) -> VolumeTerms:
    """Return what counts of the physical volumes of `group`, whose own keys go before those of `cluster`."""
    written = {**(cluster.physical_volumes if cluster else {}), **(group.physical_volumes if group else {})}

    def read(key: str, value: Any) -> Any:
        match key:
            case "exclude":
                return tuple(value)
            case "volume_groups":
                return {name: tuple(patterns) for name, patterns in value.items()}
        return float(value.rstrip("% ")) / 100

    return VolumeTerms(**{key: read(key, item.value) for key, item in written.items()})


def pair_names(policy: Policy, state: ClusterState) -> PairNames:
    """Return the names that `policy` gives to the effective pairs of `state` (the cluster after the plan).

    Only effective pairs have names: if the state has other pairs than the policy declares, those have none.
    """
    cluster = _names(policy.cluster, state.cluster.own.get(MINMAX))
    groups = {}
    for name, group in state.groups.items():
        effective = group.effective.get(MINMAX)
        names = _names(policy.groups.get(name), effective)
        if not names and group.own.get(MINMAX) is None and effective == state.cluster.own.get(MINMAX):
            names = cluster
        groups[name] = names
    return PairNames(cluster, groups)


def _names(declared: Declared | None, held: object) -> tuple[str | None, ...]:
    leaf = declared.leaves.get(MINMAX) if declared is not None else None
    if leaf is None or leaf.value is model.INHERIT or leaf.value != held:
        return ()
    return leaf.pair_names
