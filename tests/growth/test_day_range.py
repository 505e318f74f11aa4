"""The days until a room is used up: what is said, and that it holds."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, strategies as st

from gpolicy.growth.filling_up import LEAST_WEEKS, Point, day_range
from tests.growth.simulated import KINDS, judge

HISTORIES = 80


def weeks(*used: float) -> list[Point]:
    return [(7.0 * (number - len(used) + 1), more) for number, more in enumerate(used)]


def test_steady_growth_has_one_day() -> None:
    assert day_range(weeks(0, 7, 14, 21, 28, 35), 10) == (1.0, 10.0, 10.0, 10.0)


def test_nothing_is_said_of_few_points_or_few_days() -> None:
    assert day_range([], 10) is None
    assert day_range(weeks(0, 9), 10) is None
    assert day_range(weeks(*range(LEAST_WEEKS)), 10) is None
    hourly = [(hour / 24 - 20, float(hour)) for hour in range(20 * 24 + 1)]
    assert day_range(hourly, 10) is None  # five hundred points, but of three weeks


def test_what_shrinks_or_stays_is_never_full() -> None:
    assert day_range(weeks(9, 9, 9, 9, 9, 9), 10) == (0.0, inf, inf, inf)
    found = day_range(weeks(90, 80, 75, 60, 50, 41), 10)
    assert found is not None
    growth, low, middle, high = found
    assert growth < 0
    assert low > 0
    assert (middle, high) == (inf, inf)


def test_no_room_is_full_now() -> None:
    found = day_range(weeks(0, 7, 9, 21, 28, 35), 0)
    assert found is not None
    assert found[1:] == (0.0, 0.0, 0.0)


def test_a_batch_widens_the_range_and_a_gap_does_not_hide_growth() -> None:
    even, batch = (day_range(weeks(*used), 100) for used in ((0, 8, 14, 22, 28, 36), (0, 2, 28, 30, 32, 36)))
    assert even is not None
    assert batch is not None
    assert batch[1] < even[1] < even[3] < batch[3]
    gap = [point for point in weeks(*range(0, 90, 9)) if point[0] not in (-21.0, -28.0)]
    assert day_range(gap, 9) == pytest.approx((9 / 7, 7, 7, 7))


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=40), st.integers(0, 10**13))
def test_the_ends_are_in_order(used: list[int], room: int) -> None:
    found = day_range(weeks(*used), room)
    if found is not None:
        assert 0 <= found[1] <= found[2] * 1.000001 + 1e-6
        assert found[2] <= found[3] * 1.000001 + 1e-6


def test_nine_of_ten_ranges_hold_the_day_that_comes_and_tell_something() -> None:
    """Of each kind of history: `python -m tests.growth.simulated 3000` judges more of them."""
    for kind in KINDS:
        judged = [judge(kind, seed) for seed in range(HISTORIES)]
        assert sum(holds for holds, *_ in judged) >= 0.85 * HISTORIES, kind.__name__
        assert sorted(width for _, width, _ in judged)[HISTORIES // 2] < 1.25, kind.__name__
    every = [judge(kind, seed)[0] for kind in KINDS for seed in range(HISTORIES)]
    assert sum(every) >= 0.9 * len(every)
