"""What the tags of a policy and of the observed cluster are about."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, hit
from gpolicy.checking.tags import HTOOLS, Tag, TaggedNode
from gpolicy.data import read_data
from gpolicy.findings import Fix, Related, Span
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, TAG_FAMILIES, Level
from gpolicy.guessing import MOST_GUESSES, MOST_KNOWN, closest
from gpolicy.policy.edits import fix, remove_entry
from gpolicy.policy.model import RULES, GroupPolicy
from gpolicy.policy.source_file import Pointer, YamlDocument
from gpolicy.printable import some
from gpolicy.rules.node_lists import list_meant, too_wide
from gpolicy.rules.shared import grouped, of_cluster

_NODES: Final = read_data("forms.toml")["nodes"]
DOMAINS_OF_NODES: Final = frozenset(_NODES["housings"] + _NODES["power"])
"""What nodes stand in or hang on, and instances do not."""
SINGLE_DOMAINS: Final = frozenset(_NODES["housings"] + _NODES["places"])
"""Names of domains that a node is in only once."""
CLOSE: Final = 0.75
"""How much of two words must be the same for one to be taken for the other mistyped."""


def two_sides(tag: Tag) -> list[str]:
    """Return what stands on the two sides of the double colon; something else than two texts if malformed."""
    found = tag.suffix.split("::")
    return found if all(found) else []


def prefixes_of(tag: str) -> list[str]:
    """Return what a tag begins with, up to each of its colons: the domains that it may be of."""
    return [tag[:place] for place, letter in enumerate(tag) if letter == ":"]


def declared_suffixes(tags: Iterable[Tag], *families: str) -> set[str]:
    """Return what the declared tags of families are about; what GP512 reports counts as what it means."""
    found = {tag.suffix for tag in tags if tag.family in families}
    return found | {without_htools_prefix(suffix) for suffix in found if suffix.startswith(HTOOLS)}


def observed_suffixes(context: Context, family: str, *, all_of_them: bool = False) -> set[str]:
    """Return the suffixes of a family's tags that the observed cluster has and keeps under the policy."""
    prefix, policy = TAG_FAMILIES[family], context.policy
    owned = tuple(item.prefix for item in policy.owned if Level.CLUSTER in item.levels)
    gone = owned if policy.cluster_tags is not None and not all_of_them else ()
    tags = (tag for tag in context.observed.cluster.tags if not tag.startswith(gone))
    return {tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)}


def without_htools_prefix(written: str) -> str:
    """Return what an entry with htools' prefixes is about: `service` of htools:iextags:service."""
    family = next((prefix for prefix in TAG_FAMILIES.values() if written.startswith(prefix)), HTOOLS)
    return written.removeprefix(family).rstrip(":")


def domains_of(context: Context, family: str) -> dict[str, Tag | None]:
    """Return what tags of a family (nlocation, migration) are about, with the declared tag; None for observed ones."""
    found: dict[str, Tag | None] = dict.fromkeys(observed_suffixes(context, family))
    for tag in context.tags:
        if tag.family == family and tag.suffix and not tag.suffix.startswith(HTOOLS) and not tag.suffix.endswith(":"):
            found[tag.suffix] = tag
    return found


def domains_of_nodes(context: Context) -> dict[str, Tag | None]:
    """Return all domains of nodes, those of failure and those of migration, in the same way."""
    return {**domains_of(context, "nlocation"), **domains_of(context, "migration")}


def unread_places(context: Context) -> list[str]:
    """Return the places of which nodes are to have several tags, such as racks or rooms, and that no rule is about."""
    rules = {begin for tag in context.tags if tag.family for begin in prefixes_of(f"{tag.suffix}:")}
    known = SINGLE_DOMAINS | DOMAINS_OF_NODES | observed_suffixes(context, "nlocation")
    found: dict[str, set[str]] = {}
    for text in declared_node_tags(context):
        word, _, place = text.partition(":")
        if place and (word in known or word.lower() in known) and word not in rules:
            found.setdefault(word, set()).add(text)
    return sorted(word for word, texts in found.items() if len(texts) > 1)


