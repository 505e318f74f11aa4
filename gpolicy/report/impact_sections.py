"""All sections of an impact.

The section of a part lies where its name says: `report/capacity_section.py` has the title that it goes by, and the
function `capacity_section`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from gpolicy.analysis.allocator_input import not_known
from gpolicy.impact.impact import PARTS, Impact
from gpolicy.printable import listed
from gpolicy.report.answer import Section, Weight

_ORDER: Final = sorted(PARTS, key=lambda part: part != "capacity")
"""Capacity comes first: readers look for it."""
_OF_GROUPS: Final = ("capacity", "redundancy", "remedy", "resource_model")
"""The parts that leave out groups that are not known."""


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Yield the sections of the known parts. What could not be looked at comes first in each."""
    measured = [known for known in (impact.capacity, impact.redundancy) if known is not None]
    reasons = {group: reason for known in measured for group, reason in known.unavailable.items() if group}
    for part in _ORDER:
        known = getattr(impact, part)
        if known is not None:
            section: Section = getattr(_module(part), f"{part}_section")(known)
            unknown = (*(not_known(reasons) if part in _OF_GROUPS else ()), *section.unknown)
            if unknown:
                summary = "; ".join(filter(None, (*unknown, section.summary)))
                weight = max(section.weight, Weight.CHANGED)
                section = replace(section, unknown=unknown, summary=summary, weight=weight)
            yield section


def unknown_in(impact: Impact | None, sections: Iterable[Section]) -> tuple[str, ...]:
    """Return what was not looked at, in sentences; `sections` are those of the impact."""
    if impact is None:
        return ("what the changes do was not looked at",)
    by_reason: dict[str, list[str]] = {}
    for title, reason in unknown_parts(impact):
        by_reason.setdefault(reason, []).append(title.lower())
    of_parts = [f"not known: {listed(titles)} ({reason})" for reason, titles in by_reason.items()]
    return (*dict.fromkeys(text for section in sections for text in section.unknown), *of_parts)


def unknown_parts(impact: Impact) -> Iterator[tuple[str, str]]:
    """Yield title and reason of each unknown part."""
    for part in _ORDER:
        if getattr(impact, part) is None:
            yield _module(part).TITLE, impact.unavailable.get(part, "not computed")


def _module(part: str) -> Any:
    return import_module(f"gpolicy.report.{part}_section")
