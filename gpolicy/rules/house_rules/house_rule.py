"""GP950 to GP955: what house rules of the policy forbid, and mistakes in house rules themselves."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any, Final

from gpolicy.checking.context import MINMAX, Context, name_of
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.value_schema import Breach, Judgement, judge
from gpolicy.findings import AMBIGUOUS, HOUSE_CODE, Related, RuleInfo, Span
from gpolicy.guessing import MOST_GUESSES, did_you_mean, did_you_mean_one_of, name_meant
from gpolicy.policy.kinds import SCHEMA, HouseRule
from gpolicy.policy.model import Declared, GroupPolicy, Leaf, Policy
from gpolicy.policy.node_patterns import is_glob
from gpolicy.policy.source_file import Pointer, YamlDocument, place_name
from gpolicy.policy.structure import ALIAS_BOMB
from gpolicy.printable import clipped, count
from gpolicy.rules.house_rules.named_values import (
    KINDS,
    fits_any,
    idle_parts,
    known_values,
    objects_of,
    subjects,
    tags_of,
    unknown_values,
)
from gpolicy.rules.shared import GROUP, repeated, show
from gpolicy.show.effective_policy import EffectiveObject, effective_view

RATIO: Final = "properties: {ipolicy.vcpu-ratio: {maximum: 1}}"
GOLD: Final = f"{GROUP}ipolicy: {{vcpu-ratio: 1}}\n"
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
_SHOW: Final = "`gpolicy show --format json` shows the values of each object as `effective`"
Judged = tuple[HouseRule, dict[int, tuple[Declared, EffectiveObject]], Judgement | None]
"""A house rule, the objects that it looks at, by number, and what is found; None if no time was left for it."""


def rule(schema: str, *, name: str = "dedicated-cpus", about: str = "kind: NodeGroup") -> str:
    """Return a Rule document in YAML, behind another document."""
    return (
        f"---\ngpolicy: v1\nkind: Rule\nname: {name}\nfor: {{{about}}}\nschema: {{{schema}}}\n"
        "message: gold is sold with dedicated CPUs\n"
    )


GOOD: Final = GOLD + rule(RATIO)


@error(HOUSE_CODE, when=When.WHOLE)(
    summary="An object breaks a house rule: a Rule document of the policy, or of a file that it extends.",
    rationale="The team that owns the policy demands it; the rule's message says why. A finding has its severity, and"
    " its name house/NAME, by which waivers, comments and settings accept it. `house-rule` names all of them.",
    **show(f"{GROUP}ipolicy: {{vcpu-ratio: …}}\n{rule(RATIO)}", bad="4", good="1"),
)
def house_rule(context: Context) -> Iterator[Hit]:
    for demand, looked_at, judgement in context.once(_judged_rules):
        info = replace(house_rule.info, name=demand.word, severity=demand.severity)
        if judgement is None:
            message = "the house rules of this policy take too long, or find too much"
            hint = "write plainer schemas, or let them look at fewer objects"
            yield Hit(_label(demand), ALIAS_BOMB.finding(message, demand.name.span, hint=hint))
            return
        for number, breach in judgement[1]:
            yield _broken(context.policy, info, demand, breach, *looked_at[number])


def _judged_rules(context: Context) -> list[Judged]:
    policy = context.policy
    first = {rule.word: rule for rule in reversed(policy.house_rules)}
    objects = effective_view(policy).objects if first and context.whole else ()
    by_label: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(objects):  # a node set is there once for each group of its nodes
        by_label[item.label].append(number)
    looked_at: list[dict[int, tuple[Declared, EffectiveObject]]] = []
    for rule in policy.house_rules:
        is_judged = first[rule.word] is rule and not any(unknown_values(rule))
        named = subjects(rule, policy) if is_judged else ()
        looked_at.append({number: (one, objects[number]) for one in named for number in by_label[one.label]})
    questions = ((rule.schema, [*numbers]) for rule, numbers in zip(policy.house_rules, looked_at, strict=True))
    judgements = judge([item.effective for item in objects], questions)
    return [*zip_longest(policy.house_rules, looked_at, judgements)]


def _sound_rules(context: Context) -> list[HouseRule]:
    """Return the house rules whose schema has no mistake; of several with one name the first."""
    judged = context.once(_judged_rules)
    first = {rule.word: rule for rule, _, _ in reversed(judged)}
    return [rule for rule, _, found in judged if first[rule.word] is rule and not (found and found[0])]


def _broken(
    policy: Policy, info: RuleInfo, rule: HouseRule, breach: Breach, declared: Declared, effective: EffectiveObject
) -> Hit:
    document, span = _place(breach, declared, effective, policy)
    title = name_of(declared) + (f" in group {effective.group}" if effective.group is not None else "")
    related, missing = [Related(rule.name.span, "the rule is here")], ""
    if document is not declared.document:
        related.append(Related(declared.span, f"{title} has this value"))
        missing = f"{rule.word} at {span}"  # one value of several objects
    elif breach.keyword == "required" and not breach.path:
        missing = f"{rule.word} without {', '.join(breach.argument)}"
    message, reason = f"{title}: {rule.message}", _reason(breach)
    finding = info.finding(message, span, hint=reason, related=tuple(related), missing=missing)
    return Hit(declared.label, finding)


# --- where it stands -----------------------------------------------------------------------------------------------


def _place(
    breach: Breach, declared: Declared, effective: EffectiveObject, policy: Policy
) -> tuple[YamlDocument | None, Span]:
    """Return the place of the value that breaks a rule, and its document; the object where nothing is written."""
    if not breach.path:
        return declared.document, declared.span
    first, *rest = breach.path
    nodes = declared.nodes if isinstance(declared, GroupPolicy) else ()
    items = {"tags": tags_of(declared, policy), "nodes": nodes}.get(str(first))
    if items and rest:
        return None, items[int(rest[0])].span
    for value in effective.values:
        if ".".join(value.path) == first and (origin := value.origin) is not None:
            holder = next(item for item in policy.objects if item.label == origin.object)
            leaf = holder.leaves.get(value.path)
            return (None, origin.span) if leaf is None else (leaf.document, leaf.at(*_written(leaf, rest)))
    return declared.document, declared.document.key_span((first,)) if first in ("tags", "nodes") else declared.span


def _written(leaf: Leaf, rest: list[str | int]) -> Pointer:
    """Return where a part of a value is written: the items of a set are sorted, and written in any order."""
    written: Any = leaf.document.value(leaf.pointer)
    if not rest or leaf.path == MINMAX or not isinstance(rest[0], int) or not isinstance(leaf.value, list):
        return tuple(rest)
    item = leaf.value[rest[0]]
    return (written.index(item),) if isinstance(written, list) and item in written else ()


# --- what it says --------------------------------------------------------------------------------------------------


def _reason(breach: Breach) -> str:
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


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # Ganeti stores the ratio 4 as 4.0
    return clipped(value if isinstance(value, str) else json.dumps(value, default=str), 60)


def _label(house_rule: HouseRule) -> str:
    return f"rule/{house_rule.name.value}"


@error("GP951", "JSON Schema draft 7; gpolicy")(
    summary="The schema of a house rule cannot be used.",
    rationale="It refers to a definition that is missing, has a pattern that is no regular expression, or takes too"
    " much time, memory or depth: some patterns may take years. Nothing is checked by this rule.",
    **show(GOLD + rule('properties: {name: {pattern: "…"}}'), bad="^gold(-[0-9]+$", good="^gold(-[0-9]+)?$"),
)
def rule_schema(context: Context) -> Iterator[Hit]:
    for house_rule, _, judgement in context.once(_judged_rules):
        for pointer, what, hint in judgement[0] if judgement is not None else ():
            yield _hit(house_rule, what, house_rule.document.value_span((SCHEMA, *pointer)), hint)


def _hit(house_rule: HouseRule, what: str, span: Span, hint: str, related: tuple[Related, ...] = ()) -> Hit:
    return hit(_label(house_rule), f"house rule {house_rule.name.value}: {what}", span, hint, related)


@error("GP952")(
    summary="The schema of a house rule names a value that no object of its kind has.",
    rationale="What stands below `properties` for it never applies, and what is `required` is always missing. Most"
    " likely the path is misspelt. Values have dotted paths in Ganeti's names, as `gpolicy show` has them.",
    bad=GOLD + rule("properties: {vcpu-ratio: {maximum: 1}}"),
    good=GOOD,
)
def rule_unknown_value(context: Context) -> Iterator[Hit]:
    for house_rule in _sound_rules(context):
        known, kind = known_values(house_rule.kind.value), house_rule.kind.value
        unknown: dict[str, list[Span]] = defaultdict(list)  # each with its places
        for name, pointer in unknown_values(house_rule):
            unknown[name].append(_at(house_rule, pointer))
        others = KINDS if len(unknown) > 1 else ()
        other = next((word for word in others if unknown.keys() <= known_values(word).keys()), None)
        if other is not None:
            what = f"no {kind} has values {', '.join(sorted(unknown))}"
            yield _hit(house_rule, what, house_rule.kind.span, f"Did you mean `{other}`?")
            continue
        for name, (place, *places) in unknown.items():
            ends = [path for path in known if path.endswith(f".{name}")]
            guess = f"Did you mean `{ends[0]}`?" if ends else did_you_mean(name, known, _SHOW)
            again = tuple(Related(span, "and here") for span in dict.fromkeys(places))
            yield _hit(house_rule, f"no {kind} has a value {name!r}", place, guess, again)


def _at(house_rule: HouseRule, pointer: Pointer) -> Span:
    return house_rule.document.key_span((SCHEMA, *pointer))


@warning("GP955", "JSON Schema draft 7")(
    summary="The schema of a house rule demands nothing, or a part of it accepts all values or an impossible one.",
    rationale="`pattern` looks at texts only, `minimum` at numbers, `contains` at lists: a keyword accepts every"
    " value of another kind, so it demands nothing. Neither does a bound beyond all numbers that make sense.",
    bad=GOLD + rule('properties: {ipolicy.vcpu-ratio: {pattern: "^1$"}}'),
    good=GOOD,
)
def rule_keyword_idle(context: Context) -> Iterator[Hit]:
    for house_rule in _sound_rules(context):
        if not house_rule.schema.keys() - {"description", "title", "definitions"}:
            hint = "write `required` or `properties`"
            yield _hit(house_rule, "its schema demands nothing", _at(house_rule, ()), hint)
        for pointer, what, hint in idle_parts(house_rule):
            yield _hit(house_rule, what, _at(house_rule, pointer), hint)


@warning("GP953", when=When.WHOLE)(
    summary="A house rule looks at no object of its policy, or one almost has the name or the tag that it names.",
    rationale="Most likely a name or a tag is misspelt. (A rule of a shared file may be about other policies.)",
    bad=GOLD + rule(RATIO, about="kind: NodeGroup, names: [glod]"),
    good=GOOD,
)
def rule_matches_nothing(context: Context) -> Iterator[Hit]:
    policy = context.policy
    for house_rule in policy.house_rules:
        if policy.is_part:
            continue
        kind, names = house_rule.kind, [item.name for item in objects_of(policy, house_rule.kind.value)]
        almost = [*_almost_tagged(policy, house_rule)]
        yield from almost
        if almost or house_rule.document.file not in policy.paths:
            continue
        if any(subjects(house_rule, policy)):
            for glob in house_rule.names:  # another policy may have a name that is like none here
                near = None if is_glob(glob.value) or glob.value in names else name_meant(glob.value, names)
                if near is not None:
                    what = f"no {kind.value} is called {glob.value!r}"
                    yield _hit(house_rule, what, glob.span, f"Did you mean `{near}`?")
            continue
        message, span, hint = f"the policy has no {kind.value}", kind.span, "remove the rule, or correct its kind"
        if names and not any(fits_any(name, house_rule.names) for name in names) and house_rule.names:
            glob = house_rule.names[0]
            message, span = f"no {kind.value} is called {glob.value!r}", glob.span
            hint = did_you_mean_one_of(glob.value.strip("*"), "names", names)
        elif names:
            message = f"no {kind.value} with such a name has such a tag"
            span, hint = house_rule.tags[0].span, "correct the tags, or remove the rule"
        yield hit(_label(house_rule), f"house rule {house_rule.name.value} looks at nothing: {message}", span, hint)


def _almost_tagged(policy: Policy, house_rule: HouseRule) -> Iterator[Hit]:
    """Yield the tags of objects that a rule leaves out, but which are almost a tag that it looks for."""
    wanted = [glob.value for glob in house_rule.tags if not is_glob(glob.value)]
    if not wanted:
        return
    looked_at = {item.label for item in subjects(house_rule, policy)}
    left_out = (item for item in objects_of(policy, house_rule.kind.value) if item.label not in looked_at)
    tagged = [(item, tag) for item in left_out for tag in tags_of(item, policy)]
    words = dict.fromkeys(tag.value for _, tag in tagged)
    meant = {word: name_meant(word, wanted) for word in islice(words, MOST_GUESSES)}
    for item, tag in tagged:
        if (near := meant.get(tag.value)) and not looked_at:
            place = next(glob.span for glob in house_rule.tags if glob.value == near)
            related = see(tag.span, f"the tag of {name_of(item)}")
            what = f"no {house_rule.kind.value} has the tag {near}"
            yield _hit(house_rule, what, place, f"is {tag.value} meant?", related)
            return  # a rule that looks at nothing is more likely wrong itself
        if near:
            message = f"house rule {house_rule.name.value} looks at {near}, and not at {tag.value}"
            yield hit(item, message, tag.span, f"Did you mean `{near}`?")


@error("GP954", stays=AMBIGUOUS)(
    summary="Two house rules have the same name.",
    rationale="Waivers and settings accept a rule by its name: one name would accept both. Only the first is checked.",
    **show(GOOD + rule(RATIO, name="…"), bad="dedicated-cpus", good="no-shared-cpus"),
)
def rule_named_twice(context: Context) -> Iterator[Hit]:
    for house_rule, earlier in repeated(context.policy.house_rules, lambda rule: rule.word):
        related = see(earlier.name.span, "the first is here")
        message = f"a second house rule {house_rule.name.value!r}"
        yield hit(_label(house_rule), message, house_rule.name.span, "give it another name", related)
