"""Turn cluster tags that htools reads into tag rules.

This is done only where the meaning is exact: `htools:iextags:service:` is `service`, but `htools:iextags:service` also
matches services:…, and becomes `raw`. A tag that no rule can express stays an ordinary tag of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gpolicy.policy.schema_tag_rules import TAG_FAMILIES
from gpolicy.writing.yaml_text import Node

TAG: Final = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}", re.ASCII)
"""The tags that Ganeti's RAPI, htools and so gpolicy can handle."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.+*/@-]+(:[A-Za-z0-9_.+*/@-]+)*", re.ASCII)
_LONGEST_PREFIX: Final = 100


@dataclass(slots=True)
class RuleTags:
    """The tag rules in the tags of a cluster; `others` are the `declared` tags that no rule can express."""

    exclusion: list[Node] = field(default_factory=list)
    desired_location: list[Node] = field(default_factory=list)
    failure_domains: list[Node] = field(default_factory=list)
    migration_domains: list[Node] = field(default_factory=list)
    migration_allow: list[Node] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)

    @property
    def node_prefixes(self) -> list[str]:
        """Prefixes of node tags that the rules give a meaning to."""
        domains = dict.fromkeys(str(domain) for domain in (*self.failure_domains, *self.migration_domains))
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
        if not _add(rules, family, tag.removeprefix(TAG_FAMILIES[family])):
            rules.others.append(tag)
        if family not in rules.families:
            rules.families.append(family)
    return rules


def _add(rules: RuleTags, family: str, suffix: str) -> bool:
    match family:
        case "iextags":
            return _add_marker(rules.exclusion, suffix)
        case "desiredlocation":
            return _add_marker(rules.desired_location, suffix)
        case "nlocation" if _NAME.fullmatch(suffix):
            rules.failure_domains.append(suffix)
        case "migration" if _NAME.fullmatch(suffix):
            rules.migration_domains.append(suffix)
        case "allowmigration":
            source, _, target = suffix.partition("::")
            if not (_NAME.fullmatch(source) and _NAME.fullmatch(target)):
                return False
            rules.migration_allow.append({"from": source, "to": target})
        case _:
            return False
    return True


def _add_marker(markers: list[Node], suffix: str) -> bool:
    name = suffix.removesuffix(":")
    if suffix.endswith(":") and name and not name.endswith(":") and len(name) <= _LONGEST_PREFIX:
        markers.append(name)
    elif 0 < len(suffix) <= _LONGEST_PREFIX:
        markers.append({"raw": suffix})
    else:
        return False
    return True
