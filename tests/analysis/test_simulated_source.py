"""`sim:` is the cluster that hspace simulates."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import DEFAULT_POLICY
from gpolicy.analysis.allocator_input import cluster_data, policy_of
from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.htools_sources import built_in_values
from gpolicy.cluster.sources import read_state
from gpolicy.errors import RequestError
from gpolicy.htools.text_format import simulate
from tests.analysis.hspace_cases import hspace_keys, tiered

HSPACE = shutil.which("hspace")
SPECIFICATIONS = [
    ["p,3,204801,10241,21"],
    ["p,3,200g,64g,8", "last_resort,2,100G,32 gib,4,7"],
    ["a,1,1TB,16M,2,3,False", "u,2,1 t,1T,1", "preferred,0,1,1,1"],
]


@pytest.mark.parametrize("specifications", SPECIFICATIONS, ids=" ".join)
def test_the_cluster_equals_simulate_with_the_groups_in_written_order(specifications: list[str]) -> None:
    data = cluster_data(read_state(f"sim:{';'.join(specifications)}"))
    theirs = simulate([*reversed(specifications)])
    assert [(group.name, group.alloc_policy) for group in data.groups] == [
        (group.name, group.alloc_policy) for group in theirs.groups
    ]
    assert [replace(node, index=0, group=node.group + 1) for node in data.nodes] == [
        replace(node, index=0) for node in theirs.nodes
    ]


def test_exclusive_storage_leaves_all_volumes_free() -> None:
    (node,) = cluster_data(read_state("sim:p,1,1t,64g,16,8,True")).nodes
    (theirs,) = simulate(["p,1,1t,64g,16,8,True"]).nodes
    assert (node.exclusive, node.spindles, node.free_spindles) == (True, 8, 8)
    assert (theirs.exclusive, theirs.spindles, theirs.free_spindles) == (True, 8, 0)
    assert capacity(read_state("sim:p,2,1t,64g,16,8,True"), template="plain").groups[0].hspace_standard == 8


def test_the_values_are_ganetis_own() -> None:
    found = policy_of(built_in_values(), "cluster")
    assert found == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p,2", "sim: 2 sections in 'p,2'"),
        ("x,2,1,1,1", "sim: no such allocation policy: 'x'"),
        ("p,two,1,1,1", "sim: node count should be a whole number, not 'two'"),
        ("p,-1,1,1,1", "sim: node count should be a whole number, not '-1'"),
        ("p,1,1x,1,1", "sim: disk should be a size, not '1x'"),
        ("p,1,1,9999999999999999t,1", "sim: memory '9999999999999999t': no cluster has more than 1073741824 MiB"),
        ("p,1,2000000t,1,1", "sim: disk '2000000t': no cluster has more than 1099511627776 MiB"),
        ("p,1,1,1,8193", "sim: CPUs '8193': no cluster has more than 8192"),
        ("p,1,1,1,1,100001", "sim: spindles '100001': no cluster has more than 100000"),
        ("p,1,1,1,1,1,yes", "sim: exclusive storage is True or False, not 'yes'"),
        ("p,6000,1,1,1;p,6000,1,1,1", "sim: 12000 nodes; at most 10000 can be simulated"),
        ("p,1,1,1,1;", "sim: 0 sections in ''"),
        ("p,1,1,1,1,0", "sim: nodes without a spindle: the score of such a cluster is not a number"),
        ("p,1,1,0,1", "sim: nodes without memory: the score of such a cluster is not a number"),
        ("p,1,1,1,0", "sim: nodes without a CPU: htools would never stop counting on them"),
    ],
)
def test_a_wrong_specification_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_state(f"sim:{text}")
    assert caught.value.message == message


@pytest.mark.htools
@pytest.mark.skipif(HSPACE is None, reason="Debian's ganeti-htools (hspace) is not installed")
@pytest.mark.parametrize("template", ["drbd", "plain"])
@pytest.mark.parametrize("specifications", [["p,3,204801,10241,21"], ["p,3,200g,64g,8", "p,2,100G,32g,4,7"]])
def test_hspace_simulate_gives_the_same_numbers(specifications: list[str], template: str) -> None:
    assert HSPACE is not None
    options = [f"--simulate={text}" for text in reversed(specifications)]
    command = [HSPACE, "--machine-readable", f"--disk-template={template}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    keys = hspace_keys(done.stdout.splitlines())
    found = capacity(read_state(f"sim:{';'.join(specifications)}"), template=template).cluster
    assert found is not None
    assert found.score.shown == keys["HTS_INI_SCORE"]
    assert str(found.standard.fits) == keys["HTS_ALLOC_INSTANCES"]
    assert tiered(found) == keys["HTS_TSPEC"]
