"""Tags that drifted: the lists and rules that declare them, and what to add and remove there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift
from gpolicy.drift.unit_writer import How, Unit, WayToWrite
from gpolicy.drift.value_units import add_to, new_set, sets_of
from gpolicy.ganeti.parameter import Level
from gpolicy.plan.change import TAGS, words
from gpolicy.plan.part import Key
from gpolicy.policy.edits import remove_entry
from gpolicy.policy.model import Declared, NodeSetPolicy, Policy, TagRulesPolicy
from gpolicy.policy.schema_tag_rules import RULES
from gpolicy.policy.source_file import Located, Pointer
from gpolicy.resolve.desired import Desired, members
from gpolicy.writing.draft import Draft, UnwritableError, ValuePlace, place_of
from gpolicy.writing.tag_rules import rule_tags
from gpolicy.writing.value_edits import ValueWriter, add_item, add_value
from gpolicy.writing.yaml_text import Node


class TagUnits:
    """Makes units of tags that drifted."""

    def __init__(self, policy: Policy, state: ClusterState, desired: Desired) -> None:
        self._policy = policy
        scratch = Desired(groups=desired.groups, current_groups=desired.current_groups, nodes=desired.nodes)
        self._members = [(item, frozenset(members(item, state, scratch))) for item in policy.node_sets]

    def units(self, drift: Sequence[Drift]) -> Iterator[Unit]:
        """Yield the units of drift in tags."""
        nodes: dict[tuple[frozenset[str], frozenset[str]], list[Drift]] = defaultdict(list)
        for item in drift:
            level, _, name = item.object.partition("/")
            if level == Level.NODE:
                nodes[_difference(item)].append(item)
            elif level == Level.GROUP:
                group = self._policy.groups[name]
                how = How.IN_PLACE if "tags" in group.document.root else How.OVERRIDE
                write = partial(_write_list, declared=group, difference=_difference(item))
                yield Unit(frozenset({item.key}), (WayToWrite(how, write, frozenset({(group.label, TAGS)})),))
            else:
                write = partial(_write_cluster_tags, policy=self._policy, difference=_difference(item))
                keys = frozenset({("cluster", TAGS)})
                yield Unit(keys, (WayToWrite(How.IN_PLACE, write, keys),))
        for (extra, missing), items in nodes.items():
            yield from self._nodes(items, extra, missing)

    def _nodes(self, items: Sequence[Drift], extra: frozenset[str], missing: frozenset[str]) -> Iterator[Unit]:
        """Yield the units of nodes that all have the same tags too many and too few."""
        names = frozenset(item.object.partition("/")[2] for item in items)
        keys = frozenset(item.key for item in items)
        near = [(item, who) for item, who in self._members if who & names]
        giving = [(item, who) for item, who in near if any(tag.value in missing for tag in item.tags or ())]
        whole = [item for item, who in self._members if item.tags is not None and who == names]
        if all(who <= names for _, who in giving) and (whole or not extra):
            lists = [item for item, _ in giving]
            lists += [item for item in whole[:1] if item not in lists]
            yield Unit(keys, (self._in_sets(lists, whole[:1], extra, missing),))
        elif len(names) > 1:
            for item in items:
                yield from self._nodes([item], extra, missing)
        else:
            yield self._node(keys, next(iter(names)), giving, extra)

    def _node(
        self,
        keys: frozenset[Key],
        name: str,
        giving: Sequence[tuple[NodeSetPolicy, frozenset[str]]],
        extra: frozenset[str],
    ) -> Unit:
        """Return the unit of one node whose tags come from sets of several nodes."""
        for item, who in giving:
            if len(who) > 1:
                reason = f"the node set {item.name} gives the missing tags to {len(who)} nodes: take {name} out of it"
                return Unit(keys, reason=reason)
        node: list[Node] = [*sorted(extra)]
        own = next(iter(sets_of(name, self._policy)), None)
        if own is not None:
            return Unit(keys, (add_to(own, TAGS, node),))
        around = next(item for item, who in self._members if item.tags is not None and name in who)
        try:
            return Unit(keys, (new_set(name, place_of(around.document)[0], TAGS, node, self._policy),))
        except UnwritableError as error:
            return Unit(keys, reason=str(error))

    def _in_sets(
        self,
        sets: Sequence[NodeSetPolicy],
        adding: Sequence[NodeSetPolicy],
        extra: frozenset[str],
        missing: frozenset[str],
    ) -> WayToWrite:
        def write(draft: Draft) -> ValuePlace:
            wrote: list[ValuePlace] = []
            for item in sets:
                added = extra if item in adding else frozenset[str]()
                wrote.append(_write_list(draft, item, (added, missing)))
            return wrote[0]

        return WayToWrite(How.IN_PLACE, write, frozenset((item.label, TAGS) for item in sets))


def _difference(item: Drift) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tags that the policy does not declare, and those that are missing."""
    found, declared = frozenset(words(item.found)), frozenset(words(item.declared))
    return found - declared, declared - found


