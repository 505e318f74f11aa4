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
"""Capacity comes first: it is what readers look for."""


def impact_sections(impact: Impact) -> Iterator[Section]:
    """Give the sections of the parts that are known."""
    for part in _ORDER:
        known = getattr(impact, part)
        if known is not None:
            section: Section = getattr(_module(part), f"{part}_section")(known)
            yield section


def not_known(impact: Impact) -> Iterator[tuple[str, str]]:
    """Give title and reason of each part that could not be found out."""
    for part in _ORDER:
        if getattr(impact, part) is None:
            yield _module(part).TITLE, impact.unavailable.get(part, "not computed")


def _module(part: str) -> Any:
    return import_module(f"gpolicy.report.{part}_section")