def is_place(context: Context, domain: str) -> bool:
    """Return whether a node is in one value of a domain: it is called a place, or few of the nodes are in two."""
    there = context.tagged_by_domain.get(domain, ())
    twice = sum(len(node.of(domain)) > 1 for node in there)
    return domain.lower() in SINGLE_DOMAINS or (domain.lower() not in DOMAINS_OF_NODES and 3 * twice <= len(there))


def nodes_in_two_places(context: Context, names: Collection[str], hint: str = "") -> Iterator[Hit]:
    """Yield nodes with two tags of one of these domains, at the place of the last of the tags, or of the new one."""
    reported = set[tuple[str, Span]]()
    for name in names:
        twice: dict[tuple[tuple[str, Span], ...], list[tuple[TaggedNode, list[str]]]] = defaultdict(list)
        for node in context.tagged_by_domain.get(name, ()):
            live = context.observed.nodes.get(node.name)
            found = sorted(node.of(name), key=lambda tag: (live is None or tag not in live.tags, tag))
            declared = tuple(place for tag in found if (place := node.tags[tag]) is not None)
            if len(found) > 1 and declared:
                twice[declared].append((node, found))
        for declared, nodes in twice.items():
            (label, span), (node, found) = declared[-1], nodes[0]
            if declared[-1] in reported:
                continue
            reported.add(declared[-1])
            title = some([item.name for item, _ in nodes])
            subject = f"nodes {title} are" if node.several or len(nodes) > 1 else f"node {title} is"
            related = tuple(Related(place[1], "the other place") for place in declared[:-1])
            every_node = {item.name for item, _ in nodes}
            slip = list_meant(context, node.name, name) if len(nodes) == 1 else too_wide(context, every_node, name)
            if slip:
                label, span = slip.owner.label, slip.span
                related = tuple(Related(place[1], "one of the tags") for place in declared)
                hint = f"{slip.question} Else {hint or 'leave each node in one of the two'}"
            yield hit(label, f"{subject} in {' and '.join(found)} at once", span, hint, related)


def misspelt_domains(context: Context) -> set[str]:
    """Return the declared domains that no node has, where several tags of nodes begin with almost the same word.

    Then the domain is the slip (GP517), and not the tags.
    """
    prefixes = Counter(text.partition(":")[0] for text in declared_node_tags(context) if ":" in text)
    several = [prefix for prefix, times in prefixes.items() if times > 1]
    declared = (name for name, tag in domains_of_nodes(context).items() if tag is not None)
    without_node = (name for name in declared if name.partition(":")[0] not in prefixes)
    return {name for name in without_node if closest(name, several, CLOSE) is not None}


def remove_tag(context: Context, tag: Tag) -> Fix | None:
    """Return the fix that takes a tag out of the list that it stands in; None where that cannot be done safely."""
    documents = [declared.document for declared in context.policy.objects if declared.label == tag.label]
    lists: list[tuple[YamlDocument, Pointer]] = [(document, ("tags",)) for document in documents if not tag.typed]
    if tag.typed:
        lists = [(rules.document, pointer) for rules in context.policy.tag_rules for pointer in RULES.values()]
    for document, pointer in lists:
        items: Any = document.root
        for step in pointer:
            items = items.get(step, {})
        for index in range(len(items)):
            if document.value_span((*pointer, index)) == tag.span:
                return fix("remove the entry", remove_entry(document, (*pointer, index)))
    return None


def known_node_tags(context: Context) -> set[str]:
    """Return all tags that a node set declares, or that a node of the cluster keeps under the policy."""
    nodes = (node for group in context.tagged_nodes.values() for node in group)
    return {*declared_node_tags(context), *(tag for node in nodes for tag in node.tags)}


