"""The days until a room is used up, at the growth of the past: the likely number, and a range around it.

Use grows by steps: an instance, a batch of them, now and then a removal. So what a week adds is taken as a draw from a
distribution: the weeks of the past give its mean and variance, and the weeks to come are more draws. A forecast of
`days` has the variance of these days and that of the measured growth itself: `variance * days * (1 + days / span)`.
The range ends where the room is as far off as a draw of Student's t distribution is in one of twenty cases at each
side, so nine of ten fillings lie in it. Whole weeks hide the rhythm of a week. A batch widens the range, since nothing
tells whether it will come again. Source: Fieller, "Some problems in interval estimation" (1954).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, sqrt
from statistics import NormalDist
from typing import Final

Point = tuple[float, float]
"""A day, and what is used then."""
LEAST_WEEKS: Final = 5
"""With fewer increments, of a week or more each, nothing is said: their variance says too little."""
_WEEK: Final = 6.5  # days: timers are late now and then
_Z: Final = NormalDist().inv_cdf(0.95)


def day_range(points: Sequence[Point], room: float) -> tuple[float, float, float, float] | None:
    """Return the growth a day, and the earliest, the likely and the latest day on which `room` more is used.

    That is more than at the last of `points`, from which on days count; they are infinite where it never is. None where
    the points, the oldest first, are too few.
    """
    kept = list(points[-1:])
    for point in reversed(points):
        kept += [point] if kept[-1][0] - point[0] >= _WEEK else []
    steps = [(day - before, used - less) for (day, used), (before, less) in pairwise(kept)]
    if len(steps) < LEAST_WEEKS:
        return None
    span, freedom = kept[0][0] - kept[-1][0], len(steps) - 1
    growth = (kept[0][1] - kept[-1][1]) / span
    variance = sum((step - growth * days) ** 2 / days for days, step in steps) / freedom
    # Student's t, Abramowitz and Stegun 26.7.5
    quantile = _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
    spread, middle = quantile**2 * variance, room / growth if growth > 0 else inf
    if room <= 0 or spread == 0:
        same = 0.0 if room <= 0 else middle
        return growth, same, same, same
    # (room - growth * days) ** 2 = spread * days * (1 + days / span)
    square, linear = growth**2 - spread / span, 2 * room * growth + spread
    root = linear + sqrt(max(0.0, linear**2 - 4 * square * room**2))
    has_end = growth > 0 and square > 0  # the slowest growth that the past allows is still growth
    return growth, 2 * room**2 / root if root > 0 else inf, middle, root / (2 * square) if has_end else inf
