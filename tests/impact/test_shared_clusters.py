"""Clusters are made and loaded once for all parts of an impact."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hspace_cases import FULL, from_text

from gpolicy.allocator.cluster_data import ClusterData
from gpolicy.allocator.merge import Cluster
from gpolicy.analysis.capacity_run import loaded
from gpolicy.analysis.clusters import Clusters
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.redundancy_change import redundancy_change
from gpolicy.impact.resource_model_change import resource_model_change


def test_equal_clusters_are_one_and_the_same() -> None:
    before = from_text(FULL)
    after = replace(before, cluster=replace(before.cluster, tags=before.cluster.tags | {"of-no-matter"}))
    shared = Clusters()
    old, new = shared.part(before), shared.part(after)
    assert shared.part(before) is old
    assert old is not new
    for group in (None, *before.groups):
        assert shared.of(old, group) is shared.of(new, group)


def test_a_tag_that_htools_reads_makes_another_cluster() -> None:
    before = from_text(FULL)
    after = replace(before, cluster=replace(before.cluster, tags=before.cluster.tags | {"htools:iextags:other"}))
    shared = Clusters()
    assert shared.of(shared.part(before), None) is not shared.of(shared.part(after), None)


def test_all_parts_load_each_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []

    def counted(data: ClusterData) -> Cluster:
        loads.append(data)
        return loaded(data)

    monkeypatch.setattr("gpolicy.analysis.clusters.loaded", counted)
    before = from_text(FULL)
    after = replace(before, notes=("read again",))
    shared = Clusters()
    capacity = capacity_change(before, after, clusters=shared)
    redundancy = redundancy_change(before, after, clusters=shared)
    model = resource_model_change(before, after, clusters=shared)
    assert len(loads) == len(before.groups) + 1
    monkeypatch.undo()
    assert capacity == capacity_change(before, after)
    assert redundancy == redundancy_change(before, after)
    assert model == resource_model_change(before, after)