def exceptions(context: Context) -> list[Tag]:
    """Return the declared allowmigration tags that are well formed."""
    return [tag for tag in context.tags if tag.family == "allowmigration" and len(two_sides(tag)) == 2]


def allowed_migrations(context: Context) -> set[tuple[str, ...]]:
    """Return the pairs of tags between which an exception allows migration, declared or observed."""
    declared = (tuple(two_sides(tag)) for tag in exceptions(context))
    return {*declared, *(tuple(suffix.split("::")) for suffix in observed_suffixes(context, "allowmigration"))}


def tags_of(node: TaggedNode, names: Iterable[str]) -> frozenset[str]:
    """Return the tags that a node has of these domains."""
    return frozenset(tag for name in names for tag in node.of(name))


def may_receive(target: Collection[str], tags: frozenset[str], allowed: set[tuple[str, ...]]) -> bool:
    """Return whether a node with the tags `target` may receive from one with these migration tags."""
    return all(tag in target or any((tag, own) in allowed for own in target) for tag in tags)


def declared_node_tags(context: Context) -> Iterator[str]:
    """Yield the tags that node sets declare."""
    for node_set in context.policy.node_sets:
        yield from (tag.value for tag in node_set.tags or ())


def has_mirrors(context: Context, group: GroupPolicy) -> bool:
    """Return whether a group may have DRBD disks, as far as the policy or the cluster says."""
    allowed, enabled = context.effective(group, ALLOWED_TEMPLATES), of_cluster(context, ENABLED_TEMPLATES)
    is_enabled = enabled is None or "drbd" in enabled.texts
    return is_enabled and (allowed is None or "drbd" in allowed.texts) and context.exclusive(group) is None


class DomainNames:
    """The names of domains, to ask which of them a tag is almost of. Guesses at a bounded number of words."""

    def __init__(self, names: Iterable[str]) -> None:
        self.known = frozenset(names)
        self._sorted = sorted(self.known)
        self._by_lower = grouped((name.lower(), name) for name in self._sorted)
        self._meant: dict[str, str] = {}

    def meant(self, written: str) -> str:
        """Return the name that a word is almost, or nothing: another case, a slip of the fingers."""
        if written in self.known:
            return ""
        if same := self._by_lower.get(written.lower()):
            return same[0]
        if written not in self._meant and (len(self._meant) >= MOST_GUESSES or len(self._sorted) > MOST_KNOWN):
            return ""
        if written not in self._meant:
            self._meant[written] = next((name for name in self._sorted if is_slip(written, name)), "")
        return self._meant[written]

    def begin(self, tag: str) -> list[str]:
        """Return the names that a tag begins with, whatever the case."""
        lower = tag.lower()
        return sorted(name for end in range(1, len(lower) + 1) for name in self._by_lower.get(lower[:end], ()))


def why_mistyped(tag: str, names: DomainNames) -> str:
    """Return why a tag is most likely one of a domain mistyped, or nothing."""
    begins = names.begin(tag)
    if any(tag.startswith(f"{name}::") for name in begins):
        return "the second colon belongs to the name of the place"
    if any(tag.startswith(f"{name}:") and tag != f"{name}:" for name in begins):
        return ""
    for name in begins:
        rest = tag[len(name) :]
        if tag == f"{name}:":
            return f"it names no {name}, only the domain"
        if rest[:1] in ("-", "_", ".", "=", "/") or rest.isdecimal() or (len(rest) == 1 and rest.isalpha()):
            return f"tags of the domain {name} are {name}:…, with a colon"
    prefix, colon, _ = tag.partition(":")
    meant = names.meant(prefix) if colon else ""
    return f"Did you mean `{meant}:`, the name of the domain?" if meant else ""


def is_slip(written: str, name: str) -> bool:
    letters = sorted(written) == sorted(name) and len(name) > 2  # two letters in the wrong order
    return letters or (len(name) > 2 and SequenceMatcher(None, written, name).ratio() >= CLOSE)
