"""GP5xx: failure domains, desired locations ("Improving location awareness of Ganeti"), and owned prefixes of tags."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, hit, information, warning
from gpolicy.checking.tags import HTOOLS, Tag, TaggedNode
from gpolicy.findings import Related, Role, Span
from gpolicy.ganeti.vocabulary import TAG_FAMILIES, Level
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy.model import unlikely
from gpolicy.printable import listed, named
from gpolicy.rules.node_lists import ListSlip, list_meant, unknown_in_sets
from gpolicy.rules.shared import grouped, groups_of_nodes, is_closed
from gpolicy.rules.tags import domains

_Tagged = tuple[TaggedNode, ...]
_MOST_GROUPS: Final = 6  # named in one message
_MOST_COMPARED: Final = 100_000  # tags of nodes that are compared with the name of a domain
_SHARED: Final = "tag the nodes by what they really share"


@warning("GP507", When.MORE_WITH_STATE | When.WHOLE)
def desired_location_without_domain(context: Context) -> Iterator[Hit]:
    known = domains.declared_suffixes(context.tags, "nlocation") | domains.observed_suffixes(context, "nlocation")
    for tag in context.tags if not domains.misspelt_domains(context) else ():
        if tag.family != "desiredlocation" or not tag.suffix or (tag.typed and tag.suffix.startswith(HTOOLS)):
            continue
        begins = (f"{domain}:" for domain in known)
        if not any(begin.startswith(tag.suffix) or tag.suffix.startswith(begin) for begin in begins):
            name = tag.suffix.rstrip(":")
            message, hint = f"node tags {name}:… belong to no failure domain", f"declare the failure domain {name!r}"
            if known and not any(text.startswith(f"{name}:") for text in context.once(domains.known_node_tags)):
                hint = did_you_mean_one_of(name, "failure domains", known)
            yield hit(tag.label, message, tag.span, hint)


@warning("GP519", When.MORE_WITH_STATE | When.WHOLE)
def failure_domain_undivided(context: Context) -> Iterator[Hit]:
    places = list(_domains_of_groups(context))
    values: dict[str, set[frozenset[str]]] = {}  # of all nodes, by domain
    of_domain = grouped((name, (group, each)) for group, each in context.tagged_groups.items() for name in each.domains)
    for name, tag in domains.domains_of(context, "nlocation").items() if context.state is None else ():
        there = context.tagged_by_domain.get(name, [])
        twice = {item for node in there if len(node.of(name)) > 1 for item in node.of(name)}
        groups = of_domain.get(name, [])
        if len(groups) < len(context.tagged_groups):
            values[name] = {frozenset()}
        for group, each in groups:  # of nodes in two rooms GP528 knows more
            if twice.isdisjoint(each.of(name)):
                places.append((name, tag, group, (each,)))
    for name, _, _, nodes in places:
        values.setdefault(name, set()).update(node.of(name) for node in nodes)
    unknown = [entry.value for _, entries in unknown_in_sets(context) for entry in entries]
    slips = [slip.owner for name in unknown if (slip := list_meant(context, name))]
    short = {owner.name for owner in slips if owner.level is Level.GROUP}
    undivided: dict[tuple[str, str], list[tuple[Tag | None, str, _Tagged]]] = {}  # by the domain and its tags
    for domain, tag, group, nodes in places:
        found = {node.of(domain) for node in nodes}
        are_alike = (len(nodes) > 1 or nodes[0].several) and len(found) == 1 and frozenset() not in found
        if are_alike and group not in short and (len(values[domain]) == 1 or _places_mirrors(context, group)):
            key = domain, ", ".join(sorted(nodes[0].of(domain)))
            undivided.setdefault(key, []).append((tag, group, nodes))
    for (domain, tags), alike in undivided.items():
        tag, _, nodes = alike[0]
        copy, asked, related = _copied(nodes, domain, tags)
        label, span = copy or _place(nodes, domain, tag)
        message = f"all nodes of {named('group', [group for _, group, _ in alike])} have {tags}: none can be avoided"
        yield hit(label, message, span, asked or f"{_SHARED}, or remove the domain", related)


def _copied(nodes: _Tagged, domain: str, tag: str) -> tuple[tuple[str, Span] | None, str, tuple[Related, ...]]:
    """Return where a node set most likely has the tag of another one, with a question and the place of that other one.

    Its name says another value of the domain.
    """
    found = {place for node in nodes for text in node.of(domain) if (place := node.tags[text])}
    own, words = sorted(found, key=lambda place: place[1]), _split(tag)
    like = [item for item in own if words - {domain} <= _split(item[0])]
    copy = next((item for item in reversed(own) if item not in like and (like or domain in _split(item[0]))), None)
    other = next((item for item in own if copy and item[0] != copy[0]), None)
    if copy is None or other is None:
        return copy, "", ()
    mine, theirs = (re.split(r"\b", label.partition("/")[2]) for label, _ in (copy, other))
    unlike = dict(pair for pair in zip(theirs, mine, strict=False) if pair[0] != pair[1])
    meant = "".join(unlike.get(part, part) for part in re.split(r"\b", tag))
    is_clear = len(unlike) == 1 and len(mine) == len(theirs) and meant != tag
    related = (Related(other[1], f"{''.join(theirs)} has the same tag"),)
    return copy, f"is {meant} meant? Else {_SHARED}" if is_clear else "", related


def _split(text: str) -> set[str]:
    return set(re.split("[^a-z0-9]", text.lower()))


def _places_mirrors(context: Context, name: str) -> bool:
    group = context.policy.groups.get(name)
    return group is None or (not is_closed(context, group) and domains.has_mirrors(context, group))


@dataclass(frozen=True, slots=True)
class _Lacking:
    """Nodes of a group that are to have a tag of a domain and have none, and where the policy is to say so."""

    label: str
    span: Span | None
    domain: str
    group: str
    nodes: tuple[str, ...]
    like_others: bool
    """Whether others of the group have a tag; else the nodes themselves have one now."""
    other: str
    """The domain of the tags that only these nodes have instead, most likely by mistake; empty where there is none."""
    slip: ListSlip | None
    """The list of a group or a node set that is most likely one number too long or too short."""

    @property
    def shown(self) -> str:
        return f"{', '.join(self.nodes[:3])}{' and more' if len(self.nodes) > 3 else ''}"


class _AlmostTags:
    """Which nodes have a tag that GP522 takes for a mistyped one of a domain; after many tags no more are compared."""

    def __init__(self) -> None:
        self._left = _MOST_COMPARED

    def has(self, node: TaggedNode, domain: str) -> bool:
        """Return whether a node has almost a tag of a domain, as far as its tags are compared."""
        self._left -= len(node.tags)
        names, declared = domains.DomainNames([domain]), (tag for tag, place in node.tags.items() if place is not None)
        return self._left > 0 and any(domains.why_mistyped(tag, names) for tag in declared)


@warning("GP520", When.MORE_WITH_STATE | When.WHOLE, role=Role.LACKS_TAG)
def failure_domain_incomplete(context: Context) -> Iterator[Hit]:
    by_line = grouped(
        ((item.label, item.span and (item.span.file, item.span.line)), item) for item in _all_lacking(context)
    )
    for lacking in by_line.values():
        first = lacking[0]
        given = (first.slip.owner.tags if first.slip else None) or ()
        own = [tag.span for tag in given if tag.value.startswith(f"{first.domain}:")]
        related = tuple(Related(place, "the tag that it gives") for place in own)
        yield hit(first.label, _lacking_words(lacking), first.span, _cure_of_lacking(lacking), related)


def _all_lacking(context: Context) -> Iterator[_Lacking]:
    """Yield the nodes that lack a tag of a domain, by domain and group."""
    failure = domains.domains_of(context, "nlocation")
    moving = {tag for pair in domains.allowed_migrations(context) for tag in pair}
    needed = failure.keys() | {begin for tag in moving for begin in domains.prefixes_of(tag)}
    # without exceptions only upgraded nodes need a tag of migration
    migration = [item for item in _domains_of_groups(context, "migration") if item[0] in needed - failure.keys()]
    meant, almost, homes = _domains_of_slips(context), _AlmostTags(), context.once(groups_of_nodes)
    for domain, tag, group, nodes in (*_domains_of_groups(context), *migration):
        if domain in meant:
            continue
        without = [node for node in nodes if not node.of(domain) and not almost.has(node, domain)]
        having = [node for node in nodes if node.of(domain) and not homes.get(node.name, ())[1:]]  # else GP611
        # of a single node in a migration domain GP518 knows more
        like_others = len(having) >= (1 if domain in failure else 2)
        if not like_others:
            is_kept = domain in failure and any(node.of(domain) for node in context.all_tagged)  # by others
            without = [node for node in without if is_kept and _tags_now(context, node.name, domain)]
        names = tuple(node.name for node in without)
        slip = None
        if like_others and len(names) == 1:
            slip = list_meant(context, names[0], domain, _tags_now(context, names[0], domain))
        is_twice = any(len(node.of(domain)) > 1 for node in nodes) and domains.is_place(context, domain)
        if not without or (slip and is_twice):
            continue  # GP528 knows more of a node in two places
        unlike = _other_domain(nodes, names)
        other = "" if unlike in needed else unlike
        at_tag = _place(without if other else nodes, other or domain, tag)
        label, span = (slip.owner.label, slip.span) if slip else at_tag
        yield _Lacking(label, span, domain, group, names, like_others, other, slip)


def _domains_of_slips(context: Context) -> set[str]:
    """Return the domains of tags that node sets with a slip give: they may be meant for the node that lacks them."""
    sets = context.policy.node_sets
    slips = [nodes for nodes in sets if any(unlikely(entry.value) for entry in nodes.nodes)]
    slips += [nodes for nodes, _ in unknown_in_sets(context, context.state.nodes if context.state else None)]
    slips += [nodes for nodes in sets if not nodes.nodes and not nodes.groups]
    return {begin for nodes in slips for tag in nodes.tags or () for begin in domains.prefixes_of(tag.value)}


def _other_domain(nodes: Sequence[TaggedNode], without: tuple[str, ...]) -> str:
    """Return what the tags of the nodes without a domain begin with, where only theirs do; nothing where none does."""
    lacking = [set(node.domains) for node in nodes if node.name in without]
    rest = (set(node.domains) for node in nodes if node.name not in without)
    common = set.intersection(*lacking).difference(*rest)
    return common.pop() if len(common) == 1 else ""


def _lacking_words(lacking: list[_Lacking]) -> str:
    """Say what is lacking: of one line of policy all groups and domains at once."""
    first = lacking[0]
    if len(lacking) == 1:
        verb = "has" if len(first.nodes) == 1 else "have"
        unlike = "unlike other nodes of the group" if first.like_others else "unlike now"
        return f"group {first.group}: {first.shown} {verb} no tag {first.domain}:…, {unlike}"
    parts = []
    for domain in dict.fromkeys(item.domain for item in lacking):
        groups = [f"group {item.group}: {item.shown}" for item in lacking if item.domain == domain]
        more = f"; and nodes of {len(groups) - _MOST_GROUPS} more groups" if len(groups) > _MOST_GROUPS else ""
        parts.append(f"no tag {domain}:… ({'; '.join(groups[:_MOST_GROUPS])}{more})")
    unlike = "other nodes of these groups" if any(item.like_others for item in lacking) else "now"
    return f"{', '.join(parts)}, unlike {unlike}"


def _cure_of_lacking(lacking: list[_Lacking]) -> str:
    """Return what to write where tags lack, the most likely first."""
    first = lacking[0]
    begins = " and ".join(f"{domain}:…" for domain in dict.fromkeys(item.domain for item in lacking))
    whose = "the group" if len({item.group for item in lacking}) == 1 else "these groups"
    mistaken = f"is {first.domain}:… meant here, not {first.other}:…? Else " if first.other else ""
    in_list = f"{first.slip.question} Else " if first.slip else ""
    return f"{in_list}{mistaken}tag every node of {whose} {begins}"


def _tags_now(context: Context, node: str, domain: str) -> list[str]:
    """Return the tags of a domain that a node of the cluster has."""
    now = context.observed.nodes.get(node)
    return [tag for tag in now.tags if tag.startswith(f"{domain}:")] if now is not None else []


@information("GP521", When.MORE_WITH_STATE)
def node_in_two_domains(context: Context) -> Iterator[Hit]:
    names = [name for name in domains.domains_of(context, "nlocation") if not domains.is_place(context, name)]
    return domains.nodes_in_two_places(context, names)


@warning("GP528", When.MORE_WITH_STATE)
def node_in_two_places(context: Context) -> Iterator[Hit]:
    names = [name for name in domains.domains_of(context, "nlocation") if domains.is_place(context, name)]
    return domains.nodes_in_two_places(context, names, "leave it the tag of the place where it is: tags of sets add up")


@warning("GP532", When.MORE_WITH_STATE | When.WHOLE)
def places_without_domain(context: Context) -> Iterator[Hit]:
    if domains.declared_suffixes(context.tags, "nlocation"):
        return
    entries = [owned for rules in context.policy.tag_rules for owned in rules.owns]
    prefix = TAG_FAMILIES["nlocation"]
    of_cluster = (entry for entry in entries if Level.CLUSTER in entry.value.levels)
    owned = next((entry for entry in of_cluster if prefix.startswith(entry.value.prefix)), None)
    names = domains.unread_places(context) if owned is not None else []
    if owned is not None and names:
        tags = listed(f"{name}:…" for name in names)
        message = f"nodes have tags {tags}, but no failure domain is declared, and a plan removes those there are"
        yield hit("cluster", message, owned.span, f"write `failure_domains: [{', '.join(names)}]`, or do not own them")


def _domains_of_groups(context: Context, family: str = "nlocation") -> Iterator[tuple[str, Tag | None, str, _Tagged]]:
    """Yield each domain of a family with each group whose nodes are known, and the declared tag (None: observed)."""
    names = domains.domains_of(context, family)
    for group, nodes in context.tagged_nodes.items() if names else ():
        yield from ((domain, tag, group, nodes) for domain, tag in names.items())


def _place(nodes: Sequence[TaggedNode], domain: str, tag: Tag | None) -> tuple[str, Span | None]:
    """Return the object and the place that a finding about a domain is shown at: a declared node tag, else the rule."""
    for node in nodes:
        for text in sorted(node.of(domain)):
            place = node.tags[text]
            if place is not None:
                return place
    return ("cluster", tag.span) if tag else ("cluster", None)


@warning("GP523", when=When.MORE_WITH_STATE | When.WHOLE)
def owned_prefix_idle(context: Context) -> Iterator[Hit]:
    prefixes = domains.DomainNames(tag.text.partition(":")[0] for tag in context.tags if ":" in tag.text)
    used, left = context.once(_ownership)
    for rules in context.policy.tag_rules:
        for owned in rules.owns:
            prefix, levels = owned.value.prefix, owned.value.levels
            having = used[prefix]
            if having and not having & levels:
                where = "s and ".join(sorted(str(level.value) for level in having))
                message = f"{prefix} is owned on objects without such tags: they are on {where}s"
                yield hit("cluster", message, owned.span, "correct `on`")
            elif not having and prefix.endswith(":"):
                meant = prefixes.meant(prefix.rstrip(":"))
                slip = next((tag for tag in context.tags if tag.text.startswith(f"{meant}:")), None) if meant else None
                if slip is not None and _has_tags_now(context, prefix, levels):
                    message = f"no tag starts with `{prefix}`, which is owned, and which tags of the cluster start with"
                    yield hit(slip.label, message, slip.span, f"is {prefix}{slip.text.partition(':')[2]} meant?")
                elif meant and prefix.rstrip(":") not in domains.domains_of_nodes(context):  # else GP517
                    message = f"no tag starts with `{prefix}`; did you mean `{meant}:`?"
                    yield hit("cluster", message, owned.span, f'write "{meant}:"')
                elif left and Level.NODE in levels:
                    message = f"no tag starts with `{prefix}`, and the tags {left}:… of a domain are not owned"
                    yield hit("cluster", message, owned.span, f"did you mean {left}:? Or own both")


def _has_tags_now(context: Context, prefix: str, levels: Collection[Level]) -> bool:
    """Return whether an object of these levels in the cluster has a tag that starts so."""
    now = context.observed
    tags = {
        Level.CLUSTER: [*now.cluster.tags],
        Level.GROUP: [tag for group in now.groups.values() for tag in group.tags],
        Level.NODE: [tag for node in now.nodes.values() for tag in node.tags],
    }
    return any(tag.startswith(prefix) for level in levels for tag in tags[level])


@information("GP531", when=When.MORE_WITH_STATE | When.WHOLE)
def domain_not_owned(context: Context) -> Iterator[Hit]:
    used, left = context.once(_ownership)
    names = domains.domains_of_nodes(context)
    owned = (owned for rules in context.policy.tag_rules for owned in rules.owns)
    for entry in owned if left else ():
        prefix, levels = entry.value.prefix, entry.value.levels
        if prefix.rstrip(":") in names and Level.NODE in used[prefix] & levels:
            message = f"tags {prefix}… of nodes are owned, and those of the domain {left} are not"
            yield hit("cluster", message, entry.span, f"own {left}: on node as well")
            return  # one is enough


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
    return used, min(loose & domains.domains_of_nodes(context).keys(), default="")
