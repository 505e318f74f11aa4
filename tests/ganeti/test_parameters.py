"""The distance of a size from a spec pair."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.parameters import spec_distance


@pytest.mark.parametrize(
    ("outside", "distance"),
    [
        ([(4, 1, 8), (8, 8, 8), (0, 0, 0)], 0),
        ([(4, 8, 16)], 0.5),
        ([(8, 1, 4)], 0.5),
        ([(0, 1, 4)], 1),
        ([(4, 8, 16), (4, 1, 3)], 0.75),
    ],
)
def test_the_shares_that_would_change_are_added_up(outside: list[tuple[int, int, int]], distance: float) -> None:
    assert spec_distance(outside) == distance
