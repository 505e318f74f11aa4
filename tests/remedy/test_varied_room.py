"""Moves that make room on many kinds of small clusters: against the cheapest of all lists, bounds, and real hail."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError
from gpolicy.progress import after_work
from gpolicy.remedy.remedy import Beginning
from gpolicy.remedy.room import MadeRoom, most_that_fit
from gpolicy.remedy.room_search import make_room
from gpolicy.remedy.search import Moves
from tests.analysis.hail_cases import HSPACE, HTOOLS, document, real_hail
from tests.remedy.small_clusters import Question
from tests.remedy.test_room import Compared, after_the_moves, check_that_each_step_is_safe, wanted
from tests.remedy.varied_clusters import Cheapest, find_cheapest, most_on_walks, varied_question

FEW = (0, 1, 8, 16, 18, 85, 246, 269, 336, 452, 471, 481, 500)
MANY = range(1_000)
WANTING_MORE = (10, 11, 23)
LITTLE_WORK = 3_000
"""Where no list makes room, or it is not known whether one does, the search is not run to its end."""


@dataclass(frozen=True)
class Case:
    """What the search found on a cluster, and what is possible there."""

    seed: int
    found: Compared
    cheapest: Cheapest

    @property
    def excess(self) -> int:
        """The disk (MiB) that is copied beyond what the cheapest list copies."""
        return self.found.moves.copied - self.cheapest.copied


def make_room_for(asked: Question, cheapest: Cheapest | None = None) -> tuple[Moves, MadeRoom]:
    start: Beginning = asked.beginning
    search = asked.search()
    if cheapest is None or cheapest.moves is None:
        search = replace(search, stop=after_work(LITTLE_WORK))
    return make_room(search, start.before, start.loaded, asked.want, PairNames())


@cache
def case_of(seed: int) -> Case:
    asked = varied_question(seed)
    cheapest = find_cheapest(asked)
    moves, room = make_room_for(asked, cheapest)
    before = asked.beginning.before
    bound = most_that_fit(before.layout, asked.hail, asked.beginning.movers.fixed)
    best = None if cheapest.moves is None else (cheapest.copied, cheapest.moves)
    return Case(seed, Compared(asked, moves, room, bound, most_on_walks(asked), best, by_two=False), cheapest)


def check_what_is_possible(case: Case) -> None:
    found, cheapest = case.found, case.cheapest
    assert max(found.most, found.room.now, found.room.after) <= found.bound
    if cheapest.moves is not None:
        assert found.room.count <= found.bound
    known_faults = {*found.moves.faults} <= {*found.asked.beginning.before.faults}
    if found.room.enough and known_faults:
        assert (found.moves.copied, len(found.moves.steps)) >= (cheapest.copied, cheapest.moves or 0)
        assert cheapest.moves is not None or not cheapest.known


def check_with_hail(case: Case, folder: Path) -> None:
    """hail takes all wanted instances after the moves, and not before them."""
    found = case.found
    assert count_with_hail(found, found.asked.state, folder) < found.room.count, case.seed
    assert count_with_hail(found, after_the_moves(found), folder) == found.room.count, case.seed


def count_with_hail(found: Compared, state: ClusterState, folder: Path) -> int:
    """Return how many of the wanted instances the installed hail takes, each with a request of its own.

    In one request for many it forgets the groups that the first one did not choose.
    """
    requests, placed = wanted(found)["instances"], list[tuple[dict[str, Any], list[str]]]()
    for number, request in enumerate(requests):
        whole = json.loads(document(state, request))
        for earlier, nodes in placed:
            _add(whole, earlier, nodes)
        answer = real_hail(json.dumps(whole), folder)
        assert answer is not None
        if not answer["success"]:
            return number
        placed.append((request, answer["result"]))
    return len(requests)


def _add(whole: dict[str, Any], request: dict[str, Any], nodes: list[str]) -> None:
    """Add an instance to all that hail knows."""
    kept = {
        key: request[key]
        for key in ("memory", "vcpus", "disks", "disk_space_total", "disk_template", "spindle_use", "tags", "nics")
    }
    whole["instances"][request["name"]] = {**kept, "nodes": nodes, "admin_state": "up", "forthcoming": False}
    local = request["disk_template"] in {"drbd", "plain"}
    for name in nodes:
        whole["nodes"][name]["free_disk"] -= request["disk_space_total"] if local else 0
        whole["nodes"][name]["free_spindles"] -= sum(disk.get("spindles", 0) for disk in request["disks"])
    whole["nodes"][nodes[0]]["free_memory"] -= request["memory"]


def check_cases(seeds: Iterable[int], folder: Path) -> list[Case]:
    cases = []
    for seed in seeds:
        try:
            case = case_of(seed)
        except GpolicyError:  # of a group without usable nodes
            continue
        check_what_is_possible(case)
        check_that_each_step_is_safe(case.found)
        if case.found.room.enough and HSPACE and HTOOLS.exists():
            check_with_hail(case, folder)
        cases.append(case)
    return cases


def shares(cases: list[Case]) -> str:
    possible = [case for case in cases if case.cheapest.moves is not None]
    made = [case for case in possible if case.found.room.enough]
    least = [case for case in made if not case.excess]
    excess = [case.excess for case in made]
    unknown = sum(not case.cheapest.known for case in cases)
    return (
        f"{len(cases)} clusters: room is possible on {len(possible)}, on {unknown} nobody knows; found on {len(made)}, "
        f"with the least to copy on {len(least)}; excess in all {sum(excess)} MiB of "
        f"{sum(case.cheapest.copied for case in made)}, at most {max(excess, default=0)} MiB"
    )


def check_shares(cases: list[Case]) -> None:
    print(shares(cases))  # noqa: T201
    possible = [case for case in cases if case.cheapest.moves is not None]
    made = [case for case in possible if case.found.room.enough]
    assert len(possible) > len(cases) // 8
    assert len(made) >= 0.99 * len(possible)
    assert sum(not case.excess for case in made) >= 0.95 * len(made)


def check_that_fewer_fit_as_well(seed: int) -> None:
    """Where moves make room for some wanted instances, they make room for one fewer, and copy no more."""
    asked, copied, enough = varied_question(seed), float("inf"), False
    now = len(asked.hail.place(asked.beginning.before.layout, asked.want.count).placed)
    for number in range(asked.want.count, now, -1):
        moves, room = make_room_for(replace(asked, want=replace(asked.want, count=number)))
        assert room.enough >= enough, (seed, number)
        if enough:
            assert moves.copied <= copied, (seed, number)
        copied, enough = moves.copied, room.enough


@pytest.mark.parametrize("seed", WANTING_MORE)
def test_fewer_fit_as_well(seed: int) -> None:
    check_that_fewer_fit_as_well(seed)


@pytest.mark.full
def test_fewer_fit_as_well_on_many_clusters() -> None:
    for seed in MANY:
        with contextlib.suppress(GpolicyError):
            check_that_fewer_fit_as_well(seed)


def test_room_on_varied_clusters(tmp_path: Path) -> None:
    check_shares(check_cases(FEW, tmp_path))


@pytest.mark.full
def test_room_on_many_varied_clusters(tmp_path: Path) -> None:
    check_shares(check_cases(MANY, tmp_path))
