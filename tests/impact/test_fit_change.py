"""The numbers of one row, by hand."""

from __future__ import annotations

import pytest

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.impact.capacity_change import FitChange

SMALL, LARGE = Spec(1024, 1, 5120, 1, 1, 1), Spec(2048, 1, 5120, 1, 1, 1)


def _fit(number: int, size: Spec = SMALL) -> Fit:
    return Fit(number, Binding(Cause.MEMORY), size)


def test_fewer_of_the_same_size_is_a_loss() -> None:
    row = FitChange("1", _fit(4), _fit(3))
    assert (row.resized, row.worst_after, row.is_loss, row.delta, row.percent) == (False, _fit(3), True, -1, -25.0)


@pytest.mark.parametrize("number", [4, 5])
def test_as_many_or_more_is_none(number: int) -> None:
    assert not FitChange("1", _fit(4), _fit(number)).is_loss


def test_of_another_size_the_old_one_counts() -> None:
    row = FitChange("1", _fit(4), _fit(2, LARGE))
    assert (row.resized, row.worst_after, row.is_loss) == (True, None, False)
    assert FitChange("1", _fit(4), _fit(2, LARGE), _fit(3)).is_loss
    assert not FitChange("1", _fit(4), _fit(2, LARGE), _fit(4)).is_loss


def test_a_side_that_is_missing_has_no_difference() -> None:
    for row in (FitChange("1", None, _fit(2)), FitChange("1", _fit(2), None)):
        assert (row.resized, row.delta, row.percent, row.is_loss) == (False, None, None, False)


def test_of_nothing_there_is_no_share() -> None:
    assert FitChange("1", _fit(0), _fit(2)).percent is None


def test_a_tiered_run_through_other_pairs_is_of_other_sizes() -> None:
    row = FitChange("tiered", _fit(4), _fit(3), other_pairs=True)
    assert (row.resized, row.worst_after, row.is_loss) == (True, None, False)
