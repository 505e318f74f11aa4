"""Room for the metadata of DRBD disks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject, ClusterState
from gpolicy.ganeti.vocabulary import Values
from tests.rules.observed_clusters import with_volumes
from tests.rules.policy_texts import GROUP
from tests.rules.run_rules import check, cluster

TEXT = f"{GROUP}diskparams:\n  drbd: {{metavg: ssdvg}}\nphysical_volumes: {{volume_groups: {{ssdvg: [/dev/sdb]}}}}\n"
OWN: Values = {("volume_group_name",): "xenvg"}


def state(*sizes: int, own: Values = OWN) -> ClusterState:
    """Return a cluster whose nodes have /dev/sda, /dev/sdb, … of these sizes, all free."""
    made = with_volumes(cluster({"gold": {}}, {"n1": "gold"}), *sizes)
    return replace(made, cluster=ClusterObject(own=own))


def messages(state: ClusterState, directory: Path, text: str = TEXT) -> list[str]:
    return [item.message for item in check(text, directory, state=state) if item.code == "GP727"]


@pytest.mark.parametrize(
    ("sizes", "has"), [((1000, 127), "127M free in ssdvg"), ((1000,), "no volume of ssdvg"), ((1000, 128), None)]
)
def test_the_volumes_of_metavg_are_looked_at(sizes: tuple[int, ...], has: str | None, tmp_path: Path) -> None:
    said = f"n1 in group gold has {has}: no metadata of another DRBD disk fits (128 MiB)"
    assert messages(state(*sizes), tmp_path) == ([said] if has else [])


def test_nothing_is_said_where_it_does_not_matter_or_is_not_known(tmp_path: Path) -> None:
    full = state(1000, 64)
    owns: list[Values] = [
        {("volume_group_name",): "ssdvg"},
        {},
        {**OWN, ("enabled_disk_templates",): ["plain"]},
        {**OWN, ("ndparams", "exclusive_storage"): True},
    ]
    for own in owns:
        assert messages(replace(full, cluster=ClusterObject(own=own)), tmp_path) == []
    allowed: Values = {("ipolicy", "disk-templates"): ["plain"]}
    plain = replace(full.groups["gold"], own=allowed, effective=allowed)
    assert messages(replace(full, groups={"gold": plain}), tmp_path) == []
    unread = {"n1": replace(full.nodes["n1"], physical_volumes=None)}
    offline = {"n1": replace(full.nodes["n1"], offline=True)}
    assert messages(replace(full, nodes=unread), tmp_path) == []
    assert messages(replace(full, nodes=offline), tmp_path) == []
    assert messages(full, tmp_path, TEXT.replace("metavg: ssdvg", "metavg: xenvg")) == []
    assert messages(full, tmp_path, TEXT.replace("volume_groups: {ssdvg", "volume_groups: {other")) == []
