"""Disks that Ganeti refuses to make with their spindles: the same verdict in every answer.

The volumes have 10310 MiB, of which Ganeti counts floor(10310 / 1.03) = 10009: two of them hold 20018 MiB.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import Disk, DiskTemplate
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import PlacedSize, capacity
from gpolicy.analysis.place_report import PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest, of_spec
from gpolicy.cluster.state import ClusterState, PhysicalVolume
from gpolicy.cluster.terms import Limits, SpindleFault, VolumeSize, spindle_refusal, under_terms
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.impact import measure_impact
from gpolicy.plan.sides import Sides
from gpolicy.policy.loading import load_policy
from gpolicy.resolve.desired import resolve, terms_of
from tests.analysis.hspace_cases import from_text, text_of

VOLUME = 10310


def cluster(least: int = 2, *, volumes: int | None = VOLUME, free: int = 8, nodes: int = 2) -> ClusterState:
    """Return dedicated nodes with eight volumes each, and one size: 20060 MiB of disk on `least` spindles."""
    rows = [f"n{number}|65536|0|65536|100000|100000|16|N|u|8||Y|{free}|0|1.0" for number in range(nodes)]
    policy = f"1024,1,20060,1,1,{least}|1024,1,20060,1,1,1;1024,1,20060,1,1,{least}|plain|4.0|32.0"
    return with_volumes(from_text(text_of(["g|u|preferred||"], rows, [], [], [f"|{policy}", f"g|{policy}"])), volumes)


def with_volumes(state: ClusterState, size: int | None, *names: str) -> ClusterState:
    if size is None:
        return state
    volumes = tuple(PhysicalVolume(name=f"pv{number}", size=size, free=size, used=0) for number in range(8))
    chosen = names or tuple(state.nodes)
    nodes = {
        name: replace(node, physical_volumes=volumes) if name in chosen else node for name, node in state.nodes.items()
    }
    return replace(state, nodes=nodes)


def asked(state: ClusterState, disk: int, spindles: int | None) -> PlaceReport:
    return place(state, PlaceRequest(memory=1024, vcpus=1, disks=(Disk(disk, spindles),), template="plain"))


@pytest.mark.parametrize(
    ("size", "spindles", "exclusive", "volume", "fault"),
    [
        (20018, 2, True, VOLUME, None),
        (20019, 2, True, VOLUME, SpindleFault.TOO_FEW),
        (20019, 3, True, VOLUME, None),
        (20019, 1, True, None, None),
        (20019, 1, True, 1, None),  # a volume that counts as nothing
        (20019, None, True, None, SpindleFault.MISSING),
        (20019, None, False, VOLUME, None),
        (20019, 3, False, VOLUME, SpindleFault.SHARED),
    ],
)
def test_the_rule_by_hand(
    size: int, spindles: int | None, exclusive: bool, volume: int | None, fault: SpindleFault | None
) -> None:
    counted = None if volume is None else VolumeSize(volume)
    found = spindle_refusal(size, spindles, exclusive=exclusive, volume=counted)
    assert (found and found.fault) == fault


def test_another_reserve_needs_other_volumes() -> None:
    """1000 // 1.03 = 970 and 1000 // 1.25 = 800: a disk of 900 MiB takes one volume or two."""
    assert spindle_refusal(900, 1, exclusive=True, volume=VolumeSize(1000)) is None
    refusal = spindle_refusal(900, 1, exclusive=True, volume=VolumeSize(1000, margin=0.05, reserve=0.2))
    assert refusal is not None
    assert refusal.needed == 2


def test_refusals_in_words() -> None:
    few, missing, shared = (
        spindle_refusal(10240, 1, exclusive=True, volume=VolumeSize(5150)),
        spindle_refusal(10240, None, exclusive=True, volume=None),
        spindle_refusal(10240, 2, exclusive=False, volume=None),
    )
    assert str(few) == "a disk of 10G on 1 spindle needs 3 physical volumes of 5G"  # of each 5000 count
    assert str(missing) == "a disk of 10G has no spindles, but exclusive storage is on"
    assert str(shared) == "a disk of 10G has 2 spindles, but storage is shared"


# --- place -------------------------------------------------------------------------------------------------------


