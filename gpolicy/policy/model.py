"""The policy as a model: objects with declared leaves and their places.

A leaf has one of three states: *unmanaged* (there is no leaf: never touched),
*inherit* (`INHERIT`: the own value is removed, so that the object follows the level above) and *explicit* (a value,
in Ganeti's units, normalised as Ganeti would store it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gpolicy.findings import Finding, Severity, Span
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_of
from gpolicy.ganeti.vocabulary import Level, Path, Value
from gpolicy.policy.node_patterns import MOST_NODES, unlikely, written_out
from gpolicy.policy.source_file import Located, Pointer, SourceFile, YamlDocument

if TYPE_CHECKING:
    import pathlib

    from gpolicy.policy.kinds import Guard, HouseRule
    from gpolicy.policy.scenario import Scenario

LEVELS: Final = {"Cluster": Level.CLUSTER, "NodeGroup": Level.GROUP, "NodeSet": Level.NODE}
"""The kinds of documents about objects, which have effective values."""

RULES: Final[dict[str, tuple[str, ...]]] = {
    "iextags": ("exclusion",),
    "desiredlocation": ("desired_location",),
    "nlocation": ("failure_domains",),
    "migration": ("migration", "domains"),
    "allowmigration": ("migration", "allow"),
}
"""Where a TagRules document has the items that mean the tags of a family."""
RULE_NAME: Final = "^[a-z0-9]+(-[a-z0-9]+)*$"
"""The pattern of the names of house rules."""


class Inherit(Enum):
    """The state of a leaf that must not have an own value."""

    INHERIT = "inherit"

    def __repr__(self) -> str:
        return "inherit"


INHERIT: Final = Inherit.INHERIT


@dataclass(frozen=True, slots=True)
class Leaf:
    """One declared value. `overridden` are the values of bases that it overrides, nearest first."""

    path: Path
    value: Value | Inherit
    document: YamlDocument
    pointer: Pointer
    overridden: tuple[Leaf, ...] = ()

    @property
    def span(self) -> Span:
        """The place of the value."""
        return self.document.value_span(self.pointer)

    @property
    def dotted(self) -> str:
        """The path as messages and plans show it."""
        return ".".join(self.path)

    def at(self, *steps: str | int) -> Span:
        """Return the place of a part of the value (`leaf.at(1, "max", "memory-size")`)."""
        return self.document.value_span((*self.pointer, *steps))

    @property
    def pair_names(self) -> tuple[str | None, ...]:
        """The names of the sizes, for `ipolicy.minmax`; None for a pair without a name."""
        written = self.document.value(self.pointer)
        return tuple(pair.get("name") for pair in written) if isinstance(written, list) else ()


Leaves = dict[Path, Leaf]

Settings = Mapping[str, Located[Any]]
"""The written keys of `limits` or of `physical_volumes`, which Ganeti does not know (`gpolicy.cluster.terms`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The common part of documents about objects. `tags`: None if not managed. Node sets have no limits and volumes."""

    name: str
    document: YamlDocument
    span: Span
    leaves: Leaves = field(default_factory=dict)
    tags: tuple[Located[str], ...] | None = None
    template: bool = False
    extends: tuple[Located[str], ...] = ()
    limits: Settings = field(default_factory=dict)
    physical_volumes: Settings = field(default_factory=dict)

    level: ClassVar[Level]
    """The level of the described object."""
    _label: ClassVar[str]

    @property
    def label(self) -> str:
        """The object's name in findings and plans: cluster, group/NAME, node-set/NAME."""
        return self._label.format(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicy(Declared):
    """The desired state of the cluster."""

    level = Level.CLUSTER
    _label = "cluster"
    ganeti_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The promised hardware of each node of a group: MiB and counts; None if not written."""

    span: Span
    memory: Located[int] | None = None
    cpus: Located[int] | None = None
    pv_sizes: tuple[Located[int], ...] = ()
    pv_count: Located[int] | None = None

    @property
    def volume_count(self) -> int | None:
        """The number of physical volumes of a node; None if not written. A list has an item for each volume."""
        if self.pv_count:
            return self.pv_count.value
        return len(self.pv_sizes) if len(self.pv_sizes) > 1 else None

    @property
    def figures(self) -> dict[str, Located[int]]:
        """Those of memory, cpus and pv_count that are written, by key."""
        known = {"memory": self.memory, "cpus": self.cpus, "pv_count": self.pv_count}
        return {key: figure for key, figure in known.items() if figure is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy(Declared):
    """The desired state of a node group. `nodes` is None if membership is not managed."""

    level = Level.GROUP
    _label = "group/{}"
    renamed_from: Located[str] | None = None
    removed: Located[bool] | None = None
    nodes: tuple[Located[str], ...] | None = None
    hardware: Hardware | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetPolicy(Declared):
    """Parameters and tags for matching nodes."""

    level = Level.NODE
    _label = "node-set/{}"
    nodes: tuple[Located[str], ...] = ()
    groups: tuple[Located[str], ...] = ()


@dataclass(frozen=True, slots=True)
class OwnedPrefix:
    """Tags that gpolicy may remove: those beginning with `prefix` on objects at these levels."""

    prefix: str
    levels: frozenset[Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRulesPolicy:
    """Cluster tags for htools, rendered from the items of the document; and the prefixes that gpolicy owns."""

    span: Span
    document: YamlDocument
    owns: tuple[Located[OwnedPrefix], ...] = ()
    by_place: Mapping[Pointer, Located[str]] = field(default_factory=dict)

    @property
    def tags(self) -> tuple[Located[str], ...]:
        """The tags of all items."""
        return tuple(self.by_place.values())


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The content of all documents of a policy, and the findings about their shape.

    With a finding of severity error the model is incomplete: usable for more checks, but not for a plan.
    """

    paths: tuple[str, ...]
    cluster: ClusterPolicy | None = None
    groups: dict[str, GroupPolicy] = field(default_factory=dict)
    node_sets: tuple[NodeSetPolicy, ...] = ()
    tag_rules: tuple[TagRulesPolicy, ...] = ()
    guards: tuple[Guard, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    house_rules: tuple[HouseRule, ...] = ()  # with those of bases
    waivers: tuple[Waiver, ...] = ()
    documents: tuple[YamlDocument, ...] = ()
    broken: tuple[YamlDocument, ...] = ()  # that make no object, as something is wrong with their YAML or their shape
    findings: tuple[Finding, ...] = ()
    files: dict[str, SourceFile] = field(default_factory=dict)  # by name, with those of bases
    root: pathlib.Path | None = None  # the file or directory that was named
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


def promised_nodes(group: GroupPolicy) -> tuple[str, ...] | None:
    """Return the names of the group's nodes; None if a pattern is not definite or has a slip, or there is none."""
    names: dict[str, None] = {}
    for pattern in group.nodes or ():
        found = None if unlikely(pattern.value) else written_out(pattern.value)
        if found is None:
            return None
        names.update(dict.fromkeys(found))
        if len(names) > MOST_NODES:
            return None
    return tuple(names) or None
