"""GP5xx: tags that htools and the watcher read: what they are made of, where they stand, and what prefixes mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.tags import HTOOLS, Tag
from gpolicy.findings import REFUSED, Span, copied
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.vocabulary import TAG_FAMILIES, Level
from gpolicy.guessing import did_you_mean
from gpolicy.policy import edits
from gpolicy.policy.model import OwnedPrefix
from gpolicy.printable import some
from gpolicy.rules.tags.domains import begins_of, sides, suffixes, without_prefix, without_tag

_LONGEST: Final = 128
_REPAIR: Final = "ganeti:watcher:autorepair:"
_REPAIR_TYPES: Final = ("fix-storage", "migrate", "failover", "reinstall")
_STANDBY: Final = "htools:standby:"
_OF_TOOLS: Final = (f"{_REPAIR}pending:", f"{_REPAIR}result:", f"{_STANDBY}auto")
_SEPARATORS: Final = re.compile(r"[^A-Za-z]")
_FAMILIES: Final = (*(prefix.rstrip(":") for prefix in TAG_FAMILIES.values()), _STANDBY.rstrip(":"))
_RAW: Final = ("iextags", "desiredlocation")
"""Families that are compared with the beginning of instance tags as they are."""


@error("GP501", stays=REFUSED)
def tag_grammar(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        if len(tag.text) > _LONGEST:
            message = f"the tag has {len(tag.text)} characters: {tag.text[:40]}…"
            yield hit(tag.label, message, tag.span, f"a tag has at most {_LONGEST}")
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
            fix = edits.replace_word(context.policy, tag.span, tag.text, right) if is_new else None
            yield hit(tag.label, f"no tool reads tags {begin}:…", tag.span, hint, fix=fix)


def _misspelt_family(tag: Tag) -> tuple[str, str]:
    """Return what the tag begins with in place of a family, and the family that must be meant (or nothing for each)."""
    run_together = _run_together(tag.text)
    if run_together[0]:
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
            yield hit(tag.label, message, tag.span, "leave it out of the policy", fix=without_tag(context, tag))
    for rules in context.policy.tag_rules:
        for owned in rules.owns:
            if is_of_tool(owned.value):
                covered = next(text for text in _OF_TOOLS if _covers(owned.value.prefix, text))
                message = f"owning {owned.value.prefix} would remove tags {covered}… that belong to a tool"
                yield hit("cluster", message, owned.span, "own a narrower prefix")


def is_of_tool(owned: OwnedPrefix) -> bool:
    """Return whether an owned prefix covers tags that a tool sets and removes itself."""
    covered = [text for text in _OF_TOOLS if _covers(owned.prefix, text)]
    standby_only = covered == [_OF_TOOLS[2]] and Level.NODE not in owned.levels
    return bool(covered) and not standby_only


def _covers(prefix: str, tag: str) -> bool:
    return tag.startswith(prefix) or prefix.startswith(tag)


@warning("GP509")
def tag_wrong_level(context: Context) -> Iterator[Hit]:
    names = suffixes(context.tags, "nlocation", "migration")
    for tag in context.tags:
        is_of_nodes = tag.text.startswith(_STANDBY) or not names.isdisjoint(begins_of(tag.text))
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
    if release_key(context.version) >= (2, 16):
        return
    for tag in context.tags:
        if tag.family in ("nlocation", "desiredlocation"):
            message = f"Ganeti {context.version} does not read {TAG_FAMILIES[tag.family]}…"
            yield hit(tag.label, message, tag.span, "it needs 2.16 or later")


@lru_cache(maxsize=1024)  # most tags begin with one of a few words
def _alike(word: str, known: str) -> bool:
    """Return whether a word is most likely `known`, misspelt."""
    return SequenceMatcher(None, word, known).ratio() >= 0.8


@warning("GP506")
def tag_raw_prefix(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        is_read = tag.level is Level.CLUSTER  # else GP509
        if is_read and tag.family in _RAW and not tag.typed and tag.suffix[-1:] not in ("", ":"):
            message = f"{tag.text} matches every instance tag that starts with {tag.suffix!r}"
            hint = f'write "{tag.text}:" for tags {tag.suffix}:…, or use `raw` in TagRules for the bare prefix'
            yield hit(tag.label, message, tag.span, hint)


@error("GP512")
def tag_rule_with_prefix(context: Context) -> Iterator[Hit]:
    for tag in context.tags:
        for written in sides(tag) if tag.family == "allowmigration" else (tag.suffix,):
            if tag.typed and written.startswith(HTOOLS):
                meant = without_prefix(written)
                hint = f"write {meant}" if meant else "write only what the rule is about"
                fix = edits.replace_word(context.policy, tag.span, written.rstrip(":"), meant) if meant else None
                yield hit(tag.label, f"{written.rstrip(':')} would become the tag {tag.text}", tag.span, hint, fix=fix)


@warning("GP513")
def tag_suffix_colon(context: Context) -> Iterator[Hit]:
    there = {(tag.label, tag.text) for tag in context.tags}
    for tag in context.tags:
        if tag.family in ("nlocation", "migration") and tag.suffix.strip(":") and tag.suffix.endswith(":"):
            meant = tag.text.rstrip(":")
            message = f"{tag.text} matches node tags {tag.suffix}:…, with two colons"
            is_new = (tag.label, meant) not in there  # a list may not name it twice
            fix = edits.replace_word(context.policy, tag.span, tag.text, meant) if is_new else None
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
            if HTOOLS.startswith(prefix) and Level.CLUSTER in levels and not is_of_tool(owned.value):
                message = f"owning {prefix} removes every rule of htools that the policy does not declare"
                yield hit("cluster", message, owned.span, "own families: iextags, nlocation, …")
            elif not prefix.endswith(":") and not is_of_tool(owned.value):
                gone = sorted(tag for tag in live - kept if Level.CLUSTER in levels and tag.startswith(prefix))
                message = f"owning {prefix} removes every tag that starts with it, such as {(*gone, f'{prefix}x:…')[0]}"
                keep = f", and declare {some(gone, 3)} if that is to stay" if gone else ""
                yield hit("cluster", message, owned.span, f'write "{prefix}:" with a colon{keep}')
