"""The house rules of a policy, and the objects that they look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from gpolicy.checking.value_schema import SchemaReader
from gpolicy.policy.house_rule import HouseRule
from gpolicy.policy.model import ClusterPolicy, Declared, Policy
from gpolicy.policy.source_file import Located


def sound_rules(policy: Policy) -> list[HouseRule]:
    """Return the house rules whose schema has no mistake; of several with one name the first."""
    first = {rule.word: rule for rule in reversed(policy.house_rules)}
    return [rule for rule in policy.house_rules if first[rule.word] is rule and not SchemaReader(rule.schema).mistakes]


def subjects(house_rule: HouseRule, policy: Policy) -> Iterator[Declared]:
    """Yield the objects that a house rule looks at."""
    for item in objects_of(policy, house_rule.kind.value):
        by_name = not house_rule.names or fits_any(item.name, house_rule.names)
        by_tag = not house_rule.tags or any(fits_any(tag.value, house_rule.tags) for tag in tags_of(item, policy))
        if by_name and by_tag:
            yield item


def objects_of(policy: Policy, kind: str) -> Iterator[Declared]:
    """Yield the objects of a kind that are to exist."""
    removed = {group.label for group in policy.groups.values() if group.removed is not None}
    return (item for item in policy.objects if item.document.root["kind"] == kind and item.label not in removed)


def fits_any(word: str, globs: Iterable[Located[str]]) -> bool:
    """Return whether a word is one of `globs`, or fits one."""
    return any(glob.value == word or fnmatchcase(word, glob.value) for glob in globs)


def tags_of(item: Declared, policy: Policy) -> Sequence[Located[str]]:
    """Return the tags that an object is to have; the cluster's come from all documents."""
    return (policy.cluster_tags if isinstance(item, ClusterPolicy) else item.tags) or ()
