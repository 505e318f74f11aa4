"""All sections of an impact.

The section of a part lies where its name says: `report/capacity_section.py` has the title that it goes by, and the
function `capacity_section`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from gpolicy.impact.impact import PARTS, Impact
from gpolicy.report.answer import Section

_ORDER: Final = sorted(PARTS, key=lambda part: part != "capacity")
"""Capacity comes first: readers look for it."""


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Yield the sections of the known parts."""
    for part in _ORDER:
        known = getattr(impact, part)
        if known is not None:
            section: Section = getattr(_module(part), f"{part}_section")(known)
            yield section


def not_known(impact: Impact) -> Iterator[tuple[str, str]]:
    """Yield title and reason of each unknown part."""
    for part in _ORDER:
        if getattr(impact, part) is None:
            yield _module(part).TITLE, impact.unavailable.get(part, "not computed")


def _module(part: str) -> Any:
    return import_module(f"gpolicy.report.{part}_section")
