"""Which patterns are compared at all: leaving pairs out must lose no overlap."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpolicy.rules.groups.nodes import MOST_COMPARED, _could_meet, _share_nodes

PATTERNS = st.text(alphabet="ab*?[1-2]", min_size=1, max_size=6)


@settings(max_examples=400, deadline=None)
@given(st.lists(PATTERNS, max_size=8))
def test_no_pair_that_shares_nodes_is_left_out(patterns: list[str]) -> None:
    compared, are_all = _could_meet(patterns, [str(place) for place in range(len(patterns))])
    assert are_all
    assert compared == sorted(set(compared))
    sharing = {
        (one, other)
        for one, other in combinations(range(len(patterns)), 2)
        if _share_nodes(patterns[one], patterns[other])
    }
    assert sharing <= set(compared)


def test_thousands_of_groups_are_compared_in_a_moment() -> None:
    groups = [str(number) for number in range(3000)]
    assert len(_could_meet([f"node{number}-*.example.org" for number in range(3000)], groups)[0]) < 10
    assert len(_could_meet([f"*-{number}.example.org" for number in range(500)], groups)[0]) < 2000


def test_patterns_of_one_group_are_not_compared() -> None:
    assert _could_meet(["*a", "*a"], ["one", "one"]) == ([], True)


def test_too_many_patterns_to_compare_are_noted() -> None:
    pairs, are_all = _could_meet(["*"] * 3000, [str(number) for number in range(3000)])
    assert not are_all
    assert len(pairs) <= MOST_COMPARED + 1
