"""Measurements of nodes after exclusive storage is turned on or off: by hand, and compared with Ganeti's functions."""

from __future__ import annotations

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState, LiveNode, PhysicalVolume, Resources
from gpolicy.cluster.terms import VolumeTerms
from gpolicy.cluster.volume_pools import VolumePool, volume_pools
from gpolicy.ganeti.vocabulary import Values
from gpolicy.plan.sides import planned_sides, project, resources_when_turned
from gpolicy.policy.loading import load_policy
from tests.ganeti.real_ganeti import TREES, needs_ganeti
from tests.plan.planned import cluster, plan_for

TIB = 1024**2
MEASURED = Resources(memory_total=1000, memory_free=500, disk_total=3000, disk_free=2500, cpu_total=8)
ON: Values = {("ndparams", "exclusive_storage"): True}


def volumes(*sizes: tuple[int, int]) -> tuple[PhysicalVolume, ...]:
    return tuple(
        PhysicalVolume(name=f"/dev/sd{number}", size=size, used=used, free=size - used)
        for number, (size, used) in enumerate(sizes)
    )


def node(*sizes: tuple[int, int], measured: Resources = MEASURED) -> LiveNode:
    return LiveNode(name="node1", group="default", own={}, resources=measured, physical_volumes=volumes(*sizes))


def turned(node: LiveNode, *, on: bool) -> Resources:
    volumes = node.physical_volumes
    return resources_when_turned(node, None if volumes is None else VolumePool(volumes=volumes), on=on)


def test_only_empty_volumes_count_and_not_all_of_each() -> None:
    found = turned(node((1000, 500), (1000, 0), (1000, 0)), on=True)
    assert (found.spindles_total, found.spindles_free, found.disk_free) == (3, 2, 2 * 970)
    assert (found.disk_total, found.memory_free) == (3000, 500)


def test_without_exclusive_storage_all_free_space_counts() -> None:
    measured = replace(MEASURED, disk_free=970, spindles_total=3, spindles_free=1)
    found = turned(node((1000, 1000), (1000, 400), (1000, 0), measured=measured), on=False)
    assert (found.disk_free, found.spindles_total, found.spindles_free) == (1600, None, None)


@pytest.mark.parametrize("on", [True, False])
def test_without_volumes_or_with_those_of_other_groups_it_is_unknown(on: bool) -> None:
    for unknown in (replace(node(), physical_volumes=None), node((1000, 0), (1000, 0)), node((3000, 0), (500, 0))):
        found = turned(unknown, on=on)
        assert (found.disk_free, found.spindles_total, found.spindles_free) == (None, None, None)


def test_unmeasured_figures_stay_unmeasured() -> None:
    silent = node((1000, 0), measured=Resources())
    assert turned(silent, on=True) == Resources()


class TestProjection:
    def state(self, *sizes: tuple[int, int]) -> ClusterState:
        state = cluster({}, {"default": {}, "dedicated": ON}, {"node1": "default", "node2": "dedicated"})
        measured = replace(state.nodes["node1"], resources=MEASURED, physical_volumes=volumes(*sizes) or None)
        return replace(state, nodes={**state.nodes, "node1": measured})

    DOCUMENTS = (
        "NodeGroup\nname: default\nndparams: {exclusive_storage: true}",
        "NodeGroup\nname: dedicated\nnodes: [node1]",
    )

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_the_flag_of_the_group_or_another_group(self, document: str) -> None:
        state = self.state((1000, 500), (1000, 0), (1000, 0))
        after = project(state, plan_for(state, document).changes)
        assert after.nodes["node1"].resources.spindles_free == 2
        assert after.notes == state.notes

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_lost_figures_are_noted(self, document: str) -> None:
        state = self.state()
        after = project(state, plan_for(state, document).changes)
        assert after.nodes["node1"].resources.disk_free is None
        assert "exclusive storage changes what is free on node1" in after.notes[-1]

    def test_other_changes_do_not_touch_the_disk_figures(self) -> None:
        state = self.state()
        plan = plan_for(state, "NodeGroup\nname: default\nipolicy: {vcpu-ratio: 2}")
        assert project(state, plan.changes).nodes == state.nodes


