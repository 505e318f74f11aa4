"""What a change does wrong to where instances are, and what moves cure of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.impact import impact as room
from gpolicy.impact.comparison import load_sides
from gpolicy.impact.impact import KindChange, RemedyChange, remedy_change
from gpolicy.plan.sides import Sides
from gpolicy.remedy.faults import FaultKind
from tests.analysis.hspace_cases import from_text, text_of

POLICY = "1024,1,5120,1,1,1|512,1,2560,1,1,1;1024,1,5120,1,1,1|drbd|4.0|32.0"


def _cluster(*exclusive: str) -> ClusterState:
    """Two databases and two web servers, each pair on one node; the tags of `exclusive` must not meet."""
    nodes = [
        f"n{number}|16384|0|{14336 if number < 2 else 16384}|204800|194560|8|N|u|4||N|0|0|1.0" for number in range(4)
    ]
    instances = [
        f"{name}|1024|5120|1|running|Y|{node}|n{2 + number % 2}|drbd|{name[:-1]}:x|1|-|N"
        for number, (name, node) in enumerate([("db1", "n0"), ("db2", "n0"), ("web1", "n1"), ("web2", "n1")])
    ]
    state = from_text(text_of(["g|u|preferred||"], nodes, instances, [], [f"|{POLICY}", f"g|{POLICY}"]))
    return replace(state, cluster=replace(state.cluster, tags=frozenset(f"htools:iextags:{tag}" for tag in exclusive)))


def _remedy(before: ClusterState, after: ClusterState, told: list[str] | None = None) -> RemedyChange:
    return remedy_change(load_sides(Sides(before, after)), ([] if told is None else told).append)


def test_the_moves_cure_what_is_new_and_what_is_old() -> None:
    told: list[str] = []
    change = _remedy(_cluster("db"), _cluster("db", "web"), told)
    assert change.kinds == (KindChange(kind=FaultKind.EXCLUSION, before=1, after=2, remedied=0),)
    assert (change.new, change.cured, change.cured_old, change.moves) == (1, 1, 1, 2)
    assert (change.job_sets, change.copied, change.searched, change.exhaustive) == (1, 0, True, True)
    assert told[0] == "which moves cure what it does wrong"


def test_where_nothing_new_is_wrong_no_moves_are_looked_for() -> None:
    told: list[str] = []
    change = _remedy(_cluster("db", "web"), _cluster("db"), told)
    assert change == RemedyChange(kinds=(KindChange(kind=FaultKind.EXCLUSION, before=2, after=1, remedied=1),))
    assert (change.new, change.cured, change.cured_old, change.moves, change.job_sets) == (0, 0, 0, 0, 0)
    assert (change.copied, change.seconds, change.searched, change.exhaustive) == (0, 0.0, True, True)
    assert told == []
    assert _remedy(_cluster(), _cluster()) == RemedyChange()


def test_a_large_cluster_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_NODES", 3)
    change = _remedy(_cluster(), _cluster("web"))
    kinds = (KindChange(kind=FaultKind.EXCLUSION, before=0, after=1, remedied=1),)
    assert change == RemedyChange(kinds=kinds, new=1, searched=False, exhaustive=False)
    monkeypatch.setattr(room, "MOST_NODES", 4)
    assert _remedy(_cluster(), _cluster("web")).searched
