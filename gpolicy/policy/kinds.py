"""The kinds of documents: how each is read, and where a policy keeps the result; guards and house rules as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gpolicy.findings import HOUSE, Located, Severity, Span
from gpolicy.policy.building import Builder, DocumentReader, TellFinding
from gpolicy.policy.scenario_building import build_scenarios
from gpolicy.policy.source_file import Pointer, YamlDocument


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


SCHEMA: Final = "schema"


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


Reader = Callable[[YamlDocument, TellFinding], Iterable[Any]]

OBJECTS: Final = "objects"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document. `field` of a policy holds the result of `read` for a document that conforms to its schema.

    Findings about values go to the second argument of `read`. The field `objects` holds what can extend something. What
    has a name (`is_named`) replaces that of a base; what is about a group of the base alone is left out.
    """

    field: str
    read: Reader
    is_named: bool = False


def _one(make: Callable[[Builder], object]) -> Reader:
    return lambda document, report: [make(Builder(document, report))]


KINDS: Final[Mapping[str, Kind]] = {
    "Cluster": Kind(OBJECTS, _one(Builder.cluster)),
    "NodeGroup": Kind(OBJECTS, _one(Builder.group)),
    "NodeSet": Kind(OBJECTS, _one(Builder.node_set)),
    "TagRules": Kind("tag_rules", _one(Builder.tag_rules)),
    "Guards": Kind("guards", build_guards, is_named=True),
    "Test": Kind("scenarios", build_scenarios, is_named=True),
    "Rule": Kind("house_rules", build_house_rule),
    "Waiver": Kind("waivers", lambda document, report: Builder(document, report).waivers()),
}

KIND_NAMES: Final = tuple(KINDS)
"""For lookups by the kind of a document, which may be any value."""
