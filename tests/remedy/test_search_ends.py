"""A search that ends early has the best list so far, and says so."""

from __future__ import annotations

import pytest

from gpolicy.cluster.terms import Limits, PairNames, limited
from gpolicy.progress import after
from gpolicy.remedy.remedy import find_remedy
from gpolicy.report.remedy_answer import remedy_answer
from tests.remedy.broken_clusters import broken, remedied, remedy_of

SEED = 14  # several moves, and something left


def test_without_time_there_is_no_move_and_all_is_left() -> None:
    report = find_remedy(broken(SEED), PairNames(), rate=60, stop=after(0))
    assert (report.steps, report.exhaustive) == ((), False)
    assert len(report.left) == len(report.faults) > 0
    assert any("the search ended early" in note for note in remedy_answer(report).notes)


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_ctrl_c_leaves_the_best_so_far(turn: int) -> None:
    state, turns = broken(SEED), 0

    def stop(what: str) -> None:
        nonlocal turns
        turns += "so far" in what
        if turns == turn + 1:
            raise KeyboardInterrupt

    report = find_remedy(state, PairNames(), rate=60, tell=stop)
    assert not report.exhaustive
    assert 0 < report.cured <= remedy_of(SEED).cured


def test_more_losses_at_once_are_said_not_to_be_judged() -> None:
    state = broken(SEED)
    two = limited(state, Limits(max_node_failures=2))
    said = "moves are judged by the loss of one node, not of 2 at once (max-node-failures)"
    assert any(said in note for note in remedied(two).notes)
    assert not any("max-node-failures" in note for note in remedy_of(SEED).notes)