def _write_list(draft: Draft, declared: Declared, difference: tuple[frozenset[str], frozenset[str]]) -> ValuePlace:
    """Write the tags of an object into its own list; where it takes them from a base, make it one of its own."""
    extra, missing = difference
    place = place_of(declared.document)
    kept = [tag.value for tag in declared.tags or () if tag.value not in missing]
    items = [*kept, *sorted(extra - set(kept))]
    if "tags" in declared.document.root:
        ValueWriter(draft, place).set_items(TAGS, items)
    else:
        add_value(draft, place, TAGS, [*items])
    return place, TAGS


def _write_cluster_tags(draft: Draft, policy: Policy, difference: tuple[frozenset[str], frozenset[str]]) -> ValuePlace:
    extra, missing = difference
    wrote: list[ValuePlace] = []
    own = {tag.value for tag in (policy.cluster.tags if policy.cluster else None) or ()}
    for rules in policy.tag_rules:
        wrote += [_remove_rule(draft, rules, item) for item in rules.tags if item.value in missing]
    plain: set[str] = set()
    for tag in sorted(extra):
        added = _add_rule(draft, policy, tag)
        wrote += [added] if added else []
        plain |= set() if added else {tag}
    if plain or own & missing:
        if policy.cluster is None:
            raise UnwritableError(f"no document declares a cluster that the tag {min(plain)} could be added to")
        wrote.append(_write_list(draft, policy.cluster, (frozenset(plain), missing)))
    return wrote[0]


def _remove_rule(draft: Draft, rules: TagRulesPolicy, tag: Located[str]) -> ValuePlace:
    """Remove the item of tag rules that means a tag; others may be removed already."""
    place, was = place_of(rules.document), _pointer_of(rules, tag)
    items = draft.document(place).value(was[:-1])
    pointer = was[:-1] if len(items) == 1 else (*was[:-1], list(items).index(rules.document.value(was)))
    draft.edit(place, was[:-1], remove_entry(draft.document(place), pointer, climb=True))
    return place, ()


def _pointer_of(rules: TagRulesPolicy, tag: Located[str]) -> Pointer:
    """Return the pointer of the item of tag rules that a tag comes from. Raise UnwritableError."""
    for pointer in RULES.values():
        found = rules.document.root
        for key in pointer:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        for number in range(len(found)):
            if rules.document.value_span((*pointer, number)) == tag.span:
                return (*pointer, number)
    raise UnwritableError(f"{tag.span}: the tag {tag.value} stands elsewhere")


def _add_rule(draft: Draft, policy: Policy, tag: str) -> ValuePlace | None:
    """Add what means a tag to the rules that own its family; None if it is no tag of a rule."""
    family, item = next(((family, items[0]) for family, items in rule_tags([tag]).items.items() if items), ("", None))
    owners = [rules for rules in policy.tag_rules if any(tag.startswith(owned.value.prefix) for owned in rules.owns)]
    if not family or not owners:
        return None
    place, pointer = place_of(owners[0].document), RULES[family]
    document = draft.document(place)
    parent = document.root
    for key in pointer[:-1]:
        parent = parent.get(key, {})
    if pointer[-1] in parent:
        draft.edit(place, pointer, add_item(document, pointer, item))
    else:
        add_value(draft, place, pointer, [item])
    return place, pointer
