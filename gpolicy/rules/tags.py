"""GP5xx: tags that htools and the watcher read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from gpolicy.findings import RuleInfo, Severity, Span
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.parameters import release_key
from gpolicy.policy.schema_kinds import TAG_FAMILIES
from gpolicy.rules.context import Context
from gpolicy.rules.parameters import CLUSTER
from gpolicy.rules.rule import Hit, Rule

_LOCATION: Final = "Improving location awareness of Ganeti"
_LONGEST: Final = 128
_REPAIR: Final = "ganeti:watcher:autorepair:"
_REPAIR_TYPES: Final = ("fix-storage", "migrate", "failover", "reinstall")
_STANDBY: Final = "htools:standby:"
_HTOOLS: Final = "htools:"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag that an object is to have. `typed`: rendered from a TagRules document, not written as it is."""

    label: str
    level: Level
    text: str
    span: Span
    typed: bool

    @property
    def family(self) -> str:
        """The htools family of the tag (`iextags`), or an empty string."""
        return next((name for name, prefix in TAG_FAMILIES.items() if self.text.startswith(prefix)), "")

    @property
    def suffix(self) -> str:
        """What stands behind the family's prefix."""
        return self.text.removeprefix(TAG_FAMILIES[self.family]) if self.family else ""


def declared_tags(context: Context) -> Iterator[Tag]:
    """Yield all tags that the policy declares, those rendered from TagRules on the cluster included."""
    for declared in context.policy.objects:
        for tag in declared.tags or ():
            yield Tag(declared.label, declared.level, tag.value, tag.span, typed=False)
    for rules in context.policy.tag_rules:
        for tag in rules.tags:
            yield Tag("cluster", Level.CLUSTER, tag.value, tag.span, typed=True)


def _cluster_tags(tags: str) -> str:
    return f"{CLUSTER}tags: [{tags}]\n"


