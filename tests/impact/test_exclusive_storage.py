"""Exclusive storage: compared with verify on a real cluster, and each kind of finding by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from gpolicy.cluster.master import read_master
from gpolicy.cluster.process import Output
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance, Resources
from gpolicy.cluster.terms import GroupTerms, VolumeTerms
from gpolicy.cluster.volume_pools import VolumesFrom, from_master
from gpolicy.findings import Located, Span
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.exclusive_storage_change import (
    DiskTrouble,
    ExclusiveStorageChange,
    GroupVolumes,
    InstanceEffect,
    NodeVolumes,
    PartlyUsedVolume,
    SpindleNumbers,
    Turn,
    VolumeGroup,
)
from gpolicy.policy.model import Hardware
from tests.impact.changes import exclusive_storage_change
from tests.impact.clusters_by_hand import cluster
from tests.impact.transcripts import CLUSTERS
from tests.strategies import instance

EXCLUSIVE = ("ndparams", "exclusive_storage")
ON: Values = {EXCLUSIVE: True}
RECORDED = CLUSTERS / "volumes"
TIB = 1024**2


@dataclass(frozen=True)
class Recorded:
    """A master that answers as a real one did."""

    source: str = "local:"

    def config_data(self) -> bytes:
        return (RECORDED / "config.data").read_bytes()

    def run(self, argv: Sequence[str]) -> Output:
        name = "list-storage" if argv[1] == "list-storage" else f"{argv[0].removeprefix('gnt-')}-list"
        return Output(0, (RECORDED / f"{name}.txt").read_bytes(), "")


def recorded_state(*, exclusive: bool = True) -> ClusterState:
    """Return the recorded cluster, all of whose nodes have exclusive storage; or as it was before."""
    state = from_master(read_master(Recorded()), Recorded())
    if exclusive:
        return state
    groups = {
        name: replace(group, own=group.own | {EXCLUSIVE: False}, effective=group.effective | {EXCLUSIVE: False})
        for name, group in state.groups.items()
    }
    return replace(state, groups=groups)


class TestRecordedVerify:
    """What `gnt-cluster verify` said of a cluster with exclusive storage, unequal volumes and all kinds of disks."""

    LINES = (RECORDED / "verify.txt").read_text(encoding="utf-8").splitlines()

    def told(self, pattern: str) -> list[re.Match[str]]:
        return [match for line in self.LINES if (match := re.search(pattern, line))]

    @pytest.fixture(params=[True, False], ids=["as it is", "when it is turned on"])
    def change(self, request: pytest.FixtureRequest) -> ExclusiveStorageChange:
        return exclusive_storage_change(recorded_state(exclusive=request.param), recorded_state())

    def test_volumes_that_differ_in_a_group(self, change: ExclusiveStorageChange) -> None:
        size = r"\((\d+)\.0 MB\) is on (\w+)"
        pattern = rf"EGROUPDIFFERENTPVSIZE:group:(\w+):.*smallest {size}, biggest {size}"
        (told,) = self.told(pattern)
        (group,) = [item for item in change.groups if item.differ]
        found = (group.group, str(group.smallest), group.smallest_on, str(group.largest), group.largest_on)
        assert found == told.groups()
        assert (group.known_from, group.differ_on, group.not_measured) == (VolumesFrom.MEASURED, (), ("node5",))
        assert group.counts == (("node1", 2), ("node2", 3), ("node3", 4), ("node4", 4))

    def test_instances_that_are_unsuitable(self, change: ExclusiveStorageChange) -> None:
        pattern = r"EINSTANCEUNSUITABLENODE:instance:(\w+):.*types (.*), which are .* storage set: (.*)"
        told = {match[1]: (set(filter(None, match[2].split(", "))), match[3]) for match in self.told(pattern)}
        found = {
            item.instance: (
                {disk.template for disk in item.disks if disk.trouble is DiskTrouble.NOT_PLAIN},
                ", ".join(item.exclusive_nodes),
            )
            for item in change.instances
            if item.unsuitable
        }
        assert found == told
        assert len(told) == 6

    def test_disks_without_spindles(self, change: ExclusiveStorageChange) -> None:
        told = [
            match.groups() for match in self.told(r"EINSTANCEMISSINGCFGPARAMETER:instance:(\w+):.* for disk (\d+) ")
        ]
        found = [
            (item.instance, str(disk.disk))
            for item in change.instances
            for disk in item.disks
            if disk.trouble is DiskTrouble.NO_SPINDLES
        ]
        assert sorted(found) == sorted(told)
        assert len(told) == 6

    def test_ganeti_3_0_reports_no_storage_of_such_nodes(self, change: ExclusiveStorageChange) -> None:
        assert change.not_reported == ("node1", "node2", "node3", "node4", "node5")
        assert all(node.resources.disk_total is None for node in recorded_state().nodes.values())

    def test_space_on_partly_used_volumes(self) -> None:
        turned = exclusive_storage_change(recorded_state(exclusive=False), recorded_state())
        (group,) = turned.groups
        assert [(item.node, item.volume) for item in group.partly_used] == [
            (f"node{number}", "/dev/fake0") for number in range(1, 5)
        ]
        stays = exclusive_storage_change(recorded_state(), recorded_state()).groups[0]
        assert stays.partly_used == ()
        assert stays.unusable_free == group.unusable_free == sum(item.free for item in group.partly_used)


def hardware(*sizes: int, count: int | None = None) -> Hardware:
    place = Span("f", 1, 1, 1, 2)
    return Hardware(
        span=place,
        pv_sizes=tuple(Located(size, place) for size in sizes),
        pv_count=None if count is None else Located(count, place),
    )


def disk(size: int, spindles: int | None = None, template: str = "plain") -> LiveDisk:
    return LiveDisk(size=size, spindles=spindles, template=template)


def states(before: Values, after: Values, *items: LiveInstance, **more: object) -> tuple[ClusterState, ClusterState]:
    nodes = {"node1": "default", "node2": "default"}
    old, new = (cluster({}, {"default": own}, nodes, *items, **more) for own in (before, after))  # type: ignore[arg-type]
    return old, new


def troubles(item: InstanceEffect) -> list[tuple[int, DiskTrouble, int | None]]:
    return [(found.disk, found.trouble, found.needed) for found in item.disks]


class TestVolumes:
    def groups(self, promised: Hardware | None = None, **volumes: list[tuple[int, int]]) -> GroupVolumes:
        old, new = states({}, ON, volumes=volumes)
        return exclusive_storage_change(old, new, {"default": promised} if promised else {}).groups[0]

    def test_the_terms_of_the_policy_count(self) -> None:
        """Without the excluded volume the smallest has 1000 MiB, and 1000 // 1.25 = 800."""
        volumes = {"node1": [(100, 50), (1000, 1000), (1021, 1021)]}
        terms = {"default": GroupTerms(volumes=VolumeTerms(exclude=("/dev/sdb",), margin=0.05, reserve=0.2))}
        old, new = (replace(state, terms=terms) for state in states({}, ON, volumes=volumes))
        (found,) = exclusive_storage_change(old, new).groups
        assert (found.smallest, found.usable, found.differ, found.counts) == (1000, 800, False, (("node1", 2),))
        assert found.partly_used == ()

    def test_each_volume_group_is_accounted_separately(self) -> None:
        volumes = {"node1": [(100, 50), (1000, 1000), (1000, 400), (500, 500)], "node2": [(100, 0), (1000, 0)]}
        terms = VolumeTerms(exclude=("/dev/sdb",), volume_groups={"ssdvg": ("/dev/sde",)})
        old, new = (
            replace(state, terms={"default": GroupTerms(volumes=terms)}) for state in states({}, ON, volumes=volumes)
        )
        (found,) = exclusive_storage_change(old, new).groups
        assert found.volume_groups == (
            VolumeGroup(
                name="xenvg",
                own=True,
                smallest=1000,
                largest=1000,
                nodes=(
                    NodeVolumes(node="node1", count=2, empty=1, size=2000, free=1400),
                    NodeVolumes(node="node2", count=1, empty=0, size=1000, free=0),
                ),
            ),
            VolumeGroup(
                name="ssdvg",
                own=False,
                smallest=500,
                largest=500,
                nodes=(
                    NodeVolumes(node="node1", count=1, empty=1, size=500, free=500),
                    NodeVolumes(node="node2", count=0, empty=0, size=0, free=0),
                ),
            ),
        )
        assert (found.counts, found.excluded) == ((("node1", 2), ("node2", 1)), (("node1", 1), ("node2", 1)))

    @pytest.mark.parametrize(("largest", "differ"), [(1000, False), (1020, False), (1021, True)])
    def test_the_margin_of_a_group(self, largest: int, differ: bool) -> None:
        found = self.groups(node1=[(1000, 1000)], node2=[(largest, largest)])
        assert (found.differ, found.differ_on, found.usable) == (differ, (), 970)

    def test_a_node_whose_own_volumes_differ_is_named(self) -> None:
        found = self.groups(node1=[(1000, 1000), (1030, 1030)], node2=[(1000, 1000)])
        assert found.differ_on == ("node1",)

    def test_partly_used_volumes_are_neither_empty_nor_full(self) -> None:
        found = self.groups(node1=[(1000, 1000), (1000, 0), (1000, 400)])
        assert found.partly_used == (PartlyUsedVolume(node="node1", volume="/dev/sdd", size=1000, free=400),)
        assert found.unusable_free == 400

    def test_measured_hardware_overrides_promised_hardware(self) -> None:
        found = self.groups(hardware(TIB, count=12), node1=[(1000, 1000)])
        assert (found.known_from, found.largest) == (VolumesFrom.MEASURED, 1000)
        assert found.not_measured == ("node2",)

    def test_promised_hardware_replaces_missing_measurements(self) -> None:
        found = self.groups(hardware(TIB, TIB + 30000, count=12))
        assert (found.known_from, found.smallest, found.differ) == (VolumesFrom.PROMISED, TIB, True)
        assert found.counts == (("node1", 12), ("node2", 12))
        assert found.unusable_free is None

    def test_without_figures_the_volumes_are_unknown(self) -> None:
        found = self.groups()
        assert found == GroupVolumes(group="default", known_from=VolumesFrom.UNKNOWN, not_measured=("node1", "node2"))


