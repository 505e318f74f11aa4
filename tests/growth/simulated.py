"""Histories of which the future is known: how often the range of a forecast holds it, and how wide it is.

`python -m tests.growth.simulated 500` prints both for so many histories of each kind.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from math import ceil, exp, floor, inf
from statistics import median

from gpolicy.growth.filling_up import Point, day_range

LONGEST = 3 * 365


def _poisson(rng: random.Random, mean: float) -> int:
    number, product, least = 0, rng.random(), exp(-mean)
    while product > least:
        number, product = number + 1, product * rng.random()
    return number


def steady(rng: random.Random) -> Iterator[float]:
    """Yield what is used each day: the same more every day."""
    growth = rng.randrange(1, 20)
    yield from (growth * day for day in range(LONGEST))


def noisy(rng: random.Random) -> Iterator[float]:
    """Yield the same, with instances that are there for a day."""
    yield from (used + rng.gauss(0, 20) for used in steady(rng))


def arrivals(rng: random.Random) -> Iterator[float]:
    """Yield what is used while instances of five sizes come by chance, and three of ten go again."""
    there: list[int] = []
    often = rng.uniform(0.5, 6)
    while True:
        yield sum(there)
        there += (rng.choice((2, 4, 4, 8, 16)) for _ in range(_poisson(rng, often)))
        for _ in range(min(_poisson(rng, 0.3 * often), len(there))):
            there.pop(rng.randrange(len(there)))


def batches(rng: random.Random) -> Iterator[float]:
    """Yield slow growth with a batch of instances every two weeks or so."""
    used = 0.0
    while True:
        yield used
        used += max(0.0, rng.gauss(3, 2)) + (40 if rng.random() < 1 / 14 else 0)


def one_batch(rng: random.Random) -> Iterator[float]:
    """Yield growth by chance with one batch, in the first five weeks, that never comes again."""
    used, day = 0.0, rng.randrange(35)
    for today in range(LONGEST):
        yield used
        used += _poisson(rng, 4) + (100 if today == day else 0)


def weekly(rng: random.Random) -> Iterator[float]:
    """Yield growth on working days, with removals and without the test instances at weekends."""
    used = 0.0
    for day in range(LONGEST):
        working = day % 7 < 5
        yield used + (30 if working else 0)
        used += _poisson(rng, 7) if working else -2 * _poisson(rng, 1)


KINDS: tuple[Callable[[random.Random], Iterator[float]], ...] = (steady, noisy, arrivals, batches, one_batch, weekly)


def judge(kind: Callable[[random.Random], Iterator[float]], seed: int) -> tuple[bool, float, float]:
    """Return whether the range of a history holds the day that comes, and how wide it and its middle are off.

    Both are in units of the time that is left. Histories have 6 to 26 weeks, a snapshot a day but for some that lack.
    """
    rng = random.Random(seed)  # noqa: S311 (nothing is secret)
    span, left = rng.randrange(6, 27) * 7, rng.randrange(14, 150)
    use = kind(rng)
    past: list[Point] = [(day - span, next(use)) for day in range(span + 1)]
    growth = max(past[-1][1] - past[0][1], 1) / span
    room = growth * left
    comes = next((day for day, used in enumerate(use, 1) if used - past[-1][1] >= room or day > LONGEST), inf)
    seen = [point for point in past if point[0] in (-span, 0) or rng.random() < 0.9]
    found = day_range(seen, room)
    assert found is not None
    _, low, middle, high = found
    holds = (floor(low) if low < inf else low) <= comes <= (ceil(high) if high < inf else high)
    return holds, (high - low) / comes, abs(middle - comes) / comes


def main(number: int) -> None:
    """Print what becomes of so many histories of each kind."""
    for kind in KINDS:
        judged = [judge(kind, seed) for seed in range(number)]
        held = sum(holds for holds, *_ in judged) / number
        wide, off = (median(one[place] for one in judged) for place in (1, 2))
        open_ended = sum(one[1] == inf for one in judged) / number
        sys.stdout.write(
            f"{kind.__name__:10} held {held:.1%} width {wide:.2f} middle off {off:.2f} open {open_ended:.1%}\n"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