class TagGrammar(Rule):
    """A tag that Ganeti does not take."""

    info = RuleInfo(
        code="GP501",
        name="tag-grammar",
        severity=Severity.ERROR,
        summary="A tag that is too long, or has characters that tags cannot have.",
        rationale="Tags have 1 to 128 of the characters A-Z a-z 0-9 _ . + * / : @ and -. Rules written as what they"
        " mean become longer when the htools prefix is put before them.",
        source="Ganeti 3.0, tag checks",
        bad="gpolicy: v1\nkind: TagRules\nmigration:\n  domains: [hv]\n  allow:\n"
        f'    - {{from: "hv:{"4" * 60}", to: "hv:{"5" * 60}"}}\n',
        good='gpolicy: v1\nkind: TagRules\nmigration:\n  allow:\n    - {from: "hv:4", to: "hv:5"}\n  domains: [hv]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            if len(tag.text) > _LONGEST:
                message = f"the tag has {len(tag.text)} characters: {tag.text[:40]}…"
                yield self.hit(tag.label, message, tag.span, hint=f"at most {_LONGEST} are possible")
            elif not re.fullmatch(r"[A-Za-z0-9_.+*/:@-]+", tag.text):
                message = f"{tag.text!r} has characters that a tag cannot have"
                yield self.hit(tag.label, message, tag.span, hint="use A-Z a-z 0-9 _ . + * / : @ -")


class HtoolsTagUnknown(Rule):
    """A tag in htools' name that htools does not know."""

    info = RuleInfo(
        code="GP502",
        name="htools-tag-unknown",
        severity=Severity.WARNING,
        summary="A tag begins with htools:, but no tool reads it.",
        rationale="A misspelt family is silently ignored: the rule that it should make does not exist.",
        source=f"{_LOCATION}; htools of Ganeti 2.15 to 3.1",
        bad=_cluster_tags('"htools:nlocations:rack"'),
        good=_cluster_tags('"htools:nlocation:rack"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        known = [*(prefix.rstrip(":") for prefix in TAG_FAMILIES.values()), _STANDBY.rstrip(":")]
        for tag in declared_tags(context):
            begin = ":".join(tag.text.split(":")[:2])
            if tag.text.split(":")[0].lower() == "htools" and begin not in known:
                close = get_close_matches(begin, known, n=1, cutoff=0.6)
                hint = f"did you mean {close[0]}:?" if close else f"known: {', '.join(known)}"
                yield self.hit(tag.label, f"no tool reads tags {begin}:…", tag.span, hint=hint)


class TagWithoutSuffix(Rule):
    """A family's prefix and nothing behind it."""

    info = RuleInfo(
        code="GP503",
        name="tag-without-suffix",
        severity=Severity.ERROR,
        summary="An htools tag says what family it is of, but not what it is about.",
        rationale="htools ignores a tag with an empty suffix.",
        source=_LOCATION,
        bad=_cluster_tags('"htools:migration:"'),
        good=_cluster_tags('"htools:migration:hv"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            for family, prefix in TAG_FAMILIES.items():
                if tag.text in (prefix, prefix.rstrip(":")):
                    message = f"nothing stands behind {prefix}: the tag has no effect"
                    hint = f"write what the {family} rule is about: {prefix}NAME"
                    yield self.hit(tag.label, message, tag.span, hint=hint)


class AllowMigrationForm(Rule):
    """allowmigration without exactly one double colon."""

    info = RuleInfo(
        code="GP504",
        name="allowmigration-form",
        severity=Severity.ERROR,
        summary="An allowmigration tag is not of the form FROM::TO.",
        rationale="Both sides are migration tags and the suffix has exactly one :: between them; htools ignores any"
        " other form.",
        source=f"{_LOCATION}, Migration tags",
        bad=_cluster_tags('"htools:migration:hv", "htools:allowmigration:hv:4:hv:5"'),
        good=_cluster_tags('"htools:migration:hv", "htools:allowmigration:hv:4::hv:5"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            if tag.family == "allowmigration" and tag.suffix and len(_sides(tag)) != 2:
                message = f"{tag.suffix!r} is not FROM::TO with exactly one ::"
                hint = "or write it in a TagRules document: migration.allow: [{from: …, to: …}]"
                yield self.hit(tag.label, message, tag.span, hint=hint)


def _sides(tag: Tag) -> list[str]:
    """Return what stands on the two sides of the double colon; something else than two texts if malformed."""
    sides = tag.suffix.split("::")
    return sides if all(sides) else []


class AllowMigrationWithoutDomain(Rule):
    """allowmigration about tags that are no migration tags."""

    info = RuleInfo(
        code="GP505",
        name="allowmigration-without-domain",
        severity=Severity.WARNING,
        summary="An allowmigration rule is about a tag that no migration domain of the policy makes relevant.",
        rationale="Node tags restrict migration only when a migration domain covers them: without one there is nothing"
        " to allow, and the rule has no effect.",
        source=f"{_LOCATION}, Migration tags",
        bad='gpolicy: v1\nkind: TagRules\nmigration:\n  allow: [{from: "hv:4", to: "hv:5"}]\n',
        good='gpolicy: v1\nkind: TagRules\nmigration:\n  domains: [hv]\n  allow: [{from: "hv:4", to: "hv:5"}]\n',
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        tags = list(declared_tags(context))
        domains = _suffixes(tags, "migration") | _observed(context, "migration")
        for tag in tags:
            for side in _sides(tag) if tag.family == "allowmigration" and len(_sides(tag)) == 2 else ():
                if not any(side.startswith(f"{domain}:") for domain in domains) and not (
                    tag.typed and side.startswith(_HTOOLS)
                ):
                    message = f"{side!r} belongs to no migration domain"
                    hint = f"declare the domain {side.partition(':')[0]!r} (TagRules: migration.domains)"
                    yield self.hit(tag.label, message, tag.span, hint=hint)


def _suffixes(tags: list[Tag], family: str) -> set[str]:
    """Return what the declared tags of a family are about; what GP512 reports counts as what it means."""
    suffixes = {tag.suffix for tag in tags if tag.family == family}
    return suffixes | {_without_prefix(suffix) for suffix in suffixes if suffix.startswith(_HTOOLS)}


def _observed(context: Context, family: str) -> set[str]:
    """Return the suffixes of a family's tags that the observed cluster has."""
    prefix = TAG_FAMILIES[family]
    tags = context.state.cluster.tags if context.state else frozenset()
    return {tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)}


class RawPrefix(Rule):
    """An exclusion tag that matches more than it seems to."""

    info = RuleInfo(
        code="GP506",
        name="tag-raw-prefix",
        severity=Severity.WARNING,
        summary="An iextags or desiredlocation tag without a closing colon.",
        rationale="These two are compared with the beginning of instance tags as they are: `service` also means the"
        " tags services and service-level:x. With a closing colon it means service:… only. (nlocation and migration"
        " need none.)",
        source="htools of Ganeti 2.15 to 3.1; Improving location awareness of Ganeti",
        bad=_cluster_tags('"htools:iextags:service"'),
        good=_cluster_tags('"htools:iextags:service:"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            if tag.family in ("iextags", "desiredlocation") and not tag.typed and tag.suffix[-1:] not in ("", ":"):
                message = f"{tag.text} means every instance tag that begins with {tag.suffix!r}"
                hint = f"write {tag.text}: for tags {tag.suffix}:…; if the bare prefix is meant, TagRules has `raw`"
                yield self.hit(tag.label, message, tag.span, hint=hint)


class DesiredLocationWithoutDomain(Rule):
    """A desired location that is no failure domain."""

    info = RuleInfo(
        code="GP507",
        name="desired-location-without-domain",
        severity=Severity.WARNING,
        summary="A desired-location rule without the failure domain that it needs.",
        rationale="An instance's desired location is compared with its primary node's location tags, and those"
        " come from htools:nlocation only. Without it the desire is never met, and counts against every placement.",
        source=f"{_LOCATION}; htools of Ganeti 2.16 and later",
        bad="gpolicy: v1\nkind: TagRules\ndesired_location: [rack]\n",
        good="gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\ndesired_location: [rack]\n",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        tags = list(declared_tags(context))
        domains = _suffixes(tags, "nlocation") | _observed(context, "nlocation")
        for tag in tags:
            if tag.family != "desiredlocation" or not tag.suffix or (tag.typed and tag.suffix.startswith(_HTOOLS)):
                continue
            if not any(
                f"{domain}:".startswith(tag.suffix) or tag.suffix.startswith(f"{domain}:") for domain in domains
            ):
                name = tag.suffix.rstrip(":")
                message = f"no failure domain makes node tags {name}:… locations"
                yield self.hit(tag.label, message, tag.span, hint=f"declare the failure domain {name!r}")


class TagOfTool(Rule):
    """A tag that a tool sets and removes itself."""

    info = RuleInfo(
        code="GP508",
        name="tag-of-tool",
        severity=Severity.ERROR,
        summary="A tag that belongs to a tool is declared, or a prefix that covers such tags is owned.",
        rationale="harep keeps the state of its repairs in tags …autorepair:pending: and …result:, hsqueeze marks the"
        " nodes that it put on standby with htools:standby:auto. Whoever sets or removes them breaks what is running.",
        source="harep and hsqueeze of Ganeti 2.15 to 3.1",
        bad="gpolicy: v1\nkind: NodeSet\nname: spare\nnodes: [node9.example.org]\ntags: [htools:standby:auto]\n",
        good="gpolicy: v1\nkind: NodeSet\nname: spare\nnodes: [node9.example.org]\ntags: [htools:standby:by-hand]\n",
    )
    _OWNED: Final = (f"{_REPAIR}pending:", f"{_REPAIR}result:", f"{_STANDBY}auto")

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            if any(f"{tag.text}:".startswith(prefix) for prefix in self._OWNED[:2]) or tag.text == self._OWNED[2]:
                message = f"{tag.text} belongs to the tool that sets it"
                yield self.hit(tag.label, message, tag.span, hint="leave it out of the policy")
        for rules in context.policy.tag_rules:
            for owned in rules.owns:
                covered = [text for text in self._OWNED if _covers(owned.value.prefix, text)]
                standby_only = covered == [self._OWNED[2]] and Level.NODE not in owned.value.levels
                if covered and not standby_only:
                    message = f"owning {owned.value.prefix} would remove tags {covered[0]}… that belong to a tool"
                    yield self.hit("cluster", message, owned.span, hint="own a narrower prefix")


def _covers(prefix: str, tag: str) -> bool:
    return tag.startswith(prefix) or prefix.startswith(tag)


class TagWrongLevel(Rule):
    """A tag on an object where no tool looks for it."""

    info = RuleInfo(
        code="GP509",
        name="tag-wrong-level",
        severity=Severity.WARNING,
        summary="A tag stands on an object where the tool that knows it does not look.",
        rationale="The htools rules are read from the cluster's tags only, htools:standby: from nodes, and autorepair"
        " from cluster, groups and instances. Elsewhere the tag has no effect.",
        source=f"{_LOCATION}; htools, harep and hsqueeze of Ganeti 2.15 to 3.1",
        bad='gpolicy: v1\nkind: NodeGroup\nname: gold\ntags: ["htools:nlocation:rack"]\n',
        good=_cluster_tags('"htools:nlocation:rack"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            if tag.family and tag.level is not Level.CLUSTER:
                right = "the cluster"
            elif tag.text.startswith(_STANDBY) and tag.level is not Level.NODE:
                right = "nodes"
            elif tag.text.startswith(_REPAIR) and tag.level is Level.NODE:
                right = "the cluster, groups and instances"
            else:
                continue
            message = f"{tag.text} has no effect on a {tag.level}"
            yield self.hit(tag.label, message, tag.span, hint=f"it is read from {right} only")


class AutorepairUnknown(Rule):
    """A kind of repair that harep does not know."""

    info = RuleInfo(
        code="GP510",
        name="autorepair-unknown",
        severity=Severity.WARNING,
        summary="An autorepair tag names no kind of repair that harep knows.",
        rationale="harep ignores it: nothing is repaired, or the suspension does not hold.",
        source="harep of Ganeti 2.15 to 3.1",
        bad=_cluster_tags('"ganeti:watcher:autorepair:migration"'),
        good=_cluster_tags('"ganeti:watcher:autorepair:migrate"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            kind = tag.text.removeprefix(_REPAIR)
            known = kind in _REPAIR_TYPES or re.fullmatch(r"suspend(:[0-9]+)?|(pending|result)(:.*)?", kind)
            if tag.text.startswith(_REPAIR) and not known:
                close = get_close_matches(kind, _REPAIR_TYPES, n=1, cutoff=0.5)
                words = f"{', '.join(_REPAIR_TYPES)}, suspend or suspend:TIME (seconds since 1970)"
                hint = f"did you mean {close[0]}?" if close else f"write {words}"
                yield self.hit(tag.label, f"harep knows no repair {kind!r}", tag.span, hint=hint)


class TagNotInVersion(Rule):
    """A family of tags that the declared release does not read."""

    info = RuleInfo(
        code="GP511",
        name="tag-not-in-version",
        severity=Severity.WARNING,
        summary="A tag family that the cluster's Ganeti release does not read yet.",
        rationale="Location tags came into the metric, and desired locations came at all, with 2.16: before, such tags"
        " have no effect.",
        source=f"{_LOCATION}; htools of Ganeti 2.15 and 2.16",
        bad=f'{CLUSTER}ganeti_version: "2.15"\ntags: ["htools:nlocation:rack"]\n',
        good=f'{CLUSTER}ganeti_version: "2.16"\ntags: ["htools:nlocation:rack"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        if release_key(context.version) >= (2, 16):
            return
        for tag in declared_tags(context):
            if tag.family in ("nlocation", "desiredlocation"):
                message = f"Ganeti {context.version} does not read {TAG_FAMILIES[tag.family]}…"
                yield self.hit(tag.label, message, tag.span, hint="it needs 2.16 or later")


class RuleWithPrefix(Rule):
    """A rule of a TagRules document that is written with the prefix that it gets anyway."""

    info = RuleInfo(
        code="GP512",
        name="tag-rule-with-prefix",
        severity=Severity.ERROR,
        summary="An entry of a TagRules document begins with htools:.",
        rationale="gpolicy puts the prefix before what is written: the tag would be htools:iextags:htools:iextags:x:,"
        " and mean no tag that anybody has.",
        source="gpolicy",
        bad='gpolicy: v1\nkind: TagRules\nexclusion: ["htools:iextags:service"]\n',
        good="gpolicy: v1\nkind: TagRules\nexclusion: [service]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for tag in declared_tags(context):
            for written in _sides(tag) if tag.family == "allowmigration" else (tag.suffix,):
                if tag.typed and written.startswith(_HTOOLS):
                    meant = _without_prefix(written)
                    message = f"{written.rstrip(':')} would become the tag {tag.text}"
                    hint = f"write {meant}" if meant else "write what the rule is about"
                    yield self.hit(tag.label, message, tag.span, hint=hint)


def _without_prefix(written: str) -> str:
    """Return what an entry with htools' prefixes is about: `service` of htools:iextags:service."""
    family = next((prefix for prefix in TAG_FAMILIES.values() if written.startswith(prefix)), _HTOOLS)
    return written.removeprefix(family).rstrip(":")


TAG_RULES: Final = (
    TagGrammar(),
    HtoolsTagUnknown(),
    TagWithoutSuffix(),
    AllowMigrationForm(),
    AllowMigrationWithoutDomain(),
    RawPrefix(),
    DesiredLocationWithoutDomain(),
    TagOfTool(),
    TagWrongLevel(),
    AutorepairUnknown(),
    TagNotInVersion(),
    RuleWithPrefix(),
)
