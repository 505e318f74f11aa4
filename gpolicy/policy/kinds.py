"""The kinds of documents: how each is read, and where a policy keeps the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.ganeti.parameter import Level
from gpolicy.policy.building import Builder, Report
from gpolicy.policy.guard import build_guards
from gpolicy.policy.house_rule import build_house_rule
from gpolicy.policy.scenario_building import build_scenarios
from gpolicy.policy.source_file import YamlDocument

Reader = Callable[[YamlDocument, Report], Iterable[Any]]

OBJECTS: Final = "objects"
HOUSE_RULES: Final = "house_rules"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document. `field` of a policy holds the result of `read` for a document that conforms to its schema.

    Findings about values go to the second argument of `read`. The field `objects` holds what can extend something.
    """

    field: str
    read: Reader


def _one(make: Callable[[Builder], object]) -> Reader:
    return lambda document, report: [make(Builder(document, report))]


KINDS: Final[Mapping[str, Kind]] = {
    "Cluster": Kind(OBJECTS, _one(Builder.cluster)),
    "NodeGroup": Kind(OBJECTS, _one(Builder.group)),
    "NodeSet": Kind(OBJECTS, _one(Builder.node_set)),
    "TagRules": Kind("tag_rules", _one(Builder.tag_rules)),
    "Guards": Kind("guards", build_guards),
    "Test": Kind("scenarios", build_scenarios),
    "Rule": Kind(HOUSE_RULES, build_house_rule),
    "Waiver": Kind("waivers", lambda document, report: Builder(document, report).waivers()),
}

LEVELS: Final = {"Cluster": Level.CLUSTER, "NodeGroup": Level.GROUP, "NodeSet": Level.NODE}
"""The kinds of documents about objects, which have effective values."""
KIND_NAMES: Final = tuple(KINDS)
"""For lookups by the kind of a document, which may be any value."""
