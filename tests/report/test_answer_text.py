"""How wide the columns of a table are."""

from __future__ import annotations

import pytest

from gpolicy.report.answer_text import _widths

CELLS = [["aaaa bb", "c"], ["dd dd dd dd", "e"]]


@pytest.mark.parametrize(
    ("room", "widths"),
    [(0, [7, 11]), (20, [7, 11]), (19, [7, 10]), (16, [7, 7]), (12, [5, 5]), (8, [4, 2]), (1, [4, 2])],
)
def test_the_widest_column_gives_way_down_to_its_longest_word(room: int, widths: list[int]) -> None:
    assert _widths(CELLS, room) == widths