class TestInstances:
    def one(self, *disks: LiveDisk, before: Values, after: Values, promised: Hardware | None = None) -> InstanceEffect:
        item = replace(instance("a", "node1"), disks=disks)
        old, new = states(before, after, item)
        (found,) = exclusive_storage_change(old, new, {"default": promised} if promised else {}).instances
        return found

    def test_a_disk_of_one_volumes_size_needs_two_spindles(self) -> None:
        found = self.one(disk(TIB, 1), disk(1018034, 1), before=ON, after=ON, promised=hardware(TIB, count=12))
        assert troubles(found) == [(0, DiskTrouble.TOO_FEW_SPINDLES, 2)]

    def test_without_a_size_of_volumes_the_number_is_unknown(self) -> None:
        item = replace(instance("a", "node1"), disks=(disk(TIB, 1),))
        assert exclusive_storage_change(*states(ON, ON, item)).instances == ()

    def test_turning_exclusive_storage_on_leaves_existing_disks_on_shared_volumes(self) -> None:
        found = self.one(disk(100, 1), disk(100), before={}, after=ON)
        assert (found.turn, found.unsuitable) == (Turn.ON, False)
        assert troubles(found) == [
            (0, DiskTrouble.SHARED_VOLUMES, None),
            (1, DiskTrouble.NO_SPINDLES, None),
            (1, DiskTrouble.SHARED_VOLUMES, None),
        ]

    def test_other_templates_and_no_disks_are_unsuitable(self) -> None:
        found = self.one(disk(100, 1), disk(100, 2, "file"), before=ON, after=ON)
        assert (troubles(found), found.unsuitable) == ([(1, DiskTrouble.NOT_PLAIN, None)], True)
        assert self.one(before=ON, after=ON).unsuitable

    def test_turning_exclusive_storage_off_leaves_spindles_without_a_meaning(self) -> None:
        found = self.one(disk(100, 1), disk(100), before=ON, after={})
        assert (found.turn, troubles(found)) == (Turn.OFF, [(0, DiskTrouble.SPINDLES_LEFT, None)])
        assert (found.exclusive_nodes, found.unsuitable) == ((), False)

    def test_a_node_that_moves_turns_it_on_for_its_instances(self) -> None:
        item = replace(instance("a", "node1", "drbd", ("node2",)))
        groups = {"default": {}, "dedicated": ON}
        old, new = (
            cluster({}, groups, {"node1": "default", "node2": group}, item) for group in ("default", "dedicated")
        )
        change = exclusive_storage_change(old, new)
        assert (change.turned_on, change.turned_off) == (("node2",), ())
        (found,) = change.instances
        assert (found.turn, found.exclusive_nodes, found.group) == (Turn.ON, ("node2",), "default")
        back = exclusive_storage_change(new, old)
        assert (back.turned_off, back.groups, back.not_reported) == (("node2",), (), ())

    def test_without_exclusive_storage_nothing_is_reported(self) -> None:
        assert exclusive_storage_change(*states({}, {}, instance("a", "node1"))) == ExclusiveStorageChange()

    def test_the_two_meanings_of_spindles_are_kept_apart(self) -> None:
        item = replace(instance("a", "node1"), disks=(disk(1, 2), disk(1, 3)), spindle_use=7)
        own: Values = {("ndparams", "spindle_count"): 24, ("ipolicy", "spindle-ratio"): 8.0}
        old, new = states(own, own | ON, item, volumes={"node1": [(1000, 1000)] * 12})
        (found,) = exclusive_storage_change(old, new).instances
        before = SpindleNumbers(
            spindle_use=7,
            disk_spindles=5,
            compared=7,
            spec_spindle_use=((1, 12),),
            spindle_count=24,
            physical_volumes=12,
            spindle_ratio=8.0,
            in_use=True,
        )
        assert found.before == before
        assert found.after == replace(before, compared=5, in_use=False)

    def test_ganetis_own_number_of_volumes_overrides(self) -> None:
        old, new = states({}, ON, instance("a", "node1"), volumes={"node1": [(1000, 1000)] * 12})
        counted = replace(new.nodes["node1"], resources=Resources(spindles_total=11))
        new = replace(new, nodes={**new.nodes, "node1": counted})
        assert exclusive_storage_change(old, new).instances[0].after.physical_volumes == 11


@pytest.mark.parametrize(
    ("version", "named"), [("2.16.2", False), ("3.0.2", True), ("3.1.0~rc2", True), (None, True), ("odd", True)]
)
def test_the_bug_of_the_node_daemon_is_noted_where_it_applies(version: str | None, named: bool) -> None:
    old, new = (replace(state, software_version=version) for state in states({}, ON))
    assert exclusive_storage_change(old, new).not_reported == (("node1", "node2") if named else ())


def test_promised_sizes_count_without_a_number_of_volumes() -> None:
    state = cluster({EXCLUSIVE: True}, {"default": {}}, {"node1": "default"})
    (found,) = exclusive_storage_change(state, state, {"default": hardware(TIB)}).groups
    assert (found.known_from, found.smallest, found.largest) == (VolumesFrom.PROMISED, TIB, TIB)
    assert (found.counts, found.differ, found.not_measured) == ((), False, ("node1",))
    (found,) = exclusive_storage_change(state, state, {"default": hardware(count=12)}).groups
    assert (found.known_from, found.smallest, found.counts) == (VolumesFrom.PROMISED, None, (("node1", 12),))
    assert (found.differ, found.usable) == (None, None)