def test_an_excluded_root_volume_does_not_hide_the_figures() -> None:
    """The volume group of 3000 MiB is measured; the root volume of 200 MiB is not in it. 1000 // 1.03 = 970."""
    listed = volumes((200, 150), (1000, 500), (1000, 0), (1000, 0))
    without = volume_pools(listed, VolumeTerms(), "xenvg").own
    assert resources_when_turned(node(), without, on=True).disk_free is None
    excluding = volume_pools(listed, VolumeTerms(exclude=("/dev/sd0",)), "xenvg").own
    found = resources_when_turned(node(), excluding, on=True)
    assert (found.spindles_total, found.spindles_free, found.disk_free) == (3, 2, 2 * 970)
    assert resources_when_turned(node(), excluding, on=False).disk_free == 2500


def test_volumes_that_lvm_must_not_use_are_no_spindles_but_part_of_the_group() -> None:
    listed = tuple(
        replace(volume, allocatable=volume.name != "/dev/sd0") for volume in volumes((1000, 0), (1000, 0), (1000, 0))
    )
    found = resources_when_turned(node(), VolumePool(volumes=listed), on=True)
    assert (found.spindles_total, found.spindles_free, found.disk_free) == (2, 2, 1940)


@pytest.mark.parametrize(("margin", "usable"), [("1%", 970), ("23%", 800)])
def test_a_policys_terms_count_for_its_own_plan(margin: str, usable: int, tmp_path: Path) -> None:
    """1000 // (1 + 0.23 + 0.02) = 800. The terms of a group that is renamed and turned are those of its new name."""
    text = f"""
gpolicy: v1
kind: NodeGroup
name: fast
renamed_from: default
ndparams: {{exclusive_storage: true}}
physical_volumes: {{exclude: [/dev/sd0], margin: {margin}}}
"""
    (tmp_path / "policy.yaml").write_text(text)
    state = TestProjection().state((200, 150), (1000, 500), (1000, 0), (1000, 0))
    policy = load_policy(tmp_path / "policy.yaml")
    after = planned_sides(policy, state).after
    assert after.nodes["node1"].resources.disk_free == 2 * usable
    assert after.notes == state.notes


ANSWER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ganeti import objects
from ganeti.storage.bdev import LogicalVolume
for line in sys.stdin:
    volumes = [
        objects.LvmPvInfo(name=f"/dev/sd{n}", vg_name="x", size=float(size), free=float(size - used), attributes="a--")
        for n, (size, used) in enumerate(json.loads(line))
    ]
    LogicalVolume.GetPVInfo = classmethod(lambda *_, **__: volumes)
    free, total = LogicalVolume.GetVgSpindlesInfo("x")
    print(json.dumps([total, free, LogicalVolume._GetExclusiveStorageVgFree("x")]))
"""


@pytest.mark.ganeti
@needs_ganeti[1]
def test_ganeti_itself_counts_the_same() -> None:
    rnd = random.Random(1)  # noqa: S311
    cases = []
    for _ in range(300):
        sizes = [rnd.choice((1000, 1005, 1030, TIB, TIB + 7)) for _ in range(rnd.randint(1, 8))]
        cases.append([(size, rnd.choice((0, 0, 1, 2, size // 2, size))) for size in sizes])
    run = subprocess.run(
        ["/usr/bin/python3", "-c", ANSWER, str(TREES[-1].parents[2])],
        input="\n".join(map(json.dumps, cases)),
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    mine = []
    for case in cases:
        measured = replace(MEASURED, disk_total=sum(size for size, _ in case))
        found = turned(node(*case, measured=measured), on=True)
        mine.append([found.spindles_total, found.spindles_free, found.disk_free])
    assert [json.loads(line) for line in run.stdout.splitlines()] == mine
