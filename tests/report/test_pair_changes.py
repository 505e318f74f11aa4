"""Changed spec pairs of a plan: what is effective before and after, also where one side is inherited."""

from __future__ import annotations

from gpolicy.ganeti.vocabulary import Level, Value
from gpolicy.plan.changes import Change, Risk
from gpolicy.report.plan_answer import pair_changes
from tests.report.plan_samples import pair

SMALL, LARGE = pair(128, 1024), pair(4096, 8192)


def changed(own: tuple[Value, Value], effective: tuple[Value, Value]) -> list[tuple[str, str]]:
    change = Change(
        level=Level.GROUP,
        object_name="gold",
        path=("ipolicy", "minmax"),
        before=own[0],
        after=own[1],
        effective_before=effective[0],
        effective_after=effective[1],
        risk=Risk.LOW,
    )
    return [(sign, " ".join(text.split()[:2]) if sign != "#" else text) for sign, text in pair_changes(change)]


def test_an_override_is_compared_with_what_was_inherited() -> None:
    assert changed((None, [LARGE]), ([SMALL, LARGE], [LARGE])) == [
        ("-", "mem 128M..1G"),
        (" ", "mem 4G..8G"),
    ]


def test_a_removed_override_is_compared_with_what_is_inherited_then() -> None:
    assert changed(([LARGE], None), ([LARGE], [SMALL])) == [
        ("-", "mem 4G..8G"),
        ("+", "mem 128M..1G"),
    ]


def test_own_pairs_are_compared_with_own_pairs() -> None:
    assert changed(([LARGE], [SMALL]), ([LARGE], [SMALL])) == [("-", "mem 4G..8G"), ("+", "mem 128M..1G")]
    both = [SMALL, LARGE]
    assert changed((both, both[::-1]), (both, both[::-1]))[-1] == ("#", "same sizes, other order")


def test_pairs_of_a_new_group_are_all_new() -> None:
    assert changed((None, [LARGE]), (None, [LARGE])) == [("+", "mem 4G..8G")]
