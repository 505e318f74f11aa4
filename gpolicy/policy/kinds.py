"""The policy, and the kinds of documents that it is made of; guards, house rules and waivers as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gpolicy.findings import HOUSE, Finding, Located, Severity, Span
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_of
from gpolicy.policy.building import Builder, DocumentReader, TellFinding
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, NodeSetPolicy, OwnedPrefix, TagRulesPolicy
from gpolicy.policy.scenario import Scenario
from gpolicy.policy.scenario_building import build_scenarios
from gpolicy.policy.source_file import Pointer, SourceFile, YamlDocument

Reader = Callable[[YamlDocument, TellFinding], Iterable[Any]]
"""Returns what a document declares that conforms to its schema; findings about values go to the second argument."""

SCHEMA: Final = "schema"


class Measure(StrEnum):
    """The measure of a guard: its key in the document."""

    AT_LEAST = "at_least"
    CAPACITY_LOSS = "capacity_loss"
    NEWLY_VIOLATING = "newly_violating"
    NODE_FAILURES = "node_failures"
    MAX_CHANGES = "max_changes"

    @property
    def is_least(self) -> bool:
        """Whether its limit is the least that must be there; that of others is the most that may be."""
        return self in (Measure.AT_LEAST, Measure.NODE_FAILURES)


ABOUT_SPECS: Final = frozenset({Measure.AT_LEAST, Measure.CAPACITY_LOSS})
"""Measures by group and spec; `group` and `spec` restrict them."""

ABOUT_GROUPS: Final = ABOUT_SPECS | {Measure.NODE_FAILURES, Measure.NEWLY_VIOLATING}
"""Measures that `group` restricts."""

BUILT_IN: Final = {
    "right-cluster": True,
    "expressible": False,
    "templates-enabled": False,
    "templates-in-use": False,
    "std-in-bounds": False,
    "groups-empty": False,
    "pairs-together": False,
    "storage-set-up": False,
    "disks-stay": True,
    "exclusive-storage": True,
    "master-network": True,
    "takes-instances": True,
}
"""The guards that every plan has anyway, each with whether `--allow` can override it (`gpolicy.plan.built_in_guards`
judges all but the last, which `gpolicy.impact.declared_guards` judges by capacity)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One guard: a measure and its limit.

    `limit` is a number of instances, node failures or changes; with `percent` a share of the present capacity. `group`
    and `spec` restrict the measure (None: each). `span` is the place of the limit.
    """

    name: Located[str]
    measure: Measure
    limit: int | float
    span: Span
    percent: bool = False
    group: Located[str] | None = None
    spec: Located[str] | None = None

    @property
    def about(self) -> tuple[object, ...]:
        """What guards must have in common to be compared: the measure, the group and the spec."""
        group, spec = (item.value if item else None for item in (self.group, self.spec))
        return self.measure, self.percent, group, spec

    def accepts(self, number: float) -> bool:
        """Return whether a number keeps to the limit; with `percent`, a share in per cent."""
        return number >= self.limit if self.measure.is_least else number <= self.limit

    @property
    def shown_limit(self) -> str:
        """The limit as it is written."""
        return f"{self.limit:g} %" if self.percent else str(self.limit)


def build_guards(document: YamlDocument, report: TellFinding) -> Iterator[Guard]:
    """Yield the guards of a document that conforms to its schema; findings about values go to `report`."""
    reader = DocumentReader(document, report)
    for index, written in enumerate(document.root["guards"]):
        place: Pointer = ("guards", index)
        measure = next(item for item in Measure if item.value in written)
        where: Pointer = (*place, measure.value)
        value: Any = written[measure.value]
        if measure is Measure.CAPACITY_LOSS:
            where, value = (*where, "at_most"), value["at_most"]
        percent = isinstance(value, str)
        limit = float(value.rstrip("% ")) if percent else int(value)
        if percent and limit > 100:
            reader.wrong(f"a loss of {value} is more than 100%", where, "write a share of at most 100%")
        for key, fits, about in (("group", ABOUT_GROUPS, "plan"), ("spec", ABOUT_SPECS, "group")):
            if key in written and measure not in fits:
                message = f"{measure} has no {key}: it is about the whole {about}"
                reader.wrong(message, (*place, key), f"leave {key} out", of_key=True)
        named = {key: document.located((*place, key)) for key in ("name", "group", "spec") if key in written}
        yield Guard(**named, measure=measure, limit=limit, percent=percent, span=document.value_span(where))


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseRule:
    """One house rule: `schema` holds of effective values of objects of `kind`, all or those of `names` and `tags`."""

    name: Located[str]
    kind: Located[str]
    schema: Any
    severity: Severity
    message: str
    document: YamlDocument
    names: tuple[Located[str], ...] = ()
    tags: tuple[Located[str], ...] = ()

    @property
    def word(self) -> str:
        """Its name in findings, waivers and settings: house/NAME."""
        return f"{HOUSE}{self.name.value}"


def build_house_rule(document: YamlDocument, _: TellFinding) -> Iterator[HouseRule]:
    """Yield the rule of a document that conforms to its schema."""
    root = document.root

    def globs(key: str) -> tuple[Located[str], ...]:
        items = root["for"].get(key, ())
        return tuple(document.located(("for", key, index)) for index in range(len(items)))

    yield HouseRule(
        name=document.located(("name",)),
        kind=document.located(("for", "kind")),
        schema=root[SCHEMA],
        severity=Severity(root.get("severity", Severity.ERROR)),
        message=" ".join(root["message"].split()),
        document=document,
        names=globs("names"),
        tags=globs("tags"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A finding that is accepted for a time. `until` is the last day, YYYY-MM-DD."""

    rule: str
    where: str
    reason: str
    until: str
    span: Span
    document: YamlDocument
    pointer: Pointer