def test_place_refuses_too_few_spindles_and_says_that_hail_does_not() -> None:
    report = asked(cluster(volumes=VOLUME), 20060, 1)
    assert not report.ok
    assert report.nodes == ()
    assert report.group is None
    assert {(item.reason, item.detail) for item in report.candidates} == {
        ("too-few-spindles", f"{name}: a disk of 19.6G on 1 spindle needs 3 physical volumes of 10.1G")
        for name in ("n0", "n1")
    }
    assert report.notes == (
        (
            "hail itself accepts this, on n1: it does not ask which disks Ganeti makes there, and Ganeti refuses them"
            " when it makes the instance"
        ),
    )
    assert report.info.startswith("Request successful")


@pytest.mark.parametrize("template", ["drbd", "file"])
def test_only_plain_instances_are_made_with_exclusive_storage(template: str) -> None:
    """Ganeti 3.0, instance_create.py: "Disk template drbd not supported with exclusive storage"."""
    state = allowing(cluster(3, nodes=3), "drbd", "file", "plain")
    report = place(state, PlaceRequest(memory=1024, vcpus=1, disks=(Disk(20060, 3),), template=template))
    assert not report.ok
    assert {item.reason for item in report.candidates} == {"plain-with-exclusive-storage"}
    (group,) = capacity(state, template=template).groups
    assert [spec.fits for spec in group.specs] == [group.standard.fits] == [group.tiered_fit.fits] == [0]
    causes = {group.standard.binding.cause, group.tiered_binding.cause, *(item.binding.cause for item in group.specs)}
    assert causes == {Cause.ONLY_PLAIN}
    assert group.stranded is not None
    assert group.stranded.left == group.stranded.free


def test_the_default_template_is_one_that_ganeti_makes() -> None:
    state = allowing(cluster(3, nodes=3), "drbd", "plain")
    report = capacity(state)
    assert [item.template for item in (*report.groups, report.cluster) if item] == [DiskTemplate.PLAIN] * 2
    assert report.groups[0].standard.fits > 0
    assert place(state, PlaceRequest(memory=1024, vcpus=1, disks=(Disk(20060, 3),))).ok


def test_the_whole_cluster_counts_nothing_on_nodes_that_refuse_it() -> None:
    rows = [f"s{number}|65536|0|65536|100000|100000|16|N|v|8||N|0|0|1.0" for number in range(3)]
    policy = "1024,1,20060,1,1,1|1024,1,20060,1,1,1;1024,1,20060,1,1,1|drbd,plain|4.0|32.0"
    dedicated = [f"n{number}|65536|0|65536|100000|100000|16|N|u|8||Y|8|0|1.0" for number in range(3)]
    groups, policies = ["g|u|preferred||", "h|v|preferred||"], [f"{name}|{policy}" for name in ("", "g", "h")]
    report = capacity(from_text(text_of(groups, [*dedicated, *rows], [], [], policies)), template="drbd")
    assert report.cluster is not None
    alone = next(item for item in report.groups if item.group == "h")
    assert [item.standard.fits for item in report.groups] == [0, alone.standard.fits]
    assert report.cluster.standard.fits == alone.standard.fits > 0
    assert report.cluster.tiered == alone.tiered
    assert report.cluster.hspace_standard > report.cluster.standard.fits


def allowing(state: ClusterState, *templates: str) -> ClusterState:
    """Return `state` with these disk templates allowed and enabled."""
    held: Values = {("ipolicy", "disk-templates"): list(templates)}
    own: Values = {**state.cluster.own, **held, ("enabled_disk_templates",): list(templates)}
    groups = {
        name: replace(group, own={**group.own, **held}, effective={**group.effective, **held})
        for name, group in state.groups.items()
    }
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups)


def test_place_takes_the_nodes_whose_volumes_are_large_enough() -> None:
    state = with_volumes(with_volumes(cluster(volumes=None), 30900, "n0"), VOLUME, "n1")
    report = asked(state, 20060, 1)
    assert (report.ok, report.nodes) == (True, ("n0",))
    assert [(item.nodes, item.ok) for item in report.candidates] == [(("n0",), True), (("n1",), False)]
    assert report.notes[0].startswith("hail itself accepts this, on n1")


def test_unknown_volumes_refuse_nothing_and_are_told() -> None:
    report = asked(cluster(volumes=None), 20060, 1)
    assert report.ok
    assert report.unchecked == ("spindles not checked: the size of the physical volumes of n1 is not known",)


SHARED = [f"n{number}|65536|0|65536|100000|100000|16|N|u|8||N|0|0|1.0" for number in range(2)]


