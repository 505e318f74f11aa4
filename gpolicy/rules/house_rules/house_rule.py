"""GP950 to GP955: what house rules of the policy forbid, and mistakes in house rules themselves."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice, zip_longest
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.value_schema import REFERENCE, Breach, Judgement, SchemaMistake, children, judge, never_is
from gpolicy.cluster.terms import STATES
from gpolicy.data import read_data
from gpolicy.findings import AMBIGUOUS, HOUSE_CODE, Located, Related, Role, RuleInfo, Span
from gpolicy.ganeti.amounts import MIB, sensible_range
from gpolicy.ganeti.parameters import parameter_at, parameters_of
from gpolicy.ganeti.vocabulary import MINMAX, Level, Parameter, Type
from gpolicy.guessing import MOST_GUESSES, did_you_mean, did_you_mean_one_of, name_meant
from gpolicy.policy.conformance import Schema, schema_of
from gpolicy.policy.kinds import LEVELS, SCHEMA, HouseRule, Policy
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Leaf, is_glob
from gpolicy.policy.source_file import ALIAS_BOMB, Pointer, YamlDocument, place_name
from gpolicy.printable import clipped, count
from gpolicy.rules.shared import grouped, repeated
from gpolicy.show.effective_policy import EffectiveObject, effective_view

_FACTS: Final = {"Cluster": (), "NodeGroup": ("nodes",), "NodeSet": ("nodes", "group")}
_TERMS: Final = ("limits", "physical_volumes", "hardware")
_OF_THE_SAME: Final = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
"""Keywords whose schemas are about the same value as the one that they stand in."""
_SAID: Final = read_data("house_rules.toml")


def known_values(kind: str) -> dict[str, None]:
    """Return what `effective` of an object of a kind may have."""
    paths = [".".join(parameter.path) for parameter in parameters_of(LEVELS[kind])]
    if kind == "NodeSet":  # where resources are counted, the states of the group or the cluster hold for a node
        paths += [".".join(item.path) for item in parameters_of(Level.CLUSTER) if item.path[0] in STATES]
    properties = schema_of(kind)["properties"]
    terms = [f"{family}.{key}" for family in _TERMS for key in properties.get(family, {}).get("properties", ())]
    return dict.fromkeys(["name", "tags", *_FACTS[kind], *paths, *terms])


def _about_one_value(house_rule: HouseRule, schema: Any, start: Pointer = ()) -> Iterator[tuple[Schema, Pointer]]:
    """Yield a schema of a rule and those in it that are about the same value, each with its place in the rule's."""
    todo = [(schema, start)]
    seen = set[int]()
    while todo:
        found, place = todo.pop()
        if not isinstance(found, dict) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found, place
        todo += ((inner, (*place, *step)) for step, inner in children(found) if step[0] in _OF_THE_SAME)
        if "$ref" in found:
            name = found["$ref"].removeprefix(REFERENCE)
            todo.append((house_rule.schema.get("definitions", {}).get(name), ("definitions", name)))


def unknown_values(house_rule: HouseRule) -> Iterator[tuple[str, Pointer]]:
    """Yield the values that a schema names and no object of its kind has, each with its place in the schema."""
    known = known_values(house_rule.kind.value)
    for found, place in _about_one_value(house_rule, house_rule.schema):
        named = [(name, (*place, "properties", name)) for name in found.get("properties", ())]
        named += [(name, (*place, "required", index)) for index, name in enumerate(found.get("required", ()))]
        # disk_state has names of volume groups in it
        yield from (item for item in named if item[0] not in known and not item[0].startswith("disk_state."))


def idle_parts(house_rule: HouseRule) -> Iterator[SchemaMistake]:
    """Yield the parts of a sound schema that are about what their value never is: place, what is so, what to do."""
    for around, place in _about_one_value(house_rule, house_rule.schema):
        for name, whole in around.get("properties", {}).items():
            for schema, at in _about_one_value(house_rule, whole, (*place, "properties", name)):
                yield from _idle_keywords(name, parameter_at(tuple(name.split("."))), schema, at)


