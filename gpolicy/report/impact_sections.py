"""All sections of an impact in the order in which reports show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.impact.impact import Impact
from gpolicy.report.answer import Section
from gpolicy.report.capacity_section import capacity_section
from gpolicy.report.location_section import location_section
from gpolicy.report.redundancy_section import redundancy_section
from gpolicy.report.resource_section import resource_model_section
from gpolicy.report.storage_section import exclusive_storage_section
from gpolicy.report.violation_section import violation_section

TITLES: Final = {
    "capacity": "Capacity",
    "violations": "Violations",
    "redundancy": "Redundancy",
    "location": "Location and migration",
    "exclusive_storage": "Exclusive storage",
    "resource_model": "Resource model",
}
"""The parts of an impact by key, in the order of reports."""


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Give the sections of the parts that are known."""
    if impact.capacity is not None:
        yield capacity_section(impact.capacity)
    if impact.violations is not None:
        yield violation_section(impact.violations)
    if impact.redundancy is not None:
        yield redundancy_section(impact.redundancy)
    if impact.location is not None:
        yield location_section(impact.location)
    if impact.exclusive_storage is not None:
        yield exclusive_storage_section(impact.exclusive_storage)
    if impact.resource_model is not None:
        yield resource_model_section(impact.resource_model)


def not_known(impact: Impact) -> Iterator[tuple[str, str]]:
    """Give title and reason of each part that could not be found out."""
    for key, title in TITLES.items():
        if getattr(impact, key) is None:
            yield title, impact.unavailable.get(key, "not computed")
