"""GP533: tags that are almost others of the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS, Tag
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.misspelt import name_meant
from gpolicy.rules.examples import GROUP
from gpolicy.rules.tags.domains import domains

_OF_TOOLS: Final = (HTOOLS, "ganeti:")
_MOST_WORDS: Final = 200
"""Prefixes, or tags of one prefix, that are compared with one another."""
_OTHERS: Final = "".join(f"---\ngpolicy: v1\nkind: NodeGroup\nname: {name}\ntags: [tier:web]\n" for name in ("a", "b"))


class TagAlmostAnother(Rule):
    info = warning_rule("GP533", "tag-almost-another")(
        summary="A tag, or the word before its colon, is almost one that others of the policy have.",
        rationale="What reads tags compares them letter by letter: a house rule, a script or a search for `tier:web`"
        " leaves out `teir:web`. (GP522 is about the domains of nodes.)",
        source="gpolicy",
        bad=f"{GROUP}tags: [teir:web]\n{_OTHERS}",
        good=f"{GROUP}tags: [tier:web]\n{_OTHERS}",
    )
    needs_whole_policy = True
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        domain_names = {*domains(context, "nlocation"), *domains(context, "migration")}
        tags = [tag for tag in context.tags if ":" in tag.text and not tag.text.startswith(_OF_TOOLS)]
        prefixes = Counter(_prefix(tag) for tag in tags)
        prefixes.update(owned.prefix.rstrip(":") for owned in context.policy.owned if owned.prefix.endswith(":"))
        by_prefix: dict[str, Counter[str]] = {}
        for tag in tags:
            by_prefix.setdefault(_prefix(tag), Counter())[tag.text] += 1
        for tag in tags:
            if tag.level is Level.NODE and (_prefix(tag) in domain_names or name_meant(_prefix(tag), domain_names)):
                continue  # GP522
            near, hint = _meant(_prefix(tag), prefixes), ":"
            if near is None:
                near, hint = _meant(tag.text, by_prefix[_prefix(tag)]), ""
            if near is not None:
                message = f"the tag {tag.text} is almost {near}{hint and ':…'}, which others of the policy have"
                yield self.hit(tag.label, message, tag.span, hint=f"Did you mean `{near}{hint}`?")


def _prefix(tag: Tag) -> str:
    return tag.text.partition(":")[0]


def _meant(word: str, uses: Counter[str]) -> str | None:
    """Return the word that is used more often and one slip away; None if there is none."""
    if len(uses) > _MOST_WORDS:
        return None
    return name_meant(word, [other for other, count in uses.items() if count > uses[word]])