def _idle_keywords(name: str, parameter: Parameter | None, schema: Schema, place: Pointer) -> Iterator[SchemaMistake]:
    choices = parameter.choices if parameter is not None and parameter.type is Type.CHOICE else ()
    wanted = [("const", schema["const"])] if "const" in schema else []
    wanted += [("enum", word) for word in schema.get("enum", ())]
    kind = _SAID["facts"].get(name) or (_SAID["types"][parameter.type] if parameter is not None else "")
    remedies = [never_is(kind, word) for _, word in wanted]
    if remedies and all(remedies):
        keyword, word = wanted[0]
        yield (*place, keyword), f"{name} is {kind}, and never {clipped(json.dumps(word), 60)}", remedies[0]
        return
    for keyword, word in wanted if choices else ():
        if word not in choices:
            yield (*place, keyword), f"{name} is never {str(word)!r}", did_you_mean_one_of(str(word), "values", choices)
    sensible = sensible_range(tuple(name.split(".")))
    least = (1024 if name.startswith("hardware.") else sensible.least) if sensible and sensible.unit == MIB else 0
    for keyword in ("minimum", "maximum"):
        if 0 < (bound := schema.get(keyword, 0)) < least:
            yield (*place, keyword), f"{name} is in MiB: this is {bound} MiB", f"write {bound * 1024:.0f} for {bound}G"
    for keyword, bound in schema.items() if kind else ():
        if _SAID["kinds"].get(keyword, kind) != kind or _demands_nothing(parameter, keyword, bound):
            what = f"{name} is {kind}, and {keyword} accepts every such value"
            yield (*place, keyword), what, f"write a keyword for {kind}, or `const`"


def _demands_nothing(parameter: Parameter | None, keyword: str, bound: object) -> bool:
    """Return whether a bound of numbers lies beyond all that make sense."""
    sensible = parameter.sensible if parameter is not None else None
    if sensible is None or not isinstance(bound, int | float):
        return False
    return bound > sensible.most if keyword == "maximum" else keyword == "minimum" and bound < min(sensible.least, 0)


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


_SHOW: Final = "`gpolicy show --format json` shows the values of each object as `effective`"
_WrittenAt = tuple[YamlDocument | None, Span]
"""Where a value is written, and its document if it is that of an object."""
Judged = tuple[HouseRule, dict[int, tuple[Declared, EffectiveObject]], Judgement | None]
"""A house rule, the objects that it looks at, by number, and what is found; None if no time was left for it."""


@error(HOUSE_CODE, when=When.WHOLE)
def house_rule(context: Context) -> Iterator[Hit]:
    for demand, looked_at, judgement in context.once(_judged_rules):
        info = replace(house_rule.info, name=demand.word, severity=demand.severity)
        if judgement is None:
            message = "the house rules of this policy take too long, or find too much"
            hint = "write plainer schemas, or let them look at fewer objects"
            yield Hit(_label(demand), ALIAS_BOMB.finding(message, demand.name.span, hint=hint))
            return
        found = [(breach, *looked_at[number]) for number, breach in judgement[1]]
        places = [_place(breach, declared, effective, context.policy) for breach, declared, effective in found]
        uses = Counter(span for _, span in places)
        for (breach, declared, effective), place in zip(found, places, strict=True):
            of_few = bool(demand.names or demand.tags) and uses[place[1]] == 1
            title = declared.title + (f" in group {effective.group}" if effective.group is not None else "")
            yield _broken(info, demand, breach, declared, title, place, of_few=of_few)


def _judged_rules(context: Context) -> list[Judged]:
    policy = context.policy
    first = {rule.word: rule for rule in reversed(policy.house_rules)}
    objects = effective_view(policy).objects if first and context.whole else ()
    # a node set is there once for each group of its nodes
    by_label = grouped((item.label, number) for number, item in enumerate(objects))
    looked_at: list[dict[int, tuple[Declared, EffectiveObject]]] = []
    for rule in policy.house_rules:
        named = subjects(rule, policy) if first[rule.word] is rule and not any(unknown_values(rule)) else ()
        looked_at.append({number: (one, objects[number]) for one in named for number in by_label.get(one.label, ())})
    questions = ((rule.schema, [*numbers]) for rule, numbers in zip(policy.house_rules, looked_at, strict=True))
    judgements = judge([item.effective for item in objects], questions)
    return [*zip_longest(policy.house_rules, looked_at, judgements)]


def _sound_rules(context: Context) -> list[HouseRule]:
    """Return the house rules whose schema has no mistake; of several with one name the first."""
    judged = context.once(_judged_rules)
    first = {rule.word: rule for rule, _, _ in reversed(judged)}
    return [rule for rule, _, found in judged if first[rule.word] is rule and not (found and found[0])]


