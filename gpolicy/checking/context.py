"""What rules see: the policy's leaves, declared and effective, the cluster's state where it is known, a forecast."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from gpolicy.checking import tags as tagging
from gpolicy.checking.pairs import Pair, pairs_of
from gpolicy.checking.settings import Settings
from gpolicy.checking.tags import Members, Tag, TaggedNode
from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveInstance
from gpolicy.findings import NODES_LIKE, Finding, Role, Severity, Span
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE, MINMAX, Level, Path
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import INHERIT, ClusterPolicy, Declared, GroupPolicy, Leaf, Leaves
from gpolicy.policy.source_file import Pointer
from gpolicy.resolve.desired import Desired, resolve

if TYPE_CHECKING:
    from gpolicy.analysis.violations import PolicyViolation
    from gpolicy.checking.rule import Hit, Rule
    from gpolicy.impact.impact import Impact
    from gpolicy.plan.built_in_guards import GuardResult
    from gpolicy.plan.changes import Objection
    from gpolicy.plan.sides import Sides
    from gpolicy.policy.scenario import Scenario, StageEdit
    from gpolicy.testing.outcome import Outcome

_Result = TypeVar("_Result")

_NO_CLUSTER: Final = ClusterState(
    source="", name="", software_version=None, cluster=ClusterObject(own={}), groups={}, nodes={}, instances={}
)

Bounds = tuple[Mapping[str, int], Mapping[str, int]]
"""The least and the greatest values of a size."""


def _without_sides(*_: object) -> NoReturn:
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Forecast:
    """By itself it tells nothing, and rules that ask find nothing. `gpolicy.forecast` has one that tells all."""

    outcomes: Callable[[Policy], Sequence[Outcome]] = lambda _: ()
    """The outcomes of the policy's small tests."""
    idle_edits: Callable[[Policy], Iterable[tuple[Scenario, StageEdit]]] = lambda _: ()
    """The edits of small tests that leave their cluster as it was."""
    sides: Callable[[Policy, ClusterState, Desired], Sides | None] = lambda *_: None
    """The cluster before and after the plan that makes it what the policy declares; None where nobody can tell."""
    objections: Callable[[Policy, ClusterState, Sides], Mapping[str, Sequence[Objection]]] = _without_sides
    """What the built-in guards have against that plan."""
    verdicts: Callable[[Policy, Sides], tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]] = _without_sides
    """The verdicts of the policy's guards on the plan, and those of the built-in one on its figures."""
    impact: Callable[[Sides, str], Impact] = _without_sides
    """A part of what the plan would do."""
    breached_pairs: Callable[
        [Sequence[Bounds], LiveGroup, LiveInstance, PolicyViolation], Sequence[PolicyViolation]
    ] = lambda *_: ()
    """What an instance breaches of each of the pairs that may replace the one it conforms to in its group."""


NO_FORECAST = Forecast()


