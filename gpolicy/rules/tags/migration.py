"""GP518, GP525 to GP527 and others: migration tags, and domains beside one another (location awareness)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import nsmallest

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.tags import HTOOLS, Tag, TaggedNode
from gpolicy.findings import Related
from gpolicy.ganeti.vocabulary import Level
from gpolicy.guessing import Guesses, is_one_slip
from gpolicy.printable import some
from gpolicy.rules.tags import domains


@error("GP504")
def allowmigration_form(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        if tag.family == "allowmigration" and tag.suffix and len(domains.sides(tag)) != 2:
            hint = "declare it in a TagRules document: migration.allow: [{from: …, to: …}]"
            yield hit(tag.label, f"{tag.suffix!r} is not FROM::TO with exactly one ::", tag.span, hint)


@warning("GP505", When.MORE_WITH_STATE | When.WHOLE, explains=14)
def allowmigration_without_domain(context: Context) -> Iterator[Hit]:
    having = {text.partition(":")[2]: text for text in sorted(domains.known_node_tags(context), reverse=True)}
    for tag, outside in context.once(_outside_domains).items():
        domain = outside[0].partition(":")[0]
        meant = [having[side] for side in outside if side in having]
        hint = f"declare the domain {domain!r} (TagRules: migration.domains)"
        hint = f"Did you mean {' and '.join(meant)}, which nodes have?" if meant else hint
        message = f"{' and '.join(map(repr, outside))} {'belong' if outside[1:] else 'belongs'} to no migration domain"
        yield hit(tag.label, message, tag.span, hint, missing=f"migration domain {domain}")


def _outside_domains(context: Context) -> dict[Tag, list[str]]:
    """Return the exceptions with a tag outside all migration domains, each with these tags."""
    known = domains.suffixes(context.tags, "migration") | domains.observed(context, "migration")
    found = {}
    for tag in domains.exceptions(context):
        apart = (side for side in dict.fromkeys(domains.sides(tag)) if not (tag.typed and side.startswith(HTOOLS)))
        found[tag] = [side for side in apart if known.isdisjoint(domains.begins_of(side))]
    return {tag: outside for tag, outside in found.items() if outside}


@warning("GP516")
def allowmigration_pointless(context: Context) -> Iterator[Hit]:
    first: dict[str, Tag] = {}
    for tag in domains.exceptions(context):
        source, target = domains.sides(tag)
        earlier = first.setdefault(tag.suffix, tag)
        if source == target:
            message = f"a node with {target} accepts instances from one with {source} anyway"
            yield hit(tag.label, message, tag.span, "write the tag of the other nodes on one side")
        elif earlier is not tag:
            related = see(earlier.span, "already written here")
            message = f"{source} to {target} is allowed already"
            yield hit(tag.label, message, tag.span, "remove it", related, fix=domains.without_tag(context, tag))


@warning("GP517", When.MORE_WITH_STATE | When.WHOLE, explains=13)
def tag_without_node(context: Context) -> Iterator[Hit]:
    known = domains.known_node_tags(context)
    kinds = {tag.partition(":")[0] for tag in known if ":" in tag}
    used = {begin for tag in known for begin in domains.begins_of(tag)}
    declared = {begin for tag in domains.declared_node_tags(context) for begin in domains.begins_of(tag)}
    names = domains.domains_of_nodes(context)
    owned = {item.prefix.rstrip(":") for item in context.policy.owned if Level.NODE in item.levels}
    is_said = not used.isdisjoint(names) or not (owned & declared).issubset(names)  # which tags nodes are to have
    guess = Guesses()
    places, misspelt = domains.unread_places(context), domains.misspelt_domains(context)
    apart = {side.partition(":")[0] for outside in context.once(_outside_domains).values() for side in outside}
    for family in ("nlocation", "migration"):
        for domain, tag in domains.domains_of(context, family).items():
            if tag is None or domain in used:
                continue
            slips = (kind for kind in kinds if is_one_slip(domain, kind) or domain.startswith(f"{kind}:"))
            wanted = min(apart, default="") if family == "migration" else ""  # what the exceptions are about
            close = (wanted if wanted in kinds else "") or guess(domain, kinds, cutoff=domains.CLOSE) or next(slips, "")
            others = places if family == "nlocation" else []
            if context.state is not None or close or is_said or others:
                hint = f"tag the nodes {domain}:…{''.join(f', or name {name}, which they have' for name in others)}"
                hint = f"Did you mean `{close}`?" if close else hint
                if close not in ("", wanted) and context.state is None and domain not in misspelt:  # as GP522 says
                    hint = f"correct the domain, or the tags {close}:…"
                if ":" in domain and domain in known:
                    hint = f"Did you mean `{domain.partition(':')[0]}`, what stands before the value of a tag?"
                missing = f"migration domain {wanted}" if wanted and close == wanted else ""
                yield hit(tag.label, f"no node has a tag {domain}:…", tag.span, hint, missing=missing)
    migration = domains.domains_of(context, "migration")
    for tag in domains.exceptions(context):
        for side in dict.fromkeys(domains.sides(tag)):
            covering = {name for name in domains.begins_of(side) if name in migration}
            is_judged = context.state is not None or not covering.isdisjoint(declared)
            if covering and side not in known and is_judged:
                hint = "tag the nodes, or remove the exception"
                alike = {text for text in known if not covering.isdisjoint(domains.begins_of(text))}
                if near := guess(side, alike - {*domains.sides(tag)}, cutoff=0.6):
                    hint = f"is {near} meant, or is the nodes' tag wrong? They have {some(nsmallest(8, alike), 8)}"
                yield hit(tag.label, f"no node has the tag {side}", tag.span, hint)


@warning("GP518", When.MORE_WITH_STATE | When.WHOLE)
def migration_dead_end(context: Context) -> Iterator[Hit]:
    names = domains.domains_of(context, "migration")
    allowed = domains.allowed_migrations(context)
    for group, nodes in context.tagged_nodes.items() if names else ():
        for node in nodes if len(nodes) > 1 else ():
            tags = _migration_tags(node, names)
            others = [other for other in nodes if other is not node]
            if not tags or any(domains.may_receive(other.tags, tags, allowed) for other in others):
                continue
            if all(domains.may_receive(node.tags, _migration_tags(other, names), allowed) for other in others):
                continue
            label, span = next((place for tag in sorted(tags) if (place := node.tags[tag])), ("cluster", None))
            tag = next((names[name] for name in names if node.of(name)), None)
            span = span or (tag.span if tag else None)
            message = f"no other node of group {group} accepts instances from {node.name} ({', '.join(sorted(tags))})"
            yield hit(label, message, span, "give another node the same tags, or allow the migration")


def _migration_tags(node: TaggedNode, names: Iterable[str]) -> frozenset[str]:
    return frozenset(tag for name in names for tag in node.of(name))


@warning("GP530", When.MORE_WITH_STATE)
def migration_downwards(context: Context) -> Iterator[Hit]:
    allowed = domains.allowed_migrations(context)
    for tag in domains.exceptions(context):
        source, target = domains.sides(tag)
        (name, old), (same, new) = _version(source), _version(target)
        if name == same and old > new and (target, source) not in allowed:
            message = f"instances may go from {source} to {target}, but not from {target} to {source}"
            yield hit(tag.label, message, tag.span, "exchange `from` and `to`, or allow both ways")


def _version(tag: str) -> tuple[str, list[int]]:
    """Return what a tag begins with and the version that it ends with, empty if with none."""
    found = re.fullmatch(r"(.*:)v?([0-9]{1,9}(?:\.[0-9]{1,9})*)", tag)
    return (found[1], [int(part) for part in found[2].split(".")]) if found else (tag, [])


@warning("GP525")
def exclusion_of_node_tags(context: Context) -> Iterator[Hit]:
    names = domains.suffixes(context.tags, "nlocation", "migration")
    of_nodes = sorted({tag.text for tag in context.tags if tag.level is Level.NODE and not tag.family})
    for tag in context.tags:
        if tag.family != "iextags" or not tag.suffix or tag.suffix.startswith(HTOOLS):
            continue
        name = tag.suffix.rstrip(":")
        place = bisect_left(of_nodes, tag.suffix)
        node_tag = next((text for text in of_nodes[place : place + 1] if text.startswith(tag.suffix)), None)
        if name in names or name.lower() in domains.OF_NODES or node_tag is not None:
            message = f"{name} is a domain of nodes, and exclusion is about instances"
            if node_tag is not None and name not in names:
                message = f"nodes have the tag {node_tag}, and exclusion is about tags of instances"
            yield hit(tag.label, message, tag.span, "name what instances have in common: service")


@warning("GP526", When.MORE_WITH_STATE | When.WHOLE)
def domains_leave_none(context: Context) -> Iterator[Hit]:
    failure, migration = (
        sorted(domains.domains_of(context, "nlocation")),
        sorted(domains.domains_of(context, "migration")),
    )
    if len(failure) + bool(migration) < 2:
        return
    allowed = domains.allowed_migrations(context)
    for group in context.groups:
        nodes = context.tagged_nodes.get(group.name, ()) if domains.has_mirrors(context, group) else ()
        kinds: dict[tuple[frozenset[str], ...], list[TaggedNode]] = {}
        for node in nodes:
            kinds.setdefault((_migration_tags(node, migration), *(node.of(name) for name in failure)), []).append(node)
        if len(kinds) > 300:  # too many to compare each with each
            continue
        alone = [node for kind, alike in kinds.items() if _is_left_alone(kind, kinds, allowed) for node in alike]
        if alone:
            names = ", ".join(dict.fromkeys((*failure, *migration)))
            message = f"group {group.name}: no node suits {some([node.name for node in alone])} as the other node"
            message += f" of a mirrored instance, by {names} together"
            places = (node.tags[tag] for node in alone for tag in sorted(node.tags) if node.tags[tag] is not None)
            label, span = next(places, None) or (group.label, group.span)
            related = tuple(Related(tag.span, "an exception from its tags") for tag in domains.exceptions(context)[:3])
            yield hit(label, message, span, "spread the tags so that they cross, or remove a domain", related)


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
            domains.may_receive(other[0], moving, allowed) or domains.may_receive(moving, other[0], allowed),
            *(mine.isdisjoint(its) for mine, its in zip(places, other[1:], strict=True)),
        )
        for other in others
    ]
    return bool(suits) and all(any(each) for each in zip(*suits, strict=True)) and not any(all(one) for one in suits)


@warning("GP527", When.MORE_WITH_STATE)
def two_migration_tags(context: Context) -> Iterator[Hit]:
    return domains.in_two(context, domains.domains_of(context, "migration"), "leave it one of the tags")
