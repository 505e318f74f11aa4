"""A made-up repository of many clusters on one shared base, the same each time.

    python benchmarks/large_repository.py DIRECTORY [CLUSTERS [GROUPS]]

By default 500 clusters with 40 groups each: 20,000 groups. Each cluster is named in `gpolicy.toml`, has a directory of
its own, and takes nearly all its values from `base.yaml`: every group extends one of two groups there, names its nodes,
and one group in four overrides a value. The snapshots show clusters that are as their policies say, with 3 nodes and 6
instances in each group.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import checkout  # noqa: F401
from large_cluster import BATCH, WEB, cluster_with

from gpolicy.cluster.state_files import write_snapshot
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.loading import load_policy

CLUSTERS = 500
GROUPS = 40

BASE = """\
gpolicy: v1
kind: Cluster
name: fleet
template: true
ganeti_version: "3.0"
enabled_disk_templates: [drbd, plain]
enabled_hypervisors: [kvm]
volume_group_name: xenvg
candidate_pool_size: 10
ipolicy:
  minmax:
    - name: large
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 12G, cpu-count: 3, disk-size: 90G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}
  disk-templates: [drbd, plain]
  vcpu-ratio: 4
  spindle-ratio: 32
diskparams:
  drbd: {dynamic-resync: true, c-plan-ahead: 20, c-min-rate: 4M, c-max-rate: 60M}
---
gpolicy: v1
kind: NodeGroup
name: compute
template: true
alloc_policy: preferred
hardware: {memory: 192G, cpus: 48}
ipolicy:
  minmax: inherit
  vcpu-ratio: inherit
  spindle-ratio: 16
---
gpolicy: v1
kind: NodeGroup
name: batch
template: true
alloc_policy: last_resort
hardware: {memory: 192G, cpus: 48}
ipolicy:
  disk-templates: [plain]
  vcpu-ratio: 8
"""
CLUSTER = """\
gpolicy: v1
kind: Cluster
name: {name}.example.org
extends: ../../base.yaml#fleet
"""
GROUP = """\
---
gpolicy: v1
kind: NodeGroup
name: {base}{number}
extends: ../../base.yaml#{base}
nodes: ["{name}-{base}{number}-*.example.org"]
"""
OVERRIDE = "ipolicy: {spindle-ratio: 24}\n"
SETTINGS = """\
[clusters.{name}]
policy = "clusters/{name}"
state = "snapshot:snapshots/{name}.json"
destination = "ssh://{name}.example.org"
labels = {{stage = "{stage}", site = "site{site}"}}
"""


def write_repository(directory: Path, clusters: int = CLUSTERS, groups: int = GROUPS) -> None:
    """Write the repository into a directory, which need not exist."""
    names = [f"c{number:04}" for number in range(clusters)]
    for name in names:
        home = directory / "clusters" / name
        home.mkdir(parents=True)
        (home / "cluster.yaml").write_text(CLUSTER.format(name=name), encoding="utf-8")
        (home / "groups.yaml").write_text("".join(_group(name, number) for number in range(groups)), encoding="utf-8")
    (directory / "base.yaml").write_text(BASE, encoding="utf-8")
    tables = [
        SETTINGS.format(name=name, stage="canary" if number < 5 else "prod", site=number % 7)
        for number, name in enumerate(names)
    ]
    (directory / "gpolicy.toml").write_text("\n".join(tables), encoding="utf-8")


def _group(name: str, number: int) -> str:
    text = GROUP.format(name=name, number=number, base=_base(number))
    return text + OVERRIDE if number % 4 == 0 else text


def _base(number: int) -> str:
    return "batch" if number % 5 == 4 else "compute"


def write_snapshots(directory: Path, clusters: int = CLUSTERS, groups: int = GROUPS) -> None:
    """Write the states of the clusters: that of the first is made, the others differ from it in names only."""
    plans = [
        replace(BATCH if base == "batch" else WEB, name=f"c0000-{base}{number}-", nodes=3, instances=6)
        for number in range(groups)
        for base in [_base(number)]
    ]
    state = cluster_with(plans)
    short = {name: name.removeprefix("c0000-").removesuffix("-") for name in state.groups}
    state = replace(
        state,
        name="c0000.example.org",
        groups={short[name]: replace(group, name=short[name]) for name, group in state.groups.items()},
        nodes={name: replace(node, group=short[node.group]) for name, node in state.nodes.items()},
    )
    state = planned_sides(load_policy(directory / "clusters" / "c0000"), state).after
    first = directory / "snapshots" / "c0000.json"
    first.parent.mkdir()
    write_snapshot(state, first)
    text = first.read_text(encoding="utf-8")
    for number in range(1, clusters):
        other = first.with_name(f"c{number:04}.json")
        other.write_text(text.replace("c0000", f"c{number:04}"), encoding="utf-8")


def main() -> int:
    if len(sys.argv) not in (2, 3, 4):
        print(__doc__)
        return 3
    counts = [int(word) for word in sys.argv[2:]]
    write_repository(Path(sys.argv[1]), *counts)
    write_snapshots(Path(sys.argv[1]), *counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
