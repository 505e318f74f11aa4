"""The cluster score and its components, as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.allocator.cluster_score import COMPONENTS, component_values, statistics, total_score
from gpolicy.allocator.ghc_numbers import fixed

if TYPE_CHECKING:
    from gpolicy.allocator.node import Node


@dataclass(frozen=True, slots=True)
class ScoreComponent:
    """One of the twenty components of the cluster score."""

    name: str
    value: float
    weight: float

    @property
    def product(self) -> float:
        """Its contribution to the score."""
        return self.weight * self.value

    @property
    def shown(self) -> tuple[str, str, str]:
        """Value, weight and product as htools prints numbers."""
        return fixed(self.value, 8), fixed(self.weight, 2), fixed(self.product, 8)


@dataclass(frozen=True, slots=True)
class Score:
    """The cluster score of hspace and hbal: the smaller, the better balanced. It has no components if no node is up."""

    total: float
    components: tuple[ScoreComponent, ...]

    @property
    def shown(self) -> str:
        """The score as htools prints it."""
        return fixed(self.total, 8)


def score_of(nodes: Iterable[Node]) -> Score:
    """Return the score of `nodes`, in the order of their indices."""
    stats = statistics(nodes)
    components = tuple(
        ScoreComponent(component.name, value, component.weight)
        for component, value in zip(COMPONENTS, component_values(stats), strict=False)
    )
    return Score(total_score(stats), components)
