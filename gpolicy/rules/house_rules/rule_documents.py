"""GP951 to GP955: mistakes in house rules themselves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.value_schema import SchemaReader
from gpolicy.findings import AMBIGUOUS, Related, Span, error_rule, warning_rule
from gpolicy.fit.desired import is_glob
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.policy.house_rule import SCHEMA, HouseRule
from gpolicy.policy.misspelt import MOST_GUESSES, name_meant
from gpolicy.policy.model import Policy
from gpolicy.policy.source_file import Pointer
from gpolicy.rules.house_rules.examples import GOLD, GOOD, RATIO, rule
from gpolicy.rules.house_rules.named_values import KINDS, idle_keywords, impossible_words, known_values, unknown_values
from gpolicy.rules.house_rules.subjects import fits_any, objects_of, sound_rules, subjects, tags_of


def _label(house_rule: HouseRule) -> str:
    return f"rule/{house_rule.name.value}"


class RuleSchema(Rule):
    info = error_rule("GP951", "rule-schema")(
        summary="The schema of a house rule cannot be used.",
        rationale="It refers to a definition that is missing or refers to itself, is nested too deep, or has a pattern"
        " that cannot be matched in one pass of a text: a pattern with back references or look-around may take years."
        " Nothing is checked by this rule.",
        source="JSON Schema draft 7; gpolicy",
        bad=GOLD + rule('properties: {name: {pattern: "(?=g)old"}}'),
        good=GOLD + rule('properties: {name: {pattern: "^gold(-[0-9]+)?$"}}'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for house_rule in context.policy.house_rules:
            for mistake in SchemaReader(house_rule.schema).mistakes:
                message = f"house rule {house_rule.name.value}: {mistake.message}"
                span = house_rule.document.value_span((SCHEMA, *mistake.pointer))
                yield self.hit(_label(house_rule), message, span, hint=mistake.hint)


class RuleUnknownValue(Rule):
    info = error_rule("GP952", "rule-unknown-value")(
        summary="The schema of a house rule names a value that no object of its kind has.",
        rationale="What stands below `properties` for it never applies, and what is `required` is always missing. Most"
        " likely the path is misspelt. Values have dotted paths in Ganeti's names, as `gpolicy show` has them.",
        bad=GOLD + rule("properties: {vcpu-ratio: {maximum: 1}}"),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for house_rule in sound_rules(context.policy):
            known, kind = known_values(house_rule.kind.value), house_rule.kind.value
            unknown: dict[str, Pointer] = {}  # each with the first of its places
            for name, pointer in unknown_values(house_rule):
                unknown.setdefault(name, pointer)
            others = KINDS if len(unknown) > 1 else ()
            other = next((word for word in others if unknown.keys() <= known_values(word).keys()), None)
            if other is not None:
                message = f"house rule {house_rule.name.value}: no {kind} has values {', '.join(sorted(unknown))}"
                yield self.hit(_label(house_rule), message, house_rule.kind.span, hint=f"Did you mean `{other}`?")
                continue
            for name, pointer in unknown.items():
                message = f"house rule {house_rule.name.value}: no {kind} has a value {name!r}"
                ends = [path for path in known if path.endswith(f".{name}")]
                guess = f"Did you mean `{ends[0]}`?" if ends else did_you_mean(name, known, _SHOW)
                yield self.hit(_label(house_rule), message, _at(house_rule, pointer), hint=guess)


_SHOW: Final = "`gpolicy show --format json` shows the values of each object as `effective`"


def _at(house_rule: HouseRule, pointer: Pointer) -> Span:
    return house_rule.document.key_span((SCHEMA, *pointer))


class RuleKeywordIdle(Rule):
    info = warning_rule("GP955", "rule-keyword-idle")(
        summary="The schema of a house rule demands nothing, has a keyword that accepts each such value, or names a"
        " word that the value never is.",
        rationale="`pattern` looks at texts only, `minimum` at numbers, `contains` at lists: a keyword accepts every"
        " value of another kind, so it demands nothing. Neither does a bound beyond all numbers that make sense.",
        source="JSON Schema draft 7",
        bad=GOLD + rule('properties: {ipolicy.vcpu-ratio: {pattern: "^1$"}}'),
        good=GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for house_rule in sound_rules(context.policy):
            if not house_rule.schema.keys() - {"description", "title", "definitions"}:
                message = f"house rule {house_rule.name.value}: its schema demands nothing"
                yield self.hit(
                    _label(house_rule), message, _at(house_rule, ()), hint="write `required` or `properties`"
                )
            for name, word, choices, pointer in impossible_words(house_rule):
                message = f"house rule {house_rule.name.value}: {name} is never {word!r}"
                hint = did_you_mean_one_of(word, "values", choices)
                yield self.hit(_label(house_rule), message, _at(house_rule, pointer), hint=hint)
            for name, kind, keyword, pointer in idle_keywords(house_rule):
                message = (
                    f"house rule {house_rule.name.value}: {name} is {kind}, and {keyword} accepts every such value"
                )
                hint = f"write a keyword for {kind}, or `const`"
                yield self.hit(_label(house_rule), message, _at(house_rule, pointer), hint=hint)


class RuleMatchesNothing(Rule):
    info = warning_rule("GP953", "rule-matches-nothing")(
        summary="A house rule looks at no object of its policy, or one almost has the name or the tag that it names.",
        rationale="Most likely a name or a tag is misspelt. A rule of a shared file may look at objects of other"
        " policies, so it is not reported.",
        bad=GOLD + rule(RATIO, about="kind: NodeGroup, names: [glod]"),
        good=GOOD,
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        policy = context.policy
        for house_rule in policy.house_rules:
            if policy.is_part:
                continue
            kind, names = house_rule.kind, [item.name for item in objects_of(policy, house_rule.kind.value)]
            almost = [*self._almost_tagged(policy, house_rule)]
            yield from almost
            if almost or house_rule.document.file not in policy.paths:
                continue
            if any(subjects(house_rule, policy)):
                for glob in house_rule.names:  # another policy may have a name that is like none here
                    near = None if is_glob(glob.value) or glob.value in names else name_meant(glob.value, names)
                    if near is not None:
                        message = f"house rule {house_rule.name.value}: no {kind.value} is called {glob.value!r}"
                        yield self.hit(_label(house_rule), message, glob.span, hint=f"Did you mean `{near}`?")
                continue
            message, span, hint = f"the policy has no {kind.value}", kind.span, "remove the rule, or correct its kind"
            if names and not any(fits_any(name, house_rule.names) for name in names) and house_rule.names:
                glob = house_rule.names[0]
                message, span = f"no {kind.value} is called {glob.value!r}", glob.span
                hint = did_you_mean_one_of(glob.value, "names", names)
            elif names:
                message = f"no {kind.value} with such a name has such a tag"
                span, hint = house_rule.tags[0].span, "correct the tags, or remove the rule"
            message = f"house rule {house_rule.name.value} looks at nothing: {message}"
            yield self.hit(_label(house_rule), message, span, hint=hint)

    def _almost_tagged(self, policy: Policy, house_rule: HouseRule) -> Iterator[Hit]:
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
            if near := meant.get(tag.value):
                message = f"house rule {house_rule.name.value} looks at {near}, and not at {tag.value}"
                yield self.hit(item, message, tag.span, hint=f"Did you mean `{near}`?")


class RuleNamedTwice(Rule):
    info = error_rule("GP954", "rule-named-twice", AMBIGUOUS)(
        summary="Two house rules have the same name.",
        rationale="Waivers and settings accept a rule by its name: one name would accept both. Only the first is"
        " checked.",
        bad=GOOD + rule(RATIO),
        good=GOOD + rule(RATIO, name="no-shared-cpus"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        first: dict[str, HouseRule] = {}
        for house_rule in context.policy.house_rules:
            earlier = first.setdefault(house_rule.word, house_rule)
            if earlier is not house_rule:
                related = (Related(earlier.name.span, "the first is here"),)
                message = f"a second house rule {house_rule.name.value!r}"
                span = house_rule.name.span
                yield self.hit(_label(house_rule), message, span, hint="give it another name", related=related)
