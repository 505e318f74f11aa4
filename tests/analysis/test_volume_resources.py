"""Disk and spindles of nodes under exclusive storage: by hand, and compared with Ganeti's functions."""

from __future__ import annotations

import json
import random
import subprocess
from dataclasses import replace

import pytest

from gpolicy.analysis.node_resources import VolumeResources, volume_notes, volume_resources, what_if_shares
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance, PhysicalVolume
from gpolicy.cluster.terms import GroupTerms, Promise, VolumeTerms
from gpolicy.cluster.volume_pools import VolumesFrom
from gpolicy.ganeti.vocabulary import Values
from tests.ganeti.real_ganeti import TREES, needs_ganeti
from tests.impact.clusters_by_hand import cluster
from tests.strategies import instance

TIB = 1024**2
ON: Values = {("ndparams", "exclusive_storage"): True}


def state(
    *instances: LiveInstance, volumes: tuple[tuple[int, int], ...] | None = None, terms: GroupTerms | None = None
) -> ClusterState:
    made = cluster(
        {}, {"g": ON}, {"n1": "g", "n2": "g"}, *instances, volumes=None if volumes is None else {"n1": volumes}
    )
    return replace(made, terms={"g": terms or GroupTerms()})


def figures(found: VolumeResources | None) -> tuple[int, ...] | None:
    return None if found is None else (*found.figures.values(),)


def on(node: str, *disks: LiveDisk, template: str = "plain", secondaries: tuple[str, ...] = ()) -> LiveInstance:
    return replace(instance(f"on-{node}-{len(disks)}-{template}", node, template, secondaries), disks=disks)


def plain(size: int, spindles: int | None = None) -> LiveDisk:
    return LiveDisk(size=size, template="plain", spindles=spindles)


class TestMeasured:
    def test_only_empty_volumes_are_free(self) -> None:
        """Ganeti counts 1000 // 1.03 = 970 of each of three volumes; one is partly used."""
        made = state(volumes=((1000, 1000), (1005, 500), (1010, 1010)))
        found = volume_resources(made, made.nodes["n1"])
        assert figures(found) == (2910, 1940, 3, 2)
        assert found is not None
        assert found.known_from is VolumesFrom.MEASURED

    def test_a_small_root_volume_counts_until_it_is_excluded(self) -> None:
        """/dev/sdb has 100 MiB: 100 // 1.03 = 97. Without it: 1000 // 1.03 = 970."""
        volumes = ((100, 20), (1000, 1000), (1000, 1000))
        made = state(volumes=volumes)
        assert figures(volume_resources(made, made.nodes["n1"])) == (291, 194, 3, 2)
        made = state(volumes=volumes, terms=GroupTerms(volumes=VolumeTerms(exclude=("/dev/sdb",))))
        assert figures(volume_resources(made, made.nodes["n1"])) == (1940, 1940, 2, 2)

    def test_other_shares(self) -> None:
        """1000 // 1.25 = 800."""
        made = state(volumes=((1000, 1000),), terms=GroupTerms(volumes=VolumeTerms(margin=0.05, reserve=0.2)))
        assert figures(volume_resources(made, made.nodes["n1"])) == (800, 800, 1, 1)

    def test_measured_goes_before_promised(self) -> None:
        terms = GroupTerms(promise=Promise(volumes=(2000, 2000)))
        made = state(volumes=((1000, 1000),), terms=terms)
        assert figures(volume_resources(made, made.nodes["n1"])) == (970, 970, 1, 1)
        assert figures(volume_resources(made, made.nodes["n2"])) == (3882, 3882, 2, 2)  # 2000 // 1.03 = 1941


