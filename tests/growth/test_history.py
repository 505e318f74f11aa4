"""What old snapshots say of the use of groups, and which of them count."""

from __future__ import annotations

import shutil
import time
from calendar import timegm
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.state import ClusterState, Identity
from gpolicy.cluster.state_files import read_snapshot, write_snapshot
from gpolicy.errors import GpolicyError
from gpolicy.growth.filling_up import GrowthReport, History, forecast, read_history
from gpolicy.progress import silent

GROWING = Path(__file__).resolve().parents[2] / "policies/growing"
AT = "2026-04-20T04:00:00Z"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GROWING, tmp_path / "growing"))


@pytest.fixture
def now() -> ClusterState:
    return read_snapshot(GROWING / "20260420T040000Z.json")


def history(directory: Path, state: ClusterState) -> History:
    return read_history(directory, state, {node.name: node.group for node in state.nodes.values()}, AT, silent)


def forecast_of(directory: Path, state: ClusterState) -> GrowthReport:
    return forecast(capacity(state), load_state(state), history(directory, state), AT)


def rewrite(directory: Path, change: dict[str, object], *names: str) -> None:
    for name in names:
        write_snapshot(replace(read_snapshot(directory / name), **change), directory / name)  # type: ignore[arg-type]


def test_use_is_what_the_instances_take(directory: Path, now: ClusterState) -> None:
    found = history(directory, now)
    assert [day for day, _ in found.points("default", "memory")] == [-7.0 * week for week in range(7, -1, -1)]
    sums = {
        "memory": sum(item.maxmem for item in now.instances.values()),
        "cpus": sum(item.vcpus for item in now.instances.values()),
        "disk": sum(item.disks[0].size + 128 for item in now.instances.values()),
        "spindle_use": len(now.instances),
        "spindles": 0,
    }
    for resource, amount in sums.items():
        assert found.points("default", resource)[-1] == (0.0, amount)
    assert found.notes == ()


def test_more_snapshots_change_nothing_and_are_not_read(directory: Path, now: ClusterState) -> None:
    """Of many in a week one counts; duplicates, gaps and other files do no harm."""
    before = forecast_of(directory, now)
    end, newest = timegm((2026, 4, 20, 4, 0, 0)), directory / "20260420T040000Z.json"
    for hour in range(1, 6 * 24):
        name = time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime(end - 3600 * hour))
        (directory / name).write_text("not looked at", encoding="utf-8")
    (directory / "README.json").write_text("{}", encoding="utf-8")
    shutil.copy(newest, directory / "20200101T000000Z.json")
    assert forecast_of(directory, now) == before


def test_what_is_foreign_unreadable_or_later_is_left_out_in_one_line(directory: Path, now: ClusterState) -> None:
    other = replace(now.cluster, identity=Identity(uuid="0f0f"))
    rewrite(directory, {"cluster": other}, "20260302T040000Z.json")
    (directory / "20260309T040000Z.json").write_text("{", encoding="utf-8")
    (directory / "20269999T999999Z.json").write_text("{", encoding="utf-8")
    (directory / "20270101T000000Z.json").write_text("{", encoding="utf-8")
    found = history(directory, now)
    assert len(found.use) == 6
    assert found.notes == (
        f"4 snapshots of {directory} left out: 2 later than the state, 1 of another cluster, 1 unreadable",
    )


def test_a_directory_without_snapshots_is_no_crash(tmp_path: Path, now: ClusterState) -> None:
    for directory in (tmp_path, tmp_path / "nowhere", GROWING / "20260420T040000Z.json"):
        found = forecast_of(directory, now)
        assert found.sizes == ()
        assert found.notes[0].startswith("No forecast of group default from 1 snapshot of 0 days: 6 are needed")
        assert str(directory) in found.notes[1]


def test_a_span_that_is_too_short_has_no_forecast(directory: Path, now: ClusterState) -> None:
    for week in ("20260302", "20260309", "20260316"):
        (directory / f"{week}T040000Z.json").unlink()
    assert forecast_of(directory, now).sizes == ()
    assert forecast_of(directory, now).notes == (
        "No forecast of group default from 5 snapshots of 28 days: 6 are needed, each a week after the one before",
    )


def test_a_group_that_takes_minutes_is_named(
    directory: Path, now: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, loaded = capacity(now), load_state(now)

    def give_up(*_: object, **__: object) -> None:
        raise GpolicyError("counting takes minutes")

    monkeypatch.setattr(CountedCluster, "place", give_up)
    found = forecast(report, loaded, history(directory, now), AT)
    assert (found.sizes, found.notes) == ((), ("No forecast of group default: counting takes minutes",))


def test_added_nodes_and_new_names_of_groups_are_no_growth(directory: Path, now: ClusterState) -> None:
    """The nodes were in a group of another name, and half of them were not there yet."""
    before = forecast_of(directory, now)
    for path in sorted(directory.iterdir())[:4]:
        old = read_snapshot(path)
        groups = {"old": replace(old.groups["default"], name="old")}
        nodes = {name: replace(node, group="old") for name, node in old.nodes.items()}
        rewrite(directory, {"groups": groups, "nodes": nodes}, path.name)
    assert forecast_of(directory, now) == before
    more = {f"new{name}": replace(node, name=f"new{name}") for name, node in now.nodes.items()}
    free = {name: replace(node.resources, memory_free=70_000, disk_free=2_000_000) for name, node in more.items()}
    grown = replace(now, nodes={**now.nodes, **{n: replace(node, resources=free[n]) for n, node in more.items()}})
    after = forecast_of(directory, grown)
    assert [size.per_week for size in after.sizes] == [size.per_week for size in before.sizes]
    assert all(new.room > 1.8 * old.room for new, old in zip(after.sizes, before.sizes, strict=True))


def test_the_room_is_used_up_when_hail_refuses_the_size(directory: Path, now: ClusterState) -> None:
    """Where all instances have one size, the day is that of the first number of them beside which the size fits not."""
    alike = {name: replace(item, minmem=3000, maxmem=3000) for name, item in now.instances.items()}
    free = {
        name: replace(node.resources, memory_free=70_000 - 3000 * sum(i.primary_node == name for i in alike.values()))
        for name, node in now.nodes.items()
    }
    nodes = {name: replace(node, resources=free[name]) for name, node in now.nodes.items()}
    state = replace(now, instances=alike, nodes=nodes)
    found = next(size for size in forecast_of(directory, state).sizes if size.spec == "1")
    counted: CountedCluster = load_state(state).groups["default"]
    large, reached, number = counted.largest(counted.policy.minmax[0]), counted.initial, 0
    one = replace(counted.data.instances[0], name="one")
    while len(counted.place(reached, large, 1).placed) > number:
        reached, number = counted.place(reached, one, 1), number + 1
    assert number > 5
    assert found.resource == "memory"
    assert abs(found.room - 3000 * number) <= 3000
    assert found.room < 8192 * capacity(state).groups[0].specs[0].fits  # as many small ones leave no large hole