@dataclass(frozen=True, eq=False)
class Context:
    """The policy as rules see it, with the observed cluster where one was given.

    A leaf in which the structure check found an error is left out: what it holds is not what was written. The
    effective value in a group is its own, or else what the *policy* declares for the cluster; where neither says
    anything there is none, and Ganeti's default is never assumed. What several rules ask is worked out once. `rules`
    are those that others ask, by their codes; `forecast` tells of tests and of the plan; `others` are checked with it.
    """

    policy: Policy
    state: ClusterState | None
    settings: Settings
    today: date
    forecast: Forecast = NO_FORECAST
    rules: Mapping[str, Rule] = field(default_factory=dict)
    others: Sequence[Policy] = ()
    _found: dict[str | Role, tuple[Hit, ...]] = field(default_factory=dict, init=False)
    _done: dict[object, Any] = field(default_factory=dict, init=False)

    @cached_property
    def version(self) -> str:
        """The release of Ganeti to check for: the one that was asked for, the observed cluster's, or the policy's."""
        return self.settings.ganeti_version or self.policy.version

    def is_since(self, release: str) -> bool:
        """Return whether the release to check for is this one, or a later one."""
        return release_key(self.version) >= release_key(release)

    @cached_property
    def whole(self) -> bool:
        """Whether everything in the policy could be read."""
        return self.policy.is_whole

    @cached_property
    def _own_leaves(self) -> dict[str, Leaves]:
        """The own leaves of each object; empty where all are sound, as in most policies."""
        errors = [item for item in self.policy.findings if item.severity is Severity.ERROR]
        is_sound, objects = _Soundness(errors), self.policy.objects if errors else ()
        return {item.label: {path: leaf for path, leaf in item.leaves.items() if is_sound(leaf)} for item in objects}

    @cached_property
    def declared_at(self) -> dict[Path, list[tuple[Declared, Leaf]]]:
        """Each path that any object declares, with all explicit leaves there."""
        found: dict[Path, list[tuple[Declared, Leaf]]] = defaultdict(list)
        for declared, leaf in self.explicit():
            found[leaf.path].append((declared, leaf))
        return found

    @cached_property
    def _own_pairs(self) -> dict[int, tuple[Pair, ...]]:
        """The sizes of each object that declares some, by its identity."""
        return {id(declared): pairs_of(leaf) for declared, leaf in self.explicit_at(MINMAX)}

    def once(self, work: Callable[[Context], _Result]) -> _Result:
        """Return what `work` makes of the policy and the cluster; however many rules ask, it is done once."""
        if work not in self._done:
            self._done[work] = work(self)
        return cast(_Result, self._done[work])

    def found_by(self, code: str) -> Sequence[Hit]:
        """Return what a rule finds, whether it counts or not; however often it is asked, it runs once."""
        if code not in self._found:
            self._found[code] = tuple(self.rules[code].check(self))
        return self._found[code]

    def found_with(self, role: Role) -> Sequence[Hit]:
        """Return what the rules that have a role find, as `found_by` does."""
        if role not in self._found:
            self._found[role] = tuple(hit for code in self.codes_with(role) for hit in self.found_by(code))
        return self._found[role]

    def codes_with(self, role: Role) -> list[str]:
        """Return the codes of the rules that have a role, in their order."""
        return [code for code, rule in self.rules.items() if role in rule.info.role]

    @cached_property
    def without_cluster(self) -> Context:
        """The same policy as rules see it where no cluster is given."""
        return self if self.state is None else replace(self, state=None)

    @cached_property
    def groups(self) -> list[GroupPolicy]:
        """The declared groups that are to exist."""
        return [group for group in self.policy.groups.values() if group.removed is None]

    @cached_property
    def alike(self) -> dict[str, GroupPolicy]:
        """Each group, by its name, with the first that has the same values of the same bases: they promise the same."""
        first: dict[tuple[int, ...], GroupPolicy] = {}
        parts = ((item, (item.leaves, item.hardware, item.limits, item.physical_volumes)) for item in self.groups)
        return {group.name: first.setdefault(tuple(map(id, values)), group) for group, values in parts}

    @cached_property
    def cluster_and_groups(self) -> list[ClusterPolicy | GroupPolicy]:
        """The cluster, if it is declared, and the groups that are to exist."""
        return [*([self.policy.cluster] if self.policy.cluster else []), *self.groups]

    @property
    def observed(self) -> ClusterState:
        """The observed cluster; an empty one where none is given."""
        return self.state or _NO_CLUSTER

    @cached_property
    def desired(self) -> Desired:
        """What the policy wants of the observed cluster's groups and nodes; nothing without a cluster."""
        return Desired() if self.state is None else resolve(self.policy, self.state)

    @cached_property
    def members(self) -> Members:
        """The groups and nodes of the observed cluster as they will be; none without a cluster."""
        return Members(self.policy, self.observed, self.desired)

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """All tags that the policy declares."""
        return tagging.declared_tags(self.policy)

    @cached_property
    def _policy_of_tags(self) -> Policy:
        """The policy, without the nodes of groups whose patterns were most likely copied from other groups."""
        asked = self.found_with(Role.COPIED_NODES) if self.state is None else ()
        copied = {hit.label for hit in asked if hit.finding.missing.startswith(NODES_LIKE)}
        groups = self.policy.groups.items()
        known = {name: replace(group, nodes=None) if group.label in copied else group for name, group in groups}
        return replace(self.policy, groups=known) if copied else self.policy

    @cached_property
    def tagged_nodes(self) -> dict[str, tuple[TaggedNode, ...]]:
        """The nodes with their tags of each group whose nodes are all known by name."""
        if self.state is None:
            return tagging.promised_tags(self._policy_of_tags)
        return tagging.tagged_nodes(self.policy, self.members)

    @cached_property
    def tagged_groups(self) -> dict[str, TaggedNode]:
        """What every node of each other group has by the node sets of the policy."""
        return tagging.tagged_groups(self._policy_of_tags, self.tagged_nodes)

    @cached_property
    def all_tagged(self) -> tuple[TaggedNode, ...]:
        """All nodes whose tags are known: by name, by a pattern or by their group."""
        named = [node for nodes in self.tagged_nodes.values() for node in nodes]
        known = {node.name for node in named}
        entries = tagging.tagged_entries(self._policy_of_tags, known) if self.state is None else ()
        return (*named, *self.tagged_groups.values(), *entries)

    @cached_property
    def tagged_by_domain(self) -> dict[str, list[TaggedNode]]:
        """Those of `all_tagged` that have a tag of a domain, by what may be one."""
        found: dict[str, list[TaggedNode]] = {}
        for node in self.all_tagged:
            for domain in node.domains:
                found.setdefault(domain, []).append(node)
        return found

    @cached_property
    def old_names(self) -> dict[str, str]:
        """The groups that are to be renamed, each with its new name."""
        return {group.renamed_from.value: group.name for group in self.groups if group.renamed_from}

    @cached_property
    def known_groups(self) -> frozenset[str]:
        """The groups that the policy declares, and those of the cluster that keep their names, where they are known."""
        gone = self.policy.groups.keys() | self.old_names.keys()  # a declared one not in `groups` is to be removed
        return frozenset((*(group.name for group in self.groups), *self.observed.groups.keys() - gone))

    def leaves(self, declared: Declared) -> Leaves:
        """Return all own leaves of an object, explicit and inherit."""
        return self._own_leaves[declared.label] if self._own_leaves else declared.leaves

    def own(self, declared: Declared, path: Path) -> Leaf | None:
        """Return the explicit own leaf at `path`, or None."""
        if path not in self.declared_at:  # rules ask for far more than policies declare
            return None
        leaf = (self._own_leaves[declared.label] if self._own_leaves else declared.leaves).get(path)
        return None if leaf is None or leaf.value is INHERIT else leaf

    def is_unknown(self, declared: Declared | None, path: Path) -> bool:
        """Return whether what is said at `path` could not be read; None: of a cluster in a document that is broken."""
        if declared is None:
            roots = (document.root for document in self.policy.broken)
            return any(isinstance(root, dict) and root.get("kind") == "Cluster" for root in roots)
        return path in declared.leaves and path not in self.leaves(declared)

    def cluster_leaf(self, path: Path) -> Leaf | None:
        """Return what the policy declares for the cluster at `path`, or None."""
        return self.own(self.policy.cluster, path) if self.policy.cluster else None

    def effective(self, declared: Declared, path: Path) -> Leaf | None:
        """Return the explicit leaf that holds for a cluster or group: its own, else the cluster's; None if neither."""
        if path not in self.declared_at:
            return None
        own = self.own(declared, path)
        inherits = own is None and declared.level is Level.GROUP and not self.is_unknown(declared, path)
        return self.cluster_leaf(path) if inherits else own

    def explicit(self) -> Iterator[tuple[Declared, Leaf]]:
        """Yield every explicit leaf with the object that it is declared for."""
        for declared in self.policy.objects:
            yield from ((declared, leaf) for leaf in self.leaves(declared).values() if leaf.value is not INHERIT)

    def explicit_at(self, *paths: Path) -> Iterator[tuple[Declared, Leaf]]:
        """Yield the explicit leaves at one of `paths`, object by object."""
        known = [path for path in paths if path in self.declared_at]
        if len(known) == 1:
            yield from self.declared_at[known[0]]
        elif known:
            owns = ((declared, self.own(declared, path)) for declared in self.policy.objects for path in known)
            yield from ((declared, leaf) for declared, leaf in owns if leaf is not None)

    def declares(self, *paths: Path) -> bool:
        """Return whether any object has an explicit leaf at one of `paths`."""
        return any(path in self.declared_at for path in paths)

    def combined(self, *paths: Path) -> Iterator[tuple[ClusterPolicy | GroupPolicy, tuple[Leaf, ...]]]:
        """Yield cluster and groups in which all `paths` are known, and not all of them only from the cluster."""
        for declared in self.cluster_and_groups if all(path in self.declared_at for path in paths) else ():
            leaves = tuple(self.effective(declared, path) for path in paths)
            if all(leaves) and any(self.own(declared, path) for path in paths):
                yield declared, cast(tuple[Leaf, ...], leaves)

    def exclusive(self, declared: Declared) -> Leaf | None:
        """Return the leaf that turns exclusive storage on for a cluster or group; None where it is off or unknown."""
        leaf = self.effective(declared, EXCLUSIVE_STORAGE)
        return leaf if leaf is not None and leaf.value is True else None

    def pairs(self, declared: Declared) -> tuple[Pair, ...]:
        """Return the sizes that hold for a cluster or group; none where the policy declares none."""
        own = self._own_pairs.get(id(declared))
        if own is None and declared.level is Level.GROUP:
            own = self._own_pairs.get(id(self.policy.cluster))
        return own or ()

    def lost_pairs(self, declared: Declared) -> tuple[Pair, ...]:
        """Return the sizes of a base or the cluster that the list that holds here replaces and does not name again."""
        leaf = self.effective(declared, MINMAX)
        above = (*leaf.overridden, self.cluster_leaf(MINMAX)) if leaf is not None else ()
        other = next((item for item in above if item not in (None, leaf) and item.value is not INHERIT), None)
        return tuple(pair for pair in pairs_of(other) if pair.name not in leaf.pair_names) if leaf and other else ()

    def minmax(self) -> Iterator[tuple[Declared, Leaf, tuple[Pair, ...]]]:
        """Yield every declared list of sizes with the object that declares it."""
        yield from ((declared, leaf, self._own_pairs[id(declared)]) for declared, leaf in self.explicit_at(MINMAX))

    def each_pair(self) -> Iterator[tuple[Declared, Pair]]:
        """Yield every declared size with the object that declares it."""
        return ((declared, pair) for declared, _, pairs in self.minmax() for pair in pairs)

    def spec_names(self, group: str | None) -> list[str] | None:
        """Return the names of the specs of a group (None: of all groups and the cluster), by name or place.

        None where nobody can know: the policy declares no pairs that hold there, and places are all that there is.
        """
        declared = [item for item in self.groups if group in (None, item.name)]
        lists = [self.pairs(item) for item in declared]
        if self.policy.cluster is not None and (group is None or not declared):
            lists.append(self.pairs(self.policy.cluster))
        names = [pair.word for pairs in lists for pair in pairs]
        unknown = not lists or any(not pairs for pairs in lists)
        return None if unknown and not names else list(dict.fromkeys(names))


