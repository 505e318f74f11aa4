"""GP5xx: failure domains and desired locations (design document "Improving location awareness of Ganeti")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import in_force
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS, Tag, TaggedNode, tagged_as_groups
from gpolicy.findings import Span, info_rule, warning_rule
from gpolicy.policy.promised import unlikely
from gpolicy.rules.examples import GROUP
from gpolicy.rules.groups.nodes import unknown_in_sets
from gpolicy.rules.tags.domains import (
    LOCATION,
    allowed_migrations,
    begins_of,
    domains,
    has_mirrors,
    misspelt_domains,
    observed,
    suffixes,
)
from gpolicy.rules.tags.spelling import almost_in

_MOST_GROUPS: Final = 6  # named in one message
_GROUP: Final = f"{GROUP}nodes: [n1, n2, n3]\n---\n"
_RACKS: Final = "gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n"


def _rack(nodes: str, tag: str) -> str:
    name = tag.replace(":", " ")
    return f'---\ngpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: [{nodes}]\ntags: ["{tag}"]\n'


_DIVIDED: Final = _GROUP + _RACKS + _rack("n1", "rack:1") + _rack("n2, n3", "rack:2")


class DesiredLocationWithoutDomain(Rule):
    info = warning_rule("GP507", "desired-location-without-domain")(
        summary="A desired-location rule needs a failure domain that does not exist.",
        rationale="htools compares an instance's desired location with the location tags of its primary node, which"
        " come from htools:nlocation only. Without them the desire is never met and makes every placement worse.",
        source=f"{LOCATION}; htools of Ganeti 2.16 and later",
        bad="gpolicy: v1\nkind: TagRules\ndesired_location: [rack]\n",
        good="gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\ndesired_location: [rack]\n",
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        tags = list(context.tags)
        domains = suffixes(tags, "nlocation") | observed(context, "nlocation")
        if misspelt_domains(context):
            return
        for tag in tags:
            if tag.family != "desiredlocation" or not tag.suffix or (tag.typed and tag.suffix.startswith(HTOOLS)):
                continue
            if not any(
                f"{domain}:".startswith(tag.suffix) or tag.suffix.startswith(f"{domain}:") for domain in domains
            ):
                name = tag.suffix.rstrip(":")
                message = f"node tags {name}:… belong to no failure domain"
                yield self.hit(tag.label, message, tag.span, hint=f"declare the failure domain {name!r}")


class FailureDomainUndivided(Rule):
    info = warning_rule("GP519", "failure-domain-undivided")(
        summary="All nodes of a group are in the same failure domain.",
        rationale="Every pair of nodes shares the domain: there is no choice, each mirrored instance counts as badly"
        " placed, and a failure of the domain takes down the whole group. Groups that are unallocable or allow no"
        " DRBD place no mirrors, and count only where the domain divides no group at all.",
        source=f"{LOCATION}, Failure tags",
        bad=_GROUP + _RACKS + _rack("n1, n2, n3", "rack:1"),
        good=_DIVIDED,
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        places = list(_domains_of_groups(context))
        values = Counter(
            domain for domain, _ in {(each, node.of(each)) for each, _, _, nodes in places for node in nodes}
        )
        for domain, tag, group, nodes in places:
            found = {node.of(domain) for node in nodes}
            undivided = len(nodes) > 1 and len(found) == 1 and frozenset() not in found
            if undivided and (values[domain] == 1 or self._places_mirrors(context, group)):
                shared = ", ".join(sorted(nodes[0].of(domain)))
                message = f"all {len(nodes)} nodes of group {group} have {shared}: none can be avoided"
                label, span = _place(nodes, domain, tag)
                yield self.hit(
                    label, message, span, hint="tag the nodes by what they really share, or remove the domain"
                )

    def _places_mirrors(self, context: Context, name: str) -> bool:
        """Return whether mirrored instances are placed in a group."""
        group = context.policy.groups.get(name)
        policy = in_force(context, group, ("alloc_policy",)) if group is not None else None
        is_open = policy is None or policy.value != "unallocable"
        return is_open and (group is None or has_mirrors(context, group))


class FailureDomainIncomplete(Rule):
    info = warning_rule("GP520", "failure-domain-incomplete")(
        summary="Some nodes of a group are in a failure or migration domain, others are in none.",
        rationale="A node without a tag of a failure domain shares nothing with the others, so htools prefers it for"
        " redundant instances; one without a tag of a migration domain takes nothing from those that have one. Most"
        " likely the tag was forgotten. (Of a migration domain without exceptions only upgraded nodes need a tag.)",
        source=f"{LOCATION}, Failure tags and Migration tags",
        bad=_GROUP + _RACKS + _rack("n1", "rack:1") + _rack("n2", "rack:2"),
        good=_DIVIDED,
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        slips = [nodes for nodes in context.policy.node_sets if any(unlikely(entry.value) for entry in nodes.nodes)]
        unknown = unknown_in_sets(context, context.state.nodes if context.state else None)
        slips += [nodes for nodes, _ in unknown]  # their tags may be meant for the node that lacks them
        meant = {begin for nodes in slips for tag in nodes.tags or () for begin in begins_of(tag.value)}
        failure = domains(context, "nlocation")
        upgrades = {begin for pair in allowed_migrations(context) for tag in pair for begin in begins_of(tag)}
        at_place: dict[tuple[str, str, int], list[_Lacking]] = {}
        spans: dict[tuple[str, str, int], Span | None] = {}
        migration = (item for item in _domains_of_groups(context, "migration") if item[0] not in failure)
        for domain, tag, group, nodes in (*_domains_of_groups(context), *migration):
            if domain in meant or (domain not in failure and domain not in upgrades):
                continue  # without exceptions only upgraded nodes need the tag
            without = tuple(node.name for node in nodes if not node.of(domain) and not _has_almost(node, domain))
            least = 1 if domain in failure else 2  # of a single node in a migration domain GP518 knows more
            if without and sum(bool(node.of(domain)) for node in nodes) >= least:
                label, span = _place(nodes, domain, tag)
                key = (label, span.file if span else "", span.line if span else 0)
                spans.setdefault(key, span)
                at_place.setdefault(key, []).append(_Lacking(domain, group, without))
        for key, lacking in at_place.items():
            domains_there = " and ".join(f"{domain}:…" for domain in dict.fromkeys(item.domain for item in lacking))
            whose = "the group" if len({item.group for item in lacking}) == 1 else "these groups"
            yield self.hit(
                key[0], _lacking_words(lacking), spans[key], hint=f"tag every node of {whose} {domains_there}"
            )


@dataclass(frozen=True, slots=True)
class _Lacking:
    """Nodes of a group that have no tag of a domain, which others of the group have."""

    domain: str
    group: str
    nodes: tuple[str, ...]

    @property
    def shown(self) -> str:
        return f"{', '.join(self.nodes[:3])}{' and more' if len(self.nodes) > 3 else ''}"


def _lacking_words(lacking: list[_Lacking]) -> str:
    """Say what is lacking: of one line of policy all groups and domains at once."""
    first = lacking[0]
    if len(lacking) == 1:
        verb = "has" if len(first.nodes) == 1 else "have"
        return f"group {first.group}: {first.shown} {verb} no tag {first.domain}:…, unlike other nodes of the group"
    parts = []
    for domain in dict.fromkeys(item.domain for item in lacking):
        groups = [f"group {item.group}: {item.shown}" for item in lacking if item.domain == domain]
        more = f"; and nodes of {len(groups) - _MOST_GROUPS} more groups" if len(groups) > _MOST_GROUPS else ""
        parts.append(f"no tag {domain}:… ({'; '.join(groups[:_MOST_GROUPS])}{more})")
    return f"{', '.join(parts)}, unlike other nodes of these groups"


class NodeInTwoDomains(Rule):
    info = info_rule("GP521", "node-in-two-domains")(
        summary="A node has two tags of the same failure domain.",
        rationale="The node shares both domains with others. That is right for a node on two power feeds. (If the"
        " domain is called after a place, it is GP528.)",
        source=f"{LOCATION}, Failure tags",
        bad=_DIVIDED.replace("rack", "power") + _rack("n1", "power:3"),
        good=_DIVIDED.replace("rack", "power"),
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for label, message, span in _in_two(context, of_places=False):
            yield self.hit(label, message, span)


def _in_two(context: Context, *, of_places: bool) -> Iterator[tuple[str, str, Span]]:
    """Yield the nodes with two tags of a domain, called after a place or not: label, message and place."""
    reported = set()
    found = [(domain, nodes) for domain, _, _, nodes in _domains_of_groups(context)]
    if names := domains(context, "nlocation"):
        unknown = [group.name for group in context.groups if group.name not in context.tagged_nodes]
        each = tagged_as_groups(context.policy, unknown)
        found += [(domain, each) for domain in names]
    for domain, nodes in found:
        for node in nodes if (domain.lower() in _PLACES) is of_places else ():
            places = [node.tags[tag] for tag in sorted(node.of(domain))]
            declared = [place for place in places if place is not None]
            if len(places) > 1 and declared and declared[-1] not in reported:
                reported.add(declared[-1])
                message = f"node {node.name} is in {' and '.join(sorted(node.of(domain)))} at once"
                yield declared[-1][0], message, declared[-1][1]


_HOUSINGS: Final = frozenset(
    [
        "aisle",
        "blade",
        "cabinet",
        "cage",
        "chassis",
        "data-center",
        "datacenter",
        "datacentre",
        "enclosure",
        "rack",
        "row",
    ]
)
OF_NODES: Final = _HOUSINGS | frozenset(["feed", "pdu", "power", "psu", "ups"])
"""What nodes stand in or hang on, and instances do not."""
_PLACES: Final = _HOUSINGS | frozenset(
    ["az", "building", "campus", "city", "dc", "floor", "hall", "host", "location", "region", "room", "site", "zone"]
)
"""Names of domains that a node is in only once."""


class NodeInTwoPlaces(Rule):
    info = warning_rule("GP528", "node-in-two-places")(
        summary="A node has the tags of two racks, rooms, sites or other places.",
        rationale="A node stands in one place. Most likely it is named in two node sets, or has moved and kept its old"
        " tag: htools then keeps mirrors away from places where the node is not.",
        source=f"{LOCATION}, Failure tags",
        bad=_DIVIDED + _rack("n1", "rack:3"),
        good=_DIVIDED,
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for label, message, span in _in_two(context, of_places=True):
            yield self.hit(label, message, span, hint="leave it the tag of the place where it is")


def _has_almost(node: TaggedNode, domain: str) -> bool:
    """Return whether a node has a tag that GP522 takes for a mistyped one of a domain."""
    return any(place is not None and almost_in(tag, domain) for tag, place in node.tags.items())


def _domains_of_groups(
    context: Context, family: str = "nlocation"
) -> Iterator[tuple[str, Tag | None, str, tuple[TaggedNode, ...]]]:
    """Yield each domain of a family with each group whose nodes are known, and the declared tag (None: observed)."""
    names = domains(context, family)
    for group, nodes in context.tagged_nodes.items() if names else ():
        for domain, tag in names.items():
            yield domain, tag, group, nodes


def _place(nodes: tuple[TaggedNode, ...], domain: str, tag: Tag | None) -> tuple[str, Span | None]:
    """Return the object and the place that a finding about a domain is shown at: a declared node tag, else the rule."""
    for node in nodes:
        for text in sorted(node.of(domain)):
            place = node.tags[text]
            if place is not None:
                return place
    return ("cluster", tag.span) if tag else ("cluster", None)