def test_spindles_on_shared_storage_are_refused_only_where_the_request_gives_them() -> None:
    policy = "1024,1,20060,1,1,2|1024,1,20060,1,1,1;1024,1,20060,1,1,2|plain|4.0|32.0"
    state = from_text(text_of(["g|u|preferred||"], SHARED, [], [], [f"|{policy}", f"g|{policy}"]))
    report = asked(state, 20060, 1)
    assert (report.ok, report.candidates[0].reason) == (False, "spindles-on-shared-storage")
    assert report.candidates[0].detail == "n0: a disk of 20060M has 1 spindle, but storage is shared"
    assert asked(state, 20060, None).ok
    mixed = [*SHARED, *(row.replace("n", "x", 1).replace("|u|8||N|0", "|v|8||Y|8") for row in SHARED)]
    both = from_text(
        text_of(["g|u|preferred||", "h|v|preferred||"], mixed, [], [], [f"{of}|{policy}" for of in ("", "g", "h")])
    )
    pair = capacity(both).groups[0].specs[0].pair
    assert place(both, of_spec(PlaceRequest(template="plain"), pair.max, both, None)).ok


# --- capacity ----------------------------------------------------------------------------------------------------


def test_a_size_that_nobody_can_make_is_not_counted() -> None:
    found = capacity(cluster(2)).groups[0]  # two volumes hold 20018 MiB
    spec = found.specs[0]
    assert (spec.fits, spec.binding.cause) == (0, Cause.TOO_FEW_SPINDLES)
    assert spec.binding.detail == ("a disk of 19.6G on 2 spindles needs 3 physical volumes of 10.1G")
    assert (spec.hspace, found.standard.fits, found.tiered) == (4, 0, ())
    more = capacity(cluster(2), limits=Limits(max_node_failures=1)).groups[0]
    assert (more.specs[0].fits, more.specs[0].binding.cause) == (0, Cause.TOO_FEW_SPINDLES)


def test_with_enough_spindles_it_is_counted() -> None:
    found, unknown = (capacity(cluster(3, volumes=size)).groups[0].specs[0] for size in (VOLUME, None))
    assert found.fits == unknown.fits
    assert (found.fits, found.hspace) == (4, 2)  # 8 // 3 on each node; hspace keeps half of them for N+1


def test_what_a_tiered_run_shrinks_below_its_spindles_is_not_counted() -> None:
    found = capacity(cluster(3, free=1)).groups[0]  # hspace shrinks 3 spindles to the one that is free
    assert found.tiered == ()
    assert found.hspace_tiered == (PlacedSize(1024, 20060, 1, 1, 1),)


def test_nodes_with_smaller_volumes_count_nothing() -> None:
    state = with_volumes(with_volumes(cluster(2, volumes=None, nodes=3), 30900, "n0", "n1"), VOLUME, "n2")
    found = capacity(state).groups[0].specs[0]
    whole = capacity(cluster(2, volumes=None, nodes=3)).groups[0].specs[0].fits
    assert 0 < found.fits < whole  # on the nodes with larger volumes


def test_unknown_volumes_are_a_note_of_the_group() -> None:
    report = capacity(cluster(2, volumes=None))
    assert (report.groups[0].specs[0].fits, report.groups[0].specs[0].hspace) == (8, 4)
    assert report.notes == (
        (
            "group g: the size of its physical volumes is not known, so the spindles of disks are not checked; read"
            " them (gpolicy snapshot --physical-volumes), or write pv_size and pv_count in the group's hardware"
        ),
    )


def test_a_promise_of_the_policy_counts_as_a_measurement(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeGroup\nname: g\nhardware: {pv_count: 8, pv_size: 10310}\n"
    (tmp_path / "g.yaml").write_text(text, encoding="utf-8")
    state = cluster(2, volumes=None)
    policy = load_policy(tmp_path)
    state = under_terms(state, terms_of(policy, resolve(policy, state)))
    assert capacity(state).groups[0].specs[0].fits == 0
    request = PlaceRequest(memory=1024, vcpus=1, disks=(Disk(20060, 2),), template="plain")
    assert not place(state, request).ok
    known = measure_impact(Sides(state, state), parts=("capacity",)).capacity
    assert known is not None
    assert [row.after and row.after.fits for row in known.groups[0].rows] == [0]
    assert known.groups[0].before == known.groups[0].after
