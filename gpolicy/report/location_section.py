"""Failure domains, exclusion, migration and desired locations as tables: what is new, what is gone, what stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from gpolicy.analysis.health import ExclusionUnsatisfiable, Unmovable
from gpolicy.data import read_data
from gpolicy.impact.impact import LocationChange
from gpolicy.printable import count
from gpolicy.report.answer import Cell, Name, Section, Table, Weight, names, section_of_tables

TITLE: Final = "Location and migration"
_MOST_TARGETS: Final = 5


def location_section(change: LocationChange) -> Section:
    """Return the effect of the changes on the location of instances and their possible targets."""
    tables: list[Table] = []
    words = []
    for field, said in read_data("location.toml").items():
        facts, title, of, headings = getattr(change, field), said["title"], said["rows"], said["headings"]
        changed = [(when, *_row(fact)) for when in ("new", "gone") for fact in getattr(facts, when)]
        weight = Weight.WORSE if facts.new else Weight.CHANGED
        tables.append(Table(title, of, ("", *headings), changed, weight=weight))
        still = [tuple(_row(fact)) for fact in facts.still]
        tables.append(Table(f"{title}, as before", of, headings, still, weight=Weight.SAME))
        counts = [(len(facts.new), "new"), (len(facts.gone), "gone"), (len(facts.still), "as before")]
        told = [f"{number:,} {word}" for number, word in counts if number]
        words += [f"{said['summary']}: {', '.join(told)}"] if told else []
    summary = "; ".join(words) or "no conflict"
    return section_of_tables("location", TITLE, tables, summary=summary)


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
