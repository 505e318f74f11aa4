"""GP950: what a house rule of the policy forbids."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from gpolicy.checking.context import MINMAX, Context, name_of
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.value_schema import MOST_STEPS, Breach, Budget, TooCostlyError, breaches
from gpolicy.findings import HOUSE_CODE, Related, RuleInfo, Severity, Span
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.house_rule import HouseRule
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Leaf, Policy
from gpolicy.policy.source_file import Located, Pointer, YamlDocument, place_name
from gpolicy.policy.structure import ALIAS_BOMB
from gpolicy.printable import clipped, count
from gpolicy.rules.examples import GROUP
from gpolicy.rules.house_rules.examples import GOOD, RATIO, rule
from gpolicy.rules.house_rules.named_values import unknown_values
from gpolicy.rules.house_rules.subjects import sound_rules, subjects
from gpolicy.show.effective_policy import EffectiveObject, Origin, effective_view

_MOST_OF_ONE: Final = 20  # findings of one rule about one object
_STEPS_OF_FINDING: Final = 200
_LONGEST_VALUE: Final = 60


class OfHouse(Rule):
    info = RuleInfo(
        code=HOUSE_CODE,
        name="house-rule",
        severity=Severity.ERROR,
        summary="An object breaks a house rule: a Rule document of the policy, or of a file that it extends.",
        rationale="The team that owns the policy demands it; the rule's message says why. A finding has the severity of"
        " its rule, and its name: house/NAME, by which waivers, comments and settings accept it. `house-rule` names"
        " all house rules together.",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 4}}\n{rule(RATIO)}",
        good=GOOD,
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        policy, budget = context.policy, Budget()
        house_rules = [item for item in sound_rules(policy) if not any(unknown_values(item))]
        by_label: dict[str, list[EffectiveObject]] = defaultdict(list)
        for item in effective_view(policy).objects if house_rules else ():
            by_label[item.label].append(item)
        for house_rule in house_rules:
            info = replace(self.info, name=house_rule.word, severity=house_rule.severity)
            try:
                for declared in subjects(house_rule, policy):
                    for item in by_label[declared.label]:  # a node set is there once for each group of its nodes
                        yield from _broken(info, house_rule, _Subject(policy, declared, item), budget)
            except TooCostlyError:
                message = f"the house rules of this policy take more than {MOST_STEPS:,} steps"
                hint = "write plainer schemas, or let them look at fewer objects"
                yield Hit(f"rule/{house_rule.name.value}", ALIAS_BOMB.finding(message, house_rule.name.span, hint=hint))
                return


@dataclass(frozen=True, slots=True)
class _Subject:
    """An object that a house rule looks at, as it is declared and as it will be."""

    policy: Policy
    declared: Declared
    effective: EffectiveObject

    @property
    def title(self) -> str:
        within = f" in group {self.effective.group}" if self.effective.group is not None else ""
        return f"{name_of(self.declared)}{within}"


def _broken(info: RuleInfo, house_rule: HouseRule, subject: _Subject, budget: Budget) -> Iterator[Hit]:
    found = breaches(house_rule.schema, subject.effective.effective, budget)
    for breach in islice(found, _MOST_OF_ONE):
        budget.spend(_STEPS_OF_FINDING)
        document, span = _place(breach, subject)
        related, missing = [Related(house_rule.name.span, "the rule is here")], ""
        if document is not subject.declared.document:
            related.append(Related(subject.declared.span, f"{subject.title} has this value"))
            missing = f"{house_rule.word} at {span}"  # one value of several objects
        elif breach.keyword == "required" and not breach.path:
            missing = f"{house_rule.word} without {', '.join(breach.argument)}"
        message, reason = f"{subject.title}: {house_rule.message}", _reason(breach)
        finding = info.finding(message, span, hint=reason, related=tuple(related), missing=missing)
        yield Hit(subject.declared.label, finding)


# --- where it stands -----------------------------------------------------------------------------------------------


def _place(breach: Breach, subject: _Subject) -> tuple[YamlDocument | None, Span]:
    """Return the place of the value that breaks a rule, and its document; the object where nothing is written."""
    declared = subject.declared
    if not breach.path:
        return declared.document, declared.span
    first, *rest = breach.path
    lists: dict[str | int, Sequence[Located[str]] | None] = {"tags": declared.tags}
    if isinstance(declared, ClusterPolicy):
        lists["tags"] = subject.policy.cluster_tags
    elif isinstance(declared, GroupPolicy):
        lists["nodes"] = declared.nodes
    items = lists.get(first)
    if items and rest:
        return None, items[int(rest[0])].span
    for value in subject.effective.values:
        if ".".join(value.path) == first and value.origin is not None:
            return _place_of_part(value.origin, value.path, rest, subject.policy)
    return declared.document, declared.document.key_span((first,)) if first in ("tags", "nodes") else declared.span


def _place_of_part(
    origin: Origin, path: Path, rest: list[str | int], policy: Policy
) -> tuple[YamlDocument | None, Span]:
    holder = next(item for item in policy.objects if item.label == origin.object)
    leaf = holder.leaves.get(path)
    return (None, origin.span) if leaf is None else (leaf.document, leaf.at(*_written(leaf, rest)))


def _written(leaf: Leaf, rest: list[str | int]) -> Pointer:
    """Return where a part of a value is written: the items of a set are sorted, and written in any order."""
    written: Any = leaf.document.value(leaf.pointer)
    if not rest or leaf.path == MINMAX or not isinstance(rest[0], int) or not isinstance(leaf.value, list):
        return tuple(rest)
    item = leaf.value[rest[0]]
    return (written.index(item),) if isinstance(written, list) and item in written else ()


# --- what it says --------------------------------------------------------------------------------------------------


def _reason(breach: Breach) -> str:
    """Return what a value has, and what it must have."""
    name, argument, value = _named(breach.path), breach.argument, breach.value
    if breach.keyword in _MEASURES:
        limit = "at most" if breach.keyword.startswith("max") else "at least"
        return f"{name} has {count(len(value), _MEASURES[breach.keyword])}, it must have {limit} {argument}"
    if breach.keyword in _BOUNDS:
        text = "the text " if isinstance(argument, str) and not isinstance(value, str) else ""
        return f"{name} is {_shown(value)}, it must be {text}{_BOUNDS[breach.keyword]}{_shown(argument)}"
    if breach.keyword in _LISTS:
        choices = argument if isinstance(argument, list) else [argument]
        return f"{name} is {_shown(value)}, it must be {_LISTS[breach.keyword]}{', '.join(map(_shown, choices[:20]))}"
    if breach.keyword == "required":
        names = ", ".join(argument)
        return f"{name} lacks {names}" if breach.path else f"the policy does not say {names}"
    shown = "" if isinstance(value, dict) else f"; it is {_shown(value)}"
    return f"{name} {_OTHERS[breach.keyword]}{shown}"


def _named(path: Pointer) -> str:
    """Return what a breach is about. An item of a list has no number, except pairs: sets are sorted here."""
    if not path:
        return "the object"
    if path[0] == ".".join(MINMAX) or not any(isinstance(step, int) for step in path):
        return place_name(path)
    return f"an item of {place_name(tuple(step for step in path if isinstance(step, str)))}"


_BOUNDS: Final = {
    "const": "",
    "minimum": "at least ",
    "maximum": "at most ",
    "exclusiveMinimum": "above ",
    "exclusiveMaximum": "below ",
    "multipleOf": "a multiple of ",
}
_LISTS: Final = {"enum": "one of ", "type": "of type "}
_OTHERS: Final = {
    "false": "must not be there",
    "pattern": "does not match the rule's pattern",
    "contains": "has no item as the rule demands",
    "uniqueItems": "has an item twice",
    "propertyNames": "has a name that the rule forbids",
    "anyOf": "fits none of the alternatives",
    "oneOf": "does not fit exactly one of the alternatives",
    "not": "is what the rule forbids",
}
_MEASURES: Final = {
    **{f"{end}Length": "character" for end in ("min", "max")},
    **{f"{end}Items": "item" for end in ("min", "max")},
    **{f"{end}Properties": "key" for end in ("min", "max")},
}


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # Ganeti stores the ratio 4 as 4.0
    return clipped(value if isinstance(value, str) else json.dumps(value, default=str), _LONGEST_VALUE)