class TestPromised:
    TERMS = GroupTerms(promise=Promise(volumes=(1000, 1010, 1000, 1000)))

    def found(self, *instances: LiveInstance, terms: GroupTerms = TERMS) -> tuple[int, ...] | None:
        made = state(*instances, terms=terms)
        return figures(volume_resources(made, made.nodes["n1"]))

    def test_all_is_free_on_an_empty_node(self) -> None:
        assert self.found() == (3880, 3880, 4, 4)
        assert self.found(on("n2", plain(900, 1))) == (3880, 3880, 4, 4)

    def test_recorded_spindles_go_before_the_size(self) -> None:
        assert self.found(on("n1", plain(900, 2), plain(100, 1))) == (3880, 970, 4, 1)

    def test_without_a_record_the_size_counts(self) -> None:
        """970 MiB need one volume, 971 two."""
        assert self.found(on("n1", plain(970))) == (3880, 2910, 4, 3)
        assert self.found(on("n1", plain(971))) == (3880, 1940, 4, 2)

    def test_drbd_takes_its_metadata_on_both_nodes(self) -> None:
        """842 + 128 = 970 MiB: one volume; 843 + 128 = 971: two."""
        for size, free in ((842, 3), (843, 2)):
            both = on("n2", LiveDisk(size=size, template="drbd"), template="drbd", secondaries=("n1",))
            assert self.found(both) == (3880, free * 970, 4, free)

    def test_a_summed_disk_counts_as_it_is(self) -> None:
        """Sources with one disk for all show it with the metadata."""
        summed = replace(on("n1", LiveDisk(size=842, template="drbd")), summed_disk=LiveDisk(size=970, template="drbd"))
        assert self.found(summed) == (3880, 2910, 4, 3)

    def test_other_templates_and_planned_instances_take_nothing(self) -> None:
        file = on("n1", LiveDisk(size=900, template="file"), template="file")
        assert self.found(file, replace(on("n1", plain(900)), forthcoming=True)) == (3880, 3880, 4, 4)

    def test_never_less_than_nothing(self) -> None:
        assert self.found(on("n1", plain(900, 5))) == (3880, 0, 4, 0)

    def test_volumes_too_small_to_count(self) -> None:
        terms = GroupTerms(promise=Promise(volumes=(1,)))
        assert self.found(terms=terms) == (0, 0, 1, 1)
        assert self.found(on("n1", plain(900, 1)), terms=terms) == (0, 0, 1, 0)
        assert self.found(on("n1", plain(900)), terms=terms) is None

    def test_nothing_promised(self) -> None:
        assert self.found(terms=GroupTerms()) is None
        assert self.found(terms=GroupTerms(promise=Promise(volumes=()))) is None


def test_without_exclusive_storage_there_is_nothing_to_say() -> None:
    shared = cluster({}, {"g": {}}, {"n1": "g"}, volumes={"n1": [(1000, 1000)]})
    assert volume_resources(shared, shared.nodes["n1"]) is None


def test_the_notes_say_where_the_figures_are_from() -> None:
    made = state(volumes=((1000, 1000),), terms=TestPromised.TERMS)
    found = {name: volume_resources(made, node) for name, node in made.nodes.items()}
    known = {name: item for name, item in found.items() if item is not None}
    measured, promised = volume_notes(made, known)
    assert measured == (
        "disk and spindles of n1 are worked out from physical volumes; those that the policy neither excludes nor"
        " assigns count as volume group xenvg"
    )
    assert promised == (
        "disk and spindles of n2 are worked out from the hardware that the policy promises, less what disks take"
    )
    assert list(volume_notes(made, {})) == []


@pytest.mark.parametrize(("terms", "notes"), [(VolumeTerms(), 0), (VolumeTerms(reserve=0.05), 1)])
def test_other_shares_are_called_a_what_if(terms: VolumeTerms, notes: int) -> None:
    made = state(terms=GroupTerms(volumes=terms))
    found = what_if_shares(made)
    assert len(found) == notes
    assert all("a margin of 1 % and a reserve of 5 %" in note and "PART_MARGIN" in note for note in found)
    assert what_if_shares(made, "other") == []


REAL = (
    ("/dev/loop0", 252, 100, 152),
    ("/dev/loop1", 252, 252, 0),
    ("/dev/loop2", 252, 0, 252),
    ("/dev/loop3", 256, 0, 256),
    ("/dev/loop4", 60, 40, 20),
    ("/dev/loop5", 124, 0, 124),
)
"""A real LVM as Ganeti 3.0's `list-storage` shows it: four volumes of xenvg, one of rootvg, one of ssdvg.

MiB: size, used, free.
"""