def _broken(
    info: RuleInfo, rule: HouseRule, breach: Breach, declared: Declared, title: str, place: _WrittenAt, *, of_few: bool
) -> Hit:
    """Return what a rule finds: at the value, or where one that is only for some objects lacks a value of its own."""
    document, span = place
    related, missing = [Related(rule.name.span, "the rule is here")], ""
    message, reason = f"{title}: {rule.message}", _say_breach(breach)
    if document not in (declared.document, None) and of_few:
        related.append(Related(span, "the value comes from here"))
        span, reason = declared.span, f"{reason}; give {declared.title} a value of its own"
    elif document is not declared.document:
        related.append(Related(declared.span, f"{title} has this value"))
        missing = f"{rule.word} at {span}"  # one value of several objects
    elif breach.keyword == "required" and not breach.path:
        missing = f"{rule.word} without {', '.join(breach.argument)}"
    return Hit(declared.label, info.finding(message, span, hint=reason, related=tuple(related), missing=missing))


def _place(breach: Breach, declared: Declared, effective: EffectiveObject, policy: Policy) -> _WrittenAt:
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
            return (None, origin.span) if leaf is None else (leaf.document, leaf.at(*_place_written(leaf, rest)))
    return declared.document, declared.document.key_span((first,)) if first in ("tags", "nodes") else declared.span


def _place_written(leaf: Leaf, rest: list[str | int]) -> Pointer:
    """Return where a part of a value is written: the items of a set are sorted, and written in any order."""
    written: Any = leaf.document.value(leaf.pointer)
    if not rest or leaf.path == MINMAX or not isinstance(rest[0], int) or not isinstance(leaf.value, list):
        return tuple(rest)
    item = leaf.value[rest[0]]
    return (written.index(item),) if isinstance(written, list) and item in written else ()


def _say_breach(breach: Breach) -> str:
    name, argument, value = _named(breach.path), breach.argument, breach.value
    if breach.keyword in _SAID["measures"]:
        limit = "at most" if breach.keyword.startswith("max") else "at least"
        return f"{name} has {count(len(value), _SAID['measures'][breach.keyword])}, it must have {limit} {argument}"
    if breach.keyword in _SAID["bounds"]:
        text = "the text " if isinstance(argument, str) and not isinstance(value, str) else ""
        return f"{name} is {_shown(value)}, it must be {text}{_SAID['bounds'][breach.keyword]}{_shown(argument)}"
    if words := _SAID["lists"].get(breach.keyword):
        choices = argument if isinstance(argument, list) else [argument]
        return f"{name} is {_shown(value)}, it must be {words}{', '.join(map(_shown, choices[:20]))}"
    if breach.keyword == "required":
        names = ", ".join(argument)
        return f"{name} lacks {names}" if breach.path else f"the policy does not say {names}"
    shown = "" if isinstance(value, dict) else f"; it is {_shown(value)}"
    return f"{name} {_SAID['others'][breach.keyword]}{shown}"


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


@error("GP951")
def rule_schema(context: Context) -> Iterator[Hit]:
    for house_rule, _, judgement in context.once(_judged_rules):
        for pointer, what, hint in judgement[0] if judgement is not None else ():
            yield _hit(house_rule, what, house_rule.document.value_span((SCHEMA, *pointer)), hint)


def _hit(house_rule: HouseRule, what: str, span: Span, hint: str, related: tuple[Related, ...] = ()) -> Hit:
    return hit(_label(house_rule), f"house rule {house_rule.name.value}: {what}", span, hint, related)


@error("GP952")
def rule_unknown_value(context: Context) -> Iterator[Hit]:
    for house_rule in _sound_rules(context):
        known, kind = known_values(house_rule.kind.value), house_rule.kind.value
        unknown = grouped((name, _at(house_rule, pointer)) for name, pointer in unknown_values(house_rule))
        others = LEVELS if len(unknown) > 1 else ()
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


