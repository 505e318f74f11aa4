"""All rules, in the order of their codes. A new rule is registered here, in its family's module."""

from __future__ import annotations

from typing import Final

from gpolicy.rules.rule import Rule
from gpolicy.rules.specs import SPEC_RULES

RULES: Final[tuple[Rule, ...]] = (*SPEC_RULES,)
"""Families by range of codes: GP1xx parameters, GP2xx specs, GP3xx disk templates, GP4xx exclusive storage, GP5xx
tags, GP6xx groups, nodes and node sets. GP0xx (structure) and GP9xx (waivers) are found elsewhere."""