@pytest.mark.parametrize(("locked", "spindles", "free", "disk"), [(None, 4, 2, 488), ("/dev/loop3", 3, 1, 244)])
def test_a_real_lvm(locked: str | None, spindles: int, free: int, disk: int) -> None:
    """Ganeti's GetVgSpindlesInfo and _GetExclusiveStorageVgFree gave these numbers; `locked` is not allocatable.

    252 // 1.03 = 244. All volumes together would be 6 spindles of 60 // 1.03 = 58 MiB.
    """
    volumes = tuple(
        PhysicalVolume(name=name, size=size, used=used, free=empty, allocatable=name != locked)
        for name, size, used, empty in REAL
    )
    terms = VolumeTerms(exclude=("/dev/loop4",), volume_groups={"ssdvg": ("/dev/loop5",)})
    made = state(terms=GroupTerms(volumes=terms))
    found = volume_resources(made, replace(made.nodes["n1"], physical_volumes=volumes))
    assert figures(found) == (spindles * 244, disk, spindles, free)
    made = state()
    found = volume_resources(made, replace(made.nodes["n1"], physical_volumes=volumes))
    assert found is not None
    assert found.figures["disk_total"] == found.figures["spindles_total"] * 58


ANSWER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ganeti import backend
from ganeti.storage.bdev import LogicalVolume
for line in sys.stdin:
    rows = json.loads(line)
    LogicalVolume._GetVolumeInfo = classmethod(lambda *_: [list(row) for row in rows])
    spindles = backend._GetVgSpindlesInfo("xenvg", True)
    print(json.dumps([
        spindles["storage_size"], spindles["storage_free"], LogicalVolume._GetExclusiveStorageVgFree("xenvg"),
    ]))
"""
"""Ganeti's own functions on what `pvs` prints: name, volume group, free, attributes, size, name again."""


@pytest.mark.ganeti
@needs_ganeti[1]
def test_ganeti_itself_counts_the_same() -> None:
    """Volumes of two volume groups, some of which LVM must not use."""
    rnd = random.Random(2)  # noqa: S311
    questions, answers = [], []
    for _ in range(500):
        names = [f"/dev/sd{letter}" for letter in "bcdefghi"[: rnd.randint(0, 8)]]
        rows, volumes = [], []
        groups = [rnd.choice(("xenvg", "xenvg", "ssdvg")) for _ in names]
        for name, group in zip(names, groups, strict=True):
            size = rnd.choice((1, 2, 1000, 1005, 1030, TIB, TIB + 7, rnd.randint(1, 10 * TIB)))
            free = max(0, size - rnd.choice((0, 0, 1, 2, size // 2, size)))
            usable = rnd.random() < 0.9
            rows.append((name, group, f"{free}.00", "a--" if usable else "u--", f"{size}.00", name))
            volumes.append(PhysicalVolume(name=name, size=size, free=free, used=size - free, allocatable=usable))
        other = tuple(name for name, group in zip(names, groups, strict=True) if group == "ssdvg")
        made = state(terms=GroupTerms(volumes=VolumeTerms(volume_groups={"ssdvg": other})))
        found = volume_resources(made, replace(made.nodes["n1"], physical_volumes=tuple(volumes)))
        assert found is not None
        questions.append(rows)
        answers.append([found.figures["spindles_total"], found.figures["spindles_free"], found.figures["disk_free"]])
    run = subprocess.run(
        ["/usr/bin/python3", "-c", ANSWER, str(TREES[-1].parents[2])],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert [json.loads(line) for line in run.stdout.splitlines()] == answers


@pytest.mark.parametrize(
    ("share", "shown"), [(0.07, "7 %"), (0.99999999, "99.999999 %"), (0.005, "0.5 %"), (0.0, "0 %")]
)
def test_a_share_is_shown_as_it_was_written(share: float, shown: str) -> None:
    assert f"counted with a margin of {shown} and" in (VolumeTerms(margin=share).what_if or "")
