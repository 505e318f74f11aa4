"""The arithmetic of exclusive storage (partitioned Ganeti, "Exclusive use of disks")."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, strategies as st

from gpolicy.cluster.terms import VolumeSize, VolumeTerms, sizes_differ
from gpolicy.findings import Located, Span
from gpolicy.policy.model import Hardware
from gpolicy.rules.node_limits import total_disk
from tests.ganeti.real_ganeti import TREES

MIB = st.integers(2, 64 * 1024**2)
TIB = 1024**2


@pytest.mark.parametrize(
    ("smallest", "largest", "bad"), [(1000, 1000, False), (1000, 1020, False), (1000, 1021, True), (1, 2, True)]
)
def test_the_margin_is_one_percent_around(smallest: int, largest: int, bad: bool) -> None:
    assert sizes_differ(smallest, largest) is bad


def test_a_disk_of_one_volumes_size_takes_two() -> None:
    assert VolumeSize(TIB).usable == 1018034
    assert VolumeSize(TIB).needed(TIB) == 2
    assert VolumeSize(TIB).needed(1018034) == 1
    assert VolumeSize(TIB).needed(1018035) == 2
    assert VolumeSize(TIB).needed(11 * TIB) == 12
    assert VolumeSize(TIB).needed(0) == 0


@given(MIB, MIB)
def test_a_disk_fits_the_volumes_it_needs_and_no_fewer(size: int, volume: int) -> None:
    volumes = VolumeSize(volume).needed(size)
    assert VolumeSize(volume).largest_disk(volumes) >= size
    assert volumes == 0 or VolumeSize(volume).largest_disk(volumes - 1) < size


@given(MIB)
def test_margin_and_reserve_are_three_percent(volume: int) -> None:
    assert VolumeSize(volume).usable <= volume / 1.03 < VolumeSize(volume).usable + 1.001


ANSWER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ganeti import objects
from ganeti.storage.bdev import LogicalVolume
from ganeti.utils import lvm
for line in sys.stdin:
    small, large, size = json.loads(line)
    volumes = [objects.LvmPvInfo(size=float(small)), objects.LvmPvInfo(size=float(large))]
    needed = LogicalVolume._ComputeNumPvs(size, volumes) if small > 1 else 0
    print(json.dumps([lvm.LvmExclusiveTestBadPvSizes(small, large), needed]))
"""


@pytest.mark.ganeti
@pytest.mark.skipif(not TREES, reason="Debian's package ganeti is not installed (no /usr/share/ganeti/3.*)")
def test_ganeti_itself_answers_the_same() -> None:
    questions = [
        (small, small * percent // 100, size)
        for small in (1, 2, 3, 103, 1000, 1030, 4099, TIB, 3 * TIB + 5, 10 * TIB)
        for percent in (100, 101, 102, 103, 200)
        for size in (
            0,
            1,
            small,
            2 * small,
            VolumeSize(small).usable,
            VolumeSize(small).usable + 1,
            100 * VolumeSize(small).usable,
        )
    ]
    run = subprocess.run(
        ["/usr/bin/python3", "-c", ANSWER, str(TREES[-1].parents[2])],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    ours = [
        [sizes_differ(small, large), VolumeSize(small).needed(size) if small > 1 else 0]
        for small, large, size in questions
    ]
    assert [json.loads(line) for line in run.stdout.splitlines()] == ours


def hardware(*sizes: int, count: int | None = None) -> Hardware:
    place = Span("f", 1, 1, 1, 2)
    return Hardware(
        span=place,
        pv_sizes=tuple(Located(size, place) for size in sizes),
        pv_count=None if count is None else Located(count, place),
    )


@pytest.mark.parametrize(
    ("described", "count", "shared", "exclusive"),
    [
        (hardware(), None, None, None),
        (hardware(TIB), None, None, None),
        (hardware(count=4), 4, None, None),
        (hardware(TIB, count=4), 4, 4 * TIB, 4 * 1018034),
        (hardware(TIB, TIB + 4), 2, 2 * TIB + 4, 2 * 1018034),
        (hardware(TIB, TIB + 4, count=4), 4, 4 * TIB + 16, 4 * 1018034),
    ],
)
def test_the_greatest_resources_of_a_node(
    described: Hardware, count: int | None, shared: int | None, exclusive: int | None
) -> None:
    assert described.volume_count == count
    assert total_disk(described) == shared
    assert total_disk(described, VolumeTerms()) == exclusive