def build_waivers(document: YamlDocument, _: TellFinding) -> Iterator[Waiver]:
    """Yield the waivers of a document that conforms to its schema."""
    for index, waiver in enumerate(document.root["waivers"]):
        place: Pointer = ("waivers", index)
        words = {key: str(value) for key, value in waiver.items()}
        yield Waiver(**words, span=document.value_span(place), document=document, pointer=place)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document. `field` of a policy holds what `read` gives for documents that conform to their schema.

    `about` is the class of the objects that the documents are about; only these can extend something. What has a name
    (`is_named`) replaces that of a base; what is about a group of the base alone is left out.
    """

    field: str
    read: Reader
    about: type[Declared] | None
    is_named: bool


def kind(name: str, read: Reader, *, about: type[Declared] | None = None, is_named: bool = False, **given: Any) -> Any:
    """Return a field of a policy that declares a kind of document. `given` is for `dataclasses.field`: the default."""
    return field(**given, metadata={name: {"read": read, "about": about, "is_named": is_named}})


def _one(make: Callable[[Builder], object]) -> Reader:
    return lambda document, report: [make(Builder(document, report))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The content of all documents of a policy, and the findings about their shape.

    With a finding of severity error the model is incomplete: usable for more checks, but not for a plan.
    """

    paths: tuple[str, ...]
    cluster: ClusterPolicy | None = kind("Cluster", _one(Builder.cluster), about=ClusterPolicy, default=None)
    """What the cluster itself should be."""
    groups: dict[str, GroupPolicy] = kind("NodeGroup", _one(Builder.group), about=GroupPolicy, default_factory=dict)
    """What a node group should be. What is not written is not touched."""
    node_sets: tuple[NodeSetPolicy, ...] = kind("NodeSet", _one(Builder.node_set), about=NodeSetPolicy, default=())
    """Node parameters and tags of some nodes. A name wins over a glob, a glob over a group."""
    tag_rules: tuple[TagRulesPolicy, ...] = kind("TagRules", _one(Builder.tag_rules), default=())
    """Rules that htools reads from tags, in plain words."""
    guards: tuple[Guard, ...] = kind("Guards", build_guards, is_named=True, default=())
    """What a change may cost. A plan that costs more is shown, and not applied."""
    scenarios: tuple[Scenario, ...] = kind("Test", build_scenarios, is_named=True, default=())
    """Scenarios with expected outcomes."""
    house_rules: tuple[HouseRule, ...] = kind("Rule", build_house_rule, default=())  # with those of bases
    """A house rule: what must hold of the effective values of some objects. `gpolicy check` finds what breaks it."""
    waivers: tuple[Waiver, ...] = kind("Waiver", build_waivers, default=())
    """Findings that are known and accepted for a time."""
    documents: tuple[YamlDocument, ...] = ()
    broken: tuple[YamlDocument, ...] = ()  # that make no object, as something is wrong with their YAML or their shape
    findings: tuple[Finding, ...] = ()
    files: dict[str, SourceFile] = field(default_factory=dict)  # by name, with those of bases
    root: Path | None = None  # the file or directory that was named
    is_part: bool = False  # one file was named that lies among others

    @property
    def version(self) -> str:
        """The Ganeti release of the policy, one of `VERSIONS`."""
        return release_of(self.cluster.ganeti_version if self.cluster else None) or DEFAULT_VERSION

    @property
    def is_whole(self) -> bool:
        """Whether all that is meant for gpolicy could be read. A file of other programs is an error, and hides none."""
        foreign = {name for name, file in self.files.items() if file.is_foreign}
        errors = (finding.span for finding in self.findings if finding.severity is Severity.ERROR)
        return all(span is not None and span.file in foreign for span in errors)

    @property
    def owned(self) -> tuple[OwnedPrefix, ...]:
        """All prefixes of tags that gpolicy may remove."""
        return tuple(owned.value for rules in self.tag_rules for owned in rules.owns)

    @property
    def cluster_tags(self) -> tuple[Located[str], ...] | None:
        """The desired tags of the cluster, or None if no document mentions them."""
        own = self.cluster.tags if self.cluster else None
        if own is None and not self.tag_rules:
            return None
        return (*(own or ()), *(tag for rules in self.tag_rules for tag in rules.tags))

    @property
    def objects(self) -> tuple[Declared, ...]:
        """All documents about objects: cluster, groups, node sets."""
        cluster = (self.cluster,) if self.cluster else ()
        return (*cluster, *self.groups.values(), *self.node_sets)


KINDS: Final = {name: Kind(each.name, **said) for each in fields(Policy) for name, said in each.metadata.items()}
"""The kinds of documents, in the order of messages and schemas."""

KIND_NAMES: Final = tuple(KINDS)
"""For lookups by the kind of a document, which may be any value."""

LEVELS: Final = {name: each.about.level for name, each in KINDS.items() if each.about is not None}
"""The kinds of documents about objects, which have effective values; and the levels of these objects."""
