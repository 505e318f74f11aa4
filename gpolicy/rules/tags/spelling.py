"""GP522 to GP524, GP529, GP531 and GP533: tags and prefixes that are almost others of the policy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS
from gpolicy.findings import RuleParameter, info_rule, warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.misspelt import name_meant, rarer_slips
from gpolicy.policy.scenario import Scenario
from gpolicy.rules.examples import GROUP
from gpolicy.rules.shapes import MoreWithState, WholePolicyRule
from gpolicy.rules.tags.domains import (
    LOCATION,
    Names,
    begins_of,
    domains,
    misspelt_domains,
    observed,
    suffixes,
    why_almost,
)

_RULES: Final = 'gpolicy: v1\nkind: TagRules\nowns: [{prefix: "rack:", "on": [node]}]\nfailure_domains: [rack]\n---\n'
_SET: Final = "gpolicy: v1\nkind: NodeSet\nname: left\nnodes: [n1]\ntags: "
_TAGGED: Final = (
    "gpolicy: v1\nkind: TagRules\nexclusion: [service]\n---\ngpolicy: v1\nkind: NodeGroup\nname: gold\n---\n"
    "gpolicy: v1\nkind: Test\ntests:\n"
    '  - {name: a test, "on": {simulate: {memory: 64G, cpus: 8, disk: 1T, nodes: [{name: n1}, {name: n2}], instances:'
    " [{name: a, nodes: [n1], memory-size: 1G, cpu-count: 1, disks: [1G], disk-template: plain,"
    ' tags: ["service:x"]}]}},'
    " redundancy: {}, expect: {survives: true}}\n"
)
_OTHERS: Final = "".join(f"---\ngpolicy: v1\nkind: NodeGroup\nname: {name}\ntags: [tier:web]\n" for name in ("a", "b"))


def _is_mistyped(tag: str, other: str) -> bool:
    """Return whether the place of a tag is another one of its domain with a letter too few, too many or exchanged.

    Another letter in place of one makes other names: hall and hull.
    """
    (domain, _, place), (same, _, known) = tag.rpartition(":"), other.rpartition(":")
    is_other = domain != same or (len(place) == len(known) and sorted(place) != sorted(known))
    return not is_other and name_meant(place, [known]) is not None


class TagAlmostInDomain(MoreWithState):
    info = warning_rule("GP522", "tag-almost-in-domain")(
        summary="A node's tag looks like one of a failure or migration domain, but is not; or like another tag of it.",
        rationale="htools takes the tags that start with the exact name of the domain and a colon, and compares them"
        " letter by letter. With another spelling the node is in no domain, or in one of its own (rack:A is not rack:a,"
        " and rack:01 not rack:1), and no tool reports it.",
        source=f"{LOCATION}, Failure tags and Migration tags",
        bad=f'{_RULES}{_SET}["rack:a", "rack-b"]\n',
        good=f'{_RULES}{_SET}["rack:a", "reck-b:c"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        misspelt = misspelt_domains(context)
        names = Names({*domains(context, "nlocation"), *domains(context, "migration")} - misspelt)
        for tag in context.tags:
            if tag.level is Level.NODE and not tag.family:
                reason = why_almost(tag.text, names)
                if reason:
                    hint = "correct the tag, or the domain"
                    yield self.hit(tag.label, f"`{tag.text}`: {reason}", tag.span, hint=hint)
        for scenario in context.policy.scenarios:
            for node in (node for part in scenario.stage.simulated for node in part.nodes):
                if reason := next((found for tag in node.tags if (found := why_almost(tag, names))), ""):
                    message = f"a tag of {node.name}: {reason}"
                    hint = "correct the tag, or the domain"
                    yield self.hit(f"test/{scenario.name.value}", message, node.span, hint=hint)
        first: dict[str, str] = {}
        of_nodes = (tag for tag in context.tags if tag.level is Level.NODE and not tag.family)
        for tag in of_nodes:
            if names.known.isdisjoint(begins_of(tag.text)):
                continue
            plain = re.sub(r"(?<![0-9])0+(?=[0-9])", "", tag.text.lower().replace("_", "-"))
            known = () if plain in first or len(first) > 200 else first  # enough to compare
            other = first.setdefault(
                plain, next((first[item] for item in known if _is_mistyped(plain, item)), tag.text)
            )
            if other != tag.text:
                message = f"{tag.text} and {other} are two tags for htools"
                yield self.hit(tag.label, message, tag.span, hint="write the tag in one way")


class TagRuleAlmostInUse(MoreWithState, WholePolicyRule):
    info = warning_rule("GP529", "tag-rule-almost-in-use")(
        summary="An exclusion or a desired location is about no tag of an instance, but almost about one in use, or"
        " replaces one in use.",
        rationale="htools compares letter by letter. With a misspelt word nothing is kept apart, and no tool reports"
        " it. gpolicy looks at the tags of the cluster's instances, and of those that tests simulate.",
        source=f"{LOCATION}; Ganeti 3.0, htools:iextags",
        bad=_TAGGED.replace("[service]", "[sevrice]"),
        good=_TAGGED,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        there = context.state.instances.values() if context.state else ()
        used = {tag for instance in there for tag in instance.tags}
        for scenario in context.policy.scenarios:
            used |= {tag for part in scenario.stage.simulated for item in part.instances for tag in item.sizes.tags}
        names = Names({tag.partition(":")[0] for tag in used if ":" in tag})
        for scenario, written, near in _almost_kept_apart(context):
            message = f"the tag {written} keeps nothing apart, but {near}:… does, which others of the test have"
            yield self.hit(f"test/{scenario.name.value}", message, scenario.name.span, hint=f"Did you mean `{near}`?")
        rules = (tag for tag in context.tags if tag.typed and tag.family in ("iextags", "desiredlocation"))
        dropped = {family: _dropped(context, family, used) for family in ("iextags", "desiredlocation")}
        for rule in rules if names.known else ():
            word = rule.suffix.rstrip(":")
            if any(tag.startswith(rule.suffix) for tag in used):
                continue
            near = names.meant(word) if ":" not in word else ""
            if not near and (gone := dropped[rule.family]):
                message = f"no instance has a tag {rule.suffix}…, but some have {gone}…, which the cluster has now"
                hint = f"keep {gone.rstrip(':')}, or tag the instances first"
                yield self.hit(rule.label, message, rule.span, hint=hint)
            if near:
                message = f"no instance has a tag {rule.suffix}…, but some have {near}:…"
                yield self.hit(rule.label, message, rule.span, hint=f"Did you mean `{near}`?")


def _almost_kept_apart(context: Context) -> Iterator[tuple[Scenario, str, str]]:
    """Yield tests with a tag that is almost one of an exclusion, beside others that are one: the tag, and the word."""
    words = {tag.suffix.rstrip(":") for tag in context.tags if tag.typed and tag.family == "iextags"}
    names = Names({word for word in words if word and ":" not in word})
    for scenario in context.policy.scenarios if names.known else ():
        sizes = [part.sizes for simulated in scenario.stage.simulated for part in simulated.instances]
        tags = {tag for size in (*sizes, scenario.sizes) if size is not None for tag in size.tags}
        kept = {tag.partition(":")[0] for tag in tags} & names.known
        for tag in sorted(tags):
            word = tag.partition(":")[0]
            near = names.meant(word) if ":" in tag and word not in names.known else ""
            if near in kept:
                yield scenario, tag, near


def _dropped(context: Context, family: str, used: set[str]) -> str:
    """Return a suffix of a family that the cluster has and the policy leaves out, though tags of instances match it."""
    declared = suffixes(context.tags, family)
    kept = {name.rstrip(":") for name in declared}  # with a closing colon or without one
    gone = sorted(name for name in observed(context, family) if name.rstrip(":") not in kept)
    return next((name for name in gone if any(tag.startswith(name) for tag in used)), "")


class OwnedPrefixIdle(MoreWithState, WholePolicyRule):
    info = warning_rule("GP523", "owned-prefix-idle")(
        summary="An owned prefix differs slightly from tags in use, or is owned on other objects than have them, or no"
        " tag has the prefix while nobody owns those of a domain.",
        rationale="gpolicy removes tags only under owned prefixes, on the objects that the entry names. If the entry"
        " is misspelt, tags that you remove from the policy stay on the cluster.",
        bad=f'{_RULES.replace("rack:", "rakc:")}{_SET}["rack:a"]\n',
        good=f'{_RULES}{_SET}["rack:a"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        prefixes = Names(tag.text.partition(":")[0] for tag in context.tags if ":" in tag.text)
        used, left = context.once(_ownership)
        for rules in context.policy.tag_rules:
            for owned in rules.owns:
                prefix, levels = owned.value.prefix, owned.value.levels
                having = used[prefix]
                if having and not having & levels:
                    where = "s and ".join(sorted(str(level.value) for level in having))
                    message = f"{prefix} is owned on objects without such tags: they are on {where}s"
                    yield self.hit("cluster", message, owned.span, hint="correct `on`")
                elif not having and prefix.endswith(":"):
                    meant = prefixes.meant(prefix.rstrip(":"))
                    if meant:
                        message = f"no tag starts with `{prefix}`; did you mean `{meant}:`?"
                        yield self.hit("cluster", message, owned.span, hint=f"write {meant}:")
                    elif left and Level.NODE in levels:
                        message = f"no tag starts with `{prefix}`, and the tags {left}:… of a domain are not owned"
                        yield self.hit("cluster", message, owned.span, hint=f"did you mean {left}:? Or own both")


class DomainNotOwned(MoreWithState, WholePolicyRule):
    info = info_rule("GP531", "domain-not-owned")(
        summary="Tags of one domain of nodes are owned, those of another are not.",
        rationale="Tags that you remove from the policy stay on the cluster if nobody owns them. That is right where"
        " something else sets them as well, such as an upgrade.",
        bad=_RULES.replace("[rack]", "[rack, room]") + f'{_SET}["rack:a", "room:1"]\n',
        good=f'{_RULES}{_SET}["rack:a"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        used, left = context.once(_ownership)
        names = _domains_of_nodes(context)
        owned = (owned for rules in context.policy.tag_rules for owned in rules.owns)
        for entry in owned if left else ():
            prefix, levels = entry.value.prefix, entry.value.levels
            if prefix.rstrip(":") in names and Level.NODE in used[prefix] & levels:
                message = f"tags {prefix}… of nodes are owned, and those of the domain {left} are not"
                yield self.hit("cluster", message, entry.span, hint=f"own {left}: on node as well")
                return  # one is enough


def _domains_of_nodes(context: Context) -> set[str]:
    return {*domains(context, "nlocation"), *domains(context, "migration")}


def _ownership(context: Context) -> tuple[dict[str, set[Level]], str]:
    """Return on which levels each owned prefix has tags, and a domain whose tags on nodes nobody owns (or nothing)."""
    used: dict[str, set[Level]] = {owned.prefix: set() for owned in context.policy.owned}
    loose = set[str]()
    for tag in context.tags:
        having_it = [begin for begin in (tag.text[:end] for end in range(len(tag.text) + 1)) if begin in used]
        for begin in having_it:
            used[begin].add(tag.level)
        if tag.level is Level.NODE and not having_it:
            loose.add(tag.text.partition(":")[0])
    return used, min(loose & _domains_of_nodes(context), default="")


class RawPrefixShort(Rule):
    info = warning_rule("GP524", "raw-prefix-short")(
        summary="A raw prefix of an exclusion or a desired location is so short that unrelated tags start with it.",
        rationale="htools compares the first characters only: `raw: s` matches service:dns, but also ssd or staging,"
        " and separates instances that have nothing in common.",
        source="Ganeti 3.0, htools:iextags and htools:desiredlocation, run",
        bad="gpolicy: v1\nkind: TagRules\nexclusion: [{raw: s}]\n",
        good='gpolicy: v1\nkind: TagRules\nexclusion: [{raw: "s:"}]\n',
        parameters=(
            RuleParameter(
                name="letters",
                default=3,
                summary="Report a raw prefix without a colon that is shorter than this.",
                least=1,
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        least = context.settings.parameter(self.info, "letters")
        for tag in context.tags:
            short = 0 < len(tag.suffix) < least and not tag.suffix.endswith(":")
            if tag.typed and tag.family in ("iextags", "desiredlocation") and short:
                hint = f"write {tag.suffix} without raw to mean {tag.suffix}:…, or a longer prefix"
                yield self.hit(tag.label, f"many tags start with {tag.suffix}", tag.span, hint=hint)


class TagAlmostAnother(MoreWithState, WholePolicyRule):
    info = warning_rule("GP533", "tag-almost-another")(
        summary="A tag, or the word before its colon, is almost one that others of the policy have.",
        rationale="What reads tags compares them letter by letter: a house rule, a script or a search for `tier:web`"
        " leaves out `teir:web`. (GP522 is about the domains of nodes.)",
        source="gpolicy",
        bad=f"{GROUP}tags: [teir:web]\n{_OTHERS}",
        good=f"{GROUP}tags: [tier:web]\n{_OTHERS}",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        domain_names = {*domains(context, "nlocation"), *domains(context, "migration")}
        tags = [tag for tag in context.tags if ":" in tag.text and not tag.text.startswith((HTOOLS, "ganeti:"))]
        prefixes = Counter(_prefix(tag.text) for tag in tags)
        prefixes.update(owned.prefix.rstrip(":") for owned in context.policy.owned if owned.prefix.endswith(":"))
        meant = {f"{word}:": f"{near}:" for word, near in rarer_slips(prefixes).items()}
        texts: dict[str, Counter[str]] = {}
        for tag in tags:
            texts.setdefault(_prefix(tag.text), Counter())[tag.text] += 1
        for uses in islice(texts.values(), 20):
            meant |= rarer_slips(uses)
        for tag in tags if meant else ():
            prefix = _prefix(tag.text)
            near = meant.get(f"{prefix}:") or meant.get(tag.text)
            if near is None:
                continue
            of_domain = prefix in domain_names or name_meant(prefix, domain_names)
            if tag.level is not Level.NODE or not of_domain:  # else GP522
                shown = f"{near}…" if near.endswith(":") else near
                message = f"the tag {tag.text} is almost {shown}, which others of the policy have"
                yield self.hit(tag.label, message, tag.span, hint=f"Did you mean `{near}`?")


def _prefix(text: str) -> str:
    return text.partition(":")[0]
