"""Failure domains, exclusion, migration and desired locations as tables: what is new, what is gone, what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from gpolicy.analysis.location import (
    DesiredLocationMissing,
    DomainConflict,
    ExclusionConflict,
    ExclusionUnsatisfiable,
    SharedDomain,
    Unmovable,
)
from gpolicy.impact.location_change import Compared, LocationChange
from gpolicy.printable import count
from gpolicy.report.answer import Cell, Name, Section, Table, Weight, heaviest, names, with_rows

TITLE: Final = "Location and migration"
_T = TypeVar("_T")
_MOST_TARGETS: Final = 5


def location_section(change: LocationChange) -> Section:
    """Return the effect of the changes on the location of instances and their possible targets."""
    tables = (
        *_tables(
            "Both nodes of a mirrored instance in one failure domain",
            "instances",
            ("instance", "primary node", "secondary node", "domains"),
            change.shared_domains,
            _shared,
        ),
        *_tables(
            "Instances with the same exclusion tag on one node",
            "conflicts",
            ("exclusion tag", "node", "instances"),
            change.exclusion_conflicts,
            _exclusion,
        ),
        *_tables(
            "Instances with the same exclusion tag in one failure domain",
            "conflicts",
            ("exclusion tag", "domain", "nodes", "instances"),
            change.domain_conflicts,
            _domain,
        ),
        *_tables(
            "Exclusion tags that cannot be satisfied",
            "tags",
            ("exclusion tag", "group", "instances", "places to spread them over"),
            change.unsatisfiable,
            _unsatisfiable,
        ),
        *_tables(
            "Instances that no node may receive, by migration tags",
            "instances",
            ("instance", "primary node", "nodes that it could go to otherwise"),
            change.stranded,
            _stranded,
        ),
        *_tables(
            "Desired locations that no node of the group has",
            "instances",
            ("instance", "group", "location", "nodes elsewhere that have it"),
            change.desired_missing,
            _missing,
        ),
    )
    return Section(
        key="location",
        title=TITLE,
        weight=heaviest(tables),
        summary=_summary(change),
        parts=tables,
    )


def _tables(
    title: str, of: str, headings: tuple[str, ...], facts: Compared[_T], row: Callable[[_T], tuple[Cell, ...]]
) -> tuple[Table, ...]:
    """Return a table of new and removed items, and one of remaining ones."""
    changed = [*(("new", fact) for fact in facts.new), *(("gone", fact) for fact in facts.gone)]
    return with_rows(
        Table(
            title=title,
            of=of,
            headings=("", *headings),
            rows=tuple((word, *row(fact)) for word, fact in changed),
            weight=Weight.WORSE if facts.new else Weight.CHANGED,
        ),
        Table(
            title=f"{title}, as before",
            of=of,
            headings=headings,
            rows=tuple(row(fact) for fact in facts.still),
            weight=Weight.SAME,
        ),
    )


def _shared(fact: SharedDomain) -> tuple[Cell, ...]:
    return (Name(fact.instance), Name(fact.primary_node), Name(fact.secondary_node), names(fact.tags))


def _exclusion(fact: ExclusionConflict) -> tuple[Cell, ...]:
    return (Name(fact.tag), Name(fact.node), names(fact.instances))


def _domain(fact: DomainConflict) -> tuple[Cell, ...]:
    return (Name(fact.tag), Name(fact.domain), names(fact.nodes), names(fact.instances))


def _unsatisfiable(fact: ExclusionUnsatisfiable) -> tuple[Cell, ...]:
    kinds = ("node", "nodes") if fact.domain_kind is None else (fact.domain_kind, f"values of {fact.domain_kind}")
    places = f"{count(len(fact.places), *kinds)}: {', '.join(fact.places)}" if fact.places else f"no {kinds[0]}"
    return (Name(fact.tag), Name(fact.group), names(fact.instances), places)


def _stranded(fact: Unmovable) -> tuple[Cell, ...]:
    words = [f"{node} lacks {', '.join(tags)}" for node, tags in fact.targets[:_MOST_TARGETS]]
    if len(fact.targets) > _MOST_TARGETS:
        words.append(f"and {len(fact.targets) - _MOST_TARGETS} more")
    return (Name(fact.instance), Name(fact.primary_node), "; ".join(words) or "none")


def _missing(fact: DesiredLocationMissing) -> tuple[Cell, ...]:
    return (Name(fact.instance), Name(fact.group), Name(fact.tag), names(fact.elsewhere))


def _summary(change: LocationChange) -> str:
    kinds = (
        (_counts(change.shared_domains), "mirrored instances in one failure domain"),
        (_counts(change.exclusion_conflicts), "exclusion conflicts on one node"),
        (_counts(change.domain_conflicts), "exclusion conflicts in one failure domain"),
        (_counts(change.unsatisfiable), "exclusion tags that cannot be satisfied"),
        (_counts(change.stranded), "instances stranded by migration tags"),
        (_counts(change.desired_missing), "desired locations without a node"),
    )
    parts = [f"{what}: {numbers}" for numbers, what in kinds if numbers]
    return "; ".join(parts) or "no conflict"


def _counts(facts: Compared[_T]) -> str:
    counts = [(len(facts.new), "new"), (len(facts.gone), "gone"), (len(facts.still), "as before")]
    return ", ".join(f"{number:,} {word}" for number, word in counts if number)
