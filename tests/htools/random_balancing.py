"""Random questions to hbal: a cluster, options of all kinds, and the files that they name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_clusters import RandomCluster

if TYPE_CHECKING:
    import random

    from gpolicy.allocator.merge import ClusterData

NODE_FIELDS = (
    "fqdn,peermap,spindle_count,hi_spindles,inst_spindles",
    "+ptags,plist,slist",
    "name,idx,amem,tcpu,ucpu,nonsense",
)


def balancing_options(rng: random.Random, cluster: RandomCluster) -> list[str]:
    """Return random options for hbal, without a source."""
    options = []
    if cluster.groups > 1 or rng.random() < 0.1:
        options += ["-G", f"{rng.choice(['g', 'g', 'uuid-'])}{rng.randrange(cluster.groups)}"]
    for chance, option in (
        (0.15, "--no-disk-moves"),
        (0.15, "--no-instance-moves"),
        (0.2, "--evac-mode"),
        (0.2, "--restricted-migration"),
        (0.2, "--ignore-soft-errors"),
        (0.1, "--ignore-dynu"),
        (0.1, "--print-instances"),
        (0.1, "--first-job-group"),
        (0.05, "-q"),
        (0.02, "-qq"),
        (0.2, "-p"),
        (0.1, f"-p{rng.choice(NODE_FIELDS)}"),
        (0.15, f"-l{rng.choice([0, 1, 2, 5])}"),
        (0.1, f"--max-cpu={rng.choice([0.5, 1, 1.7, 16])}"),
        (0.1, f"--min-disk={rng.choice([0.1, 0.25])}"),
        (0.2, f"-g{rng.choice(['0', '0.1', '1e-3'])}"),
        (0.1, f"--min-gain-limit={rng.choice(['0', '1', '5', '100'])}"),
        (0.1, f"-e{rng.choice(['0', '0.5', '3'])}"),
        (0.1, f"-O{rng.choice(cluster.nodes).name if rng.random() < 0.9 else 'nobody'}"),
        (0.1, "--exclusion-tags=power,rack"),
        (0.1, f"--select-instances={_some_instances(rng, cluster)}"),
        (0.1, f"--exclude-instances={_some_instances(rng, cluster)}"),
    ):
        if rng.random() < chance:
            options.append(option)
    return [*options, *["-v"] * rng.choice([0, 0, 0, 1, 2, 3, 4])]


def _some_instances(rng: random.Random, cluster: RandomCluster) -> str:
    names = [name for name in cluster.instances if rng.random() < 0.5]
    short = [name.split(".")[0] if rng.random() < 0.5 else name for name in names]
    return ",".join([*short, "zz"] if rng.random() < 0.05 else short)


def balancing_files(rng: random.Random, cluster: RandomCluster) -> tuple[list[str], dict[str, str]]:
    """Return options that name files with loads, and the files."""
    options, files = list[str](), dict[str, str]()
    if rng.random() < 0.25:
        files["c.util"] = _loads(rng, cluster)
        options += ["-U", "c.util"]
    data = parse_cluster(cluster.text)
    if rng.random() < 0.1:
        xen = rng.random() < 0.4
        files["c.mond"] = json.dumps(_reports(rng, data, xen=xen))
        options += ["--mond", "--mond-data=c.mond", *(["--mond-xen"] if xen else [])]
        options += ["--exit-on-missing-mond-data"] if rng.random() < 0.3 else []
    return options, files


def _loads(rng: random.Random, cluster: RandomCluster) -> str:
    names = [*cluster.instances, "nobody.example.com"]
    rows = [
        f"{name} {' '.join(rng.choice(['0', '1', '0.3', '2.75', '1e-2', '-0.5']) for _ in range(4))}\n"
        for name in names
        if rng.random() < 0.8
    ]
    if rng.random() < 0.05:
        rows.append(rng.choice(["\n", "x 1 2 3\n", "x 1 2 3 y\n"]))
    return "".join(rows)


def _reports(rng: random.Random, data: ClusterData, *, xen: bool) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = []
    missing = rng.random() < 0.2
    head = {"version": "B", "format_version": 1, "timestamp": 1, "category": None, "kind": 0}
    for node in data.nodes:
        if missing and rng.random() < 0.3:
            continue
        loads = {item.name: rng.choice([0.1, 0.25, 1.5]) for item in data.instances if item.primary == node.index}
        cpus = {"cpu_number": 2, "cpus": [0.5, 1], "cpu_total": rng.choice([0.5, 1.25, 3.1])}
        reports: list[dict[str, object]] = [{**head, "name": "xen-cpu-avg-load", "data": loads}]
        reports += [{**head, "name": "cpu-avg-load", "data": cpus}] * (0 if xen else rng.choice([1, 1, 2]))
        entries.append({"node": node.name, "reports": reports})
    return entries