class _Soundness:
    """Tells of leaves whether there is no error inside, so that one mistake makes one finding."""

    def __init__(self, errors: list[Finding]) -> None:
        self._places = {error.span for error in errors if error.span}
        self._sorted = sorted(self._places)
        self._files = {span.file for span in self._places}
        self._known: dict[tuple[int, Pointer], bool] = {}
        """By document and pointer: many objects may extend the one that a leaf is of."""

    def __call__(self, leaf: Leaf) -> bool:
        if leaf.document.file not in self._files:
            return True
        key = (id(leaf.document), leaf.pointer)
        if key not in self._known:
            own = leaf.document.value_span(leaf.pointer)
            self._known[key] = self._places.isdisjoint(_spans_of_leaf(leaf)) and not self._holds_an_error(own)
        return self._known[key]

    def _holds_an_error(self, own: Span) -> bool:
        first = bisect_left(self._sorted, replace(own, end_line=0))
        behind = bisect_left(self._sorted, Span(own.file, own.end_line + 1, 0, 0, 0))
        return any(place.lies_within(own) for place in self._sorted[first:behind])


def _spans_of_leaf(leaf: Leaf) -> Iterator[Span]:
    """Yield the spans of a leaf's value and of everything in it, keys too, also where an alias stands for it."""
    open_values = [(leaf.pointer, leaf.document.value(leaf.pointer))]
    while open_values:
        pointer, value = open_values.pop()
        yield leaf.document.value_span(pointer)
        yield leaf.document.key_span(pointer)
        if isinstance(value, dict):
            open_values += [((*pointer, key), below) for key, below in value.items()]
        elif isinstance(value, list):
            open_values += [((*pointer, index), below) for index, below in enumerate(value)]
