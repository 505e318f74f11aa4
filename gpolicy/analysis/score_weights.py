"""Other weights of the components of the cluster score, to see what they are for: a what-if, never what Ganeti does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gpolicy.allocator.cluster_score import COMPONENTS, MOST_WEIGHT, WEIGHTS, Weights
from gpolicy.errors import UsageError
from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS
from gpolicy.guessing import did_you_mean


def read_weights(words: Iterable[str]) -> Weights:
    """Return the weights that words NAME=VALUE set, and Ganeti's for all others.

    Raise UsageError for an unknown name, a name that is given twice, and a weight below 0 or above 1000.
    """
    changed: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in SCORE_COMPONENTS:
            hint = did_you_mean(name, SCORE_COMPONENTS, f"the components are {', '.join(SCORE_COMPONENTS)}")
            raise UsageError(f"--weight {word}: the cluster score has no component {name!r}", hint=hint)
        if name in changed:
            raise UsageError(f"--weight {word}: {name} is given twice")
        try:
            changed[name] = float(text)
        except ValueError:
            changed[name] = math.nan
        if not 0 <= changed[name] <= MOST_WEIGHT:
            raise UsageError(f"--weight {word}: a weight is a number from 0 to {MOST_WEIGHT:g}")
    return with_weights(changed)


def with_weights(changed: Mapping[str, float]) -> Weights:
    """Return Ganeti's weights with those of some components changed."""
    return tuple(changed.get(component.name, component.weight) for component in COMPONENTS)


def other_weights(weights: Weights) -> tuple[str, ...]:
    """Return what an answer with such weights has to say first; nothing for Ganeti's own."""
    known = zip(SCORE_COMPONENTS, weights, WEIGHTS, strict=True)
    other = [f"{name}={weight:g}" for name, weight, own in known if weight != own]
    if not other:
        return ()
    options = " ".join(f"--weight {item}" for item in other)
    return (f"{options}: Ganeti has other weights, so hail and hspace place otherwise than this says",)
