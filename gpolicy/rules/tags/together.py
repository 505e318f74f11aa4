"""GP525 to GP527: domains beside one another, and what together they leave for the mirrors of a group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.tags import HTOOLS, TaggedNode
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.printable import some
from gpolicy.rules.examples import GROUP
from gpolicy.rules.tags.domains import (
    LOCATION,
    OF_NODES,
    allowed_migrations,
    domains,
    has_mirrors,
    in_two,
    may_receive,
    suffixes,
)

_MOST_KINDS: Final = 300
"""Different sets of tags in a group that are compared with one another."""
_NODES: Final = f"{GROUP}nodes: [n1, n2, n3, n4]\n---\n"


def _set(nodes: str, *tags: str) -> str:
    shown = ", ".join(f'"{tag}"' for tag in tags)
    name = f"{tags[0].replace(':', ' ')} of {nodes}"
    return f"---\ngpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: [{nodes}]\ntags: [{shown}]\n"


_RACKS: Final = _set("n1, n2", "rack:1") + _set("n3, n4", "rack:2")
_RULES: Final = "gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\nmigration: {domains: [hv]}\n"


class ExclusionOfNodeTags(Rule):
    info = warning_rule("GP525", "exclusion-of-node-tags")(
        summary="An exclusion rule is about tags of nodes.",
        rationale="htools compares exclusion tags of instances only: two with the same tag do not share a node. Tags"
        " of nodes have no effect there; what nodes share are failure domains.",
        source=f"{LOCATION}; htools of Ganeti 2.15 to 3.1",
        bad="gpolicy: v1\nkind: TagRules\nexclusion: [rack]\nfailure_domains: [rack]\n",
        good="gpolicy: v1\nkind: TagRules\nexclusion: [service]\nfailure_domains: [rack]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        names = suffixes(context.tags, "nlocation") | suffixes(context.tags, "migration")
        of_nodes = sorted({tag.text for tag in context.tags if tag.level is Level.NODE and not tag.family})
        for tag in context.tags:
            if tag.family != "iextags" or not tag.suffix or tag.suffix.startswith(HTOOLS):
                continue
            name = tag.suffix.rstrip(":")
            place = bisect_left(of_nodes, tag.suffix)
            node_tag = next((text for text in of_nodes[place : place + 1] if text.startswith(tag.suffix)), None)
            if name in names or name.lower() in OF_NODES or node_tag is not None:
                message = f"{name} is a domain of nodes, and exclusion is about instances"
                if node_tag is not None and name not in names:
                    message = f"nodes have the tag {node_tag}, and exclusion is about tags of instances"
                yield self.hit(tag.label, message, tag.span, hint="name what instances have in common: service")


class DomainsLeaveNone(Rule):
    info = warning_rule("GP526", "domains-leave-none")(
        summary="Each domain leaves a node others of its group for its mirrors, but no other node suits all domains.",
        rationale="The secondary of a DRBD instance should share no failure domain with its primary, and an instance"
        " can only migrate to it where migration tags allow that. Where these leave no node, every mirrored instance"
        " there either shares a failure domain with itself, or cannot migrate between its two nodes.",
        source=f"{LOCATION}, Failure tags and Migration tags",
        bad=_NODES + _RULES + _set("n1, n2", "rack:1", "hv:4") + _set("n3, n4", "rack:2", "hv:5"),
        good=_NODES + _RULES + _RACKS + _set("n2, n3", "hv:4") + _set("n1, n4", "hv:5"),
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        failure, migration = sorted(domains(context, "nlocation")), sorted(domains(context, "migration"))
        if len(failure) + bool(migration) < 2:
            return
        allowed = allowed_migrations(context)
        for group in context.groups:
            nodes = context.tagged_nodes.get(group.name, ()) if has_mirrors(context, group) else ()
            kinds: dict[tuple[frozenset[str], ...], list[TaggedNode]] = {}
            for node in nodes:
                moving = frozenset(tag for name in migration for tag in node.of(name))
                kinds.setdefault((moving, *(node.of(name) for name in failure)), []).append(node)
            if len(kinds) > _MOST_KINDS:
                continue
            alone = [node for kind, alike in kinds.items() if _is_left_alone(kind, kinds, allowed) for node in alike]
            if alone:
                names = ", ".join(dict.fromkeys((*failure, *migration)))
                message = (
                    f"group {group.name}: no node suits {some([node.name for node in alone])} as the other node of a"
                    f" mirrored instance, by {names} together"
                )
                places = (node.tags[tag] for node in alone for tag in sorted(node.tags) if node.tags[tag] is not None)
                label, span = next(places, None) or (group.label, group.span)
                hint = "spread the tags so that they cross, or remove a domain"
                yield self.hit(label, message, span, hint=hint)


def _is_left_alone(
    kind: tuple[frozenset[str], ...],
    kinds: dict[tuple[frozenset[str], ...], list[TaggedNode]],
    allowed: set[tuple[str, ...]],
) -> bool:
    """Return whether each domain leaves others for nodes with these tags, but all together none."""
    moving, *places = kind
    others = [other for other, alike in kinds.items() if other != kind or len(alike) > 1]
    suits = [
        (
            _may_move(moving, other[0], allowed),
            *(mine.isdisjoint(its) for mine, its in zip(places, other[1:], strict=True)),
        )
        for other in others
    ]
    return bool(suits) and all(any(each) for each in zip(*suits, strict=True)) and not any(all(one) for one in suits)


def _may_move(one: frozenset[str], other: frozenset[str], allowed: set[tuple[str, ...]]) -> bool:
    """Return whether an instance may migrate between nodes with these tags, in one direction at least."""
    return may_receive(other, one, allowed) or may_receive(one, other, allowed)


class NodeInTwoMigrationDomains(Rule):
    info = warning_rule("GP527", "two-migration-tags")(
        summary="A node has two tags of the same migration domain.",
        rationale="Such a tag says what instances need of their node, such as the version of its hypervisor, of which"
        " a node has one. A target must suit both tags.",
        source=f"{LOCATION}, Migration tags",
        bad=_NODES + _RULES + _RACKS + _set("n3, n4", "hv:4") + _set("n1, n2", "hv:4", "hv:5"),
        good=_NODES + _RULES + _RACKS + _set("n1, n2, n3, n4", "hv:4"),
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for label, message, span in in_two(context, domains(context, "migration")):
            yield self.hit(label, message, span, hint="leave it one of the tags")
