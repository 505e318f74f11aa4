"""GP5xx: tags that are prefixes: what each means more, or less, than it seems to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS
from gpolicy.findings import Related, Span, copied, error_rule, warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.policy import edits
from gpolicy.rules.tags.domains import LOCATION, cluster_tags, sides, without_prefix
from gpolicy.rules.tags.htools import is_of_tool

_RAW: Final = ("iextags", "desiredlocation")
"""Families that are compared with the beginning of instance tags as they are."""


class RawPrefix(Rule):
    info = warning_rule("GP506", "tag-raw-prefix")(
        summary="An iextags or desiredlocation tag has no closing colon.",
        rationale="htools compares these two families with the start of instance tags: `service` also matches the tags"
        " services and service-level:x. With a closing colon it matches service:… only. (nlocation and migration need"
        " no colon.)",
        source="htools of Ganeti 2.15 to 3.1; Improving location awareness of Ganeti",
        bad=cluster_tags('"htools:iextags:service"'),
        good=cluster_tags('"htools:iextags:service:"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for tag in context.tags:
            if tag.level is not Level.CLUSTER:
                continue  # no tool reads it there: GP509
            if tag.family in _RAW and not tag.typed and tag.suffix[-1:] not in ("", ":"):
                message = f"{tag.text} matches every instance tag that starts with {tag.suffix!r}"
                hint = f"write {tag.text}: for tags {tag.suffix}:…, or use `raw` in TagRules for the bare prefix"
                yield self.hit(tag.label, message, tag.span, hint=hint)


class RuleWithPrefix(Rule):
    info = error_rule("GP512", "tag-rule-with-prefix")(
        summary="An entry of a TagRules document starts with htools:.",
        rationale="gpolicy puts the prefix before each entry: the tag would be htools:iextags:htools:iextags:x:, which"
        " matches nothing.",
        bad='gpolicy: v1\nkind: TagRules\nexclusion: ["htools:iextags:service"]\n',
        good="gpolicy: v1\nkind: TagRules\nexclusion: [service]\n",
        fix="Removes the prefix, if the entry is a plain word.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for tag in context.tags:
            for written in sides(tag) if tag.family == "allowmigration" else (tag.suffix,):
                if tag.typed and written.startswith(HTOOLS):
                    meant = without_prefix(written)
                    message = f"{written.rstrip(':')} would become the tag {tag.text}"
                    hint = f"write {meant}" if meant else "write only what the rule is about"
                    fix = edits.replace_word(context.policy, tag.span, written.rstrip(":"), meant) if meant else None
                    yield self.hit(tag.label, message, tag.span, hint=hint, fix=fix)


class SuffixColon(Rule):
    info = warning_rule("GP513", "tag-suffix-colon")(
        summary="An nlocation or migration tag has a closing colon, or another rule has two.",
        rationale="htools adds the colon itself: htools:nlocation:rack: matches node tags rack::…, which hardly any"
        " node has. (iextags and desiredlocation need one closing colon, which gpolicy adds to the"
        " entries of a TagRules document.)",
        source=f"{LOCATION}; htools of Ganeti 2.15 to 3.1",
        bad=cluster_tags('"htools:nlocation:rack:"'),
        good=cluster_tags('"htools:nlocation:rack"'),
        fix="Removes the colon.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        there = {(tag.label, tag.text) for tag in context.tags}
        for tag in context.tags:
            if tag.family in ("nlocation", "migration") and tag.suffix.strip(":") and tag.suffix.endswith(":"):
                meant = tag.text.rstrip(":")
                message = f"{tag.text} matches node tags {tag.suffix}:…, with two colons"
                is_new = (tag.label, meant) not in there
                fix = (
                    edits.replace_word(context.policy, tag.span, tag.text, meant) if is_new else None
                )  # a list may not name it twice
                yield self.hit(tag.label, message, tag.span, hint=f"write {meant}", fix=fix)
            elif tag.family in _RAW and tag.suffix.endswith("::"):
                message = f"{tag.text} matches tags {tag.suffix}…, with two colons"
                yield self.hit(tag.label, message, tag.span, hint=f"write one colon less: {tag.suffix[:-1]}…")


class PrefixCovered(Rule):
    info = warning_rule("GP514", "tag-prefix-covered")(
        summary="An exclusion or desired-location prefix is covered by another one.",
        rationale="Every tag that starts with the longer prefix starts with the shorter one. The longer one has no"
        " effect, and most likely the shorter one matches more than was meant.",
        source=f"htools of Ganeti 2.15 to 3.1; {LOCATION}",
        bad="gpolicy: v1\nkind: TagRules\nexclusion: [{raw: service}, service-level]\n",
        good="gpolicy: v1\nkind: TagRules\nexclusion: [service, service-level]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        tags = [tag for tag in context.tags if tag.family in _RAW and tag.suffix and tag.level is Level.CLUSTER]
        first = {(tag.family, tag.suffix): tag for tag in reversed(tags)}
        for tag in tags:
            shorter = (tag.suffix[:length] for length in range(1, len(tag.suffix)))
            wider = next((first[tag.family, begin] for begin in shorter if (tag.family, begin) in first), None)
            if wider is not None:
                message = f"all tags {tag.suffix}… are covered by {wider.suffix}… already"
                related = (Related(wider.span, "the wider one"),)
                hint = "remove this one, or narrow the wider one with a closing colon"
                yield self.hit(tag.label, message, tag.span, hint=hint, related=related)


class OwnedPrefixReach(Rule):
    info = warning_rule("GP515", "owned-prefix-reach")(
        summary="An owned prefix has no closing colon, covers all rules of htools, or is owned twice.",
        rationale="gpolicy removes every undeclared tag that starts with the prefix: `rack` also owns the tags"
        " rackspace and rack-unit:7 of somebody else, and `htools:` the rules that nobody here declares.",
        bad='gpolicy: v1\nkind: TagRules\nowns:\n  - {prefix: rack, "on": [node]}\n',
        good='gpolicy: v1\nkind: TagRules\nowns:\n  - {prefix: "rack:", "on": [node]}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        seen: dict[str, set[Level]] = {}
        first: dict[str, Span] = {}
        for rules in context.policy.tag_rules:
            for owned in rules.owns:
                prefix, levels = owned.value.prefix, owned.value.levels
                before = first.setdefault(prefix, owned.span)
                if levels & seen.setdefault(prefix, set()):
                    message, hint = f"{prefix} is owned twice", "remove one of the two"
                    yield self.hit("cluster", message, owned.span, hint=hint, missing=copied(owned.span, before))
                seen[prefix] |= levels
                if HTOOLS.startswith(prefix) and Level.CLUSTER in levels and not is_of_tool(owned.value):
                    message = f"owning {prefix} removes every rule of htools that the policy does not declare"
                    yield self.hit("cluster", message, owned.span, hint="own families: iextags, nlocation, …")
                elif not prefix.endswith(":") and not is_of_tool(owned.value):
                    message = f"owning {prefix} removes every tag that starts with it, such as {prefix}x:…"
                    yield self.hit("cluster", message, owned.span, hint=f"write {prefix}: with a colon")
