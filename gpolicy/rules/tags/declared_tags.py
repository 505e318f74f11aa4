"""The tags that a policy declares, and those that the observed cluster has: what the rules about tags read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.findings import Fix, Span
from gpolicy.ganeti.parameter import Level
from gpolicy.policy.edits import fix, remove_entry
from gpolicy.policy.schema_tag_rules import TAG_FAMILIES
from gpolicy.policy.source_file import Pointer, YamlDocument
from gpolicy.rules.examples import CLUSTER

LOCATION: Final = "Improving location awareness of Ganeti"
HTOOLS: Final = "htools:"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that an object is to have. `typed`: rendered from a TagRules document, not written as it is.

    `family` is the htools family of the tag (`iextags`), or an empty string.
    """

    label: str
    level: Level
    text: str
    span: Span
    typed: bool
    family: str

    @property
    def suffix(self) -> str:
        """What stands behind the family's prefix."""
        return self.text.removeprefix(TAG_FAMILIES[self.family]) if self.family else ""


@lru_cache(maxsize=1)  # a dozen rules ask, one after the other
def declared_tags(context: Context) -> tuple[Tag, ...]:
    """Return all tags that the policy declares, those rendered from TagRules on the cluster included."""
    own = [
        Tag(declared.label, declared.level, tag.value, tag.span, typed=False, family=_family(tag.value))
        for declared in context.policy.objects
        for tag in declared.tags or ()
    ]
    rendered = [
        Tag("cluster", Level.CLUSTER, tag.value, tag.span, typed=True, family=_family(tag.value))
        for rules in context.policy.tag_rules
        for tag in rules.tags
    ]
    return (*own, *rendered)


def _family(text: str) -> str:
    if not text.startswith(HTOOLS):
        return ""
    return next((name for name, prefix in TAG_FAMILIES.items() if text.startswith(prefix)), "")


def cluster_tags(tags: str) -> str:
    """Return an example: a cluster with these tags, in YAML."""
    return f"{CLUSTER}tags: [{tags}]\n"


def sides(tag: Tag) -> list[str]:
    """Return what stands on the two sides of the double colon; something else than two texts if malformed."""
    found = tag.suffix.split("::")
    return found if all(found) else []


def suffixes(tags: Iterable[Tag], family: str) -> set[str]:
    """Return what the declared tags of a family are about; what GP512 reports counts as what it means."""
    found = {tag.suffix for tag in tags if tag.family == family}
    return found | {without_prefix(suffix) for suffix in found if suffix.startswith(HTOOLS)}


def observed(context: Context, family: str) -> set[str]:
    """Return the suffixes of a family's tags that the observed cluster has."""
    prefix = TAG_FAMILIES[family]
    tags = context.state.cluster.tags if context.state else frozenset()
    return {tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)}


def without_prefix(written: str) -> str:
    """Return what an entry with htools' prefixes is about: `service` of htools:iextags:service."""
    family = next((prefix for prefix in TAG_FAMILIES.values() if written.startswith(prefix)), HTOOLS)
    return written.removeprefix(family).rstrip(":")


def domains(context: Context, family: str) -> dict[str, Tag | None]:
    """Return what tags of a family (nlocation, migration) are about, with the declared tag; None for observed ones."""
    found: dict[str, Tag | None] = dict.fromkeys(observed(context, family))
    for tag in declared_tags(context):
        if tag.family == family and tag.suffix and not tag.suffix.startswith(HTOOLS) and not tag.suffix.endswith(":"):
            found[tag.suffix] = tag
    return found


_RULES: Final[tuple[Pointer, ...]] = (
    *(("exclusion",), ("desired_location",), ("failure_domains",)),
    *(("migration", "domains"), ("migration", "allow")),
)


def without_tag(context: Context, tag: Tag) -> Fix | None:
    """Return the fix that takes a tag out of the list that it stands in; None where that cannot be done safely."""
    documents = [declared.document for declared in context.policy.objects if declared.label == tag.label]
    lists: list[tuple[YamlDocument, Pointer]] = [(document, ("tags",)) for document in documents if not tag.typed]
    if tag.typed:
        lists = [(rules.document, pointer) for rules in context.policy.tag_rules for pointer in _RULES]
    for document, pointer in lists:
        items: Any = document.root
        for step in pointer:
            items = items.get(step, {})
        for index in range(len(items)):
            if document.value_span((*pointer, index)) == tag.span:
                edits = remove_entry(document, (*pointer, index))
                return fix("take the entry out", edits)
    return None
