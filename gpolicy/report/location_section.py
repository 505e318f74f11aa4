"""Failure domains, exclusion, migration and desired locations as tables: what is new, what is gone, what stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from gpolicy.analysis.health import ExclusionUnsatisfiable, Unmovable
from gpolicy.impact.location_change import Compared, LocationChange
from gpolicy.printable import count
from gpolicy.report.answer import Cell, Name, Section, Table, Weight, names, section_of_tables

TITLE: Final = "Location and migration"
_MOST_TARGETS: Final = 5


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of fact: where `LocationChange` has it, and the words of its table and of the summary."""

    field: str
    title: str
    of: str
    headings: tuple[str, ...]
    summary: str


_KINDS: Final = (
    _Kind(
        "shared_domains",
        "Both nodes of a mirrored instance in one failure domain",
        "instances",
        ("instance", "primary node", "secondary node", "domains"),
        "mirrored instances in one failure domain",
    ),
    _Kind(
        "exclusion_conflicts",
        "Instances with the same exclusion tag on one node",
        "conflicts",
        ("exclusion tag", "node", "instances"),
        "exclusion conflicts on one node",
    ),
    _Kind(
        "domain_conflicts",
        "Instances with the same exclusion tag in one failure domain",
        "conflicts",
        ("exclusion tag", "domain", "nodes", "instances"),
        "exclusion conflicts in one failure domain",
    ),
    _Kind(
        "unsatisfiable",
        "Exclusion tags that cannot be satisfied",
        "tags",
        ("exclusion tag", "group", "instances", "places to spread them over"),
        "exclusion tags that cannot be satisfied",
    ),
    _Kind(
        "stranded",
        "Instances that no node may receive, by migration tags",
        "instances",
        ("instance", "primary node", "nodes that it could go to otherwise"),
        "instances stranded by migration tags",
    ),
    _Kind(
        "desired_missing",
        "Desired locations that no node of the group has",
        "instances",
        ("instance", "group", "location", "nodes elsewhere that have it"),
        "desired locations without a node",
    ),
)


def location_section(change: LocationChange) -> Section:
    """Return the effect of the changes on the location of instances and their possible targets."""
    compared = [(kind, getattr(change, kind.field)) for kind in _KINDS]
    tables = (table for kind, facts in compared for table in _tables(kind, facts))
    words = [f"{kind.summary}: {numbers}" for kind, facts in compared if (numbers := _counts(facts))]
    summary = "; ".join(words) or "no conflict"
    return section_of_tables("location", TITLE, tables, summary=summary)


def _tables(kind: _Kind, facts: Compared[Any]) -> tuple[Table, ...]:
    """Return a table of new and removed items, and one of remaining ones."""
    changed = [*(("new", *_row(fact)) for fact in facts.new), *(("gone", *_row(fact)) for fact in facts.gone)]
    still = [tuple(_row(fact)) for fact in facts.still]
    weight = Weight.WORSE if facts.new else Weight.CHANGED
    return (
        Table(kind.title, kind.of, ("", *kind.headings), changed, weight=weight),
        Table(f"{kind.title}, as before", kind.of, kind.headings, still, weight=Weight.SAME),
    )


def _row(fact: Any) -> Iterator[Cell]:
    """Yield the cells of a fact: its names in their order, except where words say it better."""
    match fact:
        case ExclusionUnsatisfiable():
            yield from (Name(fact.tag), Name(fact.group), names(fact.instances), _places(fact))
        case Unmovable():
            yield from (Name(fact.instance), Name(fact.primary_node), _targets(fact))
        case _:
            for value in (getattr(fact, item.name) for item in fields(fact)):
                yield Name(value) if isinstance(value, str) else names(value)


def _places(fact: ExclusionUnsatisfiable) -> str:
    kinds = ("node", "nodes") if fact.domain_kind is None else (fact.domain_kind, f"values of {fact.domain_kind}")
    return f"{count(len(fact.places), *kinds)}: {', '.join(fact.places)}" if fact.places else f"no {kinds[0]}"


def _targets(fact: Unmovable) -> str:
    words = [f"{node} lacks {', '.join(tags)}" for node, tags in fact.targets[:_MOST_TARGETS]]
    if len(fact.targets) > _MOST_TARGETS:
        words.append(f"and {len(fact.targets) - _MOST_TARGETS} more")
    return "; ".join(words) or "none"


def _counts(facts: Compared[Any]) -> str:
    counts = [(len(facts.new), "new"), (len(facts.gone), "gone"), (len(facts.still), "as before")]
    return ", ".join(f"{number:,} {word}" for number, word in counts if number)
