"""The states of an impact are made into pairs once, for all its measures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.comparison import load_sides
from gpolicy.impact.impact import redundancy_change, resource_model_change
from gpolicy.plan.sides import Sides
from gpolicy.progress import silent
from tests.analysis.hspace_cases import FULL, from_text


def test_equal_clusters_are_one_and_the_same() -> None:
    before = from_text(FULL)
    tags = before.cluster.tags | {"of-no-matter"}
    compared = load_sides(Sides(before, replace(before, cluster=replace(before.cluster, tags=tags))))
    assert compared.before is not compared.after
    assert compared.whole is not None
    for sides in (compared.whole, *compared.groups):
        assert sides.before is sides.after


def test_a_tag_that_htools_reads_makes_another_cluster() -> None:
    before = from_text(FULL)
    tags = before.cluster.tags | {"htools:iextags:other"}
    compared = load_sides(Sides(before, replace(before, cluster=replace(before.cluster, tags=tags))))
    assert compared.whole is not None
    assert compared.whole.before is not compared.whole.after


def test_all_measures_load_each_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []

    def counted(data: ClusterData, **options: Any) -> Cluster:
        loads.append(data)
        return merge(data, **options)

    monkeypatch.setattr("gpolicy.analysis.allocator_input.merge", counted)
    before = from_text(FULL)
    compared = load_sides(Sides(before, replace(before, notes=("read again",))))
    capacity = capacity_change(compared, silent)
    redundancy = redundancy_change(compared, 1, silent)
    model = resource_model_change(compared, silent)
    assert len(loads) == 2 * (len(before.groups) + 1) - 1  # as hail and as hspace reads them: one group is the same
    monkeypatch.undo()
    again = load_sides(Sides(before, before))
    assert capacity == capacity_change(again, silent)
    assert redundancy == redundancy_change(again, 1, silent)
    assert model == resource_model_change(again, silent)


def test_a_new_group_may_have_the_name_that_another_had() -> None:
    before = from_text(FULL)
    (name, group), *_ = before.groups.items()
    assert group.identity.uuid is not None
    new = replace(group, identity=replace(group.identity, uuid=None))
    after = replace(before, groups={**before.groups, name: new, "renamed": group})
    matches = {match.name: match.before for match in Sides(before, after).groups}
    assert matches["renamed"] == name
    assert matches[name] is None
