"""Room for the metadata of DRBD disks in another volume group than the cluster's own, by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpolicy.analysis.capacity import CapacityReport, capacity
from gpolicy.analysis.node_resources import MetadataRoom, NodeRoom, metadata_rooms, uncounted
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance
from gpolicy.cluster.terms import GroupTerms, VolumeTerms
from gpolicy.ganeti.vocabulary import DRBD_METADATA, Values
from tests.analysis.hspace_cases import from_text, text_of
from tests.ganeti.real_ganeti import TREES, needs_ganeti
from tests.impact.clusters_by_hand import cluster
from tests.strategies import instance

META: Values = {("diskparams", "drbd", "metavg"): "ssdvg"}
SSD = {"g": GroupTerms(volumes=VolumeTerms(volume_groups={"ssdvg": ("/dev/sdc",)}))}
"""/dev/sdb is in the cluster's own group, /dev/sdc in the one for metadata."""


def state(own: Values, *instances: LiveInstance, **free: int) -> ClusterState:
    """Return a cluster of one group; `free` is what is free of 1000 MiB for metadata, by node."""
    volumes = {name: [(5000, 5000), (1000, amount)] for name, amount in free.items()}
    made = cluster(own, {"g": META}, dict.fromkeys(("n1", "n2", "n3"), "g"), *instances, volumes=volumes)
    return replace(made, terms=SSD)


def declared(total: int, **more: int) -> Values:
    numbers = {"disk_total": total, **more}
    return {("disk_state", "plain", "ssdvg", name): value for name, value in numbers.items()}


def only(state: ClusterState) -> MetadataRoom:
    (room,) = metadata_rooms(state)
    return room


def test_what_is_free_on_the_assigned_volumes() -> None:
    """1000 // 128 = 7 disks, 384 // 128 = 3, 127 // 128 = 0. Each disk is on two nodes: 3 of n1 and n2."""
    room = only(state({}, n1=1000, n2=384, n3=127))
    assert room.nodes == (NodeRoom("n1", 1000, 7, True), NodeRoom("n2", 384, 3, True), NodeRoom("n3", 127, 0, True))
    assert (room.volume_group, room.unknown, room.disks) == ("ssdvg", (), 3)


@pytest.mark.parametrize(
    ("counts", "disks"), [((7, 3, 0), 3), ((2, 2, 2), 3), ((1, 1, 1), 1), ((5, 5, 1), 5), ((9, 0, 0), 0)]
)
def test_each_disk_is_on_two_nodes(counts: tuple[int, ...], disks: int) -> None:
    nodes = tuple(NodeRoom(f"n{number}", 128 * count, count, True) for number, count in enumerate(counts))
    assert MetadataRoom("g", "ssdvg", nodes).disks == disks


def test_the_declared_size_less_all_metadata() -> None:
    """1000 - 100 - 200 = 700 MiB, less two disks with 128 each on n1 and n2: 444 // 128 = 3; 700 // 128 = 5."""
    disk = LiveDisk(size=500, template="drbd")
    both = replace(instance("i", "n1", "drbd", ("n2",)), disks=(disk, disk))
    room = only(state(declared(1000, disk_reserved=100, disk_overhead=200), both))
    assert [(node.free, node.disks, node.measured) for node in room.nodes] == [
        (444, 3, False),
        (444, 3, False),
        (700, 5, False),
    ]
    assert room.disks == 5


def test_measured_goes_before_declared_and_the_reserve_stays_free() -> None:
    room = only(state(declared(99999, disk_reserved=100), n1=484, n2=484, n3=50))
    assert [(node.free, node.disks) for node in room.nodes] == [(384, 3), (384, 3), (0, 0)]


def test_nodes_of_which_nothing_is_known_leave_the_sum_open() -> None:
    room = only(state({}, n1=1000, n2=1000))
    assert (room.unknown, room.disks) == (("n3",), None)
    assert only(state({})).disks is None


def test_nodes_that_take_nothing_have_no_room() -> None:
    made = state({}, n1=1000, n2=1000, n3=1000)
    away = {"n2": replace(made.nodes["n2"], offline=True), "n3": replace(made.nodes["n3"], drained=True)}
    room = only(replace(made, nodes={**made.nodes, **away}))
    assert ([node.node for node in room.nodes], room.disks) == (["n1"], 0)


@pytest.mark.parametrize(
    "own",
    [
        {("volume_group_name",): "ssdvg"},
        {("volume_group_name",): ""},
        {("enabled_disk_templates",): ["plain"]},
        {("ipolicy", "disk-templates"): ["plain"]},
        {("ndparams", "exclusive_storage"): True},
    ],
)
def test_there_is_no_such_room(own: Values) -> None:
    assert metadata_rooms(state(own, n1=1000)) == ()
    assert metadata_rooms(state({}, n1=1000), "other") == ()


def test_disk_state_of_metavg_is_not_called_ignored() -> None:
    other: Values = {("disk_state", "plain", "scratch", "disk_total"): 5}
    scratch, ssdvg = (note for note in uncounted(state(declared(1000) | other)) if note.startswith("disk_state"))
    assert scratch.startswith("disk_state.plain.scratch is ignored")
    assert (
        ssdvg == "disk_state.plain.ssdvg counts only as room for the metadata of DRBD disks (metavg), beside capacity"
    )


POLICY = "1024,1,5120,1,1,1|512,1,2560,1,1,1;1024,1,5120,1,1,1|drbd|4.0|32.0"


def counted(total: int) -> CapacityReport:
    """Return the capacity of two nodes for instances of 1 GiB, of which 13 fit on both together."""
    rows = [f"{name}|16384|1000|15384|204800|204800|8|N|u|4||N|0|1|1.0" for name in "ab"]
    made = from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{POLICY}", f"g|{POLICY}"]))
    own: Values = {**made.cluster.own, ("volume_group_name",): "xenvg", **declared(total)}
    groups = {"g": replace(made.groups["g"], effective=made.groups["g"].effective | META)}
    return capacity(replace(made, cluster=replace(made.cluster, own=own), groups=groups))


def test_capacity_says_when_it_counts_more_disks_than_have_room() -> None:
    report = counted(256)
    (group,) = report.groups
    assert group.standard.fits > 2
    assert [room.disks for room in report.metadata] == [2]
    assert report.notes[-1] == (
        "group g: volume group ssdvg has room for the metadata of 2 more DRBD disks, fewer than are counted: no count"
        " looks at it"
    )
    enough = counted(128 * 1000)
    assert [room.disks for room in enough.metadata] == [1000]
    assert enough.notes == ()
    assert enough.groups == report.groups


@pytest.mark.ganeti
@needs_ganeti[1]
def test_the_size_of_metadata_is_ganetis() -> None:
    source = (TREES[-1].parents[1] / "_constants.py").read_text(encoding="utf-8")
    assert re.findall(r"^DRBD_META_SIZE = (\d+)$", source, re.MULTILINE) == [str(DRBD_METADATA)]
