"""Moves that make room: against all that three moves can reach, step by step, and against the installed hail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gpolicy
from gpolicy.analysis.capacity import GroupCapacity
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.progress import after_work
from gpolicy.remedy.remedy import find_remedy
from gpolicy.remedy.room import MadeRoom, most_that_fit
from gpolicy.remedy.room_search import RoomSearch, make_room
from gpolicy.remedy.search import Moves
from gpolicy.what_if.load import elsewhere
from tests.analysis.hail_cases import HSPACE, HTOOLS, document, real_hail
from tests.cli.command_line import ROOT
from tests.remedy.small_clusters import Question, all_reached, question

FEW = (0, 3, 5, 6, 7, 9, 10, 13, 14, 15, 16, 17, 19, 20, 21, 23, 24, 25)  # those with fewer layouts to enumerate
MANY = range(200)
MOVES = 3


@dataclass(frozen=True)
class Compared:
    """What the search found, and the least disk and the fewest moves of all lists of at most three moves."""

    asked: Question
    moves: Moves
    room: MadeRoom
    bound: int
    most: int
    best: tuple[int, int] | None
    by_two: bool


@cache
def compared(seed: int) -> Compared:
    asked = question(seed)
    known: dict[tuple[tuple[int, int], ...], int] = {}
    costs = []
    for number, copied, layout in all_reached(asked, MOVES):
        key = tuple((item.primary, item.secondary) for item in layout.instances.values())
        if key not in known:
            known[key] = len(asked.hail.place(layout, 50).placed)
        if known[key] >= asked.want.count:
            costs.append((copied, number))
    beginning = asked.beginning
    moves, room = make_room(asked.search(), beginning.before, beginning.loaded, asked.want, PairNames())
    bound = most_that_fit(beginning.before.layout, asked.hail, beginning.movers.fixed)
    by_two = any(number < MOVES for _, number in costs)
    return Compared(asked, moves, room, bound, max(known.values()), min(costs, default=None), by_two)


def check_that_each_step_is_safe(found: Compared) -> None:
    movers, layout = found.asked.beginning.movers, found.asked.beginning.before.layout
    for step in found.moves.steps:
        assert step.move.instance == layout.instances[step.move.instance.index]
        assert step.move.instance.index not in movers.fixed
        trial = movers.try_move(layout, step.move)
        assert not isinstance(trial, int)
        assert trial.gain.units >= 0
        assert movers.is_safe(layout, trial)
        layout = layout.after(trial.moved)
        assert {*found.asked.beginning.before.faults} >= {*movers.places.faults(layout)}
        assert sum(map(len, layout.homeless.values())) <= sum(
            map(len, found.asked.beginning.before.layout.homeless.values())
        )
    assert len(found.asked.hail.place(layout, found.asked.want.count).placed) == found.room.after


def check_shares(seeds: Iterable[int]) -> None:
    all_of_them = [compared(seed) for seed in seeds]
    by_two = [found for found in all_of_them if found.by_two]
    reached = [found for found in by_two if found.room.enough]
    least = [found for found in reached if found.best and found.moves.copied <= found.best[0]]
    print(f"{len(reached)} of {len(by_two)} found, {len(least)} with the least to copy, of {len(all_of_them)} clusters")  # noqa: T201
    assert len(by_two) > len(all_of_them) // 6
    assert len(reached) >= 0.95 * len(by_two)
    assert len(least) >= 0.9 * len(reached)


def check_that_none_is_better_than_possible(found: Compared) -> None:
    assert found.most <= found.bound
    assert found.room.now < found.room.count
    assert found.room.enough == bool(found.moves.steps)
    assert found.room.after <= found.room.most
    if found.best and len(found.moves.steps) in range(1, MOVES + 1):
        assert (found.moves.copied, len(found.moves.steps)) >= found.best
    if found.best is None:
        assert len(found.moves.steps) not in range(1, MOVES + 1)


@pytest.mark.parametrize("seed", FEW)
def test_no_list_is_better_than_possible_and_each_step_is_safe(seed: int) -> None:
    check_that_none_is_better_than_possible(compared(seed))
    check_that_each_step_is_safe(compared(seed))


def test_most_lists_are_found_with_the_least_to_copy() -> None:
    check_shares(FEW)


def check_most_reached(seeds: Iterable[int]) -> None:
    """Moves reach as many wanted instances as any three moves do, for most clusters; never more than the bound."""
    reached = []
    for found in map(compared, seeds):
        asked, before = found.asked, found.asked.beginning.before
        search = replace(asked.search(), stop=after_work(2_000))
        most = RoomSearch(search, before, asked.hail, found.bound, found.room.now).most_reached()
        assert most <= found.bound
        reached.append((most, found.most))
    print(reached)  # noqa: T201
    assert sum(many >= most for many, most in reached) >= 0.9 * len(reached)


def test_most_that_moves_reach() -> None:
    check_most_reached(FEW)


@pytest.mark.full
def test_many_lists() -> None:
    for seed in MANY:
        check_that_none_is_better_than_possible(compared(seed))
        check_that_each_step_is_safe(compared(seed))
    check_shares(MANY)
    check_most_reached(MANY)


def test_without_work_no_move_is_found_and_the_report_says_so() -> None:
    asked = next(compared(seed).asked for seed in FEW if compared(seed).room.enough)
    report = find_remedy(asked.state, PairNames(), rate=60, want=asked.want, stop=after_work(1))
    assert (report.steps, report.exhaustive) == ((), False)
    assert report.room is not None
    assert not report.room.enough


def test_what_fits_needs_no_move() -> None:
    asked = next(compared(seed).asked for seed in FEW if compared(seed).room.now)
    report = find_remedy(asked.state, PairNames(), rate=60, want=replace(asked.want, count=1))
    assert (report.steps, report.exhaustive) == ((), True)
    assert report.room is not None
    assert (report.room.now, report.room.after) == (1, 1)


# --- the installed hail ---------------------------------------------------------------------------------------------


@pytest.mark.htools
@pytest.mark.skipif(HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools is not installed")
def test_the_installed_hail_accepts_what_room_is_made_for(tmp_path: Path) -> None:
    made = [found for found in map(compared, FEW) if found.room.enough]
    assert made
    for found in made:
        answer = real_hail(document(after_the_moves(found), wanted(found)), tmp_path)
        assert answer is not None
        assert answer["success"], answer
        allocated, failed = answer["result"]
        assert (len(allocated), failed) == (found.room.count, [])


def after_the_moves(found: Compared) -> ClusterState:
    names = {index: node.facts.name for index, node in found.moves.layout.nodes.items()}
    items = [found.moves.layout.instances[step.move.instance.index] for step in found.moves.steps]
    places = {item.name: [names[i] for i in (item.primary, item.secondary) if i in names] for item in items}
    return elsewhere(found.asked.state, places)


def wanted(found: Compared) -> dict[str, Any]:
    """Return a request for all wanted instances at once, which hail places one after the other."""
    item = found.asked.hail.instance
    one = {
        "type": "allocate",
        "memory": item.memory,
        "vcpus": item.vcpus,
        "disks": [{"size": disk.size} | ({"spindles": disk.spindles} if disk.spindles else {}) for disk in item.disks],
        "disk_space_total": item.disk,
        "disk_template": item.template.value,
        "spindle_use": item.spindle_use,
        "tags": list(item.tags),
        "nics": [],
        "required_nodes": 2 if found.asked.hail.mirrored else 1,
        "os": "any",
        "hypervisor": "kvm",
    }
    return {"type": "multi-allocate", "instances": [one | {"name": f"new{no}"} for no in range(found.room.count)]}


# --- beside capacity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["two-groups.snapshot.json", "growing/20260420T040000Z.json"])
def test_what_fits_after_moves_changes_no_other_figure(file: str) -> None:
    cluster = gpolicy.open_cluster(gpolicy.read_state(f"snapshot:{ROOT / 'policies' / file}"))
    found = gpolicy.count_capacity(cluster, after_moves=True)
    specs = [spec for item in found.groups for spec in item.specs if spec.at_most is not None]
    assert any(spec.fits <= (spec.after_moves or 0) <= (spec.at_most or 0) > spec.fits for spec in specs)
    assert all(spec.fits <= (spec.after_moves or 0) <= (spec.at_most or 0) for spec in specs)
    assert found.cluster is not None
    items = [_without_moves(item) for item in (*found.groups, found.cluster)]
    assert replace(found, groups=tuple(items[:-1]), cluster=items[-1]) == gpolicy.count_capacity(cluster)


def _without_moves(item: GroupCapacity) -> GroupCapacity:
    return replace(item, specs=tuple(replace(spec, after_moves=None, at_most=None) for spec in item.specs))
