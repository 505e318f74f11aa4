"""Sizes as closed boxes in six dimensions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from gpolicy.findings import Related, Span
from gpolicy.ganeti.amounts import exact_size, parse_size_exact
from gpolicy.ganeti.parameters import spec_distance
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES
from gpolicy.policy.model import Leaf

FILLING: Final = ("memory-size", "cpu-count", "disk-size")
"""The parameters that fill a node."""

MAX_PAIRS: Final = 50
"""Pairs of one list that rules compare with one another: real lists have a handful."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One min/max pair of a `minmax` list: an instance fits when it lies in the box, both bounds included."""

    leaf: Leaf
    index: int
    name: str | None
    minimum: Mapping[str, int]
    maximum: Mapping[str, int]
    possible: bool = field(init=False)
    """Whether any size lies in it: no min above its max."""

    def __post_init__(self) -> None:
        possible = all(self.minimum[parameter] <= self.maximum[parameter] for parameter in SPEC_PARAMETERS)
        object.__setattr__(self, "possible", possible)

    @property
    def word(self) -> str:
        """Its name, or its place in the list from 1."""
        return self.name or str(self.index + 1)

    @property
    def title(self) -> str:
        """How messages name the pair."""
        return f"size {self.word}"

    @property
    def span(self) -> Span:
        """Where the pair stands."""
        return self.leaf.at(self.index)

    @property
    def here(self) -> tuple[Related, ...]:
        """The place of the pair, for a finding about another one."""
        return (Related(self.span, f"{self.title} is here"),)

    def bound(self, bound: str) -> Mapping[str, int]:
        """Return the bound that is called min or max."""
        return self.minimum if bound == "min" else self.maximum

    def ends(self, parameter: str) -> tuple[int, int]:
        """Return the least and the greatest number of a parameter."""
        return self.minimum[parameter], self.maximum[parameter]

    def with_bound(self, bound: str, parameter: str, value: int) -> Pair:
        """Return the pair with another number."""
        numbers = {**self.bound(bound), parameter: value}
        return replace(self, minimum=numbers) if bound == "min" else replace(self, maximum=numbers)

    def written(self, bound: str, parameter: str) -> int:
        """Return one number of the pair as it is written, before Ganeti rounds it."""
        return as_written(self.leaf, self.bound(bound)[parameter], self.index, bound, parameter)

    def at(self, bound: str, parameter: str) -> Span:
        """Return where one number of the pair stands; `bound` is min or max."""
        return self.leaf.at(self.index, bound, parameter)

    def outside(self, sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Return which of the sizes of an instance, by parameter, lie outside of the pair."""
        return {name: size for name, size in sizes if not self.minimum[name] <= size <= self.maximum[name]}

    def misfit(self, sizes: Iterable[tuple[str, int]]) -> str:
        """Return in words which of the sizes of an instance lie outside of the pair, which is the nearest."""
        outside = self.outside(sizes).items()
        bounds = {name: " to ".join(amount(name, end) for end in self.ends(name)) for name, _ in outside}
        reasons = (f"{name} {amount(name, size)} is not in {bounds[name]}" for name, size in outside)
        return f"the nearest is {self.title}, but {', '.join(reasons)}"

    def contains(self, other: Pair) -> bool:
        """Return whether every size of `other` is one of this pair."""
        return all(
            self.minimum[name] <= other.minimum[name] and other.maximum[name] <= self.maximum[name]
            for name in SPEC_PARAMETERS
        )

    def same_as(self, other: Pair) -> bool:
        """Return whether the bounds are the same."""
        return self.minimum == other.minimum and self.maximum == other.maximum

    def overlap(self, other: Pair) -> dict[str, tuple[int, int]] | None:
        """Return the sizes in both (bounds are inclusive), lowest and highest per parameter; None if there are none."""
        region = {}
        for name in SPEC_PARAMETERS:
            low = max(self.minimum[name], other.minimum[name])
            high = min(self.maximum[name], other.maximum[name])
            if low > high:
                return None
            region[name] = (low, high)
        return region


def as_written(leaf: Leaf, value: int, *steps: str | int) -> int:
    """Return a number of a leaf, which is `value`, as it is written: a size in MiB before Ganeti rounds it."""
    size = parse_size_exact(leaf.document.value((*leaf.pointer, *steps)))
    return int(size) if size == int(size) else value


def pairs_of(leaf: Leaf) -> tuple[Pair, ...]:
    """Return the pairs that a leaf of `ipolicy.minmax` holds."""
    values = cast(list[dict[str, Any]], leaf.value)
    names = leaf.pair_names
    return tuple(Pair(leaf, index, names[index], value["min"], value["max"]) for index, value in enumerate(values))


def nearest(pairs: Sequence[Pair], sizes: Collection[tuple[str, int]]) -> Pair:
    """Return the first of the pairs that the sizes of an instance, by parameter, are nearest to."""
    return min(pairs, key=lambda pair: spec_distance((size, *pair.ends(key)) for key, size in sizes))


def comparable(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs to compare with one another: possible ones, at most MAX_PAIRS."""
    return [pair for pair in pairs if pair.possible][:MAX_PAIRS]


def amount(parameter: str, value: int) -> str:
    """Return a bound for people: sizes with their unit (16G, 516M), counts as they are."""
    return exact_size(value) if parameter in SPEC_SIZES else str(value)


def describe_region(region: Mapping[str, tuple[int, int]]) -> str:
    """Return the bounds of a box in words."""
    return ", ".join(
        f"{name} {amount(name, low)}" if low == high else f"{name} {amount(name, low)} to {amount(name, high)}"
        for name, (low, high) in region.items()
    )
