"""The volumes of a node by volume group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.cluster.state import ClusterObject, LiveGroup, LiveNode, PhysicalVolume
from gpolicy.cluster.terms import GroupTerms, VolumeTerms
from gpolicy.cluster.volume_pools import VolumePool, separate_metavg, volume_pools
from gpolicy.ganeti.vocabulary import Value, Values
from tests.plan.planned import cluster

METAVG = ("diskparams", "drbd", "metavg")


def volume(name: str, size: int = 1000, used: int = 0, *, allocatable: bool = True) -> PhysicalVolume:
    return PhysicalVolume(name=f"/dev/{name}", size=size, used=used, free=size - used, allocatable=allocatable)


def names(pool: VolumePool) -> list[str]:
    return [item.name.removeprefix("/dev/") for item in pool.volumes]


def test_without_terms_all_are_in_the_clusters_own_group() -> None:
    pools = volume_pools([volume("sda"), volume("sdb")], VolumeTerms(), "xenvg")
    assert (names(pools.own), pools.others, pools.excluded) == (["sda", "sdb"], {}, ())


@pytest.mark.parametrize("own", ["xenvg", None])
def test_excluded_assigned_and_all_others(own: str | None) -> None:
    terms = VolumeTerms(exclude=("/dev/sda*",), volume_groups={"ssdvg": ("/dev/nvme*", "/dev/sdc")})
    listed = [volume(name) for name in ("sda3", "sdb", "sdc", "sdd", "nvme0n1")]
    pools = volume_pools(listed, terms, own)
    assert names(pools.own) == ["sdb", "sdd"]
    assert {name: names(pool) for name, pool in pools.others.items()} == {"ssdvg": ["sdc", "nvme0n1"]}
    assert [item.name for item in pools.excluded] == ["/dev/sda3"]


def test_the_own_group_may_be_assigned_and_keeps_the_others_as_well() -> None:
    pools = volume_pools([volume("sdb"), volume("sdc")], VolumeTerms(volume_groups={"xenvg": ("/dev/sdb",)}), "xenvg")
    assert (names(pools.own), pools.others) == (["sdb", "sdc"], {})


def test_excluded_goes_before_assigned_and_the_first_group_before_the_second() -> None:
    terms = VolumeTerms(exclude=("/dev/sdb",), volume_groups={"one": ("/dev/sd[bc]",), "two": ("/dev/sdc",)})
    pools = volume_pools([volume("sdb"), volume("sdc")], terms, "xenvg")
    assert [item.name for item in pools.excluded] == ["/dev/sdb"]
    assert {name: names(pool) for name, pool in pools.others.items()} == {"one": ["sdc"], "two": []}


def test_a_name_with_brackets_matches_itself() -> None:
    assert names(volume_pools([volume("odd[1]")], VolumeTerms(exclude=("/dev/odd[1]",)), "xenvg").own) == []


def test_the_numbers_of_a_pool() -> None:
    """Volumes that LVM must not use are no spindles, but they are part of the size of the group.

    1000 // 1.03 = 970. 1 MiB may be missing on an empty volume.
    """
    listed = (
        volume("sdb", 1000),
        volume("sdc", 1010, 1),
        volume("sdd", 1020, 20),
        volume("sde", 1005, 1005),
        volume("sdf", 500, allocatable=False),
    )
    pool = VolumePool(volumes=listed)
    assert (pool.count, pool.smallest, pool.largest, pool.usable) == (4, 1000, 1020, 970)
    assert [item.name for item in pool.empty] == ["/dev/sdb", "/dev/sdc"]
    assert [item.name for item in pool.partly_used] == ["/dev/sdd"]
    assert (pool.size, pool.free, pool.differs) == (4535, 1000 + 1009 + 1000 + 0 + 500, False)


def test_other_shares_change_what_counts() -> None:
    """1000 // 1.25 = 800; with a margin of 0, 1000 and 1020 are not alike."""
    listed = (volume("sdb", 1000), volume("sdc", 1020))
    assert VolumePool(volumes=listed, terms=VolumeTerms(margin=0.05, reserve=0.2)).usable == 800
    assert VolumePool(volumes=listed, terms=VolumeTerms(margin=0.0)).differs
    assert not VolumePool(volumes=listed).differs
    assert (
        VolumePool(volumes=(volume("sdb", 1000), volume("sdc", 1100)), terms=VolumeTerms(margin=0.05)).differs is False
    )


def test_an_empty_pool_has_nothing() -> None:
    pool = VolumePool()
    assert (pool.count, pool.smallest, pool.largest, pool.usable, pool.size, pool.differs) == (
        0,
        None,
        None,
        0,
        0,
        False,
    )


@pytest.mark.parametrize(
    ("enabled", "allowed", "exclusive", "found"),
    [
        (["drbd", "plain"], ["drbd"], False, "meta"),
        (["plain"], ["drbd"], False, None),
        (["drbd"], ["plain"], False, None),
        (None, None, False, "meta"),  # not known: it may be
        (["drbd"], ["drbd"], True, None),
    ],
)
def test_metadata_in_a_volume_group_of_its_own(
    enabled: Value, allowed: Value, found: str | None, *, exclusive: bool
) -> None:
    effective: Values = {METAVG: "meta", ("ipolicy", "disk-templates"): allowed}
    effective |= {("ndparams", "exclusive_storage"): exclusive}
    group = LiveGroup(name="g", own={}, effective=effective)
    own: Values = {("volume_group_name",): "xenvg", ("enabled_disk_templates",): enabled}
    state = replace(cluster(), cluster=ClusterObject(own=own), groups={"g": group})
    state = replace(state, nodes={"n": LiveNode(name="n", group="g", own={})})
    assert separate_metavg(state, group) == found
    for metavg in ("xenvg", "", None):
        assert separate_metavg(state, replace(group, effective={**effective, METAVG: metavg})) is None


def test_a_group_without_terms_has_those_that_say_nothing() -> None:
    assert cluster().terms_of("any") == GroupTerms()
