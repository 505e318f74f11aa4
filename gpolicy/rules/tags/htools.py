"""GP5xx: tags that htools and the watcher read, where they stand; migration tags, and domains beside one another."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from heapq import nsmallest
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.tags import HTOOLS, Tag, TaggedNode
from gpolicy.findings import REFUSED, Related, Role, Span, copied
from gpolicy.ganeti.vocabulary import TAG_FAMILIES, Level
from gpolicy.guessing import Guesses, did_you_mean, is_one_slip
from gpolicy.policy import edits
from gpolicy.policy.model import OwnedPrefix
from gpolicy.printable import listed, some
from gpolicy.rules.shared import grouped
from gpolicy.rules.tags import domains

_LONGEST_TAG: Final = 128
_REPAIR: Final = "ganeti:watcher:autorepair:"
_REPAIR_TYPES: Final = ("fix-storage", "migrate", "failover", "reinstall")
_STANDBY: Final = "htools:standby:"
_OF_TOOLS: Final = (f"{_REPAIR}pending:", f"{_REPAIR}result:", f"{_STANDBY}auto")
_SEPARATORS: Final = re.compile(r"[^A-Za-z]")
_FAMILIES: Final = (*(prefix.rstrip(":") for prefix in TAG_FAMILIES.values()), _STANDBY.rstrip(":"))
_NodeTags = tuple[frozenset[str], ...]
"""The tags of migration of some nodes, and those of each failure domain."""
_RAW: Final = ("iextags", "desiredlocation")
"""Families that are compared with the beginning of instance tags as they are."""


@error("GP501", stays=REFUSED)
def tag_grammar(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        if len(tag.text) > _LONGEST_TAG:
            message = f"the tag has {len(tag.text)} characters: {tag.text[:40]}…"
            yield hit(tag.label, message, tag.span, f"a tag has at most {_LONGEST_TAG}")
        elif not re.fullmatch(r"[A-Za-z0-9_.+*/:@-]+", tag.text):
            message = f"{tag.text!r} has characters that a tag cannot have"
            yield hit(tag.label, message, tag.span, "use A-Z a-z 0-9 _ . + * / : @ -")


@warning("GP502")
def htools_tag_unknown(context: Context) -> Iterator[Hit]:
    there = {(tag.label, tag.text) for tag in context.tags}
    for tag in context.tags:
        begin, meant = _misspelt_family(tag)
        if begin:
            right = meant + tag.text[len(begin) :]
            hint = f"Did you mean `{right}`?" if meant else f"known: {', '.join(_FAMILIES)}"
            is_new = bool(meant) and (tag.label, right) not in there  # a list may not name it twice
            fix = edits.replace_word(context.policy.files, tag.span, tag.text, right) if is_new else None
            yield hit(tag.label, f"no tool reads tags {begin}:…", tag.span, hint, fix=fix)


def _misspelt_family(tag: Tag) -> tuple[str, str]:
    """Return what the tag begins with in place of a family, and the family that must be meant (or nothing for each)."""
    if (run_together := _run_together(tag.text))[0]:
        return run_together
    first, _, rest = tag.text.partition(":")
    begin = f"{first}:{rest.partition(':')[0]}" if rest else first
    if begin in _FAMILIES:
        return "", ""
    if _alike(first.lower(), "htools"):
        close = get_close_matches(begin.lower(), _FAMILIES, n=2, cutoff=0.8)
        return begin, close[0] if close else ""
    if tag.level is Level.CLUSTER and rest:
        close = [family for family in _FAMILIES if family == f"{HTOOLS}{first.lower()}"]
        return (first, close[0]) if close else ("", "")
    return "", ""


def _run_together(text: str) -> tuple[str, str]:
    """Return a begin with the letters of a family, but not its colons, and the family (or nothing for each)."""
    for family in _FAMILIES if re.match(r"htools(?!:[a-z]+:)", text) else ():
        parts = _SEPARATORS.sub("", family)
        begin = next((text[:end] for end in range(len(text) + 1) if _SEPARATORS.sub("", text[:end]) == parts), "")
        rest = text[len(begin) :]
        if begin and begin != family and rest[:1] in (*"-_./:", ""):
            return begin, family
    return "", ""


@error("GP503")
def tag_without_suffix(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        for family, prefix in TAG_FAMILIES.items():
            if tag.text in (prefix, prefix.rstrip(":")):
                hint = f"write what the {family} rule is about: {prefix}NAME"
                yield hit(tag.label, f"nothing follows {prefix}: the tag has no effect", tag.span, hint)


@error("GP508")
def tag_of_tool(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        if any(f"{tag.text}:".startswith(prefix) for prefix in _OF_TOOLS[:2]) or tag.text == _OF_TOOLS[2]:
            message = f"{tag.text} belongs to the tool that sets it"
            yield hit(tag.label, message, tag.span, "leave it out of the policy", fix=domains.remove_tag(context, tag))
    for rules in context.policy.tag_rules:
        for owned in rules.owns:
            if covered := of_tool(owned.value):
                message = f"owning {owned.value.prefix} would remove tags {covered}… that belong to a tool"
                yield hit("cluster", message, owned.span, "own a narrower prefix")


def of_tool(owned: OwnedPrefix) -> str:
    """Return the first of the tags that a tool sets and removes itself which an owned prefix covers; or nothing."""
    covered = [text for text in _OF_TOOLS if text.startswith(owned.prefix) or owned.prefix.startswith(text)]
    standby_only = covered == [_OF_TOOLS[2]] and Level.NODE not in owned.levels
    return covered[0] if covered and not standby_only else ""


@warning("GP509")
def tag_wrong_level(context: Context) -> Iterator[Hit]:
    names = domains.declared_suffixes(context.tags, "nlocation", "migration")
    for tag in context.tags:
        is_of_nodes = tag.text.startswith(_STANDBY) or not names.isdisjoint(domains.prefixes_of(tag.text))
        if tag.family and tag.level is not Level.CLUSTER:
            right = "the cluster"
        elif tag.level is not Level.NODE and is_of_nodes:
            right = "nodes"
        elif tag.text.startswith(_REPAIR) and tag.level is Level.NODE:
            right = "the cluster, groups and instances"
        else:
            continue
        yield hit(tag.label, f"{tag.text} has no effect on a {tag.level}", tag.span, f"tools read it from {right} only")


@warning("GP510")
def autorepair_unknown(context: Context) -> Iterator[Hit]:
    first: dict[str, Tag] = {}
    for tag in context.tags:
        if tag.text.removeprefix(_REPAIR) in _REPAIR_TYPES and tag.text.startswith(_REPAIR):
            other = first.setdefault(tag.label, tag)
            if other.text != tag.text:
                message = f"{other.text} is there too, and harep takes the gentler of the two"
                yield hit(tag.label, message, tag.span, "keep one of them")
        begin, kind = tag.text[: len(_REPAIR)], tag.text.removeprefix(_REPAIR)
        if begin != _REPAIR:
            if _alike(tag.text.partition(":")[0], "ganeti") and _alike(begin.lower(), _REPAIR):
                yield hit(tag.label, f"harep reads no tags {begin}…", tag.span, f"write {_REPAIR}…")
            continue
        if kind not in _REPAIR_TYPES and not re.fullmatch(r"suspend(:[0-9]+)?|(pending|result)(:.*)?", kind):
            words = f"{', '.join(_REPAIR_TYPES)}, suspend or suspend:TIME (seconds since 1970)"
            hint = did_you_mean(kind, _REPAIR_TYPES, f"write {words}")
            what = "time" if kind.startswith("suspend:") else "repair"
            yield hit(tag.label, f"harep knows no {what} {kind.removeprefix('suspend:')!r}", tag.span, hint)


@warning("GP511")
def tag_not_in_version(context: Context) -> Iterator[Hit]:
    for tag in context.tags if not context.is_since("2.16") else ():
        if tag.family in ("nlocation", "desiredlocation"):
            message = f"Ganeti {context.version} does not read {TAG_FAMILIES[tag.family]}…"
            yield hit(tag.label, message, tag.span, "it needs 2.16 or later")


@lru_cache(maxsize=1024)  # most tags begin with one of a few words
def _alike(word: str, known: str) -> bool:
    """Return whether a word is most likely `known`, misspelt."""
    return SequenceMatcher(None, word, known).ratio() >= 0.8


@warning("GP506", explains=12, role=Role.ALSO_RELATED)
def tag_raw_prefix(context: Context) -> Iterator[Hit]:
    made = [tag for tag in context.tags if tag.typed]
    for tag in context.tags:
        is_read = tag.level is Level.CLUSTER  # else GP509
        if is_read and tag.family in _RAW and not tag.typed and tag.suffix[-1:] not in ("", ":"):
            message = f"{tag.text} matches every instance tag that starts with {tag.suffix!r}"
            hint = f'write "{tag.text}:" for tags {tag.suffix}:…, or use `raw` in TagRules for the bare prefix'
            same = next((other for other in made if other.text == f"{tag.text}:"), None)
            hint = "TagRules makes this tag, with its colon: remove it" if same else hint
            yield hit(tag.label, message, tag.span, hint, see(same.span if same else None, "made here"))


@error("GP512")
def tag_rule_with_prefix(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        for written in domains.two_sides(tag) if tag.family == "allowmigration" else (tag.suffix,):
            if tag.typed and written.startswith(HTOOLS):
                meant = domains.without_htools_prefix(written)
                hint = f"write {meant}" if meant else "write only what the rule is about"
                fix = edits.replace_word(context.policy.files, tag.span, written.rstrip(":"), meant) if meant else None
                yield hit(tag.label, f"{written.rstrip(':')} would become the tag {tag.text}", tag.span, hint, fix=fix)


@warning("GP513")
def tag_suffix_colon(context: Context) -> Iterator[Hit]:
    there = {(tag.label, tag.text) for tag in context.tags}
    for tag in context.tags:
        if tag.family in ("nlocation", "migration") and tag.suffix.strip(":") and tag.suffix.endswith(":"):
            meant = tag.text.rstrip(":")
            message = f"{tag.text} matches node tags {tag.suffix}:…, with two colons"
            is_new = (tag.label, meant) not in there  # a list may not name it twice
            fix = edits.replace_word(context.policy.files, tag.span, tag.text, meant) if is_new else None
            yield hit(tag.label, message, tag.span, f"write {meant}", fix=fix)
        elif tag.family in _RAW and tag.suffix.endswith("::"):
            message = f"{tag.text} matches tags {tag.suffix}…, with two colons"
            yield hit(tag.label, message, tag.span, f"write one colon less: {tag.suffix[:-1]}…")


@warning("GP514")
def tag_prefix_covered(context: Context) -> Iterator[Hit]:
    tags = [tag for tag in context.tags if tag.family in _RAW and tag.suffix and tag.level is Level.CLUSTER]
    first = {(tag.family, tag.suffix): tag for tag in reversed(tags)}
    for tag in tags:
        shorter = (tag.suffix[:length] for length in range(1, len(tag.suffix)))
        wider = next((first[tag.family, begin] for begin in shorter if (tag.family, begin) in first), None)
        if wider is not None:
            message = f"all tags {tag.suffix}… are covered by {wider.suffix}… already"
            hint = "remove this one, or narrow the wider one with a closing colon"
            yield hit(tag.label, message, tag.span, hint, see(wider.span, "the wider one"))


@warning("GP515", when=When.MORE_WITH_STATE)
def owned_prefix_reach(context: Context) -> Iterator[Hit]:
    seen: dict[str, set[Level]] = {}
    first: dict[str, Span] = {}
    kept, live = {tag.text for tag in context.tags}, context.observed.cluster.tags
    for rules in context.policy.tag_rules:
        for owned in rules.owns:
            prefix, levels = owned.value.prefix, owned.value.levels
            before = first.setdefault(prefix, owned.span)
            if levels & seen.setdefault(prefix, set()):
                message, hint = f"{prefix} is owned twice", "remove one of the two"
                yield hit("cluster", message, owned.span, hint, missing=copied(owned.span, before))
            seen[prefix] |= levels
            if HTOOLS.startswith(prefix) and Level.CLUSTER in levels and not of_tool(owned.value):
                message = f"owning {prefix} removes every rule of htools that the policy does not declare"
                yield hit("cluster", message, owned.span, "own families: iextags, nlocation, …")
            elif not prefix.endswith(":") and not of_tool(owned.value):
                gone = sorted(tag for tag in live - kept if Level.CLUSTER in levels and tag.startswith(prefix))
                message = f"owning {prefix} removes every tag that starts with it, such as {(*gone, f'{prefix}x:…')[0]}"
                keep = f", and declare {some(gone, 3)} if that is to stay" if gone else ""
                yield hit("cluster", message, owned.span, f'write "{prefix}:" with a colon{keep}')


@error("GP504")
def allowmigration_form(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        if tag.family == "allowmigration" and tag.suffix and len(domains.two_sides(tag)) != 2:
            hint = "declare it in a TagRules document: migration.allow: [{from: …, to: …}]"
            yield hit(tag.label, f"{tag.suffix!r} is not FROM::TO with exactly one ::", tag.span, hint)


@warning("GP505", When.MORE_WITH_STATE | When.WHOLE, explains=14)
def allowmigration_without_domain(context: Context) -> Iterator[Hit]:
    begins = tuple(f"{name}:" for name in domains.domains_of(context, "migration"))
    tags, guess = sorted(context.once(domains.known_node_tags), reverse=True), Guesses()
    having = {text.partition(":")[2]: text for text in tags}
    for tag, outside in context.once(_outside_domains).items():
        domain = outside[0].partition(":")[0]
        meant = [having[side] for side in outside if side in having]
        near = guess(outside[0], [text for text in tags if text.startswith(begins)], cutoff=domains.CLOSE)
        hint = f"{f'Did you mean `{near}`? Else ' if near else ''}declare the domain {domain!r} (migration.domains)"
        hint = f"Did you mean {' and '.join(meant)}, which nodes have?" if meant else hint
        message = f"{' and '.join(map(repr, outside))} {'belong' if outside[1:] else 'belongs'} to no migration domain"
        yield hit(tag.label, message, tag.span, hint, missing=f"migration domain {domain}")


def _outside_domains(context: Context) -> dict[Tag, list[str]]:
    """Return the exceptions with a tag outside all migration domains, each with these tags."""
    known = domains.declared_suffixes(context.tags, "migration") | domains.observed_suffixes(context, "migration")
    found = {}
    for tag in domains.exceptions(context):
        apart = (side for side in dict.fromkeys(domains.two_sides(tag)) if not (tag.typed and side.startswith(HTOOLS)))
        found[tag] = [side for side in apart if known.isdisjoint(domains.prefixes_of(side))]
    return {tag: outside for tag, outside in found.items() if outside}


@warning("GP516", explains=14)
def allowmigration_pointless(context: Context) -> Iterator[Hit]:
    first, known = dict[str, Tag](), set(domains.declared_node_tags(context))
    for tag in domains.exceptions(context):
        source, target = domains.two_sides(tag)
        earlier = first.setdefault(tag.suffix, tag)
        if source == target:
            message = f"a node with {target} accepts instances from one with {source} anyway"
            begin = tuple(f"{domain}:" for domain in domains.prefixes_of(source)[:1])
            others = {text for text in known if text.startswith(begin)} - {source}
            listed = f": {some(nsmallest(8, others), 8)}" if others else ""
            yield hit(tag.label, message, tag.span, f"write the tag of the other nodes on one side{listed}")
        elif earlier is not tag:
            related = see(earlier.span, "already written here")
            message = f"{source} to {target} is allowed already"
            yield hit(tag.label, message, tag.span, "remove it", related, fix=domains.remove_tag(context, tag))


@warning("GP517", When.MORE_WITH_STATE | When.WHOLE, explains=13)
def tag_without_node(context: Context) -> Iterator[Hit]:
    guess = Guesses()
    yield from _unused_domains(context, guess)
    yield from _unused_exceptions(context, guess)


def _unused_domains(context: Context, guess: Guesses) -> Iterator[Hit]:
    """Yield the declared domains of which no node has a tag, where it is known what tags nodes have or are to have."""
    known = context.once(domains.known_node_tags)
    kinds = {tag.partition(":")[0] for tag in known if ":" in tag}
    used = {begin for tag in known for begin in domains.prefixes_of(tag)}
    declared = {begin for tag in domains.declared_node_tags(context) for begin in domains.prefixes_of(tag)}
    names = domains.domains_of_nodes(context)
    owned = {item.prefix.rstrip(":") for item in context.policy.owned if Level.NODE in item.levels}
    is_said = not used.isdisjoint(names) or not (owned & declared).issubset(names)  # which tags nodes are to have
    unread = sorted((owned & kinds).difference(names))
    places = domains.unread_places(context) or (unread if len(unread) == 1 else [])
    misspelt = domains.misspelt_domains(context)
    apart = {side.partition(":")[0] for outside in context.once(_outside_domains).values() for side in outside}
    for family, others, wanted in (("nlocation", places, ""), ("migration", [], min(apart, default=""))):
        for domain, tag in domains.domains_of(context, family).items():
            if tag is None or domain in used:
                continue
            slips = (kind for kind in kinds if is_one_slip(domain, kind) or domain.startswith(f"{kind}:"))
            about = wanted if wanted in kinds else ""  # the exceptions are about it
            close = about or guess(domain, kinds, cutoff=domains.CLOSE) or next(slips, "")
            if context.state is None and not (close or is_said or others):
                continue
            if ":" in domain and domain in known:
                hint = f"Did you mean `{domain.partition(':')[0]}`, what stands before the value of a tag?"
            elif close and domain in owned - {close}:
                hint = f"rename the tags {close}:… to {domain}:…, as in `owns`; or write {close}"
            elif close not in ("", wanted) and context.state is None and domain not in misspelt:  # as GP522 says
                hint = f"correct the domain, or the tags {close}:…"
            elif close:
                hint = f"Did you mean `{close}`?"
            else:
                asked = f"is {listed(others, 'or')} meant, which nodes have? Else " if others else ""
                hint = f"{asked}tag the nodes {domain}:…"
            lacking = f"migration domain {wanted}" if close == wanted else f"tags of domain {domain}"
            yield hit(tag.label, f"no node has a tag {domain}:…", tag.span, hint, missing=lacking if close else "")


def _unused_exceptions(context: Context, guess: Guesses) -> Iterator[Hit]:
    """Yield the exceptions of migration from or to a tag that no node has."""
    known = context.once(domains.known_node_tags)
    declared = {begin for tag in domains.declared_node_tags(context) for begin in domains.prefixes_of(tag)}
    migration = domains.domains_of(context, "migration")
    for tag in domains.exceptions(context):
        for side in dict.fromkeys(domains.two_sides(tag)):
            covering = {name for name in domains.prefixes_of(side) if name in migration}
            is_judged = context.state is not None or not covering.isdisjoint(declared)
            if covering and side not in known and is_judged:
                alike = {text for text in known if not covering.isdisjoint(domains.prefixes_of(text))}
                near = guess(side, alike - {*domains.two_sides(tag)}, cutoff=0.6)
                asked = f"is {near} meant, or is the nodes' tag wrong? They have {some(nsmallest(8, alike), 8)}"
                hint = asked if near else "tag the nodes, or remove the exception"
                yield hit(tag.label, f"no node has the tag {side}", tag.span, hint)


@warning("GP518", When.MORE_WITH_STATE | When.WHOLE)
def migration_dead_end(context: Context) -> Iterator[Hit]:
    names = domains.domains_of(context, "migration")
    allowed = domains.allowed_migrations(context)
    for group, nodes in context.tagged_nodes.items() if names else ():
        for node in nodes if len(nodes) > 1 else ():
            tags = domains.tags_of(node, names)
            others = [other for other in nodes if other is not node]
            if not tags or any(domains.may_receive(other.tags, tags, allowed) for other in others):
                continue
            if all(domains.may_receive(node.tags, domains.tags_of(other, names), allowed) for other in others):
                continue
            label, span = next((place for tag in sorted(tags) if (place := node.tags[tag])), ("cluster", None))
            tag = next((names[name] for name in names if node.of(name)), None)
            span = span or (tag.span if tag else None)
            message = f"no other node of group {group} accepts instances from {node.name} ({', '.join(sorted(tags))})"
            related = tuple(Related(tag.span, "an exception from its tags") for tag in domains.exceptions(context)[:3])
            yield hit(label, message, span, "give another node the same tags, or allow the migration", related)


@warning("GP530", When.MORE_WITH_STATE)
def migration_downwards(context: Context) -> Iterator[Hit]:
    allowed = domains.allowed_migrations(context)
    for tag in domains.exceptions(context):
        source, target = domains.two_sides(tag)
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
    names = domains.declared_suffixes(context.tags, "nlocation", "migration")
    of_nodes = sorted({tag.text for tag in context.tags if tag.level is Level.NODE and not tag.family})
    for tag in context.tags:
        if tag.family != "iextags" or not tag.suffix or tag.suffix.startswith(HTOOLS):
            continue
        name = tag.suffix.rstrip(":")
        place = bisect_left(of_nodes, tag.suffix)
        node_tag = next((text for text in of_nodes[place : place + 1] if text.startswith(tag.suffix)), None)
        if name in names or name.lower() in domains.DOMAINS_OF_NODES or node_tag is not None:
            message = f"{name} is a domain of nodes, and exclusion is about instances"
            if node_tag is not None and name not in names:
                message = f"nodes have the tag {node_tag}, and exclusion is about tags of instances"
            yield hit(tag.label, message, tag.span, "name what instances have in common: service")


@warning("GP526", When.MORE_WITH_STATE | When.WHOLE)
def domains_leave_none(context: Context) -> Iterator[Hit]:
    failure = sorted(domains.domains_of(context, "nlocation"))
    migration = sorted(domains.domains_of(context, "migration"))
    if len(failure) + bool(migration) < 2:
        return
    allowed = domains.allowed_migrations(context)
    for_others = {item.span for found in context.found_with(Role.LACKS_TAG) for item in found.finding.related}
    for group in context.groups:
        nodes = context.tagged_nodes.get(group.name, ()) if domains.has_mirrors(context, group) else ()
        kinds = grouped(((domains.tags_of(node, migration), *map(node.of, failure)), node) for node in nodes)
        if len(kinds) > 300:  # too many to compare each with each
            continue
        alone = [node for kind, alike in kinds.items() if _is_left_alone(kind, kinds, allowed) for node in alike]
        places = [place for node in alone for tag in sorted(node.tags) if (place := node.tags[tag]) is not None]
        if alone and not any(span in for_others for _, span in places):
            names = ", ".join(dict.fromkeys((*failure, *migration)))
            message = f"group {group.name}: no node suits {some([node.name for node in alone])} as the other node"
            message += f" of a mirrored instance, by {names} together"
            label, span = places[0] if places else (group.label, group.span)
            related = tuple(Related(tag.span, "an exception from its tags") for tag in domains.exceptions(context)[:3])
            yield hit(label, message, span, "spread the tags so that they cross, or remove a domain", related)


def _is_left_alone(kind: _NodeTags, kinds: dict[_NodeTags, list[TaggedNode]], allowed: set[tuple[str, ...]]) -> bool:
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
    return domains.nodes_in_two_places(context, domains.domains_of(context, "migration"), "leave it one of the tags")
