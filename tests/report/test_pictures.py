"""The axis of a picture of specs: all values lie on it, in their order."""

from __future__ import annotations

import pytest

from gpolicy.report.pictures import _Axis


@pytest.mark.parametrize("values", [[1024], [1024, 4096], [1, 10**7], []])
def test_all_values_lie_on_the_axis(values: list[int]) -> None:
    axis = _Axis(values, 10.0, 110.0)
    places = [axis.at(value) for value in values]
    assert places == sorted(places)
    assert all(10.0 <= place <= 110.0 for place in places)
    ticks = list(axis.ticks())
    assert len(ticks) >= 1 or not values
    assert all(10.0 <= tick[0] <= 110.0 for tick in ticks)


def test_a_doubling_takes_the_same_room_everywhere() -> None:
    axis = _Axis([1024, 16384], 0.0, 100.0)
    steps = [axis.at(2 * value) - axis.at(value) for value in (1024, 2048, 4096, 8192)]
    assert max(steps) - min(steps) < 0.3
    assert axis.at(4096) == 50.0
