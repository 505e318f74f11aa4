"""Turn cluster tags that htools reads into tag rules.

This is done only where the meaning is exact: `htools:iextags:service:` is `service`, but `htools:iextags:service` also
matches services:…, and becomes `raw`. A tag that no rule can express stays an ordinary tag of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gpolicy.policy.schema_tag_rules import RULES, TAG_FAMILIES
from gpolicy.writing.yaml_text import Node

TAG: Final = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}", re.ASCII)
"""The tags that Ganeti's RAPI, htools and so gpolicy can handle."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.+*/@-]+(:[A-Za-z0-9_.+*/@-]+)*", re.ASCII)
_LONGEST_PREFIX: Final = 100


@dataclass(slots=True)
class RuleTags:
    """The tag rules in tags of a cluster: items by family; `others` are `declared` tags that no rule can express."""

    items: dict[str, list[Node]] = field(default_factory=lambda: {family: [] for family in RULES})
    families: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)

    @property
    def node_prefixes(self) -> list[str]:
        """Prefixes of node tags that the rules give a meaning to."""
        domains = dict.fromkeys(str(domain) for domain in (*self.items["nlocation"], *self.items["migration"]))
        return [f"{domain}:" for domain in domains if len(domain) < _LONGEST_PREFIX]


def rule_tags(tags: Iterable[str]) -> RuleTags:
    """Return the rules in `tags`, each of which must follow Ganeti's grammar."""
    rules = RuleTags()
    for tag in sorted(tags):
        rules.declared.append(tag)
        family = next((name for name, prefix in TAG_FAMILIES.items() if tag.startswith(prefix)), None)
        if family is None:
            rules.others.append(tag)
            continue
        item = _item(family, tag.removeprefix(TAG_FAMILIES[family]))
        if item is None:
            rules.others.append(tag)
        else:
            rules.items[family].append(item)
        if family not in rules.families:
            rules.families.append(family)
    return rules


def _item(family: str, suffix: str) -> Node:
    """Return the item of a rule that means a tag of a family; None if no rule can express it."""
    match family:
        case "iextags" | "desiredlocation":
            name = suffix.removesuffix(":")
            if suffix.endswith(":") and name and not name.endswith(":") and len(name) <= _LONGEST_PREFIX:
                return name
            return {"raw": suffix} if 0 < len(suffix) <= _LONGEST_PREFIX else None
        case "nlocation" | "migration" if _NAME.fullmatch(suffix):
            return suffix
        case "allowmigration":
            source, _, target = suffix.partition("::")
            return {"from": source, "to": target} if _NAME.fullmatch(source) and _NAME.fullmatch(target) else None
    return None
