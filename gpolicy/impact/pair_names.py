"""Names of the spec pairs: what a policy calls them, for reports, guards and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Names = tuple[str | None, ...]
"""The name of each pair in the order of `ipolicy.minmax`; None for a pair without one."""


@dataclass(frozen=True, slots=True)
class PairNames:
    """Names by group (its name after the change) and of the cluster's own pairs.

    A group without pairs of its own follows the cluster. Where nothing is declared, no pair has a name.
    """

    cluster: Names = ()
    groups: Mapping[str, Names] = field(default_factory=dict)
