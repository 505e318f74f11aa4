"""The engine keeps the cluster from one run to the next, and is asked only what it can answer."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from gpolicy.allocator import compiled_allocation
from gpolicy.allocator.cluster_data import Disk, DiskTemplate, Instance, SpecPair
from gpolicy.allocator.engines import opened_engine
from gpolicy.allocator.native.library import NativeEngine
from gpolicy.allocator.native.streams import ClusterNumbers
from gpolicy.allocator.placement import Nodes
from tests.allocator.helpers import allocator, cluster, instance, law_of, node, policy, spec, start

SMALL = cluster([node(place, 16384, 204800) for place in range(3)])
WANTED = instance(1024, 10240, 1, DiskTemplate.PLAIN)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Clusters that an engine was opened with."""
    found: list[object] = []

    def open_engine(library: ctypes.CDLL, known: ClusterNumbers, nodes: Nodes) -> NativeEngine:
        found.append(known)
        return opened_engine(library, known, nodes)

    monkeypatch.setattr(compiled_allocation, "opened_engine", open_engine)
    return found


def test_a_run_goes_on_from_any_state_that_the_engine_knows(opened: list[object]) -> None:
    made = allocator(SMALL, 1)
    law, first = law_of(made), start(SMALL)
    two = made.standard(first, WANTED, 2)
    assert made.standard(two, WANTED, 2) == law.standard(law.standard(first, WANTED, 2), WANTED, 2)
    assert made.tiered(two, WANTED, 1) == law.tiered(law.standard(first, WANTED, 2), WANTED, 1)
    assert made.standard(first, WANTED, 1) == law.standard(first, WANTED, 1)
    assert len(opened) == 1


def test_another_state_is_another_cluster(opened: list[object]) -> None:
    made = allocator(SMALL, 1)
    law, first = law_of(made), start(SMALL)
    two = made.standard(first, WANTED, 2)
    made.standard(first, WANTED, 1)  # the engine goes back, and forgets what came after
    assert made.standard(two, WANTED, 1) == law.standard(two, WANTED, 1)
    assert len(opened) == 2
    other = replace(two, instances=dict(two.instances))
    assert made.standard(other, WANTED, 1) == law.standard(other, WANTED, 1)
    assert len(opened) == 3


@pytest.mark.parametrize("wanted", [replace(WANTED, index=7), replace(WANTED, forthcoming=True)])
def test_an_instance_with_a_number_is_for_the_law(wanted: Instance, opened: list[object]) -> None:
    made = allocator(SMALL, 1)
    assert made.standard(start(SMALL), wanted, 1) == law_of(made).standard(start(SMALL), wanted, 1)
    assert opened == []


@pytest.mark.parametrize(("smallest", "largest"), [(100, 4096), (2048, 90000), (2048, 4096)])
def test_each_disk_has_to_fit_the_policy(smallest: int, largest: int) -> None:
    allowed = policy(SpecPair(spec(128, 1, 1024, count=1), spec(16384, 8, 65536, count=4)))
    where = cluster([node(place, 16384, 204800) for place in range(3)], group_policy=allowed)
    disks = (Disk(largest, 1), Disk(smallest, 1))
    wanted = replace(WANTED, disks=disks, disk=smallest + largest)
    made = allocator(where, 1)
    found = made.standard(start(where), wanted, 2)
    assert found == law_of(made).standard(start(where), wanted, 2)
    assert len(found.placed) == (2 if (smallest, largest) == (2048, 4096) else 0)
