"""The cluster score and its components as they are shown, also with other weights: a what-if, not what Ganeti does."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpolicy.allocator import cluster_score
from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.ghc_numbers import fixed
from gpolicy.errors import ArgumentError
from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS
from gpolicy.guessing import did_you_mean


@dataclass(frozen=True, slots=True)
class ScoreComponent:
    """One of the twenty components of the cluster score."""

    name: str
    value: float
    weight: float
    least: float = 0.0

    @property
    def product(self) -> float:
        """Its contribution to the score."""
        return self.weight * self.value

    @property
    def excess(self) -> float:
        """How far its contribution lies above the theoretical minimum: the most that the score could fall by it."""
        return max(0.0, self.weight * (self.value - self.least))

    @property
    def shown(self) -> tuple[str, str, str, str]:
        """Value, weight, product and excess as htools prints numbers."""
        return fixed(self.value, 8), fixed(self.weight, 2), fixed(self.product, 8), fixed(self.excess, 8)


@dataclass(frozen=True, slots=True)
class Score:
    """The cluster score of hspace and hbal: the smaller, the better balanced. It has no components if no node is up."""

    total: float
    components: tuple[ScoreComponent, ...]

    @property
    def minimum(self) -> float:
        """The theoretical minimum, to which hbal's minimum score is relative: 0 without mirrored instances."""
        return sum(component.weight * component.least for component in self.components)

    @property
    def shown_minimum(self) -> str:
        """The theoretical minimum as htools prints numbers."""
        return fixed(self.minimum, 8)

    @property
    def shown(self) -> str:
        """The score as htools prints it."""
        return fixed(self.total, 8)


def score_of(nodes: Iterable[Node], weights: cluster_score.Weights = cluster_score.WEIGHTS) -> Score:
    """Return the score of `nodes`, in the order of their indices."""
    known = list(nodes)
    stats = cluster_score.statistics(known)
    least = {"reserved_mem_rtotal": cluster_score.least_reserved(known)}
    values = zip(cluster_score.COMPONENTS, cluster_score.component_values(stats), weights, strict=False)
    components = tuple(
        ScoreComponent(component.name, value, weight, least.get(component.name, 0.0))
        for component, value, weight in values
    )
    return Score(cluster_score.total_score(stats, weights), components)


def read_weights(words: Iterable[str]) -> cluster_score.Weights:
    """Return the weights that words NAME=VALUE set, and Ganeti's for all others.

    Raise RequestError for an unknown name, a name that is given twice, and a weight below 0 or above 1000.
    """
    changed: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in SCORE_COMPONENTS:
            hint = did_you_mean(name, SCORE_COMPONENTS, f"the components are {', '.join(SCORE_COMPONENTS)}")
            raise ArgumentError(f"weight {word}: the cluster score has no component {name!r}", hint=hint)
        if name in changed:
            raise ArgumentError(f"weight {word}: {name} is given twice")
        try:
            changed[name] = float(text)
        except ValueError:
            changed[name] = math.nan
        if not 0 <= changed[name] <= cluster_score.MOST_WEIGHT:
            raise ArgumentError(f"weight {word}: a weight is a number from 0 to {cluster_score.MOST_WEIGHT:g}")
    return with_weights(changed)


def with_weights(changed: Mapping[str, float]) -> cluster_score.Weights:
    """Return Ganeti's weights with those of some components changed."""
    return tuple(changed.get(component.name, component.weight) for component in cluster_score.COMPONENTS)


def other_weights(weights: cluster_score.Weights) -> tuple[str, ...]:
    """Return what an answer with such weights has to say first; nothing for Ganeti's own."""
    known = zip(SCORE_COMPONENTS, weights, cluster_score.WEIGHTS, strict=True)
    other = [f"{name}={weight:g}" for name, weight, own in known if weight != own]
    if not other:
        return ()
    options = " ".join(f"--weight {item}" for item in other)
    return (f"{options}: Ganeti has other weights, so hail and hspace place otherwise than this says",)
