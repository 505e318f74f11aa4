"""GP533: tags that are almost others of the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.misspelt import name_meant, rarer_slips
from gpolicy.rules.examples import GROUP
from gpolicy.rules.tags.domains import domains

_OF_TOOLS: Final = (HTOOLS, "ganeti:")
_MOST_PREFIXES: Final = 20
"""Prefixes whose tags are compared."""
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
        prefixes = Counter(_prefix(tag.text) for tag in tags)
        prefixes.update(owned.prefix.rstrip(":") for owned in context.policy.owned if owned.prefix.endswith(":"))
        meant = {f"{word}:": f"{near}:" for word, near in rarer_slips(prefixes).items()}
        texts: dict[str, Counter[str]] = {}
        for tag in tags:
            texts.setdefault(_prefix(tag.text), Counter())[tag.text] += 1
        for uses in islice(texts.values(), _MOST_PREFIXES):
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
