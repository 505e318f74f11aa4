"""Sizes as users see them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gpolicy.ganeti.amounts import compared_sizes, exact_size, parse_size_exact, rough_size


@pytest.mark.parametrize(
    ("mib", "exact", "rough"),
    [
        (0, "0", "0M"),
        (516, "516M", "516M"),
        (1024, "1G", "1G"),
        (66240, "66240M", "64.7G"),
        (13762400, "13762400M", "13.1T"),
        (-2048, "-2G", "-2G"),
    ],
)
def test_exact_and_rough(mib: int, exact: str, rough: str) -> None:
    assert (exact_size(mib), rough_size(mib)) == (exact, rough)


@given(st.integers(0, 2**50))
def test_an_exact_size_is_read_back_as_it_was(mib: int) -> None:
    assert parse_size_exact(exact_size(mib)) == mib


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=3))
def test_different_sizes_are_shown_differently(sizes: list[int]) -> None:
    shown = compared_sizes(*sizes)
    assert len(set(shown)) == len(set(sizes))


def test_a_missing_mib_is_visible() -> None:
    assert compared_sizes(102400, 102399) == ["102400M", "102399M"]
    assert compared_sizes(102528, 100000) == ["100.1G", "97.7G"]
