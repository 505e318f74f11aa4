"""All sections of an impact in the order in which reports show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gpolicy.impact.impact import Impact
from gpolicy.report.answer import Section
from gpolicy.report.capacity_section import capacity_section
from gpolicy.report.location_section import location_section
from gpolicy.report.redundancy_section import redundancy_section
from gpolicy.report.resource_section import resource_model_section
from gpolicy.report.storage_section import exclusive_storage_section
from gpolicy.report.violation_section import violation_section

_PARTS: Final[Mapping[str, tuple[str, Callable[[Any], Section]]]] = {
    "capacity": ("Capacity", capacity_section),
    "violations": ("Violations", violation_section),
    "redundancy": ("Redundancy", redundancy_section),
    "location": ("Location and migration", location_section),
    "exclusive_storage": ("Exclusive storage", exclusive_storage_section),
    "resource_model": ("Resource model", resource_model_section),
}
"""The parts of an impact by key, each with its title and what makes its section, in the order of reports."""


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Give the sections of the parts that are known."""
    for key, (_, make_section) in _PARTS.items():
        part = getattr(impact, key)
        if part is not None:
            yield make_section(part)


def not_known(impact: Impact) -> Iterator[tuple[str, str]]:
    """Give title and reason of each part that could not be found out."""
    for key, (title, _) in _PARTS.items():
        if getattr(impact, key) is None:
            yield title, impact.unavailable.get(key, "not computed")
