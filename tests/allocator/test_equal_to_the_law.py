"""Small cases in which the engine once differed from the law, which agreed with the real hail."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate, Group, Instance
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.engines import find_placement
from gpolicy.allocator.merge import Cluster, ClusterData, merge
from gpolicy.allocator.node_changes import remove_primary
from gpolicy.allocator.placement import Attempt, Candidates, PairCandidates, SingleCandidates
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.errors import InputError
from tests.allocator.helpers import cluster, instance, law_of, node
from tests.htools.random_requests import document
from tests.htools.three_ways import by_the_law

RACKS = ("htools:nlocation:rack",)


def asked_both_ways(where: Cluster, wanted: Instance, candidates: Candidates) -> Attempt:
    """Return the law's answer, after comparing it with the engine's."""
    with by_the_law():
        law = _ask(where, wanted, candidates)
    assert repr(_ask(where, wanted, candidates)) == repr(law)
    return law


def _ask(where: Cluster, wanted: Instance, candidates: Candidates) -> Attempt:
    nodes, rules = where.nodes, CapacityRules(failures=0)
    return find_placement(nodes, where.instances, wanted, candidates, rules)


def in_racks(*racks: str, residents: tuple[Instance, ...] = (), offline: int = -1) -> Cluster:
    """Return a cluster with a node for each rack (empty: none)."""
    tags = [(f"rack:{rack}",) if rack else () for rack in racks]
    nodes = [node(place, 4096, 20480, tags=own, offline=place == offline) for place, own in enumerate(tags)]
    return cluster(nodes, list(residents), tags=RACKS)


class TestLocations:
    """The common locations of a pair count where the primary is online, and only those of the new pair."""

    def test_the_primary_is_offline(self) -> None:
        """allocate-secondary: the sums of online nodes have no part of an offline primary."""
        resident = instance(512, 1024, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=0)
        where = in_racks("a", "a", "b", residents=(resident,), offline=0)
        left = remove_primary(where.nodes[0], where.instances[0])
        where = replace(where, nodes={**where.nodes, 0: left})
        wanted = replace(where.instances[0], template=DiskTemplate.DRBD)
        same, other = (asked_both_ways(where, wanted, PairCandidates(((0, (place,)),))).solution for place in (1, 2))
        assert same is not None
        assert other is not None
        assert abs(same.score - other.score) < 0.5  # one location in common would cost 1

    def test_the_instance_has_a_pair_already(self) -> None:
        """change-group: a second one of a mirrored instance, whose present pair has a location in common."""
        resident = instance(512, 1024, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0, secondary=1)
        where = in_racks("a", "a", "", "", residents=(resident,))
        assert where.instances[0].location_score == 1
        attempt = asked_both_ways(where, where.instances[0], PairCandidates(((2, (2, 3)), (3, (2, 3)))))
        assert attempt.solution is not None
        assert attempt.solution.instance.location_score == 0


def test_an_instance_on_external_storage_with_a_second_node() -> None:
    """change-group looks for one node; the second node of the record does not matter."""
    resident = instance(512, 1024, 1, DiskTemplate.EXT, index=0, name="i0", primary=0, secondary=1)
    where = cluster([node(place, 4096, 20480) for place in range(3)], [resident])
    attempt = asked_both_ways(where, where.instances[0], SingleCandidates((2,)))
    assert attempt.solution is not None
    assert attempt.solution.nodes == (2,)


def test_a_mirrored_instance_without_a_second_node_ends_every_run() -> None:
    """N+1 cannot be judged with this instance, even if nothing fits; the real hspace ends with an error."""
    resident = instance(512, 1024, 1, DiskTemplate.DRBD, index=0, name="i0", primary=0)
    where = cluster([node(place, 4096, 20480, free_disk=100) for place in range(2)], [resident])
    wanted = instance(512, 1024, 1, DiskTemplate.PLAIN)
    for reference in (True, False):
        candidates = SingleCandidates((0, 1))
        runner: Allocator = CompiledAllocator(candidates, CapacityRules(), capacity_checks=True)
        runner = law_of(runner) if reference else runner
        with pytest.raises(InputError, match="has no secondary node"):
            runner.standard(AllocationState(where.nodes, where.instances), wanted, None)


def test_nodes_are_lost_in_their_own_order() -> None:
    """Node 1, alone in its group, cannot be lost: nobody comes to the incomplete instance of node 2."""
    lonely = instance(512, 1024, 1, DiskTemplate.PLAIN, index=0, name="i0", primary=1)
    incomplete = instance(512, 1024, 1, DiskTemplate.DRBD, index=1, name="i1", primary=2)
    nodes = [node(place, 4096, 20480, group=place % 2) for place in range(3)]
    groups = tuple(Group(index, f"g{index}", f"u{index}") for index in range(2))
    where = merge(ClusterData(groups, tuple(nodes), (lonely, incomplete)))
    for reference in (True, False):
        runner: Allocator = CompiledAllocator(SingleCandidates((0, 1, 2)), CapacityRules(), capacity_checks=True)
        runner = law_of(runner) if reference else runner
        state = AllocationState(where.nodes, where.instances)
        assert runner.standard(state, instance(512, 1024, 1, DiskTemplate.PLAIN), 1).placed == ()


def test_a_mirrored_instance_requested_on_one_node(tmp_path: Path) -> None:
    """The real hail ends with exit code 1 where N+1 is judged; a process of its own, since ours once died there."""
    data = ClusterData((Group(0, "g0", "u0"),), tuple(node(place, 4096, 20480) for place in range(3)), ())
    request = {
        "type": "allocate", "name": "new", "memory": 512, "vcpus": 1, "disks": [{"size": 1024}], "required_nodes": 1,
        "disk_space_total": 1024, "disk_template": "drbd", "spindle_use": 1, "tags": [], "nics": [],
    }  # fmt: skip
    path = tmp_path / "request.json"
    path.write_text(json.dumps(document(random.Random(1), data, request)))  # noqa: S311 (no secrets here)
    done = subprocess.run(
        [sys.executable, "-m", "gpolicy", "htools", "hail", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
