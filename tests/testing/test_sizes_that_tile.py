"""Sizes of dedicated nodes: the rules accept one if and only if the allocator places it as often as its name says."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import DiskTemplate, Instance
from gpolicy.allocator.merge import merge
from gpolicy.allocator.requests import allocation_vector
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.settings import Settings
from gpolicy.cluster.terms import VolumeSize
from gpolicy.policy.loading import load_policy
from gpolicy.testing.running_tests import promised_cluster
from tests.mistakes import find_mistakes

SHARES = {"full": 1, "half": 2, "third": 3, "quarter": 4}
TOO_LARGE = {"GP211", "GP212", "GP405", "GP415", "GP416"}
ONLY_THESE = Settings(ignored=frozenset(info.code for info in CATALOGUE if info.code not in TOO_LARGE))


def policy(rng: random.Random) -> tuple[str, str]:
    """Return the name of a part of a node and a policy with it, of about the size of that part."""
    name, times = rng.choice(list(SHARES.items()))
    memory, cpus, volumes = rng.choice([64, 70, 256]) * 1024, rng.choice([10, 16, 32]), rng.choice([4, 6, 12])
    volume, ratio = rng.choice([10272, 10310, 1048576]), rng.choice([1, 1, 0.5, 0.7, 0.29])
    kept = {key: rng.choice([0, most]) for key, most in (("mem_node", 4096), ("mem_hv", 1024), ("cpu_node", 2))}
    share = (memory - kept["mem_node"] - kept["mem_hv"]) // times // 4 * 4
    disk = volumes * VolumeSize(volume).usable // times // 4 * 4
    size = max(4, share + rng.choice([-64, -4, -4, -4, 0, 4]))
    wanted = max(4, disk + rng.choice([-64, -4, -4, -4, 0, 4]))
    cpu = max(1, int((cpus * ratio - kept["cpu_node"]) // times) + rng.choice([-1, 0, 0, 0, 0, 1]))
    spindles = max(VolumeSize(volume).needed(wanted), volumes // times + rng.choice([0, 0, 0, 0, 1]))
    bounds = (
        f"{{memory-size: {size}, cpu-count: {cpu}, disk-size: {wanted}, disk-count: 1, nic-count: 1,"
        f" spindle-use: {spindles}}}"
    )
    state = ", ".join(f"{key}: {value}" for key, value in kept.items())
    return (
        name,
        f"""\
gpolicy: v1
kind: NodeGroup
name: dedicated
nodes: [node1]
hardware: {{memory: {memory}, cpus: {cpus}, pv_count: {volumes}, pv_size: {volume}}}
ndparams: {{exclusive_storage: true}}
hv_state:
  xen-pvm: {{{state}}}
ipolicy:
  vcpu-ratio: {ratio}
  disk-templates: [plain]
  minmax:
    - name: {name}
      min: {bounds}
      max: {bounds}
""",
    )


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_the_rules_accept_a_size_if_and_only_if_the_allocator_places_that_many(first: int, tmp_path: Path) -> None:
    seen = {True: 0, False: 0}
    for seed in range(first, first + 100):
        name, text = policy(random.Random(seed))  # noqa: S311 (no secrets here)
        (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
        declared = load_policy(tmp_path)
        codes = {finding.code for finding in find_mistakes(declared, today=date(2026, 6, 15), settings=ONLY_THESE)}
        cluster = merge(cluster_data(promised_cluster(declared, "here")))
        (node,) = cluster.nodes.values()
        pair = node.facts.policy.minmax[0]
        (count,) = allocation_vector(node, [Instance.wanted(pair.max, DiskTemplate.PLAIN, pair.max.spindle_use)])
        fits = count >= SHARES[name]
        assert fits is (not codes), (seed, count, codes, text)
        seen[fits] += 1
    assert min(seen.values()) >= 5