@warning("GP955")
def rule_keyword_idle(context: Context) -> Iterator[Hit]:
    for house_rule in _sound_rules(context):
        if not house_rule.schema.keys() - {"description", "title", "definitions"}:
            hint = "write `required` or `properties`"
            yield _hit(house_rule, "its schema demands nothing", _at(house_rule, ()), hint)
        for pointer, what, hint in idle_parts(house_rule):
            named = what.partition(" ")[0] + " "
            same = (item.finding for item in context.found_by(HOUSE_CODE) if pointer[-1] in ("const", "enum"))
            broken = tuple(item for item in same if item.key == house_rule.word and item.hint.startswith(named))
            found = _hit(house_rule, what, _at(house_rule, pointer), hint)
            yield replace(found, finding=replace(found.finding, consequences=broken))


@warning("GP953", when=When.WHOLE, role=Role.USES)
def rule_matches_nothing(context: Context) -> Iterator[Hit]:
    policy = context.policy
    for house_rule in policy.house_rules if not policy.is_part else ():
        kind, names = house_rule.kind, [item.name for item in objects_of(policy, house_rule.kind.value)]
        almost = [*_almost_tagged(context, house_rule)]
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
        removed = (group.name for group in policy.groups.values() if group.removed)
        gone = [name for name in removed if fits_any(name, house_rule.names)]
        if names and not any(fits_any(name, house_rule.names) for name in names) and house_rule.names:
            first = house_rule.names[0]
            why, span = f"no {kind.value} is called {first.value!r}", first.span
            cure = did_you_mean_one_of(first.value.strip("*"), "names", names)
        elif names:
            why, span = f"no {kind.value} with such a name has such a tag", house_rule.tags[0].span
            cure = "correct the tags, or remove the rule"
        else:
            why, span, cure = f"the policy has no {kind.value}", kind.span, "remove the rule, or correct its kind"
        asked = [*gone, *(glob.value for glob in house_rule.names if not is_glob(glob.value))]
        missing = f"group {asked[0]}" if asked and kind.value == "NodeGroup" else ""
        hint = f"group {gone[0]} is to be removed: remove the rule, too" if gone else cure
        message = f"house rule {house_rule.name.value} looks at nothing: {why}"
        yield hit(_label(house_rule), message, span, hint, missing=missing)


def _almost_tagged(context: Context, house_rule: HouseRule) -> Iterator[Hit]:
    """Yield the tags of objects that a rule leaves out, but which are almost a tag that it looks for."""
    policy = context.policy
    wanted = [glob.value for glob in house_rule.tags if not is_glob(glob.value)]
    if not wanted:
        return
    looked_at = {item.label for item in subjects(house_rule, policy)}
    left_out = (item for item in objects_of(policy, house_rule.kind.value) if item.label not in looked_at)
    tagged = [(item, tag) for item in left_out for tag in tags_of(item, policy)]
    words = dict.fromkeys(tag.value for _, tag in tagged)
    meant = {word: name_meant(word, wanted) for word in islice(words, MOST_GUESSES)}
    texts = [file.text for file in policy.files.values()]
    likely = {near for near in meant.values() if near is not None}
    # a word that stands twice is right
    again = {near for near in likely if sum(text.count(near) for text in texts) > 1}
    broken = grouped((other.label, other.finding) for other in (context.found_by(HOUSE_CODE) if likely else ()))
    for item, tag in tagged:
        near = meant.get(tag.value)
        if near and not looked_at and near not in again:
            place = next(glob.span for glob in house_rule.tags if glob.value == near)
            related = see(tag.span, f"the tag of {item.title}")
            what = f"no {house_rule.kind.value} has the tag {near}"
            yield _hit(house_rule, what, place, f"is {tag.value} meant?", related)
            return  # a rule that looks at nothing is more likely wrong itself
        if near:
            message = f"house rule {house_rule.name.value} looks at {near}, and not at {tag.value}"
            found = hit(item, message, tag.span, f"Did you mean `{near}`?")
            span = item.document.key_span(("tags",))
            same = tuple(finding for finding in broken.get(item.label, ()) if finding.span == span)
            yield replace(found, finding=replace(found.finding, consequences=same))


@error("GP954", stays=AMBIGUOUS)
def rule_named_twice(context: Context) -> Iterator[Hit]:
    for house_rule, earlier in repeated(context.policy.house_rules, lambda rule: rule.word):
        related = see(earlier.name.span, "the first is here")
        message = f"a second house rule {house_rule.name.value!r}"
        yield hit(_label(house_rule), message, house_rule.name.span, "give it another name", related)
