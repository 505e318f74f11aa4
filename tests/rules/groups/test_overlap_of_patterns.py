"""Which patterns are compared at all: leaving pairs out must lose no overlap."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings, strategies as st

from gpolicy.checking.tags import share_nodes, takes_in
from gpolicy.policy.model import matches
from gpolicy.rules.groups.nodes import MOST_COMPARED, _could_meet
from tests.laws import examples

PATTERNS = st.text(alphabet="ab*?[1-2]", min_size=1, max_size=6)


@settings(max_examples=examples(100))
@given(st.lists(PATTERNS, max_size=8))
def test_no_pair_that_shares_nodes_is_left_out(patterns: list[str]) -> None:
    compared, are_all = _could_meet(patterns, [str(place) for place in range(len(patterns))])
    assert are_all
    assert compared == sorted(set(compared))
    sharing = {
        (one, other)
        for one, other in combinations(range(len(patterns)), 2)
        if share_nodes(patterns[one], patterns[other])
    }
    assert sharing <= set(compared)


@settings(max_examples=examples(100))
@given(PATTERNS, PATTERNS)
def test_what_a_pattern_takes_in_it_matches(wide: str, narrow: str) -> None:
    names = ("".join(letters) for length in range(1, 6) for letters in product("ab12", repeat=length))
    if takes_in(wide, narrow):
        assert all(matches(wide, name) for name in names if matches(narrow, name))


def test_a_wider_pattern_takes_in_a_narrower_one() -> None:
    for wide, narrow in (("n*", "n0*"), ("n[1-9]*", "n[1-3]*.a"), ("n?*", "n[!0]"), ("*.a", "n?.a"), ("n[1-4]", "n2")):
        assert takes_in(wide, narrow), (wide, narrow)
        assert not takes_in(narrow, wide), (wide, narrow)
    assert takes_in("n[1-9]*", "n[1-9]*")


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
